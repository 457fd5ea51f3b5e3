"""The derivatives of a model, compiled, beside those of the interpreter, as cases of `check`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fluorite.algo.autodiff.pullbacks import Derivative
from fluorite.algo.errors import BuildError, PlanError
from fluorite.algo.graph import Graph
from fluorite.schedule import ExecutionPlan

from .check_report import Case
from .comparing import compared, kernel_calls
from .derived_cases import Found, Place
from .driver import lower_variants, prepared
from .lowered import Lowered
from .target import CodeTarget

SIZES = 3
"""Extents that each is tried on."""


def gradient_cases(
    d: Derivative, graph: Graph, plan: ExecutionPlan, target: CodeTarget, place: Place, values: Sequence[Case]
) -> Found:
    """What arrives at each input and parameter when random numbers arrive at the results, on extents on which the `values` were compared.

    The kernels follow the plan, where it can be followed for the derivative too: a stage may have more readers there, and a name may fit
    more stages. Otherwise all but its extents, types and numerics is left to the default scheduler, which a note says.
    Those that a step of training moves its parameters by are not compiled once more: they show in the new state.
    """
    what = f"the derivative of {place.method}, compiled"
    if d.cut:
        return Found(unjudged=((place.method, what, "no result follows an input or parameter in a way that has a slope"),))
    if graph.method(place.method).updates and any(s.loss for s in graph.stages_of(place.method)):
        return Found()
    sizes = list({(*c.extents.items(),): c.extents for c in values if c.method == place.method and c.inputs == "random"}.values())[:SIZES]
    notes: list[str] = []
    for chosen in _plans(plan):
        try:
            variants, built = _lowered(d.graph, chosen, target)
            parameters = {t.path: place.parameters[t.path] for t in d.graph.leaves if t.path in place.parameters}
            call = kernel_calls(d.graph, built, variants, target, parameters)
        except (PlanError, BuildError) as error:
            notes.append(error.problems[0].asked)
            continue
        cases, _ = compared(d.graph, built, variants, call, parameters, place.extents, {}, place.seed, {place.method: sizes})
        said = (f"{what}, follows the default schedule, since it does not fit the plan: {notes[0]}",) if notes else ()
        return Found(tuple(_named(d, place.method, cases)), notes=said)
    return Found(unjudged=((place.method, what, notes[-1]),))


def _plans(plan: ExecutionPlan) -> Iterator[ExecutionPlan]:
    """The plan, and what of it holds for any stages. Gradients are not scaled where no step is made with them."""
    precision = plan.precision and plan.precision.replace(loss_scale="none")
    yield plan.replace(precision=precision)
    yield ExecutionPlan(numerics=plan.numerics, extents=plan.extents, target=plan.target, runtime=plan.runtime)


def _lowered(graph: Graph, plan: ExecutionPlan, target: CodeTarget) -> tuple[tuple[Lowered, ...], ExecutionPlan]:
    """Raises PlanError, BuildError."""
    built, _ = prepared(plan, graph)
    return lower_variants(graph, built, target), built


def _named(d: Derivative, method: str, cases: list[Case]) -> Iterator[Case]:
    """The derivatives as such; of the results, which are values, only what is wrong."""
    names = {d.graph.path_of(i): f"{method} by {name}" for name, i in d.graph.method(method).result["derivatives"].items()}
    for c in cases:
        path, rounded, _ = c.result.path.partition(" as rounded")
        if path in names:
            yield replace(c, of="gradient", result=replace(c.result, path=names[path] + rounded))
        elif not c.ok:
            yield replace(c, of="gradient", result=replace(c.result, path=f"{c.result.path} beside its derivative"))


__all__ = ["gradient_cases"]
