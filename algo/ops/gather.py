"""Reads at positions that are data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..building import operator
from ..complex.lifting import by_parts
from ..dtypes import canonical, kind
from ..expr import Expr, as_expr, cast, refuse
from ..expr import where as choose
from ..extent import Extent
from ..tensor import Tensor
from ..trace import build_stage
from .shapes import AxisLike, axis_number, broadcast, element, labels, shown, tensor


def integers(ids: Any, what: str) -> Tensor:
    t = tensor(np.asarray(ids) if isinstance(ids, list | tuple | int) else ids, what)
    if kind(t.dtype) != "int":
        raise refuse("A306", f"{what} with indices of type {t.dtype}", "indices are integers", "fl.cast(ids, fl.i32)")
    return t


def positions(ids: Any, t: Tensor, d: int, what: str) -> Tensor:
    """Positions along dimension d of t. Those known now are checked, and counted from the end where negative."""
    if isinstance(ids, Tensor) and ids.dtype == "bool":
        why = "how many elements a mask chooses is known only when the program runs"
        raise refuse("A306", f"{what} with a mask", why, "x[fl.nonzero(mask, size=most, cut=True)[0][0]]", "fl.where(mask, x, 0)")
    if isinstance(ids, Tensor) or (array := np.asarray(ids)).dtype.kind not in "iu" or array.size == 0:
        return integers(ids, what)
    n, low, high = t.shape[d], int(array.min()), int(array.max())
    if isinstance(n, int):
        if low < -n or high >= n:
            asked = f"indices {low} to {high} into dimension {d} of {t.label} {shown(t.shape)}"
            raise refuse("A305", asked, f"its extent is {n}")
        array = np.where(array < 0, array + n, array)
    elif low < 0:
        why = "its extent is symbolic"
        raise refuse("A305", f"negative indices into dimension {d} of {t.label} {shown(t.shape)}", why, "x.shape[axis] - 1")
    return tensor(array.astype(np.int32) if high < 2**31 else array, what)


@by_parts()
@operator
def take(x: Any, ids: Any, axis: AxisLike = 0) -> Tensor:
    """The slices of x along `axis` at these positions: the axes of `ids` replace it.

    Positions known when traced may be negative, counted from the end, and are refused where they lie outside. Those of a tensor are
    clamped to the nearest: from 0 to the extent - 1.
    """
    t = tensor(x, "take")
    d = axis_number(axis, t.axis_names, "take")
    return taken(t, {d: positions(ids, t, d, "take")}, d)


@operator
def take_(x: Tensor, at: Mapping[int, Tensor], place: int) -> Tensor:
    """`taken` as an operator."""
    return taken(x, at, place)


def taken(t: Tensor, at: Mapping[int, Tensor], place: int) -> Tensor:
    """The elements at these positions along some dimensions of t: the axes of the positions, which broadcast, stand at `place` among those
    that are left."""
    shape, named = broadcast("take at positions", list(at.values()))
    left = [d for d in range(t.ndim) if d not in at]
    before, after = left[:place], left[place:]
    names = labels([*(t.axis_names[d] for d in before), *named, *(t.axis_names[d] for d in after)])
    extents = [*(t.shape[d] for d in before), *shape, *(t.shape[d] for d in after)]

    def value(*i: Expr) -> Any:
        inner = i[place : place + len(shape)]
        kept = dict(zip(left, (*i[:place], *i[place + len(shape) :]), strict=True))
        return t[tuple(element(at[d], inner, shape) if d in at else kept[d] for d in range(t.ndim))]

    return build_stage(names, value, extents=dict(zip(names, extents, strict=True)))


@by_parts()
@operator
def take_along_axis(x: Any, ids: Any, axis: AxisLike = -1) -> Tensor:
    """``result[i, j] == x[i, ids[i, j]]`` for axis 1: one position for every element of `ids`, whose other extents broadcast with those of
    x. Positions as for `take`."""
    t = tensor(x, "take_along_axis")
    d = axis_number(axis, t.axis_names, "take_along_axis")
    at = positions(ids, t, d, "take_along_axis")
    if at.ndim != t.ndim or any(n != m and 1 not in (n, m) for k, (n, m) in enumerate(zip(t.shape, at.shape, strict=False)) if k != d):
        why = f"in every dimension but {d} they must be equal, or one of them 1"
        raise refuse("A301", f"take_along_axis of {shown(t.shape)} with ids {shown(at.shape)}", why)
    shape = [m if k == d or n == 1 else n for k, (n, m) in enumerate(zip(t.shape, at.shape, strict=True))]
    names = labels([b or a for a, b in zip(t.axis_names, at.axis_names, strict=True)])

    def value(*i: Expr) -> Any:
        there = element(at, i, shape)
        return t[tuple(there if k == d else as_expr(0) if t.shape[k] == 1 != shape[k] else e for k, e in enumerate(i))]

    return build_stage(names, value, extents=dict(zip(names, shape, strict=True)))


@by_parts("table")
@operator
def embedding(ids: Any, table: Any) -> Tensor:
    """The rows of a table at these positions: ids [..., ] and table [rows, features] give [..., features]. Positions as for `take`."""
    t = tensor(table, "embedding")
    if t.ndim != 2:
        raise refuse("A307", f"embedding in a table {shown(t.shape)}", "a table has two axes: rows and features")
    return taken(t, {0: positions(ids, t, 0, "embedding")}, 0)


@operator
def one_hot(ids: Any, depth: Extent, dtype: Any = "float32") -> Tensor:
    """1 where the last, new axis `c` of extent `depth` equals the id, else 0."""
    at, to = integers(ids, "one_hot"), canonical(dtype)
    names = labels([*at.axis_names, "c"])
    return build_stage(
        names,
        lambda *i: choose((at[i[:-1]] if at.ndim else at.as_scalar()) == i[-1], cast(as_expr(1), to), cast(as_expr(0), to)),
        extents=dict(zip(names, (*at.shape, depth), strict=True)),
    )
