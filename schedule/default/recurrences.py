"""The rule for recurrences: steps one after the other, vectors and threads over the other axes."""

from __future__ import annotations

from collections.abc import Mapping

from fluorite.algo.expr import Axis
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage

from ..directives import Directive, Fuse, Parallel, Reorder, Split, Unroll, Vectorize
from ..machine import Machine
from ..recurrences import free_axes, members
from .analysis import cost, known, last_axis_is_contiguous, volume
from .kernels import PARALLEL_WORK, TYPICAL, Directives, guess, pays_parallel, vector

_LINES = 8  # rows that are walked side by side: one addition waits for the one before it, eight do not
_COLUMNS = 1024  # columns of a task: what one step wrote is still in the first-level cache when the next one reads it


def is_recurrence(g: Graph, s: Stage) -> bool:
    return s.clock is not None and (bool(s.earlier) or len(members(g, s)) > 1)


def recurrence(g: Graph, s: Stage, machine: Machine) -> Mapping[str, Directives]:
    """Directives of one stage of a recurrence."""
    assert s.clock is not None
    clock = s.clock.axis
    others = [a for a in s.axes if a is not clock]
    if not others:
        return {s.path: ()}
    if s.reduction is not None or len(members(g, s)) > 1 or len(free_axes(s)) < len(others):
        return {s.path: _one_step(s, others, machine)}
    if s.axes[-1] is clock:
        return {s.path: _rows(s, others, machine)}
    return {s.path: _columns(s, clock, machine)}


def _rows(s: Stage, others: list[Axis], machine: Machine) -> Directives:
    """The clock runs along memory: several rows side by side, and threads over groups of rows."""
    *outer, row = [a.name for a in others]
    clock, parallel = s.axes[-1].name, pays_parallel(s)
    if known(s.ranges[others[-1]], TYPICAL) < _LINES:
        return _threads([*outer, row], "task") if parallel else ()
    own: list[Directive] = [Split(row, _LINES, into=("group", "line")), Reorder(*outer, "group", clock, "line"), Unroll("line")]
    return (*own, *(_threads([*outer, "group"], "task") if parallel else ()))


def _columns(s: Stage, clock: Axis, machine: Machine) -> Directives:
    """The clock runs across memory: vectors along the last axis, and threads over what stands outside the clock, or over columns."""
    before = [a.name for a in s.axes[: s.tick]]
    last = s.axes[-1]
    parallel, lanes, width = pays_parallel(s), machine.lanes(s.dtype), known(s.extents[-1], TYPICAL)
    if before or width < 8 * lanes or not (parallel or width > 4 * _COLUMNS):
        return (*(_threads(before, "task") if parallel else ()), *vector(s, last.name, machine))
    share = -(-width // (2 * machine.cores * lanes)) * lanes
    columns = max(4 * lanes, min(_COLUMNS, share))
    task, inside = f"{last.name}_task", f"{last.name}_in"
    middle = [a.name for a in s.axes if a is not clock and a is not last]
    return (
        Split(last.name, columns, into=(task, inside)),
        Reorder(task, clock.name, *middle, inside),
        *((Parallel(task),) if parallel else ()),
        Vectorize(inside, width=lanes),
    )


def _threads(names: list[str], into: str) -> Directives:
    if len(names) > 1:
        return (Fuse(*names, into=into), Parallel(into))
    return tuple(Parallel(n) for n in names)


def _one_step(s: Stage, others: list[Axis], machine: Machine) -> Directives:
    """All of a step before the next: vectors along the last axis; threads only where one step is worth waking them."""
    *outer, last = others
    names = [a.name for a in outer]
    reduced = [a.name for a in s.reduce_axes]
    work = guess(volume([*(s.ranges[a] for a in others), *(s.reduction.extents if s.reduction else ())]))
    parallel = work * max(1, cost(s)) >= PARALLEL_WORK
    lanes, width = machine.lanes(s.dtype), known(s.ranges[last], TYPICAL)
    if s.reduction is None:
        return (*(_threads(names, "task") if parallel else ()), *vector(s, last.name, machine))
    if width < lanes or s.reduction.kind.startswith("arg") or not last_axis_is_contiguous(s, last):
        return _threads(names, "task") if parallel else ()
    several = next((n for n in (4, 3, 2) if width % (n * lanes) == 0), 1)
    tile, vectors, lane = (f"{last.name}_{part}" for part in ("tile", "vec", "lane"))
    if several == 1:
        own: list[Directive] = [Split(last.name, lanes, into=(tile, lane)), Reorder(*names, tile, *reduced, lane)]
    else:
        own = [Split(last.name, several * lanes, into=(tile, f"{last.name}_in")), Split(f"{last.name}_in", lanes, into=(vectors, lane))]
        own += [Reorder(*names, tile, *reduced, vectors, lane), Unroll(vectors)]
    return (*own, *(_threads([*names, tile], "task") if parallel else ()), Vectorize(lane))


__all__ = ["is_recurrence", "recurrence"]
