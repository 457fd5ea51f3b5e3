"""The value of one stage on NumPy arrays: the definition that every compiled kernel is compared with.

A stage is evaluated over boxes small enough to keep intermediate arrays bounded; a box's value is one array per distinct node, of rank
len(axes) + len(reduction axes), broadcast lazily. Sums of products go through matrix multiplication.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ..dtypes import held, kind
from ..errors import InternalError, Problem, RunError
from ..expr import Axis, Const, Expr, Op, Read, Size
from ..extent import Extent, evaluate
from ..extent_names import most_of
from ..requirements import unguarded_reads
from ..rewriting import axes_of, landings, walk
from ..scatter import has_identity
from ..stages import Stage
from .calling import called
from .combining import constant, fold
from .contraction import multiply, splits
from .elementary import BOUNDARY, OPERATORS, Array, convert
from .ranking import rank
from .reading import Box, gather
from .scattering import scattered

SLAB = 2**23  # elements of one intermediate array: 64 MiB of float64
_NODES = 32
Shape = tuple[int, ...]
Ranges = tuple[tuple[int, int], ...]


class Evaluation:
    """Stages evaluated for given extents. `wide` computes float32 parts in float64, as a reference for error bounds."""

    def __init__(self, symbols: Mapping[str, int], wide: bool = False) -> None:
        self.symbols, self.wide = dict(symbols), wide
        self.known: dict[Any, int] = {}

    def size(self, e: Extent) -> int:
        if isinstance(e, int):
            return e
        found = self.known.get(e)
        if found is None:
            found = self.known[e] = evaluate(e, self.symbols)
        return found

    def count(self, unit: Iterable[Stage], sources: Mapping[int, Array]) -> None:
        """The extents of these stages that were computed. Raises RunError for one that is larger than its most."""
        for s in unit:
            for name, i in s.counts:
                if name not in self.symbols:
                    n, most = int(sources[i].item()), most_of(name)
                    if most is not None and not 0 <= n <= most:
                        asked = f"the extent {name} of {s.path} would be {n}"
                        raise _refused("R124", s, asked, f"it is at most {most}", "a larger most=")
                    self.symbols[name] = n

    def working(self, dtype: str) -> str:
        """The dtype that values of `dtype` are held in."""
        return "float64" if self.wide and dtype == "float32" else dtype

    def constant(self, e: Const) -> Array:
        return constant(e, self.working)

    def extents(self, s: Stage) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Spatial and reduction extents. Raises RunError where one comes out negative, or where a maximum over nothing is asked."""
        symbolic = s.extents, s.reduction.extents if s.reduction else ()
        spatial, reduced = (tuple(map(self.size, part)) for part in symbolic)
        for a, e, n in zip((*s.axes, *s.reduce_axes), (*symbolic[0], *symbolic[1]), (*spatial, *reduced), strict=True):
            if n < 0:
                where = ", ".join(f"{k} = {v}" for k, v in self.symbols.items())
                raise _refused(
                    "R120", s, f"axis {a.name} of {s.path} would have {n} elements", f"its extent is {e}, and {where}", "a larger input"
                )
        if s.reduction and not has_identity(s) and 0 in reduced and 0 not in spatial:
            raise _refused(
                "R121",
                s,
                f"{s.reduction.kind} over no elements in {s.path}",
                "of nothing there is no largest or smallest",
                "an input whose reduced axis is not empty",
            )
        return spatial, reduced

    # ------------------------------------------------------------ one stage
    def stage(self, s: Stage, sources: Mapping[int, Array]) -> Array:
        """The stage's array, of its dtype (float64 for float32 when wide)."""
        spatial, reduced = self.extents(s)
        if s.extern is None and 0 not in spatial and 0 not in reduced and not all(sources[i].size for i in s.sources):
            for r in unguarded_reads(s.value):
                if not sources[r.source].size:
                    raise _refused(
                        "R122",
                        s,
                        f"{s.path} reads a tensor that has no elements",
                        f"its shape is {list(sources[r.source].shape)}",
                        "a larger input",
                    )
        result = self.working(s.dtype)
        out = np.empty(spatial, held(result) if s.reduction else result)
        if not self.taken(s, sources):
            return np.zeros(spatial, result)
        if s.extern is not None:
            return convert(called(s, [convert(sources[r.source], r.dtype) for r in s.handed], spatial), result)
        axes = (*s.axes, *s.reduce_axes)
        with np.errstate(all="ignore"):
            if s.reduction is None:
                for ranges in slabs(spatial, limit(s.value, SLAB)):
                    out[_window(ranges)] = Point(self, Box(axes, ranges, self.size), sources).value(s.value)
            elif not out.size:
                pass
            elif s.rank is not None:
                rank(self, s, s.rank, sources, out)
            elif s.scatter is not None:
                scattered(self, s, s.scatter, sources, out)
            elif s.reduction.combiner is not None:
                fold(self, s, s.reduction.combiner, sources, out)
            elif 0 in reduced:
                out[...] = IDENTITY[s.reduction.kind]
            elif (factors := splits(s, self.working)) is not None:
                self._product(s, factors, spatial, reduced, sources, out)
            else:
                self._reduce(s, spatial, reduced, sources, out)
            return convert(out, result)

    def taken(self, s: Stage, sources: Mapping[int, Array]) -> bool:
        """Whether any of the stage is asked for. What decides place by place is not looked at: what nothing reads may have any value."""
        if s.when is None or any(a in set(axes_of(s.when)) for a in s.axes):
            return True
        return bool(Point(self, Box((), (), self.size), sources).value(s.when).item())

    def _product(
        self, s: Stage, factors: tuple[Expr, Expr], spatial: Shape, reduced: Shape, sources: Mapping[int, Array], out: Array
    ) -> None:
        box = Box((*s.axes, *s.reduce_axes), tuple((0, n) for n in (*spatial, *reduced)), self.size)
        for ranges in slabs_for(box, factors):
            point = Point(self, Box(box.axes, ranges, self.size), sources)
            a, b = (convert(point.value(f), out.dtype.name) for f in factors)
            part = multiply(a, b, out.ndim, point.box.shape[out.ndim :])
            window = _window(ranges[: out.ndim])
            if all(low == 0 for low, _ in ranges[out.ndim :]):
                out[window] = part
            else:
                out[window] += part

    def _reduce(self, s: Stage, spatial: Shape, reduced: Shape, sources: Mapping[int, Array], out: Array) -> None:
        assert s.reduction is not None
        rank, best = len(spatial), np.zeros(())
        arg = s.reduction.kind.startswith("arg")
        for ranges in slabs((*spatial, *reduced), SLAB):
            point = Point(self, Box((*s.axes, *s.reduce_axes), ranges, self.size), sources)
            inner, window = ranges[rank:], _window(ranges[:rank])
            each = point.value(s.value)
            value = np.broadcast_to(convert(each, held(each.dtype.name)), point.box.shape)
            first = all(low == 0 for low, _ in inner)
            if arg:
                position, chosen = extreme(s.reduction.kind, value, rank)
                inside = np.unravel_index(position, point.box.shape[rank:])
                flat = np.ravel_multi_index([i + low for i, (low, _) in zip(inside, inner, strict=True)], reduced)
                better = np.True_ if first else _beats(s.reduction.kind, chosen, best)
                out[window] = np.where(better, flat, out[window])
                best = chosen if first else np.where(better, chosen, best)
            else:
                part = combine(s.reduction.kind, value, rank, out.dtype)
                out[window] = part if first else JOIN[s.reduction.kind](out[window], part)


