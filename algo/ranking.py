"""Ranks: how many elements come before each one. The meaning of sorting is a count, ``rank[i] = sum_j before(x[j], j, x[i], i)``.

That needs no node of its own: argsort is the scatter of i to rank[i], and sorted elements are a gather. A count that is exactly one of
`ranked` is recognised, and done by sorting, in the interpreter and in code generation. Keeping it an expression keeps all that follows
from expressions: extents, sharing, gradients (none), and what a plan may do to it on a machine that does not sort.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import expr as E
from .dtypes import kind
from .expr import Axis, Expr, Op
from .rewriting import axes_of, substitute
from .stages import Stage


@dataclass(frozen=True, eq=False)
class Rank:
    """The stage holds the rank of each `key` among all along `axis`. `key` is over `over`, the reduction's axis, and the others."""

    axis: Axis
    position: int  # of that axis among those of the stage
    over: Axis
    key: Expr
    descending: bool
    free: tuple[Axis, ...]


def precedes(a: Expr, b: Expr, descending: bool = False) -> Expr:
    """Whether a comes before b, if they are not equal: NaN comes last in either direction, and 0.0 and -0.0 are equal."""
    smaller = E.binary("lt", b, a) if descending else E.binary("lt", a, b)
    if kind(a.dtype) != "float":
        return smaller
    return smaller | (E.unary("not", _isnan(a)) & _isnan(b))


def ranked(a: Expr, j: Expr, b: Expr, i: Expr, descending: bool = False) -> Expr:
    """1 where a, element j, comes before b, element i, in a stable sort; else 0."""
    return E.cast(precedes(a, b, descending) | (E.unary("not", precedes(b, a, descending)) & (j < i)), "int32")


def rank_of(s: Stage) -> Rank | None:
    """The rank that a stage is, if its value is `ranked` of one key at two places."""
    if s.reduction is None or s.reduction.kind != "sum" or len(s.reduce_axes) != 1 or s.dtype != "int32":
        return None
    (j,) = s.reduce_axes
    match s.value:
        case Op(op="cast", args=(Op(op="or", args=(_, Op(op="and", args=(Op(op="not", args=(first,)), Op(op="lt", args=(before, i)))))),)):
            if before is not j or not isinstance(i, Axis) or i not in set(s.axes) or s.ranges[i] != s.ranges[j]:
                return None
        case _:
            return None
    compared = first.args[0] if isinstance(first, Op) and first.op == "or" else first
    if not isinstance(compared, Op) or compared.op != "lt":
        return None
    for descending in (False, True):
        key = compared.args[0 if descending else 1]  # the second test asks whether the element at i comes first
        if i in set(axes_of(key)):
            continue
        if ranked(key, j, substitute(key, {j: i}), i, descending) is s.value:
            return Rank(i, next(k for k, a in enumerate(s.axes) if a is i), j, key, descending, tuple(a for a in s.axes if a is not i))
    return None


def _isnan(e: Expr) -> Expr:
    return Op("isnan", (e,), "bool", False)


__all__ = ["Rank", "precedes", "rank_of", "ranked"]
