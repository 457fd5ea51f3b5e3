"""The loops that a stage has before any directive: its axes, then those of its reduction.

A scatter is written at positions that are data, so its target axes are no loops: it runs once over what is scattered, and over the axes
that are the same in both. A rank is a sort along its axis, and its loops are the rows. On a GPU both stay the reductions that they are
written as: threads that add into one place would need atomics, whose order is not defined. The clock of a recurrence comes first, unless
it is one stage and each position of the other axes is a recurrence of its own. The parts of an element have no loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fluorite.algo.expr import Axis
from fluorite.algo.extent import Extent
from fluorite.algo.ranking import Rank
from fluorite.algo.scatter import Scatter
from fluorite.algo.stages import Stage

from .nest import Nest, start
from .recurrences import free_axes


def scatters(s: Stage, gpu: bool) -> Scatter | None:
    """How the stage is carried out as a scatter, if it is."""
    return None if gpu or s.clock else s.scatter


def sorts(s: Stage, gpu: bool) -> Rank | None:
    """How the stage is carried out as a sort, if it is."""
    return None if gpu or s.clock else s.rank


def unscheduled(s: Stage, gpu: bool, bounds: Sequence[Extent] | None = None) -> Nest:
    """The nest over a box of the stage, by default all of it; `bounds` are one for each of its axes."""
    extents = s.extents if bounds is None else bounds
    reduced = s.reduction.extents if s.reduction else ()
    if (found := scatters(s, gpu)) is not None:
        nest = _over(s, extents, found.free, s.reduce_axes, reduced)
        return replace(nest, gone={a.name: "it is where the scatter writes, at positions that are data" for a in found.targets})
    if (sorted_ := sorts(s, gpu)) is not None:
        nest = _over(s, extents, sorted_.free, (), ())
        return replace(nest, gone={a.name: "the sort runs along it" for a in (sorted_.axis, sorted_.over)})
    pairs = list(zip(s.axes, extents, strict=True))
    alone = s.clock is not None and bool(s.earlier) and s.clock.group == s.id
    if s.clock is not None and (not alone or s.reduction is not None or len(free_axes(s)) < len(s.axes) - 1):
        pairs.insert(0, pairs.pop(s.tick))
    loops = [(a, n) for a, n in pairs if a is not s.parts_axis]
    nest = start(s.path, [a for a, _ in loops], [n for _, n in loops], s.reduce_axes, reduced)
    return nest if s.parts_axis is None else replace(nest, gone={s.parts_axis.name: "the parts of an element are combined together"})


def _over(s: Stage, extents: Sequence[Extent], kept: Sequence[Axis], over: Sequence[Axis], reduced: Sequence[Extent]) -> Nest:
    """The nest over some of the stage's axes."""
    loops = [(a, n) for a, n in zip(s.axes, extents, strict=True) if a in set(kept)]
    return start(s.path, [a for a, _ in loops], [n for _, n in loops], over, reduced)


__all__ = ["scatters", "sorts", "unscheduled"]
