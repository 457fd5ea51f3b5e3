"""The memory of every method as the runtime will plan it, before anything is compiled, and whether the plan allows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from fluorite.algo.errors import InternalError, PlanError, Problem
from fluorite.algo.graph import Graph

from .compiled import Compiled
from .runtime import parse
from .runtime.manifest import MethodSpec
from .runtime.model import Model
from .runtime.peak import Peak, less


def planned(compiled: Compiled) -> Model:
    """A model that plans its calls and makes none: its parameters take no memory."""
    manifest = parse(compiled.manifest(compiled.graph.name))
    nothing = {p.name: np.broadcast_to(np.zeros((), p.numpy), p.shape) for p in manifest.parameters}
    return Model(manifest, _no_kernel, nothing, compiled.target.machine.cores)


def peaks(compiled: Compiled, sizes: Mapping[str, int]) -> dict[str, Peak]:
    """The peak of every method of which `sizes` gives all extents."""
    made, graph = planned(compiled), compiled.graph
    return {
        m.name: made.peak({s: sizes[s] for s in graph.symbols(m.name)}, m.name)
        for m in graph.methods
        if all(s in sizes for s in graph.symbols(m.name))
    }


def within_limit(compiled: Compiled) -> None:
    """Raises PlanError P401 for every method that takes more than `memory: limit`, at its largest extents as far as the plan bounds them.

    Where it does not, a call is refused when its extents are known.
    """
    limit = compiled.plan.limit
    if limit is None:
        return
    made = planned(compiled)
    problems = []
    for name, spec in made._manifest.methods.items():
        for _, sizes in largest(spec):
            if sizes is None:
                continue
            peak = made.peak(sizes, name)
            if peak.total > limit:
                problems.append(_too_much(compiled, name, sizes, peak, limit))
                break
    if problems:
        raise PlanError(problems)


def largest(spec: MethodSpec) -> Iterator[tuple[int, dict[str, int] | None]]:
    """The number of each body of a method, and the largest extents that it is for, where they are bounded."""
    for n, variant in enumerate(spec.variants):
        sizes = {name: variant.when.get(name, symbol.max) for name, symbol in spec.symbols.items()}
        yield n, {name: most for name, most in sizes.items() if most is not None} if None not in sizes.values() else None


def _too_much(compiled: Compiled, method: str, sizes: Mapping[str, int], peak: Peak, limit: int) -> Problem:
    assert compiled.plan.memory is not None
    given = ", ".join(f"{n} = {v}" for n, v in sizes.items())
    asked = f"{method}{f' with {given}' if given else ''} takes {peak.text()}"
    return compiled.plan.memory.place_of("limit").problem(
        "P401", asked, f"the limit is {less(limit, peak.total)}", tuple(_instead(compiled.graph, peak))
    )


def _instead(graph: Graph, peak: Peak) -> Iterator[str]:
    """What would take less, where it takes most."""
    if peak.alive:
        name = peak.alive[0][0]
        readers = next((graph.consumers[s.id] for s in graph.stages if s.path == name), ())
        if len(readers) > 1:
            yield f"memory: {{recompute: [/{name}]}}"
        if readers:
            yield f"compute_at or compute_inline for /{name}"
    if 2 * peak.parameters > peak.total:
        yield "precision: {parameters: bf16}"
    elif peak.alive:
        yield "precision: {compute: bf16}"
    yield f"memory: {{limit: {peak.total}}}"


def _no_kernel(name: str) -> Any:
    raise InternalError(f"{name} is called in a model that only plans its calls")


__all__ = ["largest", "peaks", "planned", "within_limit"]
