"""What all rewrites need: a sentence of refusal, a new id and path, where a new stage is computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fluorite.algo.errors import PlanError
from fluorite.algo.expr import Axis, Expr
from fluorite.algo.graph import Graph
from fluorite.algo.rewriting import axes_of
from fluorite.algo.rewriting import substitute as substitute_axes
from fluorite.algo.stages import Leaf, Stage, Turn

from ..notation.places import Place


def refused(place: Place, code: str, s: Stage, asked: str, why: str = "", *try_: str) -> PlanError:
    return PlanError([place.problem(code, asked, why, try_, path=s.path, source=s.source)])


def of_recurrence(s: Stage, place: Place, asked: str) -> PlanError:
    """P271: the stage is walked step by step, and what the rewrite makes of it would not be."""
    clock = s.clock.axis.name if s.clock else ""
    why = f"{s.name} is part of a recurrence along {clock}: the next step reads what it stores"
    return refused(place, "P271", s, f"{asked} of {s.name}", why, "loop directives on its other axes")


def fresh_id(g: Graph) -> int:
    return max(g.by_id) + 1


def free_path(g: Graph, s: Stage, path: str, place: Place) -> str:
    if path in g.paths:
        raise refused(place, "P220", s, f"{path} exists already", "a rewrite makes a stage of a new name", "into: another name")
    return path


def condition_over(s: Stage, to: Mapping[Axis, Axis]) -> Expr | None:
    """The condition of s over other axes."""
    return None if s.when is None else substitute_axes(s.when, dict(to))


def beside(s: Stage, t: Leaf | Stage) -> dict[str, Any]:
    """Where a copy of t that only s reads is computed: in the loop that t is part of, and under the condition of s if it is the same
    everywhere. What is constant is copied once, and what a loop does not change before it."""
    around = t.loops if isinstance(t, Stage) else ()
    shared = tuple(a for a, b in zip(around, s.loops, strict=False) if a == b)
    constant = isinstance(t, Leaf) and t.kind != "input"
    when = None if s.when is None or constant or set(axes_of(s.when)) or shared != s.loops else s.when
    return {"when": when, "turn": Turn(shared[-1], around=shared[:-1]) if shared else None}
