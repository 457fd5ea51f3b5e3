"""Reductions of an image to a few numbers: gradients of filter weights, of amounts, of thresholds.

Each thread takes a block of rows and goes over it once, with a vector of partial results in a register for every result. Neighbouring
results (the weights of a stencil) read what the caches still hold of the row, and what all of them read is loaded once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fluorite.algo.expr import Axis
from fluorite.algo.extent import volume
from fluorite.algo.stages import Stage

from ..directives import ComputeAt, ComputeWith, Directive, Parallel, Reorder, Rfactor, Split, StoreIn, Unroll, Vectorize
from ..machine import Machine
from ..typical import TYPICAL, guess
from .analysis import axes_of_index, cost, known, last_axis_is_contiguous, work
from .kernels import Directives, picks

if TYPE_CHECKING:
    from .siblings import Family

LEAST = 1 << 18
"""Evaluations that pay for starting threads and for the second reduction."""
PARTS = 4
"""Blocks of rows for each core."""
_SHORT = 8
"""Iterations of a loop inside the vectors' own."""


@dataclass(frozen=True)
class Pass:
    """How such a reduction goes over its operands: blocks of `rows`, vectors along `lanes`, both of its own axes."""

    rows: Axis
    lanes: Axis
    vectors: int


def one_pass(s: Stage, machine: Machine) -> Pass | None:
    """How s is reduced in one pass, if that is what it is: few results of much, in an order that the caller says does not matter."""
    results = volume(s.extents)
    if s.reduction is None or len(s.reduction.axes) < 2 or s.reduction.in_order:
        return None
    if s.scatter is not None or s.clock is not None or s.parts_axis is not None or machine.cores < 2:
        return None
    if not isinstance(results, int) or not 1 <= results <= machine.registers or guess(work(s)) * max(1, cost(s)) < LEAST:
        return None
    lanes, least = machine.lanes(s.dtype), PARTS * machine.cores
    along = next((a for a in reversed(s.reduction.axes) if known(s.ranges[a], TYPICAL) >= 2 * lanes and _runs_along(s, a)), None)
    rows = next((a for a in s.reduction.axes if a is not along and known(s.ranges[a], TYPICAL) >= least), None)
    if along is None or rows is None or (results > 1 and not _shared(s)):
        return None
    return Pass(rows, along, _vectors(s, along, lanes, results))


def _runs_along(s: Stage, a: Axis) -> bool:
    return not picks(s, a) and last_axis_is_contiguous(s, a) and any(a in set(axes_of_index(r.index)) for r in s.reads)


def _shared(s: Stage) -> bool:
    """Whether some operand is the same for all results."""
    own, reduced = set(s.axes), set(s.reduce_axes)
    return any(not own & (used := set(axes_of_index(r.index))) and reduced & used for r in s.reads)


def _vectors(s: Stage, along: Axis, lanes: int, results: int) -> int:
    """Vectors of one result: more of them where there are few results, for one sum waits for the last."""
    n = s.ranges[along]
    fitting = (v for v in (4, 2) if v * results <= 4 and (n % (v * lanes) == 0 if isinstance(n, int) else v == 2))
    return next(fitting, 1)


def in_one_pass(
    s: Stage, machine: Machine, over: Pass, height: int | None = None, place: ComputeAt | None = None
) -> Mapping[str, Directives]:
    """Directives for s and the stages that it is made of: s/tasks, one of each block of rows, and their partial results in lanes.

    Blocks of `height` rows follow another stage at `place`; without it they are shared out among the threads.
    """
    return _passing(s, machine, over, _loops(s, over), height, place)


def in_one_nest(family: Family, machine: Machine, over: Pass) -> dict[str, Directives]:
    """Directives for several reductions that go over the same elements in the loops of one: the leader, which `over` is of."""
    leader, made = family.leader, dict[str, Directives]()
    loops = _loops(leader, over)
    for s in family.members:
        own = family.axes.get(s.id)
        mine = loops if own is None else loops.of(own)
        its = Pass(mine.rows, mine.lanes, over.vectors)
        found = _passing(s, machine, its, replace(mine, with_tasks=True))
        if own is not None:
            tasks = f"{leader.path}/tasks"
            partial = ComputeWith(stage=f"/{tasks}/partial", axis=loops.innermost(over))
            found[f"{s.path}/tasks"] += (ComputeWith(stage=f"/{tasks}", axis=loops.task),)
            found[f"{s.path}/tasks/partial"] += (partial,)
        made |= found
    return made


