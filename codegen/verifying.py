"""The interpreter between passes: which of them is the first after which the program computes something else? `show --verify-each`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fluorite.algo.errors import FluoriteError, RunError
from fluorite.algo.graph import Graph
from fluorite.algo.numerics import NO_CASTS, Casts, Expected, expected, tolerated, weakest
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.passes import STATEMENT_PASSES, Step

from .buckets import buckets_of
from .comparing import kernel_calls
from .driver import Plan, in_types, lower_variants, prepared, schedule, with_scales
from .lowered import Lowered, extents_of
from .sampling import Array, as_stored, extents_text, random_inputs, sample_parameters
from .target import resolve_target
from .trial_extents import trial_extents

CASES = 3
"""Calls of each method that every step is tried on."""

Call = Callable[[str, tuple[Array, ...]], Any]
Case = tuple[str, Mapping[str, int], tuple[Array, ...]]


@dataclass(frozen=True)
class Verdict:
    """One step against the algorithm. `used` is the largest error / tolerance; `why` says what is wrong, empty if nothing is."""

    name: str
    what: str
    used: float
    why: str = ""

    @property
    def ok(self) -> bool:
        return not self.why


@dataclass(frozen=True)
class Verification:
    """`verdicts` in the order of the passes."""

    verdicts: tuple[Verdict, ...]

    @property
    def first_wrong(self) -> Verdict | None:
        return next((v for v in self.verdicts if not v.ok), None)

    def text(self) -> str:
        width = max(len(v.name) for v in self.verdicts)
        lines = [f"{v.name.ljust(width)}  {'wrong' if not v.ok else f'{v.used:.2g} of tolerance'}  {v.what}" for v in self.verdicts]
        wrong = self.first_wrong
        lines.append(
            f"the first wrong pass is {wrong.name}: {wrong.what}: {wrong.why}" if wrong else "every pass keeps what the algorithm means"
        )
        return "\n".join(lines)

    def as_dict(self) -> dict[str, object]:
        wrong = self.first_wrong
        return {
            "passes": [{"pass": v.name, "what": v.what, "ok": v.ok, "used": v.used if v.ok else None, "why": v.why} for v in self.verdicts],
            "first_wrong": wrong.name if wrong else None,
        }


def verify_each(graph: Graph, plan: Plan = None, extents: Mapping[str, int] | None = None, seed: int = 0) -> Verification:
    """Every graph between passes on the interpreter, then the kernels after each pass over their statements, on random inputs.

    Raises PlanError, BuildError for what cannot be built, RunError for extents that the algorithm refuses.
    """
    chosen, _ = prepared(plan, graph)
    graph = with_scales(chosen, graph)
    target = resolve_target(chosen.target, chosen.numerics.contract, chosen.runtime.threads)
    variants = lower_variants(graph, chosen, target)
    numerics, parameters = tolerated(weakest(*(v.numerics for v in variants))), sample_parameters(graph, seed)
    rounds = in_types(chosen, graph)
    algorithm = _Oracle(graph, rounds.casts, numerics, parameters)
    rounded = _Oracle(rounds.graph, NO_CASTS, numerics, as_stored(rounds.graph, parameters))
    verdicts: list[Verdict] = []
    for when in buckets_of(chosen)[0]:
        cases = list(_cases(graph, chosen, variants, {**(extents or {}), **when}, seed))
        for step in schedule(graph, chosen, target, when).steps:
            oracle = algorithm if step.name in ("trace", "precision") else rounded
            verdicts.append(_verdict(oracle, cases, step.name, _what(step, when), _interpreter(step.graph, parameters)))
    cases = list(_cases(graph, chosen, variants, extents or {}, seed))
    for name, about in STATEMENT_PASSES.items():
        call = kernel_calls(graph, chosen, lower_variants(graph, chosen, target, name), target, parameters)
        verdicts.append(_verdict(rounded, cases, name, about, call))
    return Verification(tuple(verdicts))


def _what(step: Step, when: Mapping[str, int]) -> str:
    return f"{step.what} ({extents_text(when)})" if when and step.name not in ("trace", "precision", "specialise") else step.what


def _cases(graph: Graph, plan: ExecutionPlan, variants: tuple[Lowered, ...], extents: Mapping[str, int], seed: int) -> Iterator[Case]:
    stages = [(s, v.scheduled.directives.get(s.id, ())) for v in variants for s in v.graph.stages]
    for m in graph.methods:
        given = extents_of(extents, m.name, graph.symbols(m.name))
        found = [x for x in trial_extents(graph, plan, m.name, stages, given) if all(x[k] == n for k, n in given.items())]
        for sizes in found[:CASES]:
            yield m.name, sizes, random_inputs(graph, m.name, sizes, seed)


def _interpreter(graph: Graph, parameters: Mapping[str, Array]) -> Call:
    stored = as_stored(graph, parameters)
    return lambda method, arrays: graph.step(*arrays, method=method, parameters=stored)


@dataclass(frozen=True, eq=False)
class _Oracle:
    """What a step is compared with: the algorithm, or the algorithm with the roundings of a plan's precision in it."""

    graph: Graph
    casts: Casts
    numerics: str
    parameters: Mapping[str, Array]
    known: dict[tuple[str, str], Expected | None] = field(default_factory=dict)

    def expected(self, case: Case) -> Expected | None:
        """What the case may return; None where the algorithm refuses its extents."""
        method, sizes, arrays = case
        key = method, extents_text(sizes)
        if key not in self.known:
            try:
                self.graph.run(*arrays, method=method, parameters=self.parameters)
                self.known[key] = expected(self.graph, method, arrays, self.numerics, self.parameters, casts=self.casts)
            except RunError:
                self.known[key] = None
        return self.known[key]


def _verdict(oracle: _Oracle, cases: list[Case], name: str, what: str, call: Call) -> Verdict:
    used = 0.0
    for case in cases:
        method, sizes, arrays = case
        if (wanted := oracle.expected(case)) is None:
            continue
        try:
            found = wanted.compare(call(method, arrays))
        except FluoriteError as error:
            return Verdict(name, what, float("inf"), f"{method}({extents_text(sizes)}): {error.problems[0].asked}")
        worst = max(found, key=lambda c: (not c.ok, c.used), default=None)
        if worst is not None and not worst.ok:
            return Verdict(name, what, worst.used, f"{method}({extents_text(sizes)}) {worst.text()}")
        used = max(used, worst.used if worst is not None else 0.0)
    return Verdict(name, what, used)


__all__ = ["Verdict", "Verification", "verify_each"]
