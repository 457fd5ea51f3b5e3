"""Writes at positions that are data. A position outside, a negative one too, matches no place: what goes there is dropped."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import expr as E
from ..building import operator
from ..complex.lifting import by_parts
from ..dtypes import promote
from ..expr import Const, Expr, as_expr, refuse
from ..extent import Extent
from ..identities import identity
from ..reducing import ACCUMULATOR, reduce_axes
from ..tensor import Tensor
from ..trace import build_stage
from .gather import integers
from .shapes import AxisLike, axis_number, dimensions, labels, shown, tensor
from .views import broadcast_view, expanded, reshape


def position_of(at: Tensor, index: tuple[Expr, ...]) -> Expr:
    """The id there, in a type that holds every position: narrow ones as int32."""
    found = at[index] if index else at.as_scalar()
    return E.cast(found, "int32") if np.dtype(at.dtype).itemsize < 4 else found


@by_parts("x", "updates")
@operator
def scatter_add(x: Any, ids: Any, updates: Any, axis: AxisLike = 0) -> Tensor:
    """x with ``updates[k]`` added to its slice ``ids[k]`` along `axis`: `updates` has the axes of `ids` in the place of that axis.

    Values for one place add up in the order of the axes of `ids`, the last fastest, and their sum is added to x. Positions outside x
    are dropped. The result has x's shape, type and axis names.
    """
    t, total = _arrived("sum", x, ids, updates, axis, "scatter_add")
    return _joined(t, total, lambda a, b: E.binary("add", a, b))


@operator
def scatter_max(x: Any, ids: Any, updates: Any, axis: AxisLike = 0) -> Tensor:
    """The larger of x and all ``updates[k]`` that arrive there; NaN if any is. Arguments as for `scatter_add`."""
    t, best = _arrived("max", x, ids, updates, axis, "scatter_max")
    return _joined(t, best, lambda a, b: E.binary("max", a, b))


@operator
def scatter_min(x: Any, ids: Any, updates: Any, axis: AxisLike = 0) -> Tensor:
    """The smaller of x and all ``updates[k]`` that arrive there, as `scatter_max`."""
    t, best = _arrived("min", x, ids, updates, axis, "scatter_min")
    return _joined(t, best, lambda a, b: E.binary("min", a, b))


@by_parts("x", "updates")
@operator
def scatter(x: Any, ids: Any, updates: Any, axis: AxisLike = 0) -> Tensor:
    """x with its slices ``ids[k]`` along `axis` replaced by ``updates[k]``. Of several for one place the last counts, in the order of the
    axes of `ids`. Arguments as for `scatter_add`."""
    t, at, given, d = _operands(x, ids, updates, axis, "scatter")
    flat = reshape(at, (at.size,))
    rows = reshape(given, (*given.shape[:d], at.size, *given.shape[d + at.ndim :]))
    names = labels(t.axis_names)
    (k,) = labels([_only(at)], names)
    none = identity("max", "int32")

    def latest(a: Expr) -> Expr:
        return reduce_axes("max", [k], lambda i: E.where(position_of(flat, (i,)) == a, E.cast(i, "int32"), none), {k: at.size})

    last = build_stage([names[d]], latest, name="last", extents={names[d]: t.shape[d]})

    def value(*i: Expr) -> Expr:
        which = last[i[d]]
        return E.where(as_expr(0) <= which, E.cast(rows[(*i[:d], which, *i[d + 1 :])], t.dtype), t[i])

    return build_stage(names, value, extents=dict(zip(names, t.shape, strict=True)))


@by_parts("updates")
@operator
def scatter_nd(ids: Any, updates: Any, shape: Any) -> Tensor:
    """Zeros of a shape with ``updates[k]`` added at ``ids[k]``: the last axis of `ids` [..., m] holds positions along the first m axes of
    the result, and `updates` has the other axes of `ids`, then the rest of the shape. What lies outside is dropped."""
    at, names, extents, m = _positions(ids, shape, "scatter_nd")
    given = tensor(updates, "scatter_nd")
    want = (*at.shape[:-1], *extents[m:])
    if given.ndim != len(want) or any(n != w for n, w in zip(given.shape, want, strict=True)):
        why = f"ids {shown(at.shape)} into {shown(extents)} take {shown(want)}"
        raise refuse("A301", f"scatter_nd of updates {shown(given.shape)}", why)
    lead = at.ndim - 1
    every = labels([*names[:m], *(own or n for own, n in zip(given.axis_names[lead:], names[m:], strict=True)), *given.axis_names[:lead]])
    axes, over = every[: len(extents)], every[len(extents) :]
    if not lead:
        at, given, over = expanded(at, (0,)), expanded(given, (0,)), labels([None], axes)

    def value(*i: Expr) -> Expr:
        def one(*k: Expr) -> Expr:
            here: Expr = as_expr(True)
            for n in range(m):
                test = position_of(at, (*k, as_expr(n))) == i[n]
                here = test if n == 0 else here & test
            return E.where(here, given[(*k, *i[m:])], _zero(given.dtype))

        return reduce_axes("sum", over, one, dict(zip(over, at.shape[:-1], strict=True)))

    return build_stage(axes, value, extents=dict(zip(axes, extents, strict=True)))


@by_parts()
@operator
def gather_nd(x: Any, ids: Any) -> Tensor:
    """``result[k] == x[ids[k, 0], ..., ids[k, m - 1]]``: the last axis of `ids` [..., m] holds positions along the first m axes of x.
    Positions outside are clamped to the nearest."""
    t = tensor(x, "gather_nd")
    at, _, _, m = _positions(ids, t.shape, "gather_nd")
    names = labels([*at.axis_names[:-1], *t.axis_names[m:]])
    lead = at.ndim - 1

    def value(*i: Expr) -> Expr:
        found: Expr = t[(*(at[(*i[:lead], as_expr(n))] for n in range(m)), *i[lead:])]
        return found

    return build_stage(names, value, extents=dict(zip(names, (*at.shape[:-1], *t.shape[m:]), strict=True)))


# ---------------------------------------------------------------- what the operators share
def _operands(x: Any, ids: Any, updates: Any, axis: AxisLike, what: str) -> tuple[Tensor, Tensor, Tensor, int]:
    """x, ids with at least one axis, updates stretched to the shape that they need, and the position of the axis."""
    t, at = tensor(x, what), integers(ids, what)
    given = tensor(updates, what)
    d = axis_number(axis, t.axis_names, what)
    weak = not isinstance(updates, Tensor | np.ndarray | np.generic)
    joined = promote(t.dtype, False, given.dtype, weak)
    if joined is None or joined[0] != t.dtype:
        raise refuse("A104", f"{what} of {given.dtype} into {t.dtype}", "the result has the type of x", f"fl.cast(updates, '{t.dtype}')")
    want = (*t.shape[:d], *at.shape, *t.shape[d + 1 :])
    if given.ndim > len(want) or any(n not in (1, w) for n, w in zip(reversed(given.shape), reversed(want), strict=False)):
        why = f"ids {shown(at.shape)} along axis {d} of {shown(t.shape)} take {shown(want)}, or what broadcasts to it"
        raise refuse("A301", f"{what} of updates {shown(given.shape)}", why)
    full = _stretched(given, want)
    return (t, at, full, d) if at.ndim else (t, expanded(at, (0,)), expanded(full, (d,)), d)


def _stretched(t: Tensor, want: tuple[Extent, ...]) -> Tensor:
    same = t.ndim == len(want) and all(n == w for n, w in zip(t.shape, want, strict=True))
    return t if same else broadcast_view(t, want, (None,) * len(want))


def _arrived(kind: str, x: Any, ids: Any, updates: Any, axis: AxisLike, what: str) -> tuple[Tensor, Tensor]:
    """x, and the stage `updates`: what arrives at each of its places, combined."""
    t, at, given, d = _operands(x, ids, updates, axis, what)
    every = labels([*t.axis_names, *at.axis_names])
    names, over = every[: t.ndim], every[t.ndim :]
    to = ACCUMULATOR.get(t.dtype, t.dtype) if kind == "sum" else t.dtype
    none = identity(kind, to)

    def value(*i: Expr) -> Expr:
        def one(*k: Expr) -> Expr:
            return E.where(position_of(at, k) == i[d], E.cast(given[(*i[:d], *k, *i[d + 1 :])], to), none)

        return reduce_axes(kind, over, one, dict(zip(over, at.shape, strict=True)))

    return t, build_stage(names, value, name="updates", extents=dict(zip(names, t.shape, strict=True)))


def _joined(t: Tensor, arrived: Tensor, combine: Any) -> Tensor:
    names = labels(t.axis_names)
    return build_stage(names, lambda *i: E.cast(combine(t[i], arrived[i]), t.dtype), extents=dict(zip(names, t.shape, strict=True)))


def _positions(ids: Any, shape: Any, what: str) -> tuple[Tensor, list[str | None], tuple[Extent, ...], int]:
    """ids, names and extents of a shape, and along how many of its axes the ids say the place."""
    at = integers(ids, what)
    names, extents = dimensions(shape, what)
    m = at.shape[-1] if at.ndim else 0
    if not isinstance(m, int) or not 1 <= m <= len(extents):
        why = f"the last axis of ids holds positions along 1 to {len(extents)} axes"
        raise refuse("A301", f"{what} with ids {shown(at.shape)} and a shape {shown(extents)}", why)
    return at, list(names), extents, m


def _zero(dtype: str) -> Const:
    return identity("sum", dtype)


def _only(at: Tensor) -> str | None:
    return at.axis_names[0] if at.ndim == 1 else None


__all__ = ["gather_nd", "position_of", "scatter", "scatter_add", "scatter_max", "scatter_min", "scatter_nd"]
