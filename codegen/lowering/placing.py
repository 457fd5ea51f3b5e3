"""A stage over a box: its nest, its guards, where its result is kept."""

from __future__ import annotations

from dataclasses import replace

from fluorite.algo.errors import PlanError
from fluorite.algo.expr import Axis, Expr, as_expr, binary
from fluorite.algo.linear import simplify
from fluorite.algo.rewriting import axes_of
from fluorite.algo.stages import Stage
from fluorite.schedule.directives import Directive, Fetch, GpuLanes, GpuThreads, GpuWarps, StoreIn
from fluorite.schedule.loop_checks import SHAPING
from fluorite.schedule.nest import SERIAL, THREAD, UNROLLED, VECTOR, Guard, Nest, shifted
from fluorite.schedule.regions import Box
from fluorite.schedule.shaping import shape
from fluorite.schedule.unscheduled import scatters, sorts, unscheduled

from ..gpu import legality, memory_legality, nests
from . import checks, logic, scattering
from .context import Context, Placed


def place(work: Context, s: Stage, box: Box, sticking: frozenset[Axis]) -> Placed:
    """The stage's nest over the box. `sticking` axes may reach outside the tensor."""
    nest = unscheduled(s, work.plan.gpu, [box[a].bound for a in s.axes])
    nest, problems = shape(nest, shaping(work, s), work.native, s.dtype, s.source)
    work.problems += problems
    nest = replace(nest, loops=tuple(replace(x, kind=SERIAL) if x.kind in (VECTOR, UNROLLED) and x.extent == 1 else x for x in nest.loops))
    if work.plan.gpu:
        if problems:
            raise PlanError(work.problems)
        nest = on_gpu(work, s, nest)
    nest = shift_tails(work, s, nest)
    guards = list(nest.guards)
    for a in s.axes:
        i = box[a]
        if a not in sticking and not logic.same(i.length, as_expr(i.bound)):
            guards.append(Guard(a, i.length))
    nest = replace(nest, guards=tuple(guards))
    work.nests[s.id] = nest
    if work.stepped is not None and s.id not in work.plan.placements:
        nest = work.stepped.inside(nest)
    checks.check_order(work, s, nest)
    checks.check_sort(work, s, nest)
    for loop in nest.loops:
        work.ranges[loop.var] = loop.extent
    values = positions(work, s, nest, box) | {a: simplify(nest.value(a), work.ranges) for a in s.reduce_axes}
    if (found := scatters(s, work.plan.gpu)) is not None:
        values |= scattering.somewhere(s, found, values)
    if (row := sorts(s, work.plan.gpu)) is not None:
        values |= {a: as_expr(0) for a in (row.axis, row.over)}
    if s.parts_axis is not None:
        values |= {s.parts_axis: as_expr(0)}
    placed = Placed(s, nest, box, values, sticking)
    checks.check_placements(work, placed)
    if work.problems:
        raise PlanError(work.problems)
    return placed


def positions(work: Context, s: Stage, nest: Nest, box: Box) -> dict[Axis, Expr]:
    """Where in the tensor the loops are. The clock of a backward recurrence starts at the end of its box."""

    def position(a: Axis) -> Expr:
        if s.clock is not None and s.clock.reverse and a is s.clock.axis:
            return binary("sub", box[a].last, nest.value(a))
        return binary("add", box[a].start, nest.value(a))

    return {a: simplify(position(a), work.ranges) for a in s.axes}


def shift_tails(work: Context, s: Stage, nest: Nest) -> Nest:
    """Tails of vectorised axes overlap what came before where producers are computed per part: those then never reach outside either. Not
    those of a scatter, which would add again."""
    if scatters(s, work.plan.gpu):
        return nest
    owners = [nest.position(at.loop) for at in work.plan.placements.values() if at.owner == s.id and nest.loop(at.loop)]
    vectors = {loop.var for loop in nest.loops if loop.kind == VECTOR}
    for guard in nest.guards:
        asked = guard.tail == "shift"
        if (
            work.plan.gpu
            or guard.outer is None
            or guard.inner is None
            or not (asked or (guard.tail == "auto" and set(axes_of(nest.value(guard.inner))) & vectors and overlap_is_small(guard)))
        ):
            continue
        parts = [n for n, loop in enumerate(nest.loops) if loop.var in set(axes_of(nest.value(guard.outer)))]
        if (asked or (parts and any(n >= min(parts) for n in owners))) and (moved := shifted(nest, guard)) is not None:
            nest = moved
            work.again.add(s.id)
    return nest


def overlap_is_small(guard: Guard) -> bool:
    """Whether a part that is moved back computes at most a quarter of the axis again."""
    n = guard.limit
    return isinstance(n, int) and -n % guard.factor <= n // 4


def on_gpu(work: Context, s: Stage, nest: Nest) -> Nest:
    nest = nests.arranged(nest)
    ds = work.plan.directives.get(s.id, ())
    work.problems += legality.any_nest(s, nest, ds, work.native)
    if work.problems:
        raise PlanError(work.problems)
    if work.stepped is not None and s.id not in work.plan.placements:
        return nest
    if s.id not in work.plan.placements:
        work.lanes = nests.lanes_of(nest)
        work.problems += legality.root_nest(s, nest, ds)
    else:
        work.problems += memory_legality.moved_nest(s, nest, ds, work.storage[s.id][0].memory, in_all_threads(work), work.lanes)
    if work.problems:
        raise PlanError(work.problems)
    return nest


def in_all_threads(work: Context) -> bool:
    return {loop.lane for loop in work.threads if loop.kind == THREAD} == set(work.lanes)


def shaping(work: Context, s: Stage) -> tuple[Directive, ...]:
    ds = work.plan.directives.get(s.id, ())
    fetch = nests.fetch_of(ds) if work.plan.gpu else None
    if fetch is not None and work.lanes and s.axes and s.reduction is None:
        return nests.dealt(s, fetch, work.lanes)
    return tuple(d for d in ds if isinstance(d, SHAPING))


def memory_of(work: Context, s: Stage) -> str:
    if work.plan.gpu:
        return gpu_memory(work, s)
    chosen = next((d.memory for d in work.plan.directives.get(s.id, ()) if isinstance(d, StoreIn)), None)
    return {"registers": "local", "stack": "local", "shared": "shared", "global": "workspace", None: "workspace"}[chosen]


def gpu_memory(work: Context, s: Stage) -> str:
    ds = work.plan.directives.get(s.id, ())
    chosen = next((d.memory for d in ds if isinstance(d, StoreIn)), None)
    if chosen == "global":
        raise memory_legality.not_in_kernel(s, ds)
    if chosen is None:
        dealt = any(isinstance(d, GpuThreads | GpuLanes | GpuWarps | Fetch) for d in ds)
        return "local" if in_all_threads(work) and not dealt else "shared"
    return "shared" if chosen == "shared" else "local"
