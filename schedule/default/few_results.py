"""Reductions of an image to a few numbers: gradients of filter weights, of amounts, of thresholds.

Each thread takes a block of rows and goes over it once, with a vector of partial results in a register for every result. Neighbouring
results (the weights of a stencil) read what the caches still hold of the row, and what all of them read is loaded once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fluorite.algo.expr import Axis
from fluorite.algo.extent import volume
from fluorite.algo.stages import Stage

from ..directives import ComputeAt, Directive, Parallel, Reorder, Rfactor, Split, StoreIn, Unroll, Vectorize
from ..machine import Machine
from ..typical import TYPICAL, guess
from .analysis import axes_of_index, cost, known, last_axis_is_contiguous, work
from .kernels import Directives, picks

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
    assert s.reduction is not None
    block = height or max(1, known(s.ranges[over.rows], TYPICAL) // (PARTS * machine.cores))
    tasks, lanes = f"{s.path}/tasks", machine.lanes(s.dtype)
    task, width = f"{over.rows.name}_outer", f"{over.lanes.name}_inner"
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
        f"{tasks}/partial": (at, StoreIn("stack"), *_lanes_inside(s, over, own, lanes)),
        f"{tasks}/few": (
            at,
            StoreIn("stack"),
            Reorder(*own, f"{width}_outer", f"{width}_inner"),
            *map(Unroll, (*own, f"{width}_outer")),
            Vectorize(f"{width}_inner"),
        ),
        s.path: (Rfactor(axis=over.rows.name, block=block, into="tasks"),),
    }


def _lanes_inside(s: Stage, over: Pass, own: list[str], lanes: int) -> Directives:
    """Over the rows of the block: along the row, then what is short, then the results, all of them next to each other."""
    assert s.reduction is not None
    name = {over.rows: f"{over.rows.name}_inner", over.lanes: f"{over.lanes.name}_outer"}
    others = [a for a in s.reduction.axes if a is not over.lanes]
    brief = {a for a in others if a is not over.rows and known(s.ranges[a], TYPICAL) <= _SHORT}
    long, short = [a for a in others if a not in brief], [a for a in others if a in brief]
    width = f"{over.lanes.name}_inner"
    out: list[Directive] = [Split(width, lanes, into=("jv", "lane"))] if over.vectors > 1 else []
    inner = ["jv", "lane"] if over.vectors > 1 else [width]
    out += [Reorder(*(name.get(a, a.name) for a in (*long, over.lanes, *short)), *own, *inner)]
    return (*out, *map(Unroll, (*(a.name for a in short[-1:]), *own, *inner[:-1])), Vectorize(inner[-1]))


__all__ = ["Pass", "in_one_pass", "one_pass"]
