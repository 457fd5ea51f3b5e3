"""cache: a stage accumulates into another, and becomes the copy of it."""

from __future__ import annotations

from dataclasses import replace

from fluorite.algo.expr import Read, axis
from fluorite.algo.graph import Graph
from fluorite.algo.rewriting import substitute as substitute_axes
from fluorite.algo.stages import Stage

from ..directives import Cache
from .common import condition_over, free_path, fresh_id, refused


def cache(g: Graph, s: Stage, d: Cache) -> tuple[Graph, Stage]:
    """f = body  ->  f/into = body; f = f/into, with the axes of the new stage in `order`."""
    names = list(d.order) or [a.name for a in s.axes]
    if sorted(names) != sorted(a.name for a in s.axes):
        raise refused(
            d.at("order"),
            "P221",
            s,
            f"cache: order: [{', '.join(names)}]",
            f"it must name the axes of {s.name} once each: {', '.join(s.axis_names)}",
        )
    by_name = {a.name: a for a in s.axes}
    fresh = {a: axis(a.name) for a in (*s.axes, *s.reduce_axes)}
    inner = [by_name[n] for n in names]
    reduction = replace(s.reduction, axes=tuple(fresh[a] for a in s.reduce_axes)) if s.reduction else None
    acc = replace(
        s,
        id=fresh_id(g),
        path=free_path(g, s, f"{s.path}/{d.into}", d.at("into")),
        axes=tuple(fresh[a] for a in inner),
        extents=tuple(s.ranges[a] for a in inner),
        value=substitute_axes(s.value, dict(fresh)),
        reduction=reduction,
        origin="derived",
        when=condition_over(s, fresh),
    )
    copy = replace(s, value=Read(acc.id, tuple(inner), s.dtype), reduction=None)
    return g.spliced(s, (acc, copy)), copy