def _refused(code: str, s: Stage, asked: str, why: str, instead: str) -> RunError:
    return RunError(Problem(code, "run", path=s.path, source=s.source or None, asked=asked, why=why, try_=(instead,)))


IDENTITY = {"sum": 0, "prod": 1, "any": False, "all": True}
JOIN = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "any": np.logical_or, "all": np.logical_and}


def combine(kind_: str, value: Array, rank: int, dtype: Any) -> Array:
    """The reduction of a box's value over its axes from `rank` on."""
    over = tuple(range(rank, value.ndim))
    if kind_ in ("sum", "prod"):
        return JOIN[kind_].reduce(value, axis=over, dtype=dtype)  # type: ignore[no-any-return]
    return JOIN[kind_].reduce(value, axis=over)  # type: ignore[no-any-return]


def extreme(kind_: str, value: Array, rank: int) -> tuple[Array, Array]:
    """First flat position of the extreme over the axes from `rank` on, NaN before all else, and the value there."""
    flat = value.reshape(*value.shape[:rank], -1)
    position = (np.argmax if kind_ == "argmax" else np.argmin)(flat, axis=-1)
    return position, np.take_along_axis(flat, position[..., None], axis=-1)[..., 0]


def _beats(kind_: str, new: Array, old: Array) -> Array:
    better = new > old if kind_ == "argmax" else new < old
    out: Array = better | (new != new) & (old == old)
    return out


