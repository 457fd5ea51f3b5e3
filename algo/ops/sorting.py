"""Sorting and what follows from it. All sorts are stable, NaN comes last in either direction, and 0.0 and -0.0 are equal."""

from __future__ import annotations

from typing import Any

from .. import expr as E
from ..building import operator
from ..dtypes import kind, promote
from ..expr import Expr, as_expr, refuse
from ..extent import Extent
from ..ranking import precedes, ranked
from ..reducing import reduce_axes
from ..tensor import Tensor
from ..trace import build_stage
from .reductions import mapped
from .shapes import AxisLike, axis_number, labels, shown, tensor
from .views import reshape

_FEW = 64
"""A table of at most so many elements is searched by counting: the counts are vectors, sorting is not."""


@operator
def argsort(x: Any, axis: AxisLike = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """The int32 positions along `axis` of the elements in order: ``x[argsort(x)]`` is sorted. Equal elements keep their order."""
    t, d = _sorted_operand(x, axis, "argsort")
    return sorted_positions(t, d, descending, t.shape[d])


@operator
def sort(x: Any, axis: AxisLike = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements along `axis` in order, smallest (or with `descending` largest) first; NaN last."""
    t, d = _sorted_operand(x, axis, "sort")
    return _taken(t, d, sorted_positions(t, d, descending, t.shape[d], "argsort"))


@operator
def top_k(x: Any, k: int, axis: AxisLike = -1, *, largest: bool = True) -> tuple[Tensor, Tensor]:
    """(values, indices) of the k largest (or smallest) elements along `axis`, in order; of equal ones the first. NaN counts last."""
    t, d = _sorted_operand(x, axis, "top_k")
    n = t.shape[d]
    if isinstance(k, bool) or not isinstance(k, int) or k < 0 or (isinstance(n, int) and k > n):
        raise refuse("A304", f"top_k with k={k!r}", f"it is an integer from 0 to the {n} elements of axis {d}")
    at = sorted_positions(t, d, largest, k, "indices")
    return _taken(t, d, at, "values"), at


@operator
def median(x: Any, axis: AxisLike = -1) -> Tensor:
    """The middle element along `axis`, or the mean of the middle two; NaN if any is. Integers give float32."""
    return _quantile(x, 0.5, axis, "median")


@operator
def quantile(x: Any, q: float, axis: AxisLike = -1) -> Tensor:
    """The element a share q (0 to 1) up the sorted axis, linearly between the two nearest; NaN if any is. Integers give float32."""
    if isinstance(q, bool) or not isinstance(q, int | float) or not 0 <= q <= 1:
        raise refuse("A304", f"quantile with q={q!r}", "it is a number from 0 to 1")
    return _quantile(x, float(q), axis, "quantile")


@operator
def searchsorted(x1: Any, x2: Any, *, side: str = "left", sorter: Any = None) -> Tensor:
    """How many elements of x1 [n], in ascending order, come before each element of x2 (or with side "right", before or equal): int32.

    Sorted or not, it is the count that is returned, so that `sorter` (positions that would sort x1) changes nothing. NaN in x2 comes after
    all numbers.
    """
    table, t = tensor(x1, "searchsorted"), tensor(x2, "searchsorted")
    if table.ndim != 1:
        raise refuse("A307", f"searchsorted in {shown(table.shape)}", "the sorted elements have one axis")
    if side not in ("left", "right"):
        raise refuse("A304", f"searchsorted with side={side!r}", "it is 'left' or 'right'")
    if promote(table.dtype, False, t.dtype, False) is None:
        raise refuse("A104", f"searchsorted of {t.dtype} in {table.dtype}", "these two have no common type", "fl.cast one of them")
    if isinstance(table.shape[0], int) and table.shape[0] <= _FEW:
        return _counted(table, t, side)
    return _merged(table, t, side)


# ---------------------------------------------------------------- what the operators share
def _sorted_operand(x: Any, axis: AxisLike, what: str) -> tuple[Tensor, int]:
    t = tensor(x, what)
    return t, axis_number(axis, t.axis_names, what)


def ranks(t: Tensor, d: int, descending: bool, name: str | None = "rank") -> Tensor:
    """The position that each element has along axis d once sorted."""
    names = labels(t.axis_names)
    (other,) = labels(["other"], names)

    def value(*i: Expr) -> Expr:
        return reduce_axes(
            "sum", [other], lambda j: ranked(t[(*i[:d], j, *i[d + 1 :])], j, t[i], i[d], descending), {other: t.shape[d]}
        )

    return build_stage(names, value, name=name, extents=dict(zip(names, t.shape, strict=True)))


def sorted_positions(t: Tensor, d: int, descending: bool, kept: Extent, name: str | None = None) -> Tensor:
    """The first `kept` positions of the sorted axis d: every position scattered to its rank."""
    rank = ranks(t, d, descending)
    names = labels(t.axis_names)
    (other,) = labels(["other"], names)

    def value(*i: Expr) -> Expr:
        return reduce_axes(
            "sum", [other], lambda j: E.where(rank[(*i[:d], j, *i[d + 1 :])] == i[d], E.cast(j, "int32"), 0), {other: t.shape[d]}
        )

    return build_stage(names, value, name=name, extents={**dict(zip(names, t.shape, strict=True)), names[d]: kept})


def _taken(t: Tensor, d: int, at: Tensor, name: str | None = None) -> Tensor:
    names = labels(t.axis_names)
    return build_stage(
        names, lambda *i: t[(*i[:d], at[i], *i[d + 1 :])], name=name, extents=dict(zip(names, at.shape, strict=True))
    )


def _quantile(x: Any, q: float, axis: AxisLike, what: str) -> Tensor:
    t, d = _sorted_operand(x, axis, what)
    n = t.shape[d]
    if not isinstance(n, int) or n < 1:
        raise refuse("A304", f"{what} along an axis of {n} elements", "how many there are must be known, and one at least", "fl.sort")
    ordered = _taken(t, d, sorted_positions(t, d, False, n, "argsort"), "sort")
    at = q * (n - 1)
    low = min(int(at), n - 1)
    high, share = min(low + 1, n - 1), at - low
    names = labels([a for k, a in enumerate(t.axis_names) if k != d])

    def value(*i: Expr) -> Expr:
        def there(k: int) -> Expr:
            e: Expr = ordered[(*i[:d], as_expr(k), *i[d:])]
            return e if kind(e.dtype) == "float" else E.cast(e, "float32")

        middle = there(low) if share == 0 else there(low) + (there(high) - there(low)) * share
        return middle if kind(t.dtype) != "float" else E.where(E.binary("ne", there(n - 1), there(n - 1)), there(n - 1), middle)

    return build_stage(names, value, extents=dict(zip(names, (*t.shape[:d], *t.shape[d + 1 :]), strict=True)))


# ---------------------------------------------------------------- searching
def _before(a: Expr, b: Expr, side: str) -> Expr:
    """Whether table element a counts for b."""
    dtype, _ = E.common("searchsorted", a, b)
    a, b = E.cast(a, dtype), E.cast(b, dtype)
    return precedes(a, b) if side == "left" else E.unary("not", precedes(b, a))


def _counted(table: Tensor, t: Tensor, side: str) -> Tensor:
    names = labels(t.axis_names)
    (other,) = labels([table.axis_names[0]], names)

    def value(*i: Expr) -> Expr:
        x = t[i] if i else t.as_scalar()
        return reduce_axes("sum", [other], lambda j: E.cast(_before(table[j], x, side), "int32"), {other: table.shape[0]})

    return build_stage(names, value, extents=dict(zip(names, t.shape, strict=True)))


def _merged(table: Tensor, t: Tensor, side: str) -> Tensor:
    """The same count in O((n + m) log (n + m)): an element's rank among both, less its rank among its own."""
    from .joining import joined

    flat = reshape(t, (t.size,))
    dtype = (promote(table.dtype, False, t.dtype, False) or ("", False))[0]
    parts = [mapped(u, lambda e: E.cast(e, dtype), name) for u, name in ((table, "table"), (flat, "values"))]
    both = joined(parts if side == "right" else parts[::-1], 0, "searchsorted")
    together, alone = ranks(both, 0, False, "together"), ranks(parts[1], 0, False, "alone")
    start = table.shape[0] if side == "right" else 0
    found = build_stage(["i"], lambda i: together[i + start] - alone[i], name="counts", extents={"i": t.size})
    names = labels(t.axis_names)
    again = reshape(found, t.shape)
    return build_stage(names, lambda *i: again[i] if i else again.as_scalar(), extents=dict(zip(names, t.shape, strict=True)))


__all__ = ["argsort", "median", "quantile", "ranks", "searchsorted", "sort", "sorted_positions", "top_k"]