@dataclass(frozen=True)
class Loops:
    """The loops of partial results, outermost first: blocks of rows (only `with_tasks` in a place that is said), what is `long`, the lanes,
    and inside these what is `short` and then the results, which are unrolled."""

    rows: Axis
    long: tuple[Axis, ...]
    lanes: Axis
    short: tuple[Axis, ...]
    results: tuple[Axis, ...]
    with_tasks: bool = False

    def of(self, axes: Mapping[Axis, Axis]) -> Loops:
        """The same loops of another stage."""
        long, short, results = (tuple(axes[a] for a in some) for some in (self.long, self.short, self.results))
        return replace(self, rows=axes[self.rows], long=long, lanes=axes[self.lanes], short=short, results=results)

    @property
    def task(self) -> str:
        return f"{self.rows.name}_outer"

    @property
    def names(self) -> list[str]:
        """Down to the vectors."""
        name = {self.rows: f"{self.rows.name}_inner", self.lanes: f"{self.lanes.name}_outer"}
        tasks = [self.task] if self.with_tasks else []
        return tasks + [name.get(a, a.name) for a in (*self.long, self.lanes, *self.short, *self.results)]

    def innermost(self, over: Pass) -> str:
        """The innermost loop outside the vectors."""
        return "jv" if over.vectors > 1 else self.names[-1]


def _loops(s: Stage, over: Pass) -> Loops:
    assert s.reduction is not None
    others = [a for a in s.reduction.axes if a is not over.lanes]
    brief = {a for a in others if a is not over.rows and known(s.ranges[a], TYPICAL) <= _SHORT}
    long, short = (tuple(a for a in others if (a in brief) == is_brief) for is_brief in (False, True))
    return Loops(over.rows, long, over.lanes, short, s.axes)


def _passing(
    s: Stage, machine: Machine, over: Pass, loops: Loops, height: int | None = None, place: ComputeAt | None = None
) -> dict[str, Directives]:
    assert s.reduction is not None
    block = height or max(1, known(s.ranges[over.rows], TYPICAL) // (PARTS * machine.cores))
    tasks, lanes = f"{s.path}/tasks", machine.lanes(s.dtype)
    task, width = loops.task, f"{over.lanes.name}_inner"
    own = [a.name for a in s.axes]
    few = max(2, lanes // 2)
    at = ComputeAt(stage="/" + tasks, axis=task)
    return {
        tasks: (
            Rfactor(axis=over.lanes.name, factor=over.vectors * lanes),
            Rfactor(axis=width, factor=few, into="few"),
            *((Reorder(task, *own),) if own else ()),
            place or Parallel(task),
        ),
        f"{tasks}/partial": (at, StoreIn("stack"), *_lanes_inside(over, loops, lanes)),
        f"{tasks}/few": (
            at,
            StoreIn("stack"),
            Reorder(*own, f"{width}_outer", f"{width}_inner"),
            *map(Unroll, (*own, f"{width}_outer")),
            Vectorize(f"{width}_inner"),
        ),
        s.path: (Rfactor(axis=over.rows.name, block=block, into="tasks"),),
    }


def _lanes_inside(over: Pass, loops: Loops, lanes: int) -> Directives:
    """Over the rows of the block: along the row, then what is short, then the results, all of them next to each other."""
    width = f"{over.lanes.name}_inner"
    out: list[Directive] = [Split(width, lanes, into=("jv", "lane"))] if over.vectors > 1 else []
    inner = ["jv", "lane"] if over.vectors > 1 else [width]
    out += [Reorder(*loops.names, *inner)]
    unrolled = (*(a.name for a in loops.short[-1:]), *(a.name for a in loops.results), *inner[:-1])
    return (*out, *map(Unroll, unrolled), Vectorize(inner[-1]))


__all__ = ["Loops", "Pass", "in_one_nest", "in_one_pass", "one_pass"]
