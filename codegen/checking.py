"""Is a plan legal, and does what is compiled under it compute what the algorithm means? `fluorite check`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from fluorite.algo.autodiff.pullbacks import Derivative
from fluorite.algo.errors import BuildError, FluoriteError, PlanError, Problem, RunError
from fluorite.algo.graph import Graph, Transition
from fluorite.algo.interpreter import needed
from fluorite.algo.numerics import Comparison, tolerated, weakest
from fluorite.algo.numerics import compare as compare_outputs
from fluorite.algo.program import trace
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.narrowing import Narrowed

from .check_report import Case, Report, Unjudged
from .compiled import Compiled, compile_kernels
from .diagnosis import every_problem
from .driver import Plan, as_plan, in_types, lower_variants, prepared, with_scales
from .lowered import Lowered
from .peaks import within_limit
from .runtime import assemble
from .sampling import Array, as_stored, extents_text, given_inputs, random_inputs, read_inputs, sample_parameters
from .slope_cases import Derivatives, Place, derivatives_of, slope_cases
from .target import CodeTarget, resolve_target
from .trial_extents import trial_extents

Call = Callable[[str, tuple[Array, ...]], Any]


def check(
    model: Any,
    plan: Plan = None,
    *,
    extents: Mapping[str, int] | None = None,
    quick: bool = False,
    seed: int = 0,
    inputs: Any = None,
    method: str | None = None,
    gradients: bool = False,
) -> Report:
    """Whether the plan is legal for the model, and unless `quick`, what is compiled under it against the interpreter.

    `model` is a function, a Program or a Graph. Every method is called on the `extents` given and on awkward ones (1, primes, next to the
    plan's tile sizes, ends of ranges, buckets) with random inputs, and on `inputs` (a mapping, an .npz file or a folder) if there are any.
    A method that changes state is compared with all of its new state. With `gradients` the derivative of every method is compared with
    the slopes of the method, and each fl.custom_vjp and vjp= with those of its own function.
    What is wrong with the plan is in the report, not raised. Raises AlgorithmError, RunError (for `extents` and `inputs`).
    """
    graph = model if isinstance(model, Graph) else trace(model, method)
    derivatives = derivatives_of(model, [m.name for m in graph.methods]) if gradients and not quick else {}
    return checked(graph, plan, extents=extents, quick=quick, seed=seed, inputs=inputs, derivatives=derivatives)


def checked(
    graph: Graph,
    plan: Plan = None,
    *,
    extents: Mapping[str, int] | None = None,
    quick: bool = False,
    seed: int = 0,
    inputs: Any = None,
    derivatives: Derivatives,
) -> Report:
    """`check` of a graph and of the derivatives of its methods."""
    name = "none"
    given = read_inputs(inputs) if inputs is not None else {}
    _known_extents(graph, extents or {})
    try:
        chosen = as_plan(plan, graph)
        name = str(plan) if isinstance(plan, str) else chosen.place.file if chosen.place.line else "none" if plan is None else "plan"
        with every_problem(graph, chosen):
            chosen, notes = prepared(chosen, graph)
            graph = with_scales(chosen, graph)
            target = resolve_target(chosen.target, chosen.numerics.contract, chosen.runtime.threads)
            variants = lower_variants(graph, chosen, target)
            if not target.machine.is_gpu:
                within_limit(Compiled(graph, chosen, variants, Path(), target, notes))
        report = Report(graph.name, name, weakest(*(v.numerics for v in variants)), notes=notes, executed=False)
        if quick:
            return report
        parameters = sample_parameters(graph, seed)
        call = kernel_calls(graph, chosen, variants, target, parameters)
        if target.machine.is_gpu:
            report = replace(report, notes=(*notes, f"kernels for {target.kind} ran with blocks and threads as loops on this CPU"))
    except (PlanError, BuildError) as error:
        return Report(graph.name, name, problems=tuple(error.problems), executed=False)
    report = replace(report, executed=True, **_compared(graph, chosen, variants, call, parameters, extents or {}, given, seed))
    for m, d in derivatives.items():
        place = Place(m, extents or {}, given_inputs(graph, m, given), parameters, seed)
        cases, unjudged = _derived(d, graph, chosen, place)
        report = replace(report, cases=(*report.cases, *cases), unjudged=(*report.unjudged, *unjudged))
    return report


def _derived(d: Derivative | str, graph: Graph, plan: ExecutionPlan, place: Place) -> tuple[list[Case], list[Unjudged]]:
    """What derivatives were compared with, and those that could not be."""
    if isinstance(d, str):
        return [], [(place.method, f"the derivative of {place.method}", d)]
    cases, unjudged = slope_cases(d, graph, plan, place)
    return cases, [*((place.method, f"the derivative of {path}", why) for path, why in d.refused), *unjudged]


def kernel_calls(
    graph: Graph, plan: ExecutionPlan, variants: tuple[Lowered, ...], target: CodeTarget, parameters: Mapping[str, Array]
) -> Call:
    """Calls of these kernels in this process. Raises BuildError."""
    if target.machine.is_gpu:
        return _serial(graph, variants[-1], parameters)
    return _native(Compiled(graph, plan, variants, compile_kernels(variants, target), target, ()), parameters)


def _native(compiled: Compiled, parameters: Mapping[str, Array]) -> Call:
    """Calls of the compiled model in this process. Each begins with these parameters; where methods change some, it is a transition."""
    constants = {t.path: np.asarray(t.value) for t in compiled.graph.leaves if t.kind == "constant"}
    manifest, functions = compiled.manifest(compiled.graph.name), compiled.graph.functions
    model = assemble(manifest, compiled.library, {**constants, **parameters}, functions=functions)

    def call(method: str, arrays: tuple[Array, ...]) -> Any:
        if not compiled.graph.updates:
            return getattr(model, method)(*arrays)
        model.parameters.assign(parameters)
        result = getattr(model, method)(*arrays)
        return Transition(result, {path: np.array(model.parameters[path]) for path in parameters})

    return call


def _serial(graph: Graph, lowered: Lowered, parameters: Mapping[str, Array]) -> Call:
    """Calls of GPU kernels whose blocks and threads are plain loops. Barriers and device code are not seen."""
    from .gpu.execution import step
    from .gpu.serial import serial_functions

    functions = serial_functions(lowered)

    def call(method: str, arrays: tuple[Array, ...]) -> Any:
        graph.run(*arrays, method=method, parameters=parameters)  # which refuses what no kernel should be given
        return step(lowered, functions, *arrays, method=method, parameters=parameters)

    return call


def _known_extents(graph: Graph, extents: Mapping[str, int]) -> None:
    unknown = [name for name in extents if name not in graph.symbols()]
    if unknown:
        raise RunError(
            Problem(
                "R131", "run", asked=f"extent {unknown[0]}", why=f"{graph.name} has {', '.join(graph.symbols()) or 'no symbolic extents'}"
            )
        )


def _compared(
    graph: Graph,
    plan: ExecutionPlan,
    variants: tuple[Lowered, ...],
    call: Call,
    parameters: Mapping[str, Array],
    extents: Mapping[str, int],
    given: Mapping[str, Array],
    seed: int,
) -> dict[str, Any]:
    numerics, rounds = weakest(*(v.numerics for v in variants)), in_types(plan, graph)
    cases: list[Case] = []
    skipped: list[tuple[str, str, str]] = []
    for m in graph.methods:
        tried: list[tuple[dict[str, int], tuple[Array, ...], str]] = []
        own = given_inputs(graph, m.name, given)
        if own is not None:
            tried.append((_extents_in(graph, m.name, own), own, "given"))
        for n, sizes in enumerate(trial_extents(graph, plan, m.name, _scheduled(variants), extents)):
            tried.append((sizes, random_inputs(graph, m.name, sizes, 2 * seed + n % 2), "random"))
        for sizes, arrays, origin in tried:
            asked = origin == "given" or (bool(extents) and all(sizes.get(k) == v for k, v in extents.items() if k in sizes))
            try:
                compared = _outputs(graph, rounds, call, m.name, arrays, parameters, numerics, asked)
                cases += [Case(m.name, sizes, origin, found) for found in compared]
            except RunError as refused:
                if asked or not graph.symbols(m.name):
                    raise
                skipped.append((m.name, extents_text(sizes), refused.problems[0].asked))
    return {"cases": tuple(cases), "skipped": tuple(skipped)}


def _outputs(
    graph: Graph,
    rounds: Narrowed,
    call: Call,
    method: str,
    arrays: tuple[Array, ...],
    parameters: Mapping[str, Array],
    numerics: str,
    asked: bool,
) -> list[Comparison]:
    """The outputs against the algorithm; where a plan's precision rounds, also against the algorithm with these roundings in it, which is
    the closer look at the kernels. Raises RunError where the algorithm itself refuses such inputs, or where extents that were `asked` for
    are out of their range.
    """
    try:
        got = call(method, arrays)
    except FluoriteError as error:
        graph.run(*arrays, method=method, parameters=parameters)
        if asked and {p.code for p in error.problems} == {"R107"}:
            raise
        why = f"the compiled method refuses the call: {error.problems[0].asked}"
        return [Comparison(graph.path_of(i), float("inf"), 0.0, False, why=why) for i in graph.method(method).ends]
    class_ = tolerated(numerics)
    found: list[Comparison] = []
    if (here := comparable(graph, method, got, rounds)) is not None:
        found = compare_outputs(graph, method, arrays, here, class_, parameters, casts=rounds.casts)
    if rounds.casts:
        closer = compare_outputs(rounds.graph, method, arrays, got, class_, as_stored(rounds.graph, parameters))
        found += [replace(c, path=f"{c.path} as rounded") for c in closer]
    return found


def comparable(graph: Graph, method: str, got: Any, rounds: Narrowed) -> Any:
    """What of a call can be compared with the algorithm itself: all of it; its results, where the plan has new values of state come about
    in another way; None where the results depend on gradients too, which may have been left out for being too large."""
    if not rounds.casts.state or not isinstance(got, Transition):
        return got
    behind = needed(graph, graph.method(method).outputs)
    return None if any(s.loss for s in behind) else got.result


def _extents_in(graph: Graph, method: str, arrays: tuple[Array, ...]) -> dict[str, int]:
    from fluorite.algo.interpreter import method_symbols

    return method_symbols(graph, method, arrays)


def _scheduled(variants: tuple[Lowered, ...]) -> list[Any]:
    """Stages with their directives. The generic variant's extents still have their symbols; specialised ones are seen through it."""
    return [(s, ds) for v in variants for s in v.graph.stages for ds in [v.scheduled.directives.get(s.id, ())]]


__all__ = ["Case", "Report", "check", "checked", "comparable", "kernel_calls"]
