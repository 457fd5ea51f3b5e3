"""Stages that run in the loops of another one, beside it (compute_with): which they are, and what two of them have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.expr import Axis, Expr, axis
from fluorite.algo.graph import Graph
from fluorite.algo.rewriting import substitute, walk
from fluorite.algo.stages import Stage

from .directives import ComputeWith, Directive
from .grouping import Companion, Placement
from .nest import Nest
from .placing import named, reaches
from .pool import Pool


def companions_of(
    g: Graph, chosen: Mapping[str, Sequence[Directive]], key_of: Mapping[str, str], placements: Mapping[int, Placement]
) -> tuple[dict[int, Companion], list[Problem]]:
    """By stage the one whose loops it shares, and what is wrong with it. `key_of` is the selector by which the plan named each path."""
    out: dict[int, Companion] = {}
    problems: list[Problem] = []
    asked = {s.id: d for s in g.stages for d in chosen.get(s.path, ()) if isinstance(d, ComputeWith)}
    peers = {m: Pool(g.stages_of(m)) for m in {g.stages[g.positions[i]].method for i in asked}}
    for i, d in asked.items():
        s = g.stages[g.positions[i]]
        try:
            leader = named(g, s, d, key_of.get(s.path), peers[s.method])
        except PlanError as error:
            problems += error.problems
            continue
        out[i] = Companion(leader.id, d.axis, d)
    for i, c in out.items():
        s, leader = g.stages[g.positions[i]], g.stages[g.positions[c.leader]]
        found = _why_not(g, s, leader, out, placements)
        if found is not None:
            asked_ = f"{s.name} cannot run together with {leader.name}"
            problems.append(c.directive.at("stage").problem("P266", asked_, *found, path=s.path, source=s.source))
    return out, problems


def _why_not(
    g: Graph, s: Stage, leader: Stage, companions: Mapping[int, Companion], placements: Mapping[int, Placement]
) -> tuple[str, tuple[str, ...]] | None:
    """Why the loops of two stages cannot be shared, and what would do."""
    if s.id == leader.id:
        return "compute_with names another stage", ()
    for x in (s, leader):
        if (what := _special(x)) is not None:
            return f"{x.name} is {what}, whose loops are its own", ("compute_root",)
    if leader.id in companions:
        first = g.path_of(companions[leader.id].leader)
        return f"{leader.name} itself runs together with another stage", (f"{{stage: /{first}, axis: ...}}",)
    others = [x for x in (leader.id, *(i for i, c in companions.items() if c.leader == leader.id)) if x != s.id]
    for other in others:
        for a, b in ((s.id, other), (other, s.id)):
            if reaches(g, a, b):
                return f"{g[b].name} needs {g[a].name}, all of it", ("compute_at",)
    mine, its = placements.get(s.id), placements.get(leader.id)
    if (mine is None) != (its is None) or (mine is not None and its is not None and not _beside(mine, its, companions)):
        at = "by itself" if its is None else f"at {g[its.owner].name}'s {its.loop}"
        where = "by itself" if mine is None else f"at {g[mine.owner].name}'s {mine.loop}"
        owner = "compute_root" if its is None else f"compute_at: {{stage: /{g.path_of(its.owner)}, axis: {its.loop}}}"
        return f"{leader.name} is computed {at}, {s.name} {where}", (owner,)
    return None


def _beside(mine: Placement, its: Placement, companions: Mapping[int, Companion]) -> bool:
    """Whether two stages are computed in the same iteration, as far as that is known without the loops."""
    if mine.after != its.after:
        return False
    if mine.owner == its.owner:
        return mine.loop == its.loop
    leaders = [companions[p.owner].leader if p.owner in companions else p.owner for p in (mine, its)]
    return leaders[0] == leaders[1]


def _special(s: Stage) -> str | None:
    """What a stage is that has no loops of the ordinary kind."""
    found = {
        "part of a recurrence": s.clock is not None,
        "part of a loop of turns": s.turn is not None,
        "computed only where it is asked for": s.when is not None,
        "a scatter": s.scatter is not None,
        "a sort": s.rank is not None,
        "a function of NumPy arrays": s.extern is not None,
    }
    return next((what for what, is_so in found.items() if is_so), None)


def common_parts(s: Stage, one: Nest, t: Stage, other: Nest) -> list[Expr]:
    """What an iteration of t's nest computes that one of s's nest computes as well, loops in the same places being the same."""
    numbered = [axis(f"loop{n}") for n in range(max(len(one.loops), len(other.loops)))]

    def over_loops(x: Stage, nest: Nest) -> Expr:
        at: dict[Axis, Expr] = {loop.var: n for loop, n in zip(nest.loops, numbered, strict=False)}
        return substitute(x.value, {a: substitute(nest.value(a), at) for a in (*x.axes, *x.reduce_axes)})

    mine = set(walk(over_loops(s, one)))
    return [e for e in walk(over_loops(t, other)) if e in mine]


__all__ = ["common_parts", "companions_of"]
