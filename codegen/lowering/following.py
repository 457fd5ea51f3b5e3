"""Consumers that are computed in the nest of a producer: over what one iteration of it has made."""

from __future__ import annotations

from fluorite.algo.expr import Axis
from fluorite.algo.stages import Stage
from fluorite.schedule.following import following
from fluorite.schedule.nest import Nest
from fluorite.schedule.regions import Box, Interval, whole

from . import bounding, logic
from .context import Context, Placed


def inside(work: Context, s: Stage) -> list[Stage]:
    """The stages that are computed in the loops of s, in producer order."""
    mine = {s.id}
    while more := {i for i, at in work.plan.placements.items() if at.owner in mine and not at.after} - mine:
        mine |= more
    return [x for x in work.plan.stages if x.id in mine and x.id != s.id]


def boxes(work: Context, p: Placed, k: int, after: list[Stage]) -> dict[int, Box]:
    """What one iteration of loop k makes of the stages that follow p there."""
    made = bounding.boxes_at(work, p, k)[p.stage.id] if after else {}
    out: dict[int, Box] = {}
    for s in after:
        found = following(s, inside(work, s), p.stage)
        box = found.box(s, p.stage, made) if found is not None else None
        assert box is not None  # checks.unfinished has seen to that
        out[s.id] = box | {a: whole(s.ranges[a]) for a in s.reduce_axes}
    return out


def unfinished(work: Context, s: Stage, owner: Placed, nest: Nest, position: int) -> str:
    """Why s cannot follow what one iteration of its producer has made; empty if it can."""
    o = owner.stage
    if work.plan.gpu:
        return "on a GPU a consumer inside its producer's nest is not built yet"
    if any(loop.reduction for loop in nest.loops[: position + 1]):
        return f"{o.name} is not finished there: a loop of its reduction is outside"
    cone = inside(work, s)
    found = following(s, cone, o)
    made = bounding.boxes_at(work, owner, position)[o.id]
    box = found.box(s, o, made) if found is not None else None
    if box is None:
        return f"it reads {o.name} elsewhere than at its own position, so it needs more than one iteration makes"
    order = work.plan.stages.index
    mine = {s.id, o.id, *(c.id for c in cone)}
    for i in dict.fromkeys(i for c in (*cone, s) for i in c.sources if i in work.by_id and i not in mine):
        other, at = work.by_id[i], work.plan.placements.get(i)
        if at is None:
            if order(other) > order(o):
                return f"it reads {other.name} too, which comes after {o.name}"
        elif at.owner != o.id or nest.loop(at.loop) is None or nest.position(at.loop) != position:
            return f"it reads {other.name} too, which is kept only inside another stage"
        elif at.after and not _made_with(work, s, cone, other, o, box, made):
            return f"it reads more of {other.name} than the same iteration makes"
    return ""


def _made_with(work: Context, s: Stage, cone: list[Stage], other: Stage, owner: Stage, box: dict[Axis, Interval], made: Box) -> bool:
    """Whether s reads of another stage that follows what this iteration makes of that one."""
    if work.plan.stages.index(other) > work.plan.stages.index(s):
        return False
    theirs = following(other, inside(work, other), owner)
    part = theirs.box(other, owner, made) if theirs is not None else None
    reads = [(c, r) for c in (*cone, s) for r in c.reads if r.source == other.id]
    if part is None or any(c is not s for c, _ in reads):
        return False
    return all(
        part[a].whole or (isinstance(e, Axis) and e in box and _same(box[e], part[a]))
        for _, r in reads
        for a, e in zip(other.axes, r.index, strict=True)
    )


def _same(a: Interval, b: Interval) -> bool:
    return logic.same(a.start, b.start) and logic.same(a.length, b.length)


__all__ = ["boxes", "inside", "unfinished"]
