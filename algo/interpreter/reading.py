"""source[index] over a box of loop axes, without index arrays where the index is affine.

An affine read is a strided view of the source: axis a moves by the sum of coefficient * stride over the dimensions where it occurs, which
covers slices, windows, diagonals and reversals. An index of one varying axis is taken along its dimension first; only the rest is gathered.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..dtypes import NARROW
from ..expr import Axis, Expr, Op
from ..linear import linear
from .elementary import BOUNDARY

Array = np.ndarray[Any, Any]
_SPAN_LIMIT = 4      # a read outside its source is made by padding while the padded part stays below this many times what is there


@dataclass(frozen=True)
class Box:
    """A part of a stage's iteration space: axes with their (low, high) half-open ranges, and the values of the symbolic extents."""

    axes: tuple[Axis, ...]
    ranges: tuple[tuple[int, int], ...]
    sizes: Callable[[Any], int]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(high - low for low, high in self.ranges)

    def positions(self, axis: Axis) -> Array:
        """The axis's values, broadcastable over the box."""
        k = next(n for n, a in enumerate(self.axes) if a is axis)
        low, high = self.ranges[k]
        return np.arange(low, high, dtype=np.int64).reshape([-1 if n == k else 1 for n in range(len(self.axes))])


@dataclass(frozen=True)
class _Affine:
    """boundary(sum of coefficient * position + constant) for one dimension; coefficients per axis of the box."""

    coefficients: tuple[int, ...]
    constant: int
    boundary: str | None

    def span(self, box: Box) -> tuple[int, int]:
        """Smallest and largest index, before the boundary."""
        ends = [(c * low, c * (high - 1)) for c, (low, high) in zip(self.coefficients, box.ranges, strict=True)]
        return self.constant + sum(map(min, ends)), self.constant + sum(map(max, ends))


def _affine(e: Expr, box: Box) -> _Affine | None:
    match e:
        case Op(op="edge" | "reflect" | "wrap" as boundary, args=(inner, _)):
            found = _affine(inner, box)
            return _Affine(found.coefficients, found.constant, boundary) if found is not None and found.boundary is None else None
    form = linear(e)
    known = set(box.axes)
    if not all(a in known for a in form.atoms):  # data, or an axis that stands for data: what a scatter writes to
        return None
    return _Affine(tuple(box.sizes(form.coefficient(a)) for a in box.axes), box.sizes(form.constant), None)


def gather(source: Array, index: Sequence[Expr], box: Box, evaluate: Callable[[Expr], Array], fill: Any = 0) -> Array:
    """source[index] for every point of the box, as an array that broadcasts over it.

    Indices outside the source are clipped (they stand in a branch that is not taken); a source without elements reads as `fill`.
    """
    rank = len(box.axes)
    if not index:
        return source.reshape((1,) * rank)
    if not all(box.shape):
        return np.zeros([n if n == 0 else 1 for n in box.shape], source.dtype)
    if not source.size:
        return np.full((1,) * rank, fill, source.dtype)
    if (part := _bare(source, index, box)) is not None:
        return part
    plans: list[_Affine | Array] = []
    for d, e in enumerate(index):
        found = _affine(e, box)
        if found is not None and not _far(found, box, source.shape[d]):
            plans.append(found)
            continue
        plans.append(np.clip(evaluate(e).astype(np.int64), 0, source.shape[d] - 1))
    if _entangled(plans):
        return source[tuple(_clipped(p, box, n) if isinstance(p, _Affine) else p for p, n in zip(plans, source.shape, strict=True))]
    return _strided(source, plans, box)


def _bare(source: Array, index: Sequence[Expr], box: Box) -> Array | None:
    """The part of the source that the box covers, if the index is axes in the order of the box and lies inside."""
    shape, window, at = [1] * len(box.axes), [], 0
    for e, size in zip(index, source.shape, strict=True):
        while at < len(box.axes) and box.axes[at] is not e:
            at += 1
        if at == len(box.axes):
            return None
        low, high = box.ranges[at]
        if high > size:
            return None
        shape[at] = high - low
        window.append(slice(low, high))
        at += 1
    return source[tuple(window)].reshape(shape)


def _far(p: _Affine, box: Box, size: int) -> bool:
    """Whether a read leaves its source so widely that padding would cost more than an index array."""
    low, high = p.span(box)
    points = math.prod(n for n, c in zip(box.shape, p.coefficients, strict=True) if c)
    return (low < 0 or high >= size) and high - low + 1 > _SPAN_LIMIT * max(points, size)


def _varying(p: _Affine | Array) -> set[int]:
    if isinstance(p, _Affine):
        return {k for k, c in enumerate(p.coefficients) if c}
    return {k for k, n in enumerate(p.shape) if n > 1}


def _entangled(plans: Sequence[_Affine | Array]) -> bool:
    """Whether an index array must be gathered jointly: it varies along several axes, or along one that another dimension uses too."""
    used = [_varying(p) for p in plans]
    for n, p in enumerate(plans):
        if not isinstance(p, _Affine) and (len(used[n]) > 1 or any(used[n] & used[m] for m in range(len(plans)) if m != n)):
            return True
    return False


def _clipped(p: _Affine, box: Box, size: int) -> Array:
    total: Array = np.asarray(p.constant, np.int64).reshape((1,) * len(box.axes))
    for c, a in zip(p.coefficients, box.axes, strict=True):
        if c:
            total = total + c * box.positions(a)
    return BOUNDARY[p.boundary or "edge"](total, np.int64(size))  # type: ignore[arg-type]


def _strided(source: Array, plans: Sequence[_Affine | Array], box: Box) -> Array:
    rank = len(box.axes)
    forms: list[tuple[tuple[int, ...], int]] = []
    picks: list[Array | None] = []
    slices: list[slice] = []
    for d, p in enumerate(plans):
        size = source.shape[d]
        if isinstance(p, _Affine):
            low, high = p.span(box)
            start = sum(c * r[0] for c, r in zip(p.coefficients, box.ranges, strict=True)) + p.constant - low
            forms.append((p.coefficients, start))
            inside = low >= 0 and high < size
            slices.append(slice(low, high + 1) if inside else slice(None))
            picks.append(None if inside else BOUNDARY[p.boundary or "edge"](np.arange(low, high + 1), np.int64(size)))  # type: ignore[arg-type]
        else:
            axis = next(iter(_varying(p)), None)
            forms.append((tuple(int(k == axis) for k in range(rank)), 0))
            slices.append(slice(None))
            picks.append(p.reshape(-1))
    part = source[tuple(slices)]
    for d, pick in enumerate(picks):
        if pick is not None:
            part = np.take(part, pick, axis=d)
    offset = tuple(start for _, start in forms)
    strides = [sum(c[k] * s for (c, _), s in zip(forms, part.strides, strict=True)) for k in range(rank)]
    moves = [any(c[k] for c, _ in forms) for k in range(rank)]
    shape = [n if m else 1 for n, m in zip(box.shape, moves, strict=True)]
    origin = part[tuple(slice(o, None) for o in offset)]
    if origin.dtype.name in NARROW:  # NumPy's array interface has no names for these types
        return as_strided(origin.view(f"u{origin.itemsize}"), shape, strides, writeable=False).view(origin.dtype)
    return as_strided(origin, shape, strides, writeable=False)
