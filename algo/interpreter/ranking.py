"""Ranks by a stable sort, row by row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ranking import Rank
from ..stages import Stage
from .reading import Box

if TYPE_CHECKING:
    from .stages import Evaluation

Array = np.ndarray[Any, Any]
_REGISTERED = 2  # `dtype.isbuiltin` of bfloat16 and float8


def rank(evaluation: Evaluation, s: Stage, found: Rank, sources: Mapping[int, Array], out: Array) -> None:
    """The stage's array, into `out`."""
    from .stages import SLAB, Point, slabs

    axes = (*found.free, found.over)
    moved = np.moveaxis(out, found.position, -1)
    extents = tuple(evaluation.size(s.ranges[a]) for a in axes)
    for ranges in slabs(extents[:-1], max(1, SLAB // max(1, extents[-1]))):
        box = Box(axes, (*ranges, (0, extents[-1])), evaluation.size)
        keys = np.broadcast_to(Point(evaluation, box, sources).value(found.key), box.shape)
        moved[tuple(slice(low, high) for low, high in ranges)] = places(keys, found.descending)


def places(keys: Array, descending: bool) -> Array:
    """Where each element of the last axis stands once that is sorted: stably, NaN last."""
    if keys.dtype.isbuiltin == _REGISTERED:
        keys = keys.astype(np.float32)  # NumPy sorts a NaN of these anywhere
    order = np.argsort(_reversed(keys) if descending else keys, axis=-1, kind="stable")
    out = np.empty(keys.shape, np.int32)
    np.put_along_axis(out, order, np.arange(keys.shape[-1], dtype=np.int32).reshape((1,) * (keys.ndim - 1) + (-1,)), axis=-1)
    return out


def _reversed(keys: Array) -> Array:
    """Keys in the opposite order, without overflow."""
    return -keys if keys.dtype.kind == "f" else ~keys


__all__ = ["places", "rank"]
