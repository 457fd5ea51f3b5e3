"""Every kernel of a scheduled model as statements, and the calls that make up its methods."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fluorite.algo.dtypes import kind
from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.expr import Size
from fluorite.algo.extent import symbols_of
from fluorite.algo.graph import Graph
from fluorite.algo.rewriting import reads, walk
from fluorite.algo.stages import Stage
from fluorite.schedule.directives import Directive, GpuLanes, GpuThreads, Reorder, Rfactor, Tensorize, Tile
from fluorite.schedule.grouping import Group
from fluorite.schedule.loop_checks import SHAPING, keeps_order
from fluorite.schedule.nest import THREAD, Nest
from fluorite.schedule.passes import LAST
from fluorite.schedule.scheduled import Scheduled
from fluorite.schedule.sections import NumericsClass
from fluorite.schedule.shaping import shape
from fluorite.schedule.unscheduled import unscheduled

from .in_place import overwriting
from .lowering import KernelPlan, lower
from .row_writes import writing_rows
from .statements import Buffer, Call, Kernel


@dataclass(frozen=True, eq=False)
class Lowered:
    """`kernels` in running order, each for one method; `setup` are those that only need parameters and run once."""

    scheduled: Scheduled
    kernels: tuple[Kernel, ...]
    methods: tuple[str, ...]  # method of each kernel
    setup: frozenset[str]
    nests: Mapping[int, Nest]
    when: Mapping[str, int]
    in_place: Mapping[int, int]  # by each new value of state that is written over the old one: the old one

    @property
    def graph(self) -> Graph:
        return self.scheduled.graph

    @property
    def numerics(self) -> NumericsClass:
        """The numerics class of what the directives do."""
        return numerics_class(self.scheduled)

    def text(self) -> str:
        return "\n\n".join(k.text() for k in self.kernels)

    def run(self, *inputs: Any, method: str | None = None, **named: Any) -> Any:
        """A call of these kernels: compiled in this process, or those of a GPU with their threads as loops. Raises BuildError, RunError."""
        from .levels import run_lowered

        return run_lowered(self, inputs, method, named)

    def loops(self) -> str:
        return "\n".join(self.nests[s.id].text() for s in self.graph.stages if s.id in self.nests)


def numerics_class(scheduled: Scheduled) -> NumericsClass:
    """precision where numbers are rounded to narrower types, or an instruction takes subnormal ones for 0; else exact unless some
    directive changes the order of a reduction's sums."""
    if scheduled.casts or _flushing(scheduled) is not None:
        return "precision"
    return "exact" if _reassociating(scheduled) is None else "reassociates"


def _flushing(scheduled: Scheduled) -> tuple[str, Directive] | None:
    """The first stage whose floats an instruction adds up, and its directive."""
    for s in scheduled.graph.stages:
        d = next((d for d in scheduled.chosen.get(s.path, ()) if isinstance(d, Tensorize)), None)
        if d is not None and kind(s.dtype) == "float":
            return s.path, d
    return None


def _reassociating(scheduled: Scheduled) -> tuple[str, Directive] | None:
    """The first stage, and its directive, that adds up in another order than the algorithm says."""
    by_path = {s.path: s for s in scheduled.graph.stages}
    for path, ds in scheduled.chosen.items():
        s = by_path.get(path)
        if s is None or s.reduction is None or kind(s.dtype) != "float":  # integers and truth values come out the same
            continue
        if (factored := next((d for d in ds if isinstance(d, Rfactor)), None)) is not None:
            return path, factored
        if _reordered(s, ds, scheduled.machine.is_gpu):
            return path, next((d for d in ds if isinstance(d, Reorder | Tile | GpuThreads | GpuLanes)), ds[0])
    return None


def _reordered(s: Stage, ds: Sequence[Directive], gpu: bool) -> bool:
    """Whether the reduction's iterations no longer come in the order of its axes."""
    assert s.reduction is not None
    nest, _ = shape(unscheduled(s, gpu), [d for d in ds if isinstance(d, SHAPING)], lambda _: 1, s.dtype)
    return any(loop.reduction and loop.kind == THREAD for loop in nest.loops) or not keeps_order(s, nest)


def lower_all(scheduled: Scheduled, when: Mapping[str, int] | None = None, suffix: str = "", last: str = LAST) -> Lowered:
    """The kernels after pass `last`. Raises PlanError with every problem of every kernel."""
    problems: list[Problem] = list(scheduled.problems)
    kernels: list[Kernel] = []
    methods: list[str] = []
    nests: dict[int, Nest] = {}
    setup: set[str] = set()
    fixed: set[int] = set()
    for n, group in enumerate(scheduled.groups):
        plan = kernel_plan(scheduled, group, n, suffix)
        kernel, found, shaped = host_call(scheduled.graph, plan) or lower(scheduled.graph, plan, scheduled.machine.lanes, last)
        problems += found
        nests |= shaped
        if kernel is None:
            continue
        kernels.append(kernel)
        methods.append(plan.stages[0].method)
        if _is_setup(scheduled.graph, plan, fixed):
            setup.add(kernel.name)
            fixed |= {s.id for s in plan.stages}
    problems = problems or _above(scheduled)
    if problems:
        raise PlanError(sorted(dict.fromkeys(problems), key=lambda p: (p.file or "", p.line or 0, p.column or 0)))
    if scheduled.machine.is_gpu:
        return Lowered(scheduled, tuple(kernels), tuple(methods), frozenset(setup), nests, dict(when or {}), {})
    some, of, rows = writing_rows(scheduled.graph, kernels, methods)
    made, in_place = overwriting(scheduled.graph, some, of, rows)
    return Lowered(scheduled, made, of, frozenset(setup), nests, dict(when or {}), {**rows, **in_place})


