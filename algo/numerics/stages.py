"""Stages with error bounds: the interpreter's walk over boxes, carrying a bound beside every value."""
from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np

from ..dtypes import NARROW, kind
from ..expr import Axis, Const, Expr, Op, Read, Size
from ..graph import Graph
from ..interpreter.calling import called
from ..interpreter.contraction import multiply, splits
from ..interpreter.reading import Box, gather
from ..interpreter.stages import IDENTITY, SLAB, Evaluation, Point, Ranges, Shape, apply, extreme, limit, slabs, slabs_for
from ..rewriting import landings, reads, walk
from ..stages import Stage
from .calling import sampled_call
from .casts import NO_CASTS, Casts, rounded
from .classes import accumulation, formats
from .combining import bounded_fold
from .ranking import ranked
from .rules import Enclosure, Format, either, loose, operator, settle
from .scattering import scattered

Array = np.ndarray[Any, Any]
_SLAB = SLAB // 4      # several arrays live for each of the interpreter's


class EnclosingEvaluation(Evaluation):
    """Stages as `Enclosure` arrays: float64 values and how far a kernel of the numerics class, which rounds `casts` besides, may be from
    them."""

    def __init__(self, graph: Graph, symbols: Mapping[str, int], class_: str, casts: Casts = NO_CASTS) -> None:
        super().__init__(symbols, wide=True)
        self.class_, self.formats, self.casts = class_, formats(class_), casts
        self.nonnegative: dict[int, bool] = {}
        self.signs: dict[Expr, bool] = {}
        for s in graph.stages:
            plain = s.reduction is None or s.reduction.kind in ("sum", "prod", "max", "min")
            self.nonnegative[s.id] = kind(s.dtype) == "bool" or s.dtype.startswith("u") or (
                plain and never_negative(s.value, self.nonnegative, self.signs))

    def form(self, dtype: str) -> Format | None:
        return self.formats.get(dtype)

    def bounded(self, s: Stage, sources: Mapping[int, Enclosure]) -> Enclosure:
        """The stage's value with its bound. Raises RunError as the interpreter does."""
        if self.casts:
            return self._cast(s)._bounded(s, {**sources, **self.as_read(s.id, sources)})
        return self._bounded(s, sources)

    def as_read(self, stage: int, sources: Mapping[int, Enclosure]) -> dict[int, Enclosure]:
        """The tensors that the stage rounds when it reads them, rounded."""
        overflow, read = self.casts.overflow, self.casts.of(stage)
        return {i: rounded(sources[i], dtype, self.formats[dtype], overflow) for i, dtype in read.items() if i in sources}

    def accumulation(self, dtype: str) -> float:
        """Unit roundoff of the running sums of a reduction."""
        return max(accumulation(self.class_, dtype), min(self.formats[dtype].unit, 2.0**-24))

    def _cast(self, s: Stage) -> EnclosingEvaluation:
        """The evaluation that computes in the type in which a plan has the stage computed."""
        if (to := self.casts.arithmetic.get(s.id)) is None:
            return self
        narrow = copy(self)
        narrow.formats = {**self.formats, "float64": self.formats[to]}
        return narrow

    def _bounded(self, s: Stage, sources: Mapping[int, Enclosure]) -> Enclosure:
        spatial, reduced = self.extents(s)
        if s.extern is not None:
            if not self.taken(s, {i: e.value for i, e in sources.items()}):
                return Enclosure(np.zeros(spatial, self.working(s.dtype)))
            given = [(sources[r.source], r.dtype) for r in s.handed]
            return sampled_call(lambda arrays: called(s, arrays, spatial), given, self.working(s.dtype))
        with np.errstate(all="ignore"):
            out = _Parts(spatial, self.working(s.dtype))
            if s.reduction is None:
                for ranges in slabs(spatial, limit(s.value, _SLAB)):
                    point = EnclosingPoint(self, Box(s.axes, ranges, self.size), sources)
                    out.put(ranges, point.bound(s.value))
            elif not out.value.size:
                pass
            elif s.rank is not None:
                return ranked(self, s, s.rank, sources)
            elif s.scatter is not None:
                return scattered(self, s, s.scatter, sources)
            elif s.reduction.combiner is not None:
                bounded_fold(self, s, s.reduction.combiner, sources, out)
            elif 0 in reduced:
                out.value[...] = IDENTITY[s.reduction.kind]
            elif (factors := splits(s, self.working)) is not None:
                self._products(s, factors, spatial, reduced, sources, out)
            else:
                self._reductions(s, spatial, reduced, sources, out)
            return out.bounded()

    def _products(self, s: Stage, factors: tuple[Expr, Expr], spatial: Shape, reduced: Shape,
                  sources: Mapping[int, Enclosure], out: _Parts) -> None:
        """sum(a * b): the value from a and b, the sum of magnitudes from |a| and |b|, what errors add likewise."""
        form, rank = self.formats[s.dtype], len(spatial)
        total, size, moved = (np.zeros(spatial) for _ in range(3))
        box = Box((*s.axes, *s.reduce_axes), tuple((0, n) for n in (*spatial, *reduced)), self.size)
        for ranges in slabs_for(box, factors):
            point = EnclosingPoint(self, Box(box.axes, ranges, self.size), sources)
            a, b = (point.bound(f) for f in factors)
            w, extents = window(ranges[:rank]), point.box.shape[rank:]
            total[w] += multiply(a.value, b.value, rank, extents)
            size[w] += multiply(np.abs(a.value), np.abs(b.value), rank, extents)
            for x, y in ((a.error, np.abs(b.value)), (np.abs(a.value), b.error), (a.error, b.error)):
                if x is not None and y is not None:
                    moved[w] += multiply(np.broadcast_to(x, a.value.shape), np.broadcast_to(y, b.value.shape), rank, extents)
            mark = either(a.undecided, b.undecided)
            if mark is not None:
                out.mark(ranges[:rank], np.asarray(np.broadcast_to(mark, point.box.shape).any(axis=tuple(range(rank, mark.ndim)))))
        moved += np.where(size > 0, form.unit * size + form.tiny * int(np.prod(reduced)), 0)
        out.put(tuple((0, n) for n in spatial), self.summed(total, size, moved, int(np.prod(reduced)), s.dtype))

    def summed(self, total: Array, size: Array, moved: Array, length: int, dtype: str) -> Enclosure:
        """A float sum, in any order, of terms with magnitudes `size` and errors `moved` in total: no partial sum exceeds the larger
        one-signed part."""
        largest = (size + np.abs(total)) / 2 + moved
        form = self.formats[dtype]
        gamma = (length - 1) * self.accumulation(dtype)
        gamma = np.inf if gamma >= 1 else gamma / (1 - gamma)
        store = form.unit if form.unit > 2.0**-20 else 0.0
        moved = moved + np.where(largest > 0, gamma * largest + store * np.abs(total), 0)
        return settle(total, np.where(largest > form.largest, np.inf, moved), 0, form)

    def _reductions(self, s: Stage, spatial: Shape, reduced: Shape, sources: Mapping[int, Enclosure], out: _Parts) -> None:
        """All other reductions; their axes are not cut, since the bounds of extremes need every candidate."""
        assert s.reduction is not None
        inner = int(np.prod(reduced))
        for ranges in slabs(spatial, max(1, _SLAB // inner)):
            point = EnclosingPoint(self, Box((*s.axes, *s.reduce_axes), (*ranges, *((0, n) for n in reduced)), self.size), sources)
            shape = (*point.box.shape[:len(spatial)], inner)
            found = point.bound(s.value)
            value, error, mark = (None if t is None else np.broadcast_to(t, point.box.shape).reshape(shape) for t in found)
            assert value is not None
            part = self._combined(s, value, error)
            undecided = either(part.undecided, None if mark is None else np.asarray(mark.any(axis=-1)))
            out.put(ranges, Enclosure(part.value, part.error, undecided))

    def _combined(self, s: Stage, value: Array, error: Array | None) -> Enclosure:
        """The reduction over the last axis."""
        assert s.reduction is not None
        which, form = s.reduction.kind, self.form(s.dtype)
        match which:
            case "sum" if form is not None:
                moved = np.zeros(value.shape[:-1]) if error is None else error.sum(axis=-1)
                return self.summed(value.sum(axis=-1), np.abs(value).sum(axis=-1), moved, value.shape[-1], s.dtype)
            case "prod" if form is not None:
                result = value.prod(axis=-1)
                grown = 0.0 if error is None else (np.abs(value) + error).prod(axis=-1) - np.abs(result)
                return settle(result, grown * np.ones(result.shape), (value.shape[-1] - 1) * form.unit, form)
            case "sum" | "prod":
                result = (np.add if which == "sum" else np.multiply).reduce(value, axis=-1, dtype=s.dtype)
                if error is None:
                    return Enclosure(result)
                if which == "sum":
                    return _open(result, error.sum(axis=-1))
                return _open(result, np.where((error > 0).any(axis=-1), np.inf, 0))
            case "max" | "min":
                pick = np.maximum.reduce if which == "max" else np.minimum.reduce
                result = pick(value, axis=-1)
                if error is None:
                    return Enclosure(result)
                exact = value.astype(np.float64)
                high, low = pick(exact + error, axis=-1), pick(exact - error, axis=-1)
                moved = np.maximum(high - result, result - low)
                return settle(result, moved, 0, form) if form is not None else _open(result, moved)
            case "any" | "all":
                result = (np.logical_or if which == "any" else np.logical_and).reduce(value, axis=-1)
                if error is None:
                    return Enclosure(result)
                stops = which == "any"
                settled = ((value == stops) & (error == 0)).any(axis=-1)
                return _open(result, (~settled & (error > 0).any(axis=-1)).astype(np.float64))
            case _:
                return self._located(which, value, error)

    def _located(self, which: str, value: Array, error: Array | None) -> Enclosure:
        """argmax and argmin: every place whose value may be the extreme is right."""
        position, chosen = extreme(which, value, value.ndim - 1)
        position = position.astype(np.int32)
        if error is None:
            return Enclosure(position)
        sign = 1 if which == "argmax" else -1
        exact = value.astype(np.float64) * sign
        reach = np.max(np.where(np.isnan(exact), np.inf, exact - error), axis=-1)[..., None]
        rival = ((exact + error >= reach) & ~np.isnan(reach)) | np.isinf(error)
        tied = (error == 0) & (value == chosen[..., None])
        places = np.arange(value.shape[-1])
        rival &= ~(tied & (places > position[..., None]))
        last = np.where(rival, places, -1).max(axis=-1)
        first = np.where(rival, places, value.shape[-1]).min(axis=-1)
        return _open(position, np.maximum(np.maximum(last - position, position - first), 0).astype(np.float64))


def _open(value: Array, error: Array) -> Enclosure:
    return Enclosure(value, error, error > 0)


class _Parts:
    """A stage's arrays while they are filled box by box; bounds are only kept once there is one."""

    def __init__(self, shape: tuple[int, ...], dtype: str) -> None:
        self.value = np.empty(shape, dtype)
        self.error: Array | None = None
        self.undecided: Array | None = None

    def put(self, ranges: Ranges, part: Enclosure) -> None:
        w = window(ranges)
        self.value[w] = part.value
        if part.error is not None and part.error.any():
            if self.error is None:
                self.error = np.zeros(self.value.shape)
            self.error[w] = part.error
        if part.undecided is not None:
            self.mark(ranges, part.undecided)

    def mark(self, ranges: Ranges, undecided: Array) -> None:
        if undecided.any():
            if self.undecided is None:
                self.undecided = np.zeros(self.value.shape, bool)
            self.undecided[window(ranges)] |= undecided

    def bounded(self) -> Enclosure:
        return Enclosure(self.value, self.error, self.undecided)


def window(ranges: Ranges) -> tuple[slice, ...]:
    return tuple(slice(low, high) for low, high in ranges)


class EnclosingPoint(Point):
    """Expressions over one box with their bounds."""

    def __init__(self, evaluation: EnclosingEvaluation, box: Box, sources: Mapping[int, Enclosure]) -> None:
        super().__init__(evaluation, box, {i: t.value for i, t in sources.items()})
        self.bounds, self.of = sources, evaluation
        self.found: dict[Expr, Enclosure] = {}

    def bound(self, e: Expr) -> Enclosure:
        if e not in self.found:
            for n in (*landings(e, self.found), e):
                self.found[n] = self._bound(n)
                self.done[n] = self.found[n].value
        return self.found[e]

    def _bound(self, e: Expr) -> Enclosure:
        match e:
            case Read(source, index):
                return self._read(source, index)
            case Op(_, args):
                parts = [self.bound(a) for a in args]
                value = apply(e, [p.value for p in parts], self.of.working)
                return operator(e, value, parts, None if e.weak and kind(e.dtype) == "int" else self.of.form(e.dtype),
                                never_negative(args[0], self.of.nonnegative, self.of.signs))
        return Enclosure(numbers(self.value(e)))

    def _read(self, source: int, index: tuple[Expr, ...]) -> Enclosure:
        whole = self.bounds[source]
        value, error, mark = (None if t is None else gather(t, index, self.box, self.value) for t in whole)
        assert value is not None
        value = numbers(value)
        for i in index:
            if not reads(i) or (place := self.bound(i)).error is None:
                continue
            exact = whole.value.astype(np.float64)
            reach = float(exact.max() - exact.min()) + (0.0 if whole.error is None else float(whole.error.max())) if exact.size else 0.0
            astray = place.error > 0
            error = np.where(astray, np.inf if np.isnan(reach) else reach, loose(Enclosure(value, error)))
            mark = either(mark, astray)
        return Enclosure(value, error, mark)


def numbers(x: Array) -> Array:
    """Narrow floats as float64, in which bounds are computed."""
    return x.astype(np.float64) if x.dtype.name in NARROW else x


def never_negative(e: Expr, known: Mapping[int, bool], found: dict[Expr, bool]) -> bool:
    """Whether the value is at least 0 (or NaN) however it is rounded: squares, magnitudes, exponentials and what is made of them.

    `known` says it of tensors; `found` is what was found before.
    """
    for n in walk(e, found):
        found[n] = _never_negative(n, known, found)
    return found[e]


def _never_negative(e: Expr, known: Mapping[int, bool], found: Mapping[Expr, bool]) -> bool:
    match e:
        case Const(value=v):
            return v >= 0
        case Axis() | Size():
            return True
        case Read(source, _, dtype):
            return known.get(source, False) or dtype.startswith("u") or dtype == "bool"
        case Op(op="mul", args=(a, b)) if a is b and kind(e.dtype) == "float":
            return True
        case Op(op="abs" | "exp" | "exp2" | "sqrt" | "rsqrt" | "sigmoid" | "cosh"):
            return kind(e.dtype) == "float"
        case Op(op="add" | "mul" | "div" | "min", args=args) if kind(e.dtype) == "float":
            return all(found[a] for a in args)
        case Op(op="max", args=args):
            return any(found[a] for a in args)
        case Op(op="where", args=(_, a, b)):
            return found[a] and found[b]
        case Op(op="cast", args=(a,)) if kind(e.dtype) == "float":
            return found[a] or kind(a.dtype) == "bool"
    return False


__all__ = ["EnclosingEvaluation", "never_negative", "numbers"]
