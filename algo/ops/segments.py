"""Sums, extremes and means of the rows that belong together, and counts of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import expr as E
from ..building import operator
from ..complex.lifting import by_parts
from ..dtypes import kind
from ..expr import Expr, as_expr, refuse
from ..extent import Extent
from ..identities import identity
from ..reducing import ACCUMULATOR, reduce_axes
from ..tensor import Tensor
from ..trace import build_stage
from .derived import real
from .gather import integers
from .scatter import position_of
from .shapes import dimensions, labels, shown, tensor


@by_parts()
@operator
def segment_sum(x: Any, ids: Any, segments: Extent | str) -> Tensor:
    """``result[s]`` is the sum of the rows ``x[i]`` with ``ids[i] == s``, added in order: x [n, ...] and ids [n] give [segments, ...].

    Ids outside are dropped; an empty segment is 0. The first axis of the result is called `segment`. Narrow integers and bool are summed
    in 32 bits.
    """
    return _combined("sum", x, ids, segments, "segment_sum")


@operator
def segment_max(x: Any, ids: Any, segments: Extent | str) -> Tensor:
    """The largest of the rows of each segment, as `segment_sum`; -inf, or the smallest integer, where there is none."""
    return _combined("max", x, ids, segments, "segment_max")


@operator
def segment_min(x: Any, ids: Any, segments: Extent | str) -> Tensor:
    """The smallest of the rows of each segment, as `segment_sum`; inf, or the largest integer, where there is none."""
    return _combined("min", x, ids, segments, "segment_min")


@by_parts()
@operator
def segment_mean(x: Any, ids: Any, segments: Extent | str) -> Tensor:
    """The mean of the rows of each segment, as `segment_sum`; 0 where there is none. Integers give float32."""
    t, at, (name,), (n,) = _rows(x, ids, segments, "segment_mean")
    total = _segments("sum", t, at, name, n, lambda i: real(t[i]), "sum")
    count = _counted(at, name, n, "count")

    names = labels(total.axis_names)

    def value(*i: Expr) -> Expr:
        return E.binary("div", total[i], E.cast(E.binary("max", count[i[0]], as_expr(1)), total.dtype))

    return build_stage(names, value, extents=dict(zip(names, total.shape, strict=True)))


@operator
def bincount(ids: Any, length: Extent | str | None = None, weights: Any = None) -> Tensor:
    """How often each number below `length` occurs in ids (of any shape), as int32 along one axis `bin`; or the sum of its weights.

    Numbers outside are not counted. `weights` has the shape of ids.
    """
    at = integers(ids, "bincount")
    if length is None:
        why = "how many numbers there are to count is declared"
        raise refuse("A304", "bincount without a length", why, "fl.bincount(ids, 10)", 'fl.bincount(ids, "bins")')
    (name,), (n,) = _one(length, "bin", "bincount")
    w = None if weights is None else tensor(weights, "bincount")
    if w is not None and (w.ndim != at.ndim or any(a != b for a, b in zip(w.shape, at.shape, strict=True))):
        raise refuse("A301", f"bincount of ids {shown(at.shape)} with weights {shown(w.shape)}", "each id has one weight")
    return _counted(at, name, n, None, w)


# ---------------------------------------------------------------- what the operators share
def _counted(at: Tensor, name: str, n: Extent, stage: str | None, weights: Tensor | None = None) -> Tensor:
    over = labels(at.axis_names, [name])
    to = "int32" if weights is None else ACCUMULATOR.get(weights.dtype, weights.dtype)

    def value(a: Expr) -> Any:
        def one(*k: Expr) -> Expr:
            weight = as_expr(1) if weights is None else weights[k] if k else weights.as_scalar()
            return E.where(position_of(at, k) == a, E.cast(weight, to), identity("sum", to))

        return reduce_axes("sum", over, one, dict(zip(over, at.shape, strict=True))) if over else one()

    return build_stage([name], value, name=stage, extents={name: n})


def _one(n: Any, called: str, what: str) -> tuple[tuple[str], tuple[Extent]]:
    """The name and the extent of a new axis: a name alone is that of a symbolic extent."""
    names, extents = dimensions((n,), what)
    return (names[0] or called,), (extents[0],)


def _rows(x: Any, ids: Any, segments: Any, what: str) -> tuple[Tensor, Tensor, tuple[str], tuple[Extent]]:
    t, at = tensor(x, what), integers(ids, what)
    if t.ndim < 1 or at.ndim != 1 or at.shape[0] != t.shape[0]:
        raise refuse("A301", f"{what} of {shown(t.shape)} with ids {shown(at.shape)}", "ids has one axis: an id for every row of x")
    name, n = _one(segments, "segment", what)
    return t, at, name, n


def _segments(
    kind_: str, t: Tensor, at: Tensor, name: str, n: Extent, element: Callable[[tuple[Expr, ...]], Expr], stage: str | None
) -> Tensor:
    names = labels([name, *t.axis_names[1:], at.axis_names[0] or t.axis_names[0]])
    axes, over = names[:-1], names[-1:]

    def value(s: Expr, *rest: Expr) -> Any:
        def one(k: Expr) -> Expr:
            e = element((k, *rest))
            e = E.cast(e, ACCUMULATOR.get(e.dtype, e.dtype)) if kind_ == "sum" else e
            return E.where(position_of(at, (k,)) == s, e, identity(kind_, e.dtype))

        return reduce_axes(kind_, over, one, {over[0]: at.shape[0]})

    return build_stage(axes, value, name=stage, extents=dict(zip(axes, (n, *t.shape[1:]), strict=True)))


def _combined(kind_: str, x: Any, ids: Any, segments: Any, what: str) -> Tensor:
    t, at, (name,), (n,) = _rows(x, ids, segments, what)
    if kind_ != "sum" and kind(t.dtype) == "bool":
        raise refuse("A306", f"{what} of bool", "truth values have no order", "fl.cast(x, fl.u8)")
    return _segments(kind_, t, at, name, n, lambda i: t[i], None)


__all__ = ["bincount", "segment_max", "segment_mean", "segment_min", "segment_sum"]
