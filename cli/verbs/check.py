"""`fluorite check`."""

from __future__ import annotations

from dataclasses import replace

from ..command import DONE, REFUSED, Outcome
from ..plans import request
from ..refusals import not_built
from ..terminal import Terminal
from ..values import extents as read_extents
from ..values import known_extents


def check(
    terminal: Terminal,
    model: str | None,
    plan: str | None,
    extents: list[str] | None,
    given: list[str] | None,
    method: str | None,
    quick: bool,
    gradients: bool,
    seed: int,
    bisect: bool,
    against: str | None,
) -> Outcome:
    if bisect or against:
        raise not_built("--bisect" if bisect else "--against")
    from fluorite.algo.errors import PlanError
    from fluorite.algo.interpreter.arguments import choose
    from fluorite.codegen.checking import checked
    from fluorite.codegen.derived_cases import derivatives_of

    from ..inputs import of_graph
    from ..user_code import run_guarded

    sizes = read_extents(extents)
    asked = request(terminal, model, [plan] if plan else None, "check")
    known_extents(sizes, asked.graph.symbols(), asked.algorithm.shown)
    if method is not None:
        choose(asked.graph, method)
    inputs = of_graph(asked.graph, given, method) if given else None
    methods = [m.name for m in asked.graph.methods if method in (None, m.name)] if gradients and not quick else []
    algorithm = asked.algorithm
    derivatives = run_guarded(lambda: derivatives_of(algorithm.model, methods), algorithm.folder, algorithm.shown)
    report = checked(asked.graph, asked.plan, extents=sizes or None, quick=quick, seed=seed, inputs=inputs, derivatives=derivatives)
    if report.problems:
        raise PlanError(report.problems)
    if method is not None:
        report = replace(report, cases=tuple(c for c in report.cases if c.method == method))
    terminal.notes(report.notes)
    return Outcome(report.as_dict(), report.text(), DONE if report.ok else REFUSED)
