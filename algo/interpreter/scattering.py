"""Scatters in one pass over what is scattered.

Values arrive in the order of the reduction's axes, the last one fastest: a float sum adds them one after another in that order, starting
from zero. All other combinations are exact, so no order shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..expr import Axis
from ..identities import identity
from ..scatter import Scatter
from ..stages import Stage
from .elementary import convert
from .reading import Box

if TYPE_CHECKING:
    from .stages import Evaluation

Array = np.ndarray[Any, Any]
JOIN_AT: dict[str, np.ufunc] = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "any": np.logical_or, "all": np.logical_and,
}  # fmt: skip


def scattered(evaluation: Evaluation, s: Stage, scatter: Scatter, sources: Mapping[int, Array], out: Array) -> None:
    """The stage's array, into `out`."""
    from .stages import Point

    assert s.reduction is not None
    out[...] = identity(s.reduction.kind, s.dtype).value
    flat = out.reshape(-1)
    for box in boxes(evaluation, s, scatter):
        point = Point(evaluation, box, sources)
        places = {a: point.value(a) for a in scatter.free}
        kept = np.ones((1,) * len(box.axes), bool)
        for a, e in zip(scatter.targets, scatter.index, strict=True):
            at, inside = clipped(point.value(e), evaluation.size(s.ranges[a]))
            point.done[a] = places[a] = at
            kept = kept & inside
        for p in scatter.predicates:
            kept = kept & point.value(p)
        kept = np.broadcast_to(kept, box.shape)
        value = np.broadcast_to(convert(point.value(scatter.value), out.dtype.name), box.shape)[kept]
        JOIN_AT[s.reduction.kind].at(flat, np.broadcast_to(flattened(s, places, out.shape), box.shape)[kept], value)


def boxes(evaluation: Evaluation, s: Stage, scatter: Scatter) -> Iterator[Box]:
    """The loops of the scatter in parts of bounded size, in order."""
    from .stages import SLAB, slabs

    axes = (*scatter.free, *s.reduce_axes)
    for ranges in slabs(tuple(evaluation.size(s.ranges[a]) for a in axes), SLAB):
        if all(low < high for low, high in ranges):
            yield Box(axes, ranges, evaluation.size)


def clipped(index: Array, size: int) -> tuple[Array, Array]:
    """Positions made to exist, and where they do."""
    at = index.astype(np.int64)
    return np.clip(at, 0, size - 1), (at >= 0) & (at < size)


def flattened(s: Stage, places: Mapping[Axis, Array], shape: tuple[int, ...]) -> Array:
    """The position of every value in the flat result."""
    flat = np.zeros((), np.int64)
    for a, n in zip(s.axes, shape, strict=True):
        flat = flat * n + places[a]
    return flat


__all__ = ["JOIN_AT", "boxes", "clipped", "flattened", "scattered"]
