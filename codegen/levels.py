"""The levels of compilation as values that lead to the next one: ExecutionPlan.apply, Scheduled.lower and build, and how each runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.graph import Graph
from fluorite.algo.interpreter.arguments import choose
from fluorite.algo.parameters import initial_parameters
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.scheduled import Scheduled

from . import driver
from .comparing import kernel_calls
from .compiled import Compiled, compile_kernels
from .diagnosis import all_problems, every_problem
from .lowered import Lowered, lower_all
from .runtime import assemble
from .target import CodeTarget, resolve_target


def applied(plan: ExecutionPlan, graph: Graph, when: Mapping[str, int] | None) -> Scheduled:
    """The plan applied to the graph, its holes at their defaults, for the code that is specialised to `when`, or the generic one."""
    resolved = driver.as_plan(plan, graph)
    with every_problem(graph, resolved):
        chosen, notes = driver.prepared(resolved, graph)
        return replace(driver.schedule(graph, chosen, _target(chosen), when), notes=notes)


def problems(scheduled: Scheduled) -> list[Problem]:
    """All that is wrong with the plan, in the order of its file."""
    try:
        lowered(scheduled)
    except PlanError as error:
        return all_problems(_graph(scheduled), scheduled.plan, error.problems)
    return []


def lowered(scheduled: Scheduled) -> Lowered:
    """Its kernels. Raises PlanError with every problem."""
    return lower_all(scheduled, scheduled.when)


def built(scheduled: Scheduled, strict: bool) -> Compiled:
    """The compiled model of the whole plan, other buckets included. Raises PlanError, BuildError."""
    if strict:
        driver.refuse_open(scheduled.plan, scheduled.notes)
    with every_problem(_graph(scheduled), scheduled.plan):
        return replace(driver.compile_graph(_graph(scheduled), scheduled.plan), notes=scheduled.notes)


def run_lowered(lowered: Lowered, inputs: tuple[Any, ...], method: str | None, named: Mapping[str, Any]) -> Any:
    """One call of the kernels: compiled, or those of a GPU with their threads as loops."""
    graph, plan = _graph(lowered.scheduled), lowered.scheduled.plan
    target = _target(plan)
    if not target.machine.is_gpu:
        whole = driver.with_scales(plan, graph)
        return run_compiled(Compiled(whole, plan, (lowered,), compile_kernels((lowered,), target), target), inputs, method, named)
    chosen = choose(graph, method)
    given = (*inputs, *(named[graph[i].name] for i in chosen.inputs[len(inputs) :]))
    return kernel_calls(graph, plan, (lowered,), target, initial_parameters(graph, 0))(chosen.name, given).result


def run_compiled(compiled: Compiled, inputs: tuple[Any, ...], method: str | None, named: Mapping[str, Any]) -> Any:
    """One call of a method, from the initial parameters on."""
    graph = compiled.graph
    model = assemble(compiled.manifest(graph.name), Path(compiled.library), driver.parameter_arrays(graph), functions=graph.functions)
    return getattr(model, choose(graph, method).name)(*inputs, **named)


def _graph(scheduled: Scheduled) -> Graph:
    """The algorithm, before precision and extents changed it."""
    return scheduled.steps[0].graph


def _target(plan: ExecutionPlan) -> CodeTarget:
    return resolve_target(plan.target, plan.numerics.contract, plan.runtime.threads)


__all__ = ["applied", "built", "lowered", "problems", "run_compiled", "run_lowered"]
