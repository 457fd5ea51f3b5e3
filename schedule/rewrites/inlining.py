"""compute_inline: the expression of a stage stands where it was read."""

from __future__ import annotations

from dataclasses import replace

from fluorite.algo.expr import Expr, Read
from fluorite.algo.graph import Graph
from fluorite.algo.linear import simplify
from fluorite.algo.rewriting import rewrite
from fluorite.algo.rewriting import substitute as substitute_axes
from fluorite.algo.stages import Stage
from fluorite.algo.wellformed import excess

from ..directives import ComputeInline
from ..notation.places import Place
from .common import of_recurrence, refused


def inline(g: Graph, s: Stage, d: ComputeInline | None = None) -> Graph:
    """The graph without s: its expression stands wherever it was read."""
    place = d.at() if d is not None else Place()
    if s.reduction is not None:
        raise refused(
            place, "P225", s, f"compute_inline: {s.name} is a reduction", "its loops cannot stand inside an expression", "compute_at"
        )
    if s.earlier:
        raise of_recurrence(s, place, "compute_inline")
    if s.id in g.outputs:
        raise refused(place, "P225", s, f"compute_inline: {s.name} is a result of {s.method}", "it must be stored", "compute_root")
    if s.id in g.counts:
        why = f"it is the extent {g.counts[s.id][0]}, which is asked before what is as long"
        raise refused(place, "P225", s, f"compute_inline: {s.name}", why, "compute_root")
    readers = [x for x in g.stages if s.id in x.sources]
    if s.extern is not None or any(x.extern is not None for x in readers):
        why = "a function of NumPy arrays makes it, or is given it"
        raise refused(place, "P225", s, f"compute_inline: {s.name}", why, "compute_root")
    if s.is_carry or any(x.is_carry and x.turn and s.id in (x.turn.next, x.turn.condition) for x in readers):
        why = "it is stored for the next turn"
        raise refused(place, "P225", s, f"compute_inline: {s.name} is what a loop carries, makes or asks at each turn", why, "compute_root")

    def put(reader: Stage) -> Stage:
        def rule(e: Expr) -> Expr | None:
            if isinstance(e, Read) and e.source == s.id:
                return substitute_axes(s.value, dict(zip(s.axes, e.index, strict=True)))
            return None

        value = simplify(rewrite(reader.value, rule), reader.ranges)
        if (why := excess(value)) is not None:
            raise refused(place, "P225", s, f"compute_inline: {s.name} makes of {reader.name} {why[0]}", why[1], "compute_root")
        when = None if reader.when is None else simplify(rewrite(reader.when, rule), reader.ranges)
        return replace(reader, value=value, when=when, counts=tuple(dict.fromkeys((*reader.counts, *s.counts))))

    return g.spliced(s, (), [put(x) for x in readers])
