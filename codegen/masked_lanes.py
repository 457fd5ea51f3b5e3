"""Choices that differ between the lanes of a vector and hold costly operations, as at the rim of an image: both sides for all lanes, then a
selection. A branch for each lane would take the vector apart.

What a side reads may lie outside the tensor where the choice falls out the other way: its positions are clamped, and what is found there is
not selected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fluorite.algo.expr import Axis, Expr, Op, Read, as_expr
from fluorite.algo.extent import Extent, nonnegative
from fluorite.algo.linear import Ranges, within
from fluorite.algo.rewriting import axes_of, rewrite, walk

from .common_parts import is_costly
from .statements import For, Statement, Store, transform

Shapes = Mapping[int, Sequence[Extent]]


def selected(body: Statement, ranges: Ranges, shapes: Shapes) -> Statement:
    """The kernel with these choices as selections. `shapes` are those of all buffers."""

    def rule(s: Statement) -> Statement | None:
        match s:
            case For(kind="vectorized", body=Store() as store) if any(map(is_costly, walk(store.value))):
                value = _selected(store.value, s.var, ranges, shapes)
                return None if value is store.value else replace(s, body=replace(store, value=value))
        return None

    return transform(body, rule)


def _selected(value: Expr, lane: Axis, ranges: Ranges, shapes: Shapes) -> Expr:
    def rule(n: Expr) -> Expr | None:
        match n:
            case Op(op="where", args=(c, a, b)) if lane in set(axes_of(c)):
                sides = [x for side in (a, b) for x in walk(side)]
                if any(map(is_costly, sides)) and all(_may_be_computed(x, ranges, shapes) for x in sides):
                    return Op("select", (c, _inside(a, ranges, shapes), _inside(b, ranges, shapes)), n.dtype, n.weak)
        return None

    return rewrite(value, rule)


def _may_be_computed(n: Expr, ranges: Ranges, shapes: Shapes) -> bool:
    """Whether a part of a side can be computed in vain: it reads at no positions of data that may be outside, and no empty tensor."""
    if not isinstance(n, Read):
        return True
    pairs = zip(n.index, shapes[n.source], strict=True)
    return all(nonnegative(k - 1) and (i.weak or within(i, k, ranges)) for i, k in pairs)


def _inside(e: Expr, ranges: Ranges, shapes: Shapes) -> Expr:
    """The expression with the positions of its reads clamped to what there is."""

    def rule(n: Expr) -> Expr | None:
        if not isinstance(n, Read):
            return None
        pairs = zip(n.index, shapes[n.source], strict=True)
        there = (i if within(i, k, ranges) else Op("edge", (i, as_expr(k)), "int32", True) for i, k in pairs)
        return Read(n.source, tuple(there), n.dtype)

    return rewrite(e, rule)


__all__ = ["selected"]
