"""Sorting and what follows from it. All sorts are stable, NaN comes last in either direction, and 0.0 and -0.0 are equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import expr as E
from ..building import operator
from ..counts import cut as shortened
from ..counts import extent
from ..dtypes import kind, promote
from ..expr import Expr, as_expr, refuse
from ..extent import Extent
from ..ranking import precedes, ranked
from ..reducing import reduce_axes
from ..tensor import Tensor
from ..trace import build_stage
from .reductions import not_zero
from .shapes import AxisLike, axis_number, labels, shown, tensor
from .views import reshape

_FEW = 64
"""A table of at most so many elements is searched by counting: the counts are vectors, sorting is not."""


@operator
def argsort(x: Any, axis: AxisLike = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """The int32 positions along `axis` of the elements in order: ``x[argsort(x)]`` is sorted. Equal elements keep their order."""
    t, d = _sorted_operand(x, axis, "argsort")
    return _positions(t, d, descending, t.shape[d])


@operator
def sort(x: Any, axis: AxisLike = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements along `axis` in order, smallest (or with `descending` largest) first; NaN last."""
    t, d = _sorted_operand(x, axis, "sort")
    return _taken(t, d, _positions(t, d, descending, t.shape[d], "argsort"))


@operator
def top_k(x: Any, k: int, axis: AxisLike = -1, *, largest: bool = True) -> tuple[Tensor, Tensor]:
    """(values, indices) of the k largest (or smallest) elements along `axis`, in order; of equal ones the first. NaN counts last."""
    t, d = _sorted_operand(x, axis, "top_k")
    n = t.shape[d]
    if isinstance(k, bool) or not isinstance(k, int) or k < 0 or (isinstance(n, int) and k > n):
        raise refuse("A304", f"top_k with k={k!r}", f"it is an integer from 0 to the {n} elements of axis {d}")
    at = _positions(t, d, largest, k, "indices")
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
def searchsorted(x1: Any, x2: Any, *, side: str = "left") -> Tensor:
    """How many elements of x1 [n], in ascending order, come before each element of x2 (or with side "right", before or equal): int32.

    Sorted or not, it is the count that is returned. NaN in x2 comes after all numbers.
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


class Unique(NamedTuple):
    """What is different in a tensor of n elements, in ascending order, padded to a declared size: of each value its first position (flat)
    and how often it occurs; for each element of the tensor the number of its value; and how many values there are."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor
    total: Tensor


@operator
def unique(x: Any, size: int, fill_value: bool | int | float = 0, *, cut: bool = False) -> Unique:
    """The different values of x as (values, indices, inverse_indices, counts, total), the first two and counts of `size` elements.

    What is beyond `total` is `fill_value` in values, -1 in indices and 0 in counts; values beyond `size` are left out, and `total` says
    how many there are altogether. With `cut` nothing is padded: there are as many elements as are found, an extent that is known when the
    program runs (see fl.extent). Every NaN is a value of its own, as the array API has it; 0.0 and -0.0 are one value.
    """
    t = tensor(x, "unique")
    _declared(size, "unique")
    flat, n = _flat(t), t.size
    order = _positions(flat, 0, False, n, "order")

    def first(i: Expr) -> Expr:
        here, before = flat[order[i]], flat[order[E.binary("max", i - 1, 0)]]
        return (i < 1) | E.binary("ne", here, before)

    new = build_stage(["i"], first, name="new", extents={"i": n})
    place = _ranks(_mapped(new, lambda e: E.unary("not", e), "rest"), 0, False, "place")
    total = build_stage([], lambda: reduce_axes("sum", ["i"], lambda i: E.cast(new[i], "int32"), {"i": n}), name="total")

    def group(i: Expr) -> Expr:
        return E.where(new[i], place[i], total.as_scalar() + E.cast(i, "int32") - place[i] - 1)

    groups = build_stage(["i"], group, name="groups", extents={"i": n})

    def at_new(e: Any, none: Any, name: str) -> Tensor:
        """What e is at the first element of each group."""

        def arrived(k: Expr) -> Expr:
            return reduce_axes("sum", ["i"], lambda i: E.where((groups[i] == k) & new[i], e(i), E.cast(0, e(i).dtype)), {"i": n})

        found = build_stage(["k"], arrived, name=f"{name}/found", extents={"k": size})
        return build_stage(["k"], lambda k: E.where(k < total.as_scalar(), found[k], none), name=name, extents={"k": size})

    indices = at_new(lambda i: order[i], -1, "indices")
    values = build_stage(
        ["k"], lambda k: E.where(k < total.as_scalar(), flat[indices[k]], E.cast(fill_value, t.dtype)), name="values", extents={"k": size}
    )
    counts = build_stage(
        ["k"], lambda k: reduce_axes("sum", ["i"], lambda i: E.cast(groups[i] == k, "int32"), {"i": n}), name="counts", extents={"k": size}
    )

    def number(i: Expr) -> Expr:
        return reduce_axes("sum", ["j"], lambda j: E.where(order[j] == i, groups[j], 0), {"j": n})

    inverse = build_stage(["i"], number, name="inverse", extents={"i": n})
    if cut:
        values, indices, counts = _cut((values, indices, counts), total, size, "different")
    return Unique(values, indices, inverse if t.ndim == 1 else reshape(inverse, t.shape), counts, total)


