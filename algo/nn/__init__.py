"""Layers: modules with parameters, written with the operators. Parameters have named axes, which a plan may speak of.

What has no parameters needs no layer: ``fl.relu`` and ``lambda x: fl.max_pool2d(x, 2)`` stand in a Sequential as they are. Lists and dicts
of layers are Python's own; a layer held in two places is shared, and its parameters bear the name of the first.
"""

from __future__ import annotations

from ..program import Module
from .attention import MultiHeadAttention
from .convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .dense import Embedding, Linear, PReLU, Sequential
from .normalization import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from .transformer import FeedForward, TransformerBlock, TransformerDecoderLayer, TransformerEncoderLayer

__all__ = [
    "BatchNorm", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Embedding", "FeedForward",
    "GroupNorm", "InstanceNorm", "LayerNorm", "Linear", "Module", "MultiHeadAttention", "PReLU", "RMSNorm", "Sequential",
    "TransformerBlock", "TransformerDecoderLayer", "TransformerEncoderLayer",
]  # fmt: skip