def limit(e: Expr, most: int) -> int:
    """Points of a box such that the arrays of all nodes of a large expression take no more memory than those of one of usual size."""
    return max(1, most * _NODES // max(_NODES, sum(1 for _ in walk(e))))


def slabs(shape: tuple[int, ...], limit: int) -> Iterator[Ranges]:
    """The box cut into parts of at most `limit` points, in order; outer axes are cut before inner ones."""
    if math.prod(shape) <= limit:
        yield tuple((0, n) for n in shape)
        return
    inner = math.prod(shape[1:])
    step = max(1, limit // inner)
    for low in range(0, shape[0], step):
        high = min(low + step, shape[0])
        for rest in slabs(shape[1:], max(1, limit // (high - low))):
            yield (low, high), *rest


def slabs_for(box: Box, factors: tuple[Expr, ...]) -> Iterator[Ranges]:
    """The box cut so that no factor that must be computed exceeds a slab; bare reads are views and cost nothing."""
    wanted = [set(axes_of(f)) for f in factors if not (isinstance(f, Read) and all(isinstance(i, Axis) for i in f.index))]
    pieces = list(box.shape)

    def points(used: set[Axis]) -> int:
        return math.prod(n for a, n in zip(box.axes, pieces, strict=True) if a in used)

    for used in wanted:
        for k, a in enumerate(box.axes):
            if a in used and points(used) > SLAB:
                pieces[k] = max(1, pieces[k] * SLAB // points(used))

    def cut(k: int) -> Iterator[Ranges]:
        if k == len(pieces):
            yield ()
            return
        for low in range(0, box.shape[k], pieces[k]):
            for rest in cut(k + 1):
                yield (low, min(low + pieces[k], box.shape[k])), *rest

    yield from cut(0)


def _window(ranges: Ranges) -> tuple[slice, ...]:
    return tuple(slice(low, high) for low, high in ranges)


class Point:
    """Expressions over one box, each distinct node evaluated once."""

    def __init__(self, evaluation: Evaluation, box: Box, sources: Mapping[int, Array]) -> None:
        self.evaluation, self.box, self.sources = evaluation, box, sources
        self.done: dict[Expr, Array] = {}

    def value(self, e: Expr) -> Array:
        """An array that broadcasts over the box. Exact index arithmetic is int64; all else has its own dtype."""
        found = self.done.get(e)
        if found is None:
            for n in landings(e, self.done):
                self.done[n] = self._value(n)
            found = self.done[e] = self._value(e)
        return found

    def _value(self, e: Expr) -> Array:
        rank = len(self.box.axes)
        match e:
            case Const():
                return self.evaluation.constant(e).reshape((1,) * rank)
            case Size(extent):
                return np.full((1,) * rank, self.evaluation.size(extent), np.int64)
            case Axis():
                return self.box.positions(e)
            case Read(source, index):
                return gather(self.sources[source], index, self.box, self.value)
            case Op(_, args):
                return apply(e, [self.value(a) for a in args], self.evaluation.working)
        raise InternalError(f"{type(e).__name__} in a finished stage")


def apply(e: Op, args: list[Array], working: Any) -> Array:
    """One operator on values of its arguments, converted first to the type it works in. An index is int64, whatever type it was."""
    index = e.weak and kind(e.dtype) == "int"
    result = "int64" if index else working(e.dtype)
    if e.op == "cast":
        return convert(args[0], result)
    if e.op in BOUNDARY:
        return OPERATORS[e.op](args[0].astype(np.int64), args[1].astype(np.int64))
    if e.op == "where":
        return np.where(args[0], convert(args[1], result), convert(args[2], result))
    if e.op in ("lt", "le", "eq", "ne"):
        strong = next((a for a in e.args if not a.weak), None)
        inner = working(strong.dtype) if strong is not None else np.result_type(*args).name
        return OPERATORS[e.op](*(computing(a, inner) for a in args))
    if e.op in ("isnan", "isinf", "isfinite"):
        return OPERATORS[e.op](computing(args[0], args[0].dtype.name))
    return convert(OPERATORS[e.op](*(computing(a, result) for a in args)), result)


def computing(x: Array, dtype: str) -> Array:
    """x as a value of `dtype`, in the type that operators compute in."""
    return convert(convert(x, dtype), held(dtype))


__all__ = ["IDENTITY", "JOIN", "SLAB", "Evaluation", "Point", "apply", "combine", "extreme", "limit", "slabs", "slabs_for"]
