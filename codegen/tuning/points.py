"""Which calls tuning times: methods by weight, at the extents that the plan or the user names. Never at guessed ones."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fluorite.algo.errors import PlanError, Problem, RunError
from fluorite.algo.graph import Graph
from fluorite.algo.interpreter import method_symbols
from fluorite.algo.stages import Stage
from fluorite.schedule import Buckets, Directive, ExecutionPlan
from fluorite.schedule.notation.yaml_reader import nearest

from ..buckets import buckets_of
from ..sampling import Array, given_inputs, random_inputs, read_inputs
from ..trial_extents import trial_extents
from .measuring import TuningCase

MOST_AWKWARD = 6


def objective(plan: ExecutionPlan, graph: Graph) -> dict[str, float]:
    """Weights by method; all alike if the plan says nothing. Raises PlanError."""
    methods = [m.name for m in graph.methods]
    unknown = [name for name in plan.tune.objective if name not in methods]
    if unknown:
        raise PlanError(
            plan.tune.place_of("objective", name).problem(
                "P123", f"objective: {graph.name} has no method {name}", f"it has {', '.join(methods)}", nearest(name, methods)
            )
            for name in unknown
        )
    weights = {name: float(w) for name, w in plan.tune.objective.items() if w > 0} or dict.fromkeys(methods, 1.0)
    return weights


def points(plan: ExecutionPlan, graph: Graph, method: str, extents: Mapping[str, int]) -> list[dict[str, int]]:
    """The extents at which a method counts. Raises PlanError where neither the plan nor the user says them."""
    symbols = graph.symbols(method)
    given: Sequence[Mapping[str, int]] = [extents] if extents else plan.tune.at or [{}]
    found: list[dict[str, int]] = []
    for point in given:
        choices: list[list[int]] = []
        for s in symbols:
            known = point.get(f"{method}/{s}", point.get(s))
            said = plan.extents.get(f"{method}/{s}", plan.extents.get(s))
            if known is not None:
                choices.append([known])
            elif isinstance(said, int):
                choices.append([said])
            elif isinstance(said, Buckets):
                choices.append(list(said.buckets))
            else:
                example = ", ".join(f"{name}: 1024" for name in symbols)
                raise PlanError(
                    plan.place_of("tune").problem(
                        "P121",
                        f"the extents {', '.join(symbols)} of {method} are not known",
                        f"tuning measures real calls, and {s} may be anything",
                        (f"tune: {{at: [{{{example}}}]}}", f"--extents {','.join(f'{name}=1024' for name in symbols)}"),
                    )
                )
        for values in itertools.product(*choices):
            case = dict(zip(symbols, values, strict=True))
            if case not in found:
                found.append(case)
    return found


def known_symbols(plan: ExecutionPlan, graph: Graph, extents: Mapping[str, int]) -> None:
    """Raises PlanError for extents of symbols that the program does not have."""
    known = {*graph.symbols(), *(f"{m.name}/{s}" for m in graph.methods for s in graph.symbols(m.name))}
    asked = [(name, plan.tune.place_of("at", n, name)) for n, point in enumerate(plan.tune.at) for name in point] + [
        (name, plan.place) for name in extents
    ]
    problems = [
        place.problem("P111", f"at: {graph.name} has no symbolic extent {name}", f"it has {', '.join(sorted(known)) or 'none'}")
        for name, place in asked
        if name not in known
    ]
    if problems:
        raise PlanError(problems)


def inputs_for(plan: ExecutionPlan, inputs: str | Path | Mapping[str, Any] | None) -> dict[str, Array]:
    """Arrays by name: those given, else those of the file that the plan names, relative to it. Raises RunError."""
    if inputs is not None:
        return read_inputs(inputs)
    if plan.tune.inputs is None:
        return {}
    place = plan.tune.place_of("inputs")
    return read_inputs((Path(place.file).parent if place.line else Path()) / plan.tune.inputs)


def tuning_cases(plan: ExecutionPlan, graph: Graph, extents: Mapping[str, int], arrays: Mapping[str, Array], seed: int) -> list[TuningCase]:
    """Every call that counts, with its inputs. Raises PlanError, RunError."""
    known_symbols(plan, graph, extents)
    made: list[TuningCase] = []
    for method, weight in objective(plan, graph).items():
        own = given_inputs(graph, method, arrays)
        if own is not None:
            made.append(TuningCase(method, method_symbols(graph, method, own), own, weight))
            continue
        if graph.method(method).data_dependent:
            asked, why = f"tuning {method} on random inputs", "it is data_dependent: others may take another time"
            tries = ("tune: {inputs: FILE.npz}", "--inputs FILE.npz")
            raise PlanError([plan.tune.place_of("inputs").problem("P125", asked, why, tries)])
        at = points(plan, graph, method, extents)
        made += [TuningCase(method, point, random_inputs(graph, method, point, seed), weight / len(at)) for point in at]
    return made


def awkward_cases(
    plan: ExecutionPlan,
    graph: Graph,
    cases: Sequence[TuningCase],
    scheduled: Sequence[tuple[Stage, tuple[Directive, ...]]],
    parameters: Mapping[str, Array],
    seed: int,
) -> list[TuningCase]:
    """Small calls on awkward extents that a tuned plan must get right as well."""
    made: list[TuningCase] = []
    for method in dict.fromkeys(c.method for c in cases):
        if not graph.symbols(method):
            continue
        for extents in trial_extents(graph, plan, method, scheduled, {})[:MOST_AWKWARD]:
            inputs = random_inputs(graph, method, extents, seed)
            try:
                graph.run(*inputs, method=method, parameters=parameters)
            except RunError:  # the algorithm itself does not go so small
                continue
            made.append(TuningCase(method, extents, inputs, 0.0))
    return made


def places_of(plan: ExecutionPlan, cases: Sequence[TuningCase]) -> tuple[str, ...]:
    """The specialisations that the calls run in, as the space of candidates names them."""
    found, _ = buckets_of(plan)
    places: dict[str, None] = {}
    for c in cases:
        when = next((w for w in found if all(c.extents.get(k) == v for k, v in w.items())), {})
        places[json.dumps(when)] = None
    return tuple(places)


def nothing_open(plan: ExecutionPlan) -> Problem:
    return plan.place.problem(
        "P120",
        "the plan leaves nothing open that tuning could decide",
        "every value in it is a pin",
        ("{choose: [16, 32, 64]} in the place of a value", "STAGE: auto under schedule:"),
    )


__all__ = ["awkward_cases", "inputs_for", "known_symbols", "nothing_open", "objective", "places_of", "points", "tuning_cases"]