def host_call(g: Graph, plan: KernelPlan) -> tuple[Kernel, list[Problem], Mapping[int, Nest]] | None:
    """Of an extern, what stands in a kernel's place: the call of its function."""
    s = plan.stages[-1]
    if s.extern is None or len(plan.stages) > 1:
        return None
    operands = tuple(r.source for r in s.handed)
    taken = reads(s.value)[0].source if s.extern.conditional else None
    buffers = [Buffer(i, g[i].name, g[i].dtype, g[i].shape) for i in s.sources]
    call = Call(s.path, s.extern.label, s.id, operands, taken, s.extern.ranks, s.extern.complex_inputs, s.extern.complex_results)
    out = Buffer(s.id, s.name, s.dtype, s.extents)
    return Kernel(plan.name, tuple(buffers), (out,), (), call, (s.path,)), [], {}


def kernel_plan(scheduled: Scheduled, group: Group, number: int, suffix: str = "") -> KernelPlan:
    stages = tuple(s for i in group.stages if (s := scheduled.graph.stage(i)) is not None)
    method = stages[-1].method
    inner = stages[-1].path[len(method) + 1 :] or stages[-1].name
    name = re.sub(r"\W", "_", f"{method}_{number}_{inner}{suffix}")[:120]
    directives = {s.id: scheduled.directives.get(s.id, ()) for s in stages}
    machine = scheduled.machine
    outputs = group.outputs
    if machine.is_gpu:  # what is stored whole is in global memory, which only arguments are
        outputs |= {s.id for s in stages if s.id not in group.placements}
    placed = group.placements, group.companions
    return KernelPlan(name, stages, outputs, directives, *placed, machine.is_gpu, machine.features, machine.arch)


def _is_setup(g: Graph, plan: KernelPlan, fixed: set[int]) -> bool:
    """Whether the kernel gives the same in every call, until somebody assigns to what it reads. `fixed` are stages of which so much is
    known."""
    inside = {s.id for s in plan.stages}
    return (
        all(i in fixed or i in inside or g.is_fixed(g[i], s.method) for s in plan.stages for i in s.sources)
        and not any(i in g.updates for i in inside)
        and not any(s.op == "pack at call" for s in plan.stages)
        and any(s.sources for s in plan.stages)
        and not any(map(_depends_on_extents, plan.stages))
    )


def _depends_on_extents(s: Stage) -> bool:
    """Whether a stage is another one in calls of other extents."""
    return any(symbols_of(n) for n in s.ranges.values()) or any(isinstance(e, Size) for e in walk(s.value))


def _above(scheduled: Scheduled) -> list[Problem]:
    """P301: the plan does not allow what its own schedule does to a reduction. The default scheduler keeps to what is allowed."""
    allowed, found = scheduled.plan.numerics, _reassociating(scheduled)
    if (flushed := _flushing(scheduled)) is not None and not allowed.allows("precision") and not scheduled.casts:
        path, d = flushed
        asked = f"{d.label()} of {path.rsplit('/', 1)[-1]}: instructions for bfloat16 take subnormal numbers for 0, of class precision"
        return [d.at().problem("P301", asked, f"the plan allows {allowed.allow}", ("numerics: {allow: precision}",), path=path)]
    if found is None or allowed.allows("reassociates"):
        return []
    path, d = found
    asked = f"{d.label()} adds the parts of {path.rsplit('/', 1)[-1]} up in another order"
    return [d.at().problem("P301", asked, f"the plan allows {allowed.allow}", ("numerics: {allow: reassociates}",), path=path)]


def extents_of(when: Mapping[str, int], method: str, symbols: Iterable[str]) -> dict[str, int]:
    """What `when`, with keys extent or METHOD/extent, says of the symbols of one method."""
    given = {s: when.get(f"{method}/{s}", when.get(s)) for s in symbols}
    return {s: n for s, n in given.items() if n is not None}


def structure_hash(g: Graph) -> str:
    """A hash of what the graph computes; names of axes and paths included, source lines not."""
    lines = [f"{t.kind} {t.path} {t.dtype} {t.shape}" for t in g.leaves] + [s.text(g.path_of).split("    # ")[0] for s in g.stages]
    lines += [f"{m.name} update {path} {g.path_of(i)}" for m in g.methods for path, i in m.updates.items()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
