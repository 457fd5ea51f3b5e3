"""Axes along which the stages of one recurrence never meet: at each position of such an axis they are a recurrence of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fluorite.algo.expr import Axis
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage

from .recurrences import free_axes, members

Shared = Mapping[int, Axis]
"""Of each stage, by id, the axis that is the same in all."""


def steps(g: Graph, s: Stage) -> tuple[Stage, ...]:
    """The stages that are computed together, step by step or turn by turn, with s; none where every position of its axes goes by itself."""
    if s.loops:
        return tuple(t for t in g.stages if t.loops[:1] == s.loops[:1])
    if s.clock is None:
        return ()
    mine = members(g, s)
    alone = len(mine) == 1 and (not s.earlier or (s.reduction is None and len(free_axes(s)) == len(s.axes) - 1))
    return () if alone else mine


def independent(stages: Sequence[Stage]) -> tuple[Shared, ...]:
    """The axes that all stages have and read one another at; in the order of the first one's. A loop's condition has none, so it has
    none."""
    if any(s.loops for s in stages):
        return ()
    by_id = {s.id: s for s in stages}
    clocks = {s.clock.axis for s in stages if s.clock is not None}
    first = stages[0]
    return tuple(found for a in first.axes if a not in clocks and (found := _followed(by_id, first, a)) is not None)


def _followed(by_id: Mapping[int, Stage], first: Stage, a: Axis) -> Shared | None:
    """The axis of every stage that is read where a is; None where some stage has none, or another."""
    found: dict[int, Axis] = {first.id: a}
    links = [(c, s, r.index) for c in by_id.values() for r in c.reads if (s := by_id.get(r.source)) is not None]
    pending = True
    while pending:
        pending = False
        for c, s, index in links:
            for mine, theirs in zip(index, s.axes, strict=True):
                if c.id in found and mine is found[c.id] and s.id not in found:
                    found[s.id] = theirs
                    pending = True
                if s.id in found and theirs is found[s.id] and c.id not in found and any(mine is x for x in c.axes):
                    assert isinstance(mine, Axis)
                    found[c.id] = mine
                    pending = True
    if found.keys() != by_id.keys() or len({str(by_id[i].ranges[x]) for i, x in found.items()}) > 1:
        return None
    for c, s, index in links:
        at = next(mine for mine, theirs in zip(index, s.axes, strict=True) if theirs is found[s.id])
        if at is not found[c.id]:
            return None
    return found


__all__ = ["Shared", "independent", "steps"]
