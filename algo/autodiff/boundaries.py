"""Reads past an end, split into what lands inside and what lands on the border, so that each part has an affine index."""

from __future__ import annotations

from collections.abc import Iterator

from ..expr import Expr, Op, as_expr
from ..extent import Extent, at_most, nonnegative
from ..linear import Linear, Ranges, bounds, is_index, linear
from .predicates import Predicate, holds_data, least

Zone = tuple[tuple[Predicate, ...], Expr]
"""Where it is, and the index that the read has there."""


def zones(index: tuple[Expr, ...], ranges: Ranges) -> Iterator[tuple[tuple[Predicate, ...], tuple[Expr, ...]]]:
    """The parts of a read, which do not overlap and are all of it."""
    if not index:
        yield (), ()
        return
    for there, first in _parts(index[0], ranges):
        for more, rest in zones(index[1:], ranges):
            yield (*there, *more), (first, *rest)


def _parts(e: Expr, ranges: Ranges) -> list[Zone]:
    match e:
        case Op(op="edge" | "reflect" as boundary, args=(i, n)) if is_index(i) and not holds_data(i):
            size = linear(n).constant
        case _:
            return [((), e)]
    low, high = bounds(i, ranges)
    below, above = low is None or not nonnegative(low), high is None or not at_most(high, size - 1)
    form = linear(i)
    before, after = form.scaled(-1) + Linear((), -1), form + Linear((), size * -1)
    if boundary == "edge":
        ends = as_expr(0), as_expr(size - 1)
    elif _once(low, high, size):
        ends = form.scaled(-1).expr(), (form.scaled(-1) + Linear((), 2 * size - 2)).expr()
    else:
        return [((), e)]
    inside = [least(form)] * below + [least(after.scaled(-1) + Linear((), -1))] * above
    out: list[Zone] = [(tuple(inside), i)]
    if below:
        out.append(((least(before),), ends[0]))
    if above:
        out.append(((least(after),), ends[1]))
    return out


def _once(low: Extent | None, high: Extent | None, size: Extent) -> bool:
    """Whether a reflected index turns round at most once."""
    return low is not None and high is not None and nonnegative(low + size - 1) and at_most(high, 2 * size - 2)


__all__ = ["zones"]