class Nonzero(NamedTuple):
    """The positions of what is not zero, an int32 tensor for each axis, in row-major order, padded with -1; and how many there are."""

    indices: tuple[Tensor, ...]
    total: Tensor


@operator
def nonzero(x: Any, size: int, *, cut: bool = False) -> Nonzero:
    """(indices, total): where x is not zero, as one tensor of `size` positions for each axis of x. Those beyond `size` are left out.

    With `cut` nothing is padded: there are as many positions as are found, an extent that is known when the program runs (see fl.extent).
    """
    t = tensor(not_zero(x), "nonzero")
    _declared(size, "nonzero")
    if not t.ndim:
        raise refuse("A307", "nonzero of a scalar", "positions are along axes", "fl.reshape(x, (1,))")
    flat, n = _flat(t), t.size
    zero = _mapped(flat, lambda e: E.unary("not", e) if e.dtype == "bool" else E.binary("eq", e, E.cast(0, e.dtype)), "zero")
    total = build_stage([], lambda: reduce_axes("sum", ["i"], lambda i: E.cast(E.unary("not", zero[i]), "int32"), {"i": n}), name="total")
    order = _positions(zero, 0, False, size, "order")
    indices = []
    for d in range(t.ndim):
        inner: Extent = 1
        for m in t.shape[d + 1 :]:
            inner = inner * m

        def along(k: Expr, inner: Extent = inner, extent: Extent = t.shape[d], d: int = d) -> Expr:
            at = order[k] if inner == 1 else E.binary("floordiv", order[k], as_expr(inner))
            return E.where(k < total.as_scalar(), at if d == 0 else E.binary("mod", at, as_expr(extent)), -1)

        indices.append(build_stage(["k"], along, name=f"axis{d}", extents={"k": size}))
    return Nonzero(_cut(indices, total, size, "found") if cut else tuple(indices), total)


# ---------------------------------------------------------------- what the operators share
def _sorted_operand(x: Any, axis: AxisLike, what: str) -> tuple[Tensor, int]:
    t = tensor(x, what)
    return t, axis_number(axis, t.axis_names, what)


def _flat(t: Tensor) -> Tensor:
    """All elements along one axis, which keeps its name where it is the only one."""
    flat: Tensor = t if t.ndim == 1 else reshape(t, (t.size,))
    return flat


def _declared(size: Any, what: str) -> None:
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise refuse("A304", f"{what} with size={size!r}", "how many elements the result has is declared: an integer", f"fl.{what}(x, 100)")


def _cut(tensors: Sequence[Tensor], total: Tensor, size: int, name: str) -> tuple[Tensor, ...]:
    """As many elements as there are."""
    n = extent(name, of=total, most=size, beyond="cut")
    return tuple(shortened(t, n, f"{t.label}/cut") for t in tensors)


def _ranks(t: Tensor, d: int, descending: bool, name: str | None = "rank") -> Tensor:
    """The position that each element has along axis d once sorted."""
    names = labels(t.axis_names)
    (other,) = labels(["other"], names)

    def value(*i: Expr) -> Expr:
        return reduce_axes(
            "sum", [other], lambda j: ranked(t[(*i[:d], j, *i[d + 1 :])], j, t[i], i[d], descending), {other: t.shape[d]}
        )

    return build_stage(names, value, name=name, extents=dict(zip(names, t.shape, strict=True)))


def _positions(t: Tensor, d: int, descending: bool, kept: Extent, name: str | None = None) -> Tensor:
    """The first `kept` positions of the sorted axis d: every position scattered to its rank."""
    rank = _ranks(t, d, descending)
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


def _mapped(t: Tensor, fn: Any, name: str) -> Tensor:
    names = labels(t.axis_names)
    return build_stage(names, lambda *i: fn(t[i]), name=name, extents=dict(zip(names, t.shape, strict=True)))


def _quantile(x: Any, q: float, axis: AxisLike, what: str) -> Tensor:
    t, d = _sorted_operand(x, axis, what)
    n = t.shape[d]
    if not isinstance(n, int) or n < 1:
        raise refuse("A304", f"{what} along an axis of {n} elements", "how many there are must be known, and one at least", "fl.sort")
    ordered = _taken(t, d, _positions(t, d, False, n, "argsort"), "sort")
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
    parts = [_mapped(u, lambda e: E.cast(e, dtype), name) for u, name in ((table, "table"), (flat, "values"))]
    both = joined(parts if side == "right" else parts[::-1], 0, "searchsorted")
    together, alone = _ranks(both, 0, False, "together"), _ranks(parts[1], 0, False, "alone")
    start = table.shape[0] if side == "right" else 0
    found = build_stage(["i"], lambda i: together[i + start] - alone[i], name="counts", extents={"i": t.size})
    names = labels(t.axis_names)
    again = reshape(found, t.shape)
    return build_stage(names, lambda *i: again[i] if i else again.as_scalar(), extents=dict(zip(names, t.shape, strict=True)))


__all__ = ["Nonzero", "Unique", "argsort", "median", "nonzero", "quantile", "searchsorted", "sort", "top_k", "unique"]
