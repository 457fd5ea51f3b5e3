"""Differences of neighbours."""

from __future__ import annotations

from typing import Any

from .. import expr as E
from ..building import operator
from ..complex.lifting import by_parts
from ..expr import Expr, refuse
from ..extent import Extent, maximum, nonnegative
from ..tensor import Tensor
from ..trace import build_stage
from .joining import joined
from .shapes import AxisLike, axis_number, labels, tensor, weak_like
from .views import broadcast_view


@by_parts("x", "prepend", "append")
@operator
def diff(x: Any, axis: AxisLike = -1, n: int = 1, *, prepend: Any = None, append: Any = None) -> Tensor:
    """``x[i + 1] - x[i]`` along an axis, n times over; of booleans, whether the two differ. What is put in front or behind is one
    tensor more along the axis, or a number; with n = 0 the result is x, as in NumPy. An axis becomes n shorter, and not shorter than 0."""
    t = tensor(x, "diff")
    d = axis_number(axis, t.axis_names, "diff")
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise refuse("A304", f"diff {n!r} times over", "n is a non-negative integer")
    if n == 0:
        return t
    parts = [_beside(p, t, d) if p is not t else t for p in (prepend, t, append) if p is not None]
    if len(parts) > 1:
        t = joined(parts, d, "joined")
    for _ in range(n):
        t = _once(t, d)
    return t


def _beside(value: Any, t: Tensor, d: int) -> Tensor:
    beside = tensor(weak_like(value, t.dtype) if isinstance(value, bool | int | float | list | tuple) else value, "diff")
    if beside.ndim:
        return beside
    return broadcast_view(beside, [1 if k == d else e for k, e in enumerate(t.shape)], (None,) * t.ndim)


def _once(t: Tensor, d: int) -> Tensor:
    names, shorter = labels(t.axis_names), t.shape[d] - 1
    shape: list[Extent] = [*t.shape]
    shape[d] = shorter if nonnegative(shorter) else maximum(shorter, 0)
    op = "xor" if t.dtype == "bool" else "sub"

    def value(*i: Expr) -> Expr:
        return E.binary(op, t[tuple(e + 1 if k == d else e for k, e in enumerate(i))], t[i])

    return build_stage(names, value, extents=dict(zip(names, shape, strict=True)))
