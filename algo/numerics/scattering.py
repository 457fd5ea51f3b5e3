"""Scatters with error bounds: what arrives at each place, how far off it may be, and where a position itself hangs on a decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ..identities import identity
from ..interpreter.scattering import JOIN_AT, boxes, clipped, flattened
from ..scatter import Scatter
from ..stages import Stage
from .rules import Enclosure, loose, settle

if TYPE_CHECKING:
    from .stages import EnclosingEvaluation

Array = np.ndarray[Any, Any]
_NEAR = 2  # a position that may be further off than this may be anywhere


@dataclass(frozen=True, eq=False)
class _Arriving:
    """Values of one part of the loops: flat places, magnitudes of errors; `astray` where a value may land elsewhere, or not at all."""

    place: Array
    value: Array
    error: Array
    astray: list[tuple[Array, Array]]  # flat places that a value may reach or miss, and by how much that changes a sum
    anywhere: bool


def scattered(of: EnclosingEvaluation, s: Stage, scatter: Scatter, sources: Mapping[int, Enclosure]) -> Enclosure:
    """The stage's value and bound; sums of floats in any order."""
    assert s.reduction is not None
    which, form = s.reduction.kind, of.form(s.dtype)
    shape = tuple(of.size(n) for n in s.extents)
    parts = list(_arriving(of, s, scatter, sources, shape))
    start, size = identity(which, s.dtype).value, int(np.prod(shape))
    value = np.full(size, start, of.working(s.dtype))
    error, open_ = np.zeros(size), np.zeros(size, bool)
    for p in parts:
        JOIN_AT[which].at(value, p.place, p.value)
        for places, moved in p.astray:
            open_[places] = True
            np.add.at(error, places, moved)
        open_ |= p.anywhere
    total = value.copy()
    if form is not None and which == "sum":
        sizes, counts = np.zeros(size), np.zeros(size, np.int64)
        for p in parts:
            np.add.at(sizes, p.place, np.abs(p.value))
            np.add.at(error, p.place, p.error)
            np.add.at(counts, p.place, 1)
        found = of.summed(total, sizes, error, int(counts.max(initial=1)), s.dtype)
    elif form is not None and which == "prod":
        grown, counts = np.ones(size), np.zeros(size, np.int64)
        for p in parts:
            np.multiply.at(grown, p.place, np.abs(p.value) + p.error)
            np.add.at(counts, p.place, 1)
        found = settle(total, grown - np.abs(total), np.maximum(counts - 1, 0) * form.unit, form)
    else:
        moved = error if which == "sum" else np.zeros(size)
        for p in parts:
            if which in ("max", "min"):
                np.maximum.at(moved, p.place, p.error)
            else:
                np.add.at(moved, p.place, p.error)
        found = settle(total, moved, 0, form) if form is not None else Enclosure(total, moved if which == "sum" else np.minimum(moved, 1))
        if which == "prod":
            open_ |= moved > 0
    if open_.any() and which != "sum":
        found = Enclosure(found.value, np.where(open_, 1.0 if which in ("any", "all") else np.inf, loose(found)))
    elif any(p.anywhere for p in parts):
        found = Enclosure(found.value, np.full(size, np.inf))
    if found.error is not None and not found.error.any() and not open_.any():
        found = Enclosure(found.value)
    marked = open_ if form is not None or found.error is None else open_ | (found.error > 0)
    error_ = None if found.error is None else found.error.reshape(shape)
    return Enclosure(found.value.reshape(shape), error_, marked.reshape(shape) if marked.any() else None)


def _arriving(
    of: EnclosingEvaluation, s: Stage, scatter: Scatter, sources: Mapping[int, Enclosure], shape: tuple[int, ...]
) -> Iterator[_Arriving]:
    from .stages import EnclosingPoint

    for box in boxes(of, s, scatter):
        point = EnclosingPoint(of, box, sources)
        places = {a: point.value(a) for a in scatter.free}
        kept, doubt, reach = np.ones((1,) * len(box.axes), bool), np.zeros((1,) * len(box.axes), bool), []
        for a, e in zip(scatter.targets, scatter.index, strict=True):
            at = point.bound(e)
            n = of.size(s.ranges[a])
            point.done[a] = places[a] = clipped(at.value, n)[0]
            kept = kept & clipped(at.value, n)[1]
            doubt = doubt | (loose(at) > 0)
            reach.append((a, at.value.astype(np.int64), loose(at), n))
        for c in scatter.predicates:
            holds = point.bound(c)
            kept = kept & holds.value
            doubt = doubt | (loose(holds) > 0)
        found = point.bound(scatter.value)
        value = np.broadcast_to(found.value, box.shape)
        error = np.broadcast_to(loose(found), box.shape)
        flat, kept, doubt = (np.broadcast_to(x, box.shape) for x in (flattened(s, places, shape), kept, doubt))
        astray: list[tuple[Array, Array]] = []
        far = any(float(np.max(e, initial=0)) > _NEAR for *_, e, _ in reach)
        if doubt.any() and not far:
            size = np.abs(value.astype(np.float64)) + error
            for steps in product(*(range(-_NEAR, _NEAR + 1) if np.any(e) else (0,) for *_, e, _ in reach)):
                there, near = dict(places), doubt
                for (target, nominal, off, size_), step in zip(reach, steps, strict=True):
                    moved, inside = clipped(nominal + step, size_)
                    there[target], near = moved, near & inside & (abs(step) <= off)
                astray.append((np.broadcast_to(flattened(s, there, shape), box.shape)[near], size[near]))
        yield _Arriving(flat[kept], value[kept], error[kept], astray, bool(doubt.any() and far))


__all__ = ["scattered"]
