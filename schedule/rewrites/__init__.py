"""The directives that change the graph: pack, cache, rfactor, find_best, stage_in, layout, pad, compute_inline."""

from __future__ import annotations

from collections.abc import Callable

from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage

from ..directives import Cache, Directive, FindBest, Layout, Pack, Rfactor, StageIn
from ..externs import require_rewritable
from .cache import cache
from .common import of_recurrence, refused
from .inlining import inline
from .operands import operand, operand_axes, operand_name
from .packing import pack
from .reduction import find_best, rfactor
from .staging import margin_of, stage_in
from .storage import layout, pad, pads_of


def rewrite_stage(g: Graph, s: Stage, d: Directive, lanes: Callable[[str], int] = lambda _: 16) -> tuple[Graph, Stage]:
    """The graph with one rewrite of stage s carried out, and what s has become. `lanes(dtype)` are those of the target's widest vector."""
    require_rewritable(g, s, d)
    if s.clock is not None and not isinstance(d, StageIn | Pack | Layout):
        raise of_recurrence(s, d.at(), d.label())
    if s.is_carry:
        why = f"{s.name} is what a loop carries, a copy at each turn"
        raise refused(d.at(), "P271", s, f"{d.label()} of {s.name}", why, "loop directives", "the stages that the loop computes")
    match d:
        case Cache():
            return cache(g, s, d)
        case Rfactor():
            return rfactor(g, s, d)
        case FindBest():
            return find_best(g, s, d)
        case StageIn():
            return stage_in(g, s, d)
        case Pack():
            return pack(g, s, d)
        case Layout():
            return layout(g, s, d)
    return pad(g, s, d, pads_of(d, s, lanes))


__all__ = ["inline", "margin_of", "operand", "operand_axes", "operand_name", "pads_of", "rewrite_stage", "stage_in"]
