"""Is a plan legal, and does what is compiled under it compute what the algorithm means? `fluorite check`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fluorite.algo.errors import BuildError, PlanError
from fluorite.algo.graph import Graph
from fluorite.algo.numerics import weakest
from fluorite.algo.program import trace

from .check_report import Case, Report, Unjudged
from .comparing import compared, kernel_calls
from .compiled import Compiled
from .derived_cases import Derivatives, Place, derivatives_of
from .diagnosis import every_problem
from .driver import Plan, as_plan, lower_variants, prepared, with_scales
from .given_extents import require_known
from .gradient_cases import gradient_cases
from .peaks import within_limit
from .sampling import given_inputs, read_inputs, sample_parameters
from .slope_cases import slope_cases
from .target import resolve_target


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
    A method that changes state is compared with all of its new state. With `gradients` the derivative of every method is compiled and
    compared with that of the interpreter, which is compared with slopes of the method, each fl.custom_vjp and vjp= by itself, too.
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
    require_known(graph, extents or {})
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
    cases, skipped = compared(graph, chosen, variants, call, parameters, extents or {}, given, seed)
    unjudged: list[Unjudged] = []
    more: list[str] = []
    for m, d in derivatives.items():
        place = Place(m, extents or {}, given_inputs(graph, m, given), parameters, seed)
        if isinstance(d, str):
            unjudged.append((m, f"the derivative of {m}", d))
            continue
        unjudged += [(m, f"the derivative of {path}", why) for path, why in d.refused]
        for found in (gradient_cases(d, graph, chosen, target, place, cases), slope_cases(d, graph, chosen, place)):
            cases += found.cases
            unjudged += found.unjudged
            more += found.notes
    return replace(report, executed=True, cases=(*cases,), skipped=(*skipped,), unjudged=(*unjudged,), notes=(*report.notes, *more))


__all__ = ["Case", "Report", "check", "checked"]
