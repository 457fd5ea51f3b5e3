"""What is found in a tensor: the different values, and where it is not zero. How many there are at most is declared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from .. import expr as E
from ..building import operator
from ..counts import cut as shortened
from ..counts import extent
from ..expr import Expr, as_expr, refuse
from ..extent import Extent
from ..reducing import reduce_axes
from ..tensor import Tensor
from ..trace import build_stage
from .reductions import mapped, not_zero
from .shapes import tensor
from .sorting import ranks, sorted_positions
from .views import reshape

Number: TypeAlias = "bool | int | float"


class Unique(NamedTuple):
    """What is different in a tensor of n elements, in ascending order, padded to a declared size: of each value its first position (flat)
    and how often it occurs; for each element of the tensor the number of its value; and how many values there are."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor
    total: Tensor


@operator
def unique(x: Any, size: int | None = None, fill_value: Number = 0, *, cut: bool = False) -> Unique:
    """The different values of x as (values, indices, inverse_indices, counts, total), the first two and counts of `size` elements, by
    default as many as x has.

    What is beyond `total` is `fill_value` in values, -1 in indices and 0 in counts; values beyond `size` are left out, and `total` says
    how many there are altogether. With `cut` nothing is padded: there are as many elements as are found, an extent that is known when the
    program runs (see fl.extent). Every NaN is a value of its own, as the array API has it; 0.0 and -0.0 are one value.
    """
    t = tensor(x, "unique")
    size = _declared(size, t, "unique")
    flat, n = _flat(t), t.size
    order = sorted_positions(flat, 0, False, n, "order")

    def first(i: Expr) -> Expr:
        here, before = flat[order[i]], flat[order[E.binary("max", i - 1, 0)]]
        return (i < 1) | E.binary("ne", here, before)

    new = build_stage(["i"], first, name="new", extents={"i": n})
    place = ranks(mapped(new, lambda e: E.unary("not", e), "rest"), 0, False, "place")
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


class UniqueAll(NamedTuple):
    """As `Unique`, without the number of values."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The different values, and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The different values, and of each element the number of its value."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Any, size: int | None = None, fill_value: Number = 0, *, cut: bool = False, name: str | None = None) -> UniqueAll:
    """`unique` as the array API standard has it, with a declared size."""
    return UniqueAll(*unique(x, size, fill_value, cut=cut, name=name or "unique_all")[:4])


def unique_counts(x: Any, size: int | None = None, fill_value: Number = 0, *, cut: bool = False, name: str | None = None) -> UniqueCounts:
    """The values of `unique` and how often each occurs."""
    found = unique(x, size, fill_value, cut=cut, name=name or "unique_counts")
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Any, size: int | None = None, fill_value: Number = 0, *, cut: bool = False, name: str | None = None) -> UniqueInverse:
    """The values of `unique` and of each element the number of its value: ``values[inverse_indices]`` is x."""
    found = unique(x, size, fill_value, cut=cut, name=name or "unique_inverse")
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Any, size: int | None = None, fill_value: Number = 0, *, cut: bool = False, name: str | None = None) -> Tensor:
    """The values of `unique` alone."""
    return unique(x, size, fill_value, cut=cut, name=name or "unique_values").values


class Nonzero(NamedTuple):
    """The positions of what is not zero, an int32 tensor for each axis, in row-major order, padded with -1; and how many there are."""

    indices: tuple[Tensor, ...]
    total: Tensor


@operator
def nonzero(x: Any, size: int | None = None, *, cut: bool = False) -> Nonzero:
    """(indices, total): where x is not zero, as one tensor of `size` positions for each axis of x, by default as many as x
    has elements. Those beyond `size` are left out.

    With `cut` nothing is padded: there are as many positions as are found, an extent that is known when the program runs (see fl.extent).
    """
    t = tensor(not_zero(x), "nonzero")
    size = _declared(size, t, "nonzero")
    if not t.ndim:
        raise refuse("A307", "nonzero of a scalar", "positions are along axes", "fl.reshape(x, (1,))")
    flat, n = _flat(t), t.size
    zero = mapped(flat, lambda e: E.unary("not", e) if e.dtype == "bool" else E.binary("eq", e, E.cast(0, e.dtype)), "zero")
    total = build_stage([], lambda: reduce_axes("sum", ["i"], lambda i: E.cast(E.unary("not", zero[i]), "int32"), {"i": n}), name="total")
    order = sorted_positions(zero, 0, False, size, "order")
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
def _flat(t: Tensor) -> Tensor:
    """All elements along one axis, which keeps its name where it is the only one."""
    flat: Tensor = t if t.ndim == 1 else reshape(t, (t.size,))
    return flat


def _declared(size: int | None, t: Tensor, what: str) -> int:
    """How many elements a result has at most: what is said, else as many as there are."""
    most: Any = t.size if size is None else size
    if isinstance(most, bool) or not isinstance(most, int) or most < 0:
        why = "how many elements the result has at most is declared: an integer"
        asked = f"{what} of {most} elements" if size is None else f"{what} with size={size!r}"
        raise refuse("A304", asked, why, f"fl.{what}(x, 100)")
    return most


def _cut(tensors: Sequence[Tensor], total: Tensor, size: int, name: str) -> tuple[Tensor, ...]:
    """As many elements as there are."""
    n = extent(name, of=total, most=size, beyond="cut")
    return tuple(shortened(t, n, f"{t.label}/cut") for t in tensors)


__all__ = [
    "Nonzero", "Unique", "UniqueAll", "UniqueCounts", "UniqueInverse", "nonzero", "unique", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
]  # fmt: skip
