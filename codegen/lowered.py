"""Every kernel of a scheduled model as statements, and the calls that make up its methods."""
from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.graph import Graph, Leaf, Method, Stage
from fluorite.schedule.directives import Rfactor
from fluorite.schedule.grouping import Group
from fluorite.schedule.nest import Nest
from fluorite.schedule.scheduled import Scheduled

from .lower import KernelPlan, lower
from .statements import Kernel


@dataclass(frozen=True, eq=False)
class Lowered:
    """`kernels` in running order, each for one method; `setup` are those that only need parameters and run once."""

    scheduled: Scheduled
    kernels: tuple[Kernel, ...]
    methods: tuple[str, ...]                    # method of each kernel
    setup: frozenset[str]
    nests: Mapping[int, Nest]
    when: Mapping[str, int]

    @property
    def graph(self) -> Graph:
        return self.scheduled.graph

    @property
    def numerics(self) -> str:
        """The numerics class of what the directives do."""
        return numerics_class(self.scheduled)

    def text(self) -> str:
        return "\n\n".join(k.text() for k in self.kernels)

    def loops(self) -> str:
        return "\n".join(self.nests[s.id].text() for s in self.graph.stages if s.id in self.nests)


def numerics_class(scheduled: Scheduled) -> str:
    """exact unless some directive changes the order in which a reduction adds."""
    for path, ds in scheduled.chosen.items():
        if any(isinstance(d, Rfactor) for d in ds):
            return "reassociates"
        stage = next((s for s in scheduled.graph.stages if s.path == path), None)
        if stage is not None and stage.reduction is not None and _reordered(stage, scheduled.directives.get(stage.id, ())):
            return "reassociates"
    return "exact"


def _reordered(s: Stage, ds: Any) -> bool:
    """Whether the reduction's iterations no longer come in the order of its axes."""
    from fluorite.algo.expr import Axis, axes_of
    from fluorite.algo.linear import linear
    from fluorite.schedule.nest import THREAD, shape, start

    assert s.reduction is not None
    from .lower import SHAPING

    nest, _ = shape(start(s.path, s.axes, s.extents, s.reduce_axes, s.reduction.extents), [d for d in ds if isinstance(d, SHAPING)], lambda _: 1, s.dtype)
    if any(loop.reduction and loop.kind == THREAD for loop in nest.loops):
        return True
    order = [loop.var for loop in nest.loops if loop.reduction]
    wanted: list[Axis] = []
    for a in s.reduce_axes:
        value = nest.value(a)
        form = linear(value)
        terms = sorted((t for t in form.terms if isinstance(t[0], Axis)), key=lambda t: -(t[1] if isinstance(t[1], int) else 1))
        wanted += [t[0] for t in terms if isinstance(t[0], Axis)] or axes_of(value)
    wanted = list(dict.fromkeys(wanted))
    return [id(v) for v in order] != [id(v) for v in wanted if any(v is o for o in order)]


def lower_all(scheduled: Scheduled, when: Mapping[str, int] | None = None, suffix: str = "") -> Lowered:
    """Raises PlanError with every problem of every kernel."""
    problems: list[Problem] = list(scheduled.problems)
    kernels: list[Kernel] = []
    methods: list[str] = []
    nests: dict[int, Nest] = {}
    setup: set[str] = set()
    fixed = {t.id for t in scheduled.graph.leaves if t.kind != "input"}
    used: set[str] = set()
    for n, group in enumerate(scheduled.groups):
        plan = kernel_plan(scheduled, group, n, suffix, used)
        kernel, found, made = lower(scheduled.graph, plan, scheduled.machine.lanes)
        problems += found
        nests |= made
        if kernel is None:
            continue
        kernels.append(kernel)
        methods.append(plan.stages[0].method)
        if _is_setup(plan, fixed):
            setup.add(kernel.name)
            fixed |= {s.id for s in plan.stages}
    numerics = numerics_class(scheduled)
    allowed = scheduled.plan.numerics
    if not problems and not allowed.allows(numerics):  # type: ignore[arg-type]
        problems.append(_above(scheduled, numerics))
    if problems:
        raise PlanError(sorted(dict.fromkeys(problems), key=lambda p: (p.file or "", p.line or 0, p.column or 0)))
    return Lowered(scheduled, tuple(kernels), tuple(methods), frozenset(setup), nests, dict(when or {}))


def kernel_plan(scheduled: Scheduled, group: Group, number: int, suffix: str = "", used: set[str] | None = None) -> KernelPlan:
    stages = tuple(s for s in scheduled.graph.stages if s.id in set(group.stages))
    method = stages[-1].method
    inner = stages[-1].path[len(method) + 1:] or stages[-1].name
    name = re.sub(r"\W", "_", f"{method}_{number}_{inner}{suffix}")[:120]
    return KernelPlan(name, stages, group.outputs, {s.id: scheduled.directives.get(s.id, ()) for s in stages}, group.placements, scheduled.machine.is_gpu)


def _is_setup(plan: KernelPlan, fixed: set[int]) -> bool:
    inside = {s.id for s in plan.stages}
    return all(i in fixed or i in inside for s in plan.stages for i in s.sources) and not any(s.op == "pack at call" for s in plan.stages) and any(s.sources for s in plan.stages)


def _above(scheduled: Scheduled, numerics: str) -> Problem:
    allowed = scheduled.plan.numerics
    for path, ds in scheduled.chosen.items():
        for d in ds:
            if isinstance(d, Rfactor):
                return d.at().problem("P301", f"rfactor adds {path.rsplit('/', 1)[-1]} up in another order", f"the plan allows {allowed.allow}", ("numerics: {allow: reassociates}",), path=path)
    return allowed.place_of("allow").problem("P301", f"the schedule {numerics} a sum", f"the plan allows {allowed.allow}", ("numerics: {allow: reassociates}",))


def structure_hash(g: Graph) -> str:
    """A hash of what the graph computes; names of axes and paths included, source lines not."""
    lines = [f"{t.kind} {t.path} {t.dtype} {t.shape}" for t in g.leaves] + [s.text(g.path_of).split("    # ")[0] for s in g.stages]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


__all__ = ["Leaf", "Lowered", "Method", "kernel_plan", "lower_all", "numerics_class", "structure_hash"]
