"""Ranks of inexact keys: elements whose intervals overlap may stand in either order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..interpreter.ranking import places
from ..interpreter.reading import Box
from ..ranking import Rank
from ..stages import Stage
from .rules import Enclosure

if TYPE_CHECKING:
    from .stages import EnclosingEvaluation

Array = np.ndarray[Any, Any]


def ranked(of: EnclosingEvaluation, s: Stage, found: Rank, sources: Mapping[int, Enclosure]) -> Enclosure:
    """The stage's value; its error is the number of elements that an element may change places with."""
    from .stages import EnclosingPoint

    axes = (*found.free, found.over)
    box = Box(axes, tuple((0, of.size(s.ranges[a])) for a in axes), of.size)
    keys = EnclosingPoint(of, box, sources).bound(found.key)
    value = np.broadcast_to(keys.value, box.shape)
    place, at = places(value, found.descending), found.position
    rank = np.ascontiguousarray(np.moveaxis(place, -1, at))
    if keys.error is None or not keys.error.any():
        return Enclosure(rank)
    error = _rivals(value.astype(np.float64), np.broadcast_to(keys.error, box.shape))
    error = np.ascontiguousarray(np.moveaxis(error, -1, at))
    return Enclosure(rank, error, error > 0)


def _rivals(keys: Array, error: Array) -> Array:
    """How many others each element's interval overlaps, along the last axis; NaN overlaps all that may be NaN."""
    low, high = (np.where(np.isnan(keys), np.inf, keys + sign * error) for sign in (-1, 1))
    out = np.zeros(keys.shape)
    for row in np.ndindex(keys.shape[:-1]):
        a, b = low[row], high[row]
        reached = np.searchsorted(np.sort(a), b, side="right") - np.searchsorted(np.sort(b), a, side="left")
        sure = np.sort(a[error[row] == 0])
        exact = (error[row] == 0) & (reached == np.searchsorted(sure, a, "right") - np.searchsorted(sure, a, "left"))
        out[row] = np.where(exact, 0, reached - 1)
    return out


__all__ = ["ranked"]
