"""The rule for recurrences: steps one after the other, vectors and threads over the other axes."""

from __future__ import annotations

from collections.abc import Container, Mapping

from fluorite.algo.expr import Axis
from fluorite.algo.extent import volume
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage

from ..directives import Directive, Fuse, Pack, Parallel, Reorder, Split, Unroll, Vectorize
from ..machine import Machine
from ..recurrences import free_axes, members
from ..rewrites import operand_axes, operand_name
from ..typical import TYPICAL, guess
from .analysis import axes_of_index, cost, known, last_axis_is_contiguous
from .kernels import Directives, pays_parallel, vector
from .products import panels_first

_LINES = 8  # rows that are walked side by side: one addition waits for the one before it, eight do not
_COLUMNS = 1024  # columns of a task: what one step wrote is still in the first-level cache when the next one reads it
_STEP_WORK = 1 << 20  # operations of one step that pay for waking threads in every step


def is_recurrence(g: Graph, s: Stage) -> bool:
    return s.clock is not None and (bool(s.earlier) or len(members(g, s)) > 1)


def recurrence(g: Graph, s: Stage, machine: Machine, movable: Container[int]) -> Mapping[str, Directives]:
    """Directives of one stage of a recurrence. Of the tensors that it reads, those that are `movable` may be packed."""
    assert s.clock is not None
    clock = s.clock.axis
    others = [a for a in s.axes if a is not clock]
    if not others:
        return {s.path: ()}
    if s.reduction is not None or len(members(g, s)) > 1 or len(free_axes(s)) < len(others):
        return _one_step(g, s, others, machine, movable)
    if s.axes[-1] is clock:
        return {s.path: _rows(s, others)}
    return {s.path: _columns(s, clock, machine)}


def _rows(s: Stage, others: list[Axis]) -> Directives:
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


def _one_step(g: Graph, s: Stage, others: list[Axis], machine: Machine, movable: Container[int]) -> Mapping[str, Directives]:
    """All of a step before the next: vectors along the last axis; threads only where one step is worth waking them."""
    *outer, last = others
    names = [a.name for a in outer]
    work = guess(volume([*(s.ranges[a] for a in others), *(s.reduction.extents if s.reduction else ())]))
    parallel = work * max(1, cost(s)) >= _STEP_WORK
    lanes, width = machine.lanes(s.dtype), known(s.ranges[last], TYPICAL)
    if s.reduction is None:
        return {s.path: (*(_threads(names, "task") if parallel else ()), *vector(s, last.name, machine))}
    if width >= lanes and not s.reduction.kind.startswith("arg"):
        tile = _tile(s, outer, last, machine)
        if last_axis_is_contiguous(s, last):
            return {s.path: _register_tile(s, outer, last, machine, tile, parallel)}
        if (pack := _pack(g, s, last, tile[0] * lanes, movable)) is not None:
            copied = f"{s.path.rpartition('/')[0]}/{pack.into}"
            tiled = _register_tile(s, outer, last, machine, tile, parallel)
            return {s.path: (pack, *tiled), copied: (Vectorize(f"{last.name}_inner", lanes),)}
    return {s.path: _threads(names, "task") if parallel else ()}


def _pack(g: Graph, s: Stage, last: Axis, width: int, movable: Container[int]) -> Pack | None:
    """A copy, made once before all steps, of the operand that vectors along `last` would walk across: in the copy it lies along them."""
    across = [r for r in s.reads if last in set(axes_of_index(r.index))]
    if len(across) != 1 or known(s.ranges[last], TYPICAL) % width:
        return None
    (read,) = across
    b, steps = g[read.source], {m.id for m in members(g, s)}
    if b.id in steps or b.id not in movable or not all(isinstance(i, Axis) and i is not s.axes[s.tick] for i in read.index):
        return None
    name, order = operand_name(g, s, b), panels_first(operand_axes(s, b), last.name, {a.name for a in s.reduce_axes})
    return Pack(tensor=name, sizes={last.name: width}, order=order, into=f"{s.name}_{name.replace('/', '_')}_packed")


def _register_tile(s: Stage, outer: list[Axis], last: Axis, machine: Machine, of: tuple[int, int], parallel: bool) -> Directives:
    """Of the results of a step as many rows of as many vectors as registers hold, over the whole reduction."""
    names, lanes = [a.name for a in outer], machine.lanes(s.dtype)
    vectors, tall = of
    own: list[Directive] = []
    rows: list[str] = []
    if tall > 1:
        row = names.pop()
        rows = [f"{row}_row"]
        if tall == s.ranges[outer[-1]]:
            rows = [row]
        else:
            names.append(f"{row}_tile")
            own.append(Split(row, tall, into=(names[-1], rows[0])))
    tile, vector_, lane = (f"{last.name}_{part}" for part in ("tile", "vec", "lane"))
    if vectors > 1:
        own += [Split(last.name, vectors * lanes, into=(tile, f"{last.name}_in")), Split(f"{last.name}_in", lanes, into=(vector_, lane))]
        rows.append(vector_)
    else:
        own.append(Split(last.name, lanes, into=(tile, lane)))
    own += [Reorder(*names, tile, *(a.name for a in s.reduce_axes), *rows, lane), *map(Unroll, rows)]
    return (*own, *(_threads([*names, tile], "task") if parallel else ()), Vectorize(lane))


def _tile(s: Stage, outer: list[Axis], last: Axis, machine: Machine) -> tuple[int, int]:
    """(vectors, rows) of the tile: no part of it sticks out, and rows only where they share what the vectors read."""
    width, lanes = known(s.ranges[last], TYPICAL), machine.lanes(s.dtype)
    several = [n for n in range(machine.registers // 8, 0, -1) if width % (n * lanes) == 0] or [1]
    extent = s.ranges[outer[-1]] if outer else 1
    shared = [r for r in s.reads if last in set(axes_of_index(r.index)) and outer and outer[-1] not in set(axes_of_index(r.index))]
    if not shared or not isinstance(extent, int):
        return several[0], 1
    room = machine.registers // 2
    tiles = [(v, rows) for v in several for rows in range(1, room // v + 1) if extent % rows == 0]
    return max(tiles, key=lambda t: (t[0] * t[1] / (t[0] + t[1]), t[0]))  # products for each load


__all__ = ["is_recurrence", "recurrence"]
