"""What is compiled beside the interpreter, on ordinary and awkward extents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from fluorite.algo.errors import FluoriteError, RunError
from fluorite.algo.graph import Graph, Transition
from fluorite.algo.interpreter import method_symbols, needed
from fluorite.algo.numerics import Comparison, tolerated, weakest
from fluorite.algo.numerics import compare as compare_outputs
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.narrowing import Narrowed

from .check_report import Case
from .compiled import Compiled, compile_kernels
from .driver import in_types
from .lowered import Lowered
from .runtime import assemble
from .sampling import Array, as_stored, extents_text, given_inputs, random_inputs
from .target import CodeTarget
from .trial_extents import trial_extents

Call = Callable[[str, tuple[Array, ...]], Any]
Skipped = tuple[str, str, str]
"""A method, extents that it refuses, and what it says."""


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


def compared(
    graph: Graph,
    plan: ExecutionPlan,
    variants: tuple[Lowered, ...],
    call: Call,
    parameters: Mapping[str, Array],
    extents: Mapping[str, int],
    given: Mapping[str, Array],
    seed: int,
    sizes_of: Mapping[str, Sequence[Mapping[str, int]]] | None = None,
) -> tuple[list[Case], list[Skipped]]:
    """Every method on the inputs given, and on random ones of the extents that `sizes_of` has for it, or else of trial extents; and those
    that are refused. Raises RunError for a refusal of what was asked for."""
    numerics, rounds = weakest(*(v.numerics for v in variants)), in_types(plan, graph)
    cases: list[Case] = []
    skipped: list[Skipped] = []
    for m in graph.methods:
        tried: list[tuple[Mapping[str, int], tuple[Array, ...], str]] = []
        own = given_inputs(graph, m.name, given)
        if own is not None:
            tried.append((method_symbols(graph, m.name, own), own, "given"))
        own_sizes = sizes_of[m.name] if sizes_of is not None else trial_extents(graph, plan, m.name, _scheduled(variants), extents)
        for n, sizes in enumerate(own_sizes):
            tried.append((sizes, random_inputs(graph, m.name, sizes, 2 * seed + n % 2), "random"))
        for sizes, arrays, origin in tried:
            asked = origin == "given" or (bool(extents) and all(sizes.get(k) == v for k, v in extents.items() if k in sizes))
            try:
                found = _outputs(graph, rounds, call, m.name, arrays, parameters, numerics, asked)
                cases += [Case(m.name, sizes, origin, one) for one in found]
            except RunError as refused:
                if asked or not graph.symbols(m.name):
                    raise
                skipped.append((m.name, extents_text(sizes), refused.problems[0].asked))
    return cases, skipped


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
        return [Comparison(method, float("inf"), 0.0, False, why=why)]  # once, however many results it has
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


def _scheduled(variants: tuple[Lowered, ...]) -> list[Any]:
    """Stages with their directives. The generic variant's extents still have their symbols; specialised ones are seen through it."""
    return [(s, ds) for v in variants for s in v.graph.stages for ds in [v.scheduled.directives.get(s.id, ())]]


__all__ = ["Call", "Skipped", "comparable", "compared", "kernel_calls"]
