"""What a recurrence asks of the loops along its clock, and of where a plan computes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fluorite.algo.errors import Problem
from fluorite.algo.expr import Axis
from fluorite.algo.graph import Graph
from fluorite.algo.linear import linear
from fluorite.algo.rewriting import axes_of, reads
from fluorite.algo.stages import Stage

from .directives import Directive, Fuse, GpuBlocks, GpuThreads, Parallel, Reorder, Tile, Vectorize
from .grouping import Placement
from .nest import SERIAL, UNROLLED, Loop, Nest
from .notation.places import NOWHERE, Place
from .ordering import keeps_order

_VERBS = {"parallel": "parallel", "vectorized": "vectorize", "block": "gpu_blocks", "thread": "gpu_threads"}
_SAYING: Mapping[str, type[Directive]] = {"parallel": Parallel, "block": GpuBlocks, "thread": GpuThreads}


def members(g: Graph, s: Stage) -> tuple[Stage, ...]:
    """The stages of the recurrence that s is part of."""
    return tuple(t for t in g.stages if t.clock and s.clock and t.clock.group == s.clock.group)


def free_axes(s: Stage) -> tuple[Axis, ...]:
    """The axes at whose own positions a recurrence of one stage reads itself: each position of them is a recurrence of its own."""
    return tuple(a for d, a in enumerate(s.axes) if (s.clock is None or a is not s.clock.axis) and all(r.index[d] is a for r in s.earlier))


def clock_problems(g: Graph, s: Stage, nest: Nest, directives: Sequence[Directive], gpu: bool = False) -> list[Problem]:
    """P272: what a plan makes of the loops of a recurrence that would compute something before what it reads."""
    if s.clock is None or not (s.earlier or len(members(g, s)) > 1):
        return []
    clock, shared = s.clock.axis, len(members(g, s)) > 1
    whole = shared or (gpu and (s.reduction is not None or len(free_axes(s)) < len(s.axes) - 1))
    value = nest.value(clock)
    mine = set(axes_of(value))
    loops = [loop for loop in nest.loops if loop.var in mine]
    before = f"{s.name} at one {clock.name} reads what was computed at another"
    if any(not isinstance(a, Axis) for a in linear(value).atoms):
        asked = f"fuse: a loop of {s.name} along {clock.name} is fused"
        return [_problem(s, _place(directives, Fuse), asked, before, "leave it out of fuse")]
    for loop in loops:
        if loop.kind not in (SERIAL, UNROLLED):
            verb = _VERBS.get(loop.kind, loop.kind)
            why = f"{before}, so its steps run one after the other"
            others = [a.name for a in s.axes if a is not clock]
            place = _place(directives, _SAYING.get(loop.kind, Vectorize), loop.name)
            return [_problem(s, place, f"{verb}: {loop.name} of {s.name}", why, *others)]
    if whole and (len(loops) > 1 or loops[0].var is not clock):
        names = ", ".join(t.name for t in members(g, s))
        why = f"{names} are computed together, step by step, in one loop over {clock.name}"
        return [_problem(s, _place(directives), f"the loop of {s.name} along {clock.name} is split", why, "split another axis")]
    if not keeps_order(nest, (clock,), loops):
        asked = f"the loops of {s.name} along {clock.name} no longer run in its order"
        return [_problem(s, _place(directives, Reorder, Tile), asked, before, f"keep {', '.join(x.name for x in loops)} in order")]
    free = set() if shared else set(free_axes(s))
    last = max((n for n, loop in enumerate(nest.loops) if loop.var in mine), default=-1)
    wrong = next((x for x in nest.loops[:last] if x.var not in mine and (x.reduction or not _only(s, nest, x, free))), None)
    if wrong is not None:
        why = f"{before}, and at other places than {wrong.name} is at, so {wrong.name} runs inside {clock.name}"
        asked = f"{s.name}: loop {wrong.name} lies outside {loops[-1].name}"
        return [_problem(s, _place(directives, Reorder, Tile), asked, why, f"reorder so that {loops[-1].name} is outside {wrong.name}")]
    return []


def _only(s: Stage, nest: Nest, loop: Loop, free: set[Axis]) -> bool:
    """Whether only free axes move with a loop."""
    return all(a in free for a in s.axes if loop.var in set(axes_of(nest.value(a))))


def placement_problems(g: Graph, placements: Mapping[int, Placement]) -> list[Problem]:
    """P273: recurrences that a plan computes inside other stages, or other stages inside them, where that cannot be; and conditions."""
    out = []
    for i, at in placements.items():
        s, owner = g.stage(i), g.stage(at.owner)
        assert s is not None and owner is not None
        if why := not_within(g, s, owner, at):
            place = at.directive.at("stage") if at.directive else NOWHERE
            out.append(_problem(s, place, f"{s.name} cannot be computed at {owner.name}", why, "compute_root", code="P273"))
    return out


def not_within(g: Graph, s: Stage, owner: Stage, at: Placement) -> str:
    """Why s cannot be computed at a loop of its owner, if one of them is part of a recurrence, or s a condition; empty if it can."""
    if s.id in g.carried:
        return f"{s.name} is what a loop carries, makes or asks at each turn"
    if s.loops != owner.loops:
        deeper = s if len(s.loops) > len(owner.loops) else owner
        return f"one of them is computed at each turn of a loop, {deeper.name}, and the other is not"
    if s.id in g.counts:
        return f"it is the extent {g.counts[s.id][0]}, which is asked before all loops that run so far"
    if s.id in g.conditions:
        reader = next(t.name for t in g.stages if t.when is not None and s.id in {r.source for r in reads(t.when)})
        return f"it decides whether {reader} is computed, and is asked before all loops of that"
    if shared := next((t for t in (s, owner) if t.clock and len(members(g, t)) > 1), None):
        return f"{', '.join(t.name for t in members(g, shared))} are one recurrence, computed together step by step"
    if at.kept is not None and (s.clock or owner.clock):
        return "what store_at keeps moves with its reader, and a recurrence needs all that is before it"
    if s.earlier and at.after:
        return f"{s.name} reads itself, so it needs all that is before it"
    if s.earlier and len(free_axes(s)) < len(s.axes) - 1:
        return f"{s.name} reads itself at other places than its own, so all of it is computed together"
    return ""


def _place(directives: Sequence[Directive], *kinds: type[Directive] | str) -> Place:
    """Where the plan says it: the directive of one of these kinds, on this loop if one is named."""
    names = [k for k in kinds if isinstance(k, str)]
    found = [d for d in directives if isinstance(d, tuple(k for k in kinds if not isinstance(k, str)) or Directive)]
    exact = [d for d in found if getattr(d, "axis", None) in names] if names else []
    chosen = (exact or found or list(directives))[:1]
    return chosen[0].at() if chosen else NOWHERE


def _problem(s: Stage, place: Place, asked: str, why: str, *instead: str, code: str = "P272") -> Problem:
    return place.problem(code, asked, why, instead, path=s.path, source=s.source)


__all__ = ["clock_problems", "free_axes", "members", "not_within", "placement_problems"]
