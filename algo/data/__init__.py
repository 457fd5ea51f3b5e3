"""Readers of data: ``fl.data.arrays``, `csv`, `npy`, `safetensors`, `images`, `digits`, `diabetes`, or any iterable.

    train = fl.data.csv("housing.csv", columns={"x": range(13), "y": [13]}, batch_size=64, shuffle=0).prefetch(2)

A dataset is a description: the order of its examples is a function of the seed and the number of the pass, so that reading can go on from
any position. `map`, `shuffle`, `batch`, `take` and `prefetch` make others of it; `stream` reads it pass after pass.
"""

from __future__ import annotations

from .dataset import Dataset
from .mapped_files import npy, safetensors
from .pictures import images
from .samples import diabetes, digits
from .sources import arrays, dataset
from .stream import Position, Stream
from .tables import csv

__all__ = ["Dataset", "Position", "Stream", "arrays", "csv", "dataset", "diabetes", "digits", "images", "npy", "safetensors"]
