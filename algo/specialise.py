"""A graph with some symbolic extents fixed to numbers, or known to be at least so large: what buckets, tuning and checks at given sizes
work on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from .expr import Expr, Size, as_expr, refuse
from .extent import Extent, substitute
from .graph import Graph
from .linear import simplify
from .stages import Leaf, Stage, rewritten


def specialise(g: Graph, values: Mapping[str, Extent], method: str | None = None) -> Graph:
    """The graph with `values` in place of these symbols, in one method or in all.

    Raises AlgorithmError for a symbol that the graph does not have, or a value that makes an extent negative.
    """
    known = g.symbols(method)
    unknown = [n for n in values if n not in known]
    if unknown:
        raise refuse("A140", f"extent {unknown[0]}", f"{method or g.name} has {', '.join(known) or 'no symbolic extents'}")
    if not values:
        return g
    inputs = {i for m in g.methods if method in (None, m.name) for i in m.inputs}

    def extent(e: Extent) -> Extent:
        return substitute(e, values.get)

    def value(e: Expr) -> Expr | None:
        return as_expr(extent(e.extent)) if isinstance(e, Size) else None

    def leaf(t: Leaf) -> Leaf:
        return replace(t, shape=tuple(map(extent, t.shape))) if t.id in inputs else t

    def stage(s: Stage) -> Stage:
        if method not in (None, s.method):
            return s
        extents = tuple(map(extent, s.extents))
        negative = next(((a.name, n) for a, n in zip(s.axes, extents, strict=True) if isinstance(n, int) and n < 0), None)
        if negative:
            given = ", ".join(f"{k}={v}" for k, v in values.items())
            raise refuse("A141", f"{s.path} with {given}", f"its axis {negative[0]} would have the extent {negative[1]}", "larger extents")
        reduction = s.reduction and replace(s.reduction, extents=tuple(map(extent, s.reduction.extents)))
        reads = s.extern and replace(s.extern, reading=tuple((a, extent(n)) for a, n in s.extern.reading))
        new = replace(rewritten(s, value), extents=extents, reduction=reduction, extern=reads)
        return replace(new, value=simplify(new.value, new.ranges))

    return replace(g, leaves=tuple(map(leaf, g.leaves)), stages=tuple(map(stage, g.stages)))
