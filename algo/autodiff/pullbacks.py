"""Derivatives as claims that can be judged: when this arrives at the results of a method, that arrives at what they depend on.

The claims are those of a method as a whole and, one by one, those of every rule that a user gave (fl.custom_vjp, the vjp= of fl.extern).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..building import Builder, building
from ..dtypes import FLOATS
from ..errors import AlgorithmError
from ..extent import symbols_of
from ..extent_names import most_of
from ..graph import Graph, Method, flatten
from ..program import Traced, traced
from .custom import Rule
from .reach import reader, upstream
from .stepwise import whole
from .sweep import Sweep

_UNKNOWN = ("A171", "A421")
"""The refusals that say that there is no derivative; others are about a mistake."""


@dataclass(frozen=True)
class Pullback:
    """When the leaves `seeds` arrive at the tensors `results`, the stages `arriving` arrive at the tensors `by`; None is 0.

    All are numbers of tensors. `name` and `source` are the function and the line of a rule that a user gave; empty for a method.
    """

    results: tuple[int, ...]
    seeds: tuple[int, ...]
    by: tuple[int, ...]
    arriving: tuple[int | None, ...]
    name: str = ""
    source: str = ""

    @property
    def ends(self) -> tuple[int, ...]:
        return (*self.results, *self.by, *(i for i in self.arriving if i is not None))


@dataclass(frozen=True, eq=False)
class Derivative:
    """The derivative of a method's float results by its float inputs and parameters.

    `graph` has it as a method of the same name: it takes what arrives at each result after its inputs, and returns its `results` beside
    `derivatives` by name; it leaves state alone. `claims` (the method's, then those of rules) are about `judged`, a graph of the same
    stages in which the stages of fl.stop_gradient, `stopped`, and the ends of rules are there. `refused` are results without a derivative,
    with the reason; `cut` says that none depends on any input in a way that a derivative follows. `surrogates` are the rules, by name and
    line, that are meant to be no derivatives: there is no claim of theirs, and that of the method is none either.
    """

    graph: Graph
    judged: Graph
    stopped: frozenset[int]
    claims: tuple[Pullback, ...]
    refused: tuple[tuple[str, str], ...] = ()
    cut: bool = False
    surrogates: tuple[tuple[str, str], ...] = ()


def derivative(model: Any, method: str) -> Derivative | str:
    """The derivative of one method of a function or Program, or the reason why there is none.

    That of a method that changes state is of its results and of the losses that it minimises, by what the call begins with.
    Raises AlgorithmError where the model, or a rule that its author gave, is refused.
    """
    made = traced(model, method)
    builder, (told,) = made.builder, made.methods
    builder.assigned = {}  # a rule that reads a parameter means what it held when the call began
    results = _results(builder, told)
    by = [i for i, t in builder.leaves.items() if t.dtype in FLOATS and (i in told.inputs or t.kind == "parameter")]
    if not results:
        return "it returns no floats"
    if not by:
        return "it has no float inputs or parameters"
    open_ = [i for i in results if any(most_of(n) is not None for e in whole(builder, i).shape for n in symbols_of(e))]
    late = tuple((builder.stages[i].path, "how long it is, and so what arrives at it, is known only when it is there") for i in open_)
    sized = [i for i in results if i not in open_]
    with building(builder):
        main, refused = _differentiated(builder, sized, by) if sized else (None, ())
        refused = (*late, *refused)
        if main is None:
            return "; ".join(f"{path}: {why}" for path, why in refused)
        graph = _with(made, told, main).graph()
        found = _rules(builder, told)
        rules = [rule for rule in found if not rule.surrogate]
        claims = (main, *(_of_rule(builder, rule) for rule in rules))
    stopped = frozenset(i for i, s in builder.stages.items() if s.op == "stop_gradient" and i in builder.aliases)
    kept = stopped.union(*(rule.inputs for rule in rules), *((r.source for r in rule.results) for rule in rules))
    everything = replace(told, inputs=_inputs(told, claims), result=[[*c.ends] for c in claims], updates={}, reader=None)
    judged = replace(made, methods=(everything,)).graph(kept)
    surrogates = tuple((rule.name, rule.source) for rule in found if rule.surrogate)
    return Derivative(graph, judged, stopped, claims, refused, all(i is None for i in main.arriving), surrogates)


def _results(builder: Builder, method: Method) -> list[int]:
    """The float results of a method, and the losses that it minimises."""
    found = dict.fromkeys(flatten(method.result))
    if method.updates:
        minimised = {f"{method.name}/{s.loss}" for s in builder.stages.values() if s.loss and s.method == method.name}
        found |= dict.fromkeys(i for i, s in builder.stages.items() if s.path in minimised)
    return [i for i in found if whole(builder, i).dtype in FLOATS]


def _differentiated(
    builder: Builder, results: Sequence[int], by: Sequence[int]
) -> tuple[Pullback | None, tuple[tuple[str, str], ...]]:
    """The derivative of those results that have one, and the others with the reason."""
    saved = builder.snapshot()
    try:
        return _pulled(builder, results, by), ()
    except AlgorithmError:
        builder.restore(saved)
    good: list[int] = []
    refused: list[tuple[str, str]] = []
    for r in results:
        try:
            _pulled(builder, [r], by)
            good.append(r)
        except AlgorithmError as error:
            problem = error.problems[0]
            if problem.code not in _UNKNOWN:
                raise
            path = (builder.stages.get(r) or builder.leaves[r]).path
            refused.append((path, f"{problem.asked}: {problem.why}" + (f" ({problem.source})" if problem.source else "")))
        builder.restore(saved)
    return (_pulled(builder, good, by) if good else None), tuple(refused)


def _pulled(builder: Builder, results: Sequence[int], by: Sequence[int], name: str = "", source: str = "") -> Pullback:
    """The adjoints of tensors by one sweep, from a leaf for what arrives at each result."""
    seeds = [_seed(builder, r) for r in results]
    given = {r: reader(seed, builder.leaves[seed].dtype) for r, seed in zip(results, seeds, strict=True)}
    label = (builder.stages.get(results[0]) or builder.leaves[results[0]]).path.removeprefix(f"{builder.method}/")
    sweep = Sweep(builder, given, by, label)
    found = [(i, sweep.adjoint_of(i)) for i in by]
    arriving = tuple(None if a is None else sweep.adjoint_tensor(i, a).source for i, a in found)
    return Pullback(tuple(results), tuple(seeds), tuple(by), arriving, name, source)


def _seed(builder: Builder, result: int) -> int:
    """A leaf for what arrives at a result."""
    t = whole(builder, result)
    taken = {leaf.path for leaf in builder.leaves.values()}
    n = 1
    while (path := f"{builder.method}/cotangent{'' if n == 1 else f'_{n}'}") in taken:
        n += 1
    return builder.leaf("input", path, t.shape, t.dtype, t.axis_names).source


def _with(made: Traced, told: Method, main: Pullback) -> Traced:
    """The trace whose method gives the derivatives too."""
    leaves = made.builder.leaves
    names = {i: leaves[i].name if i in told.inputs else leaves[i].path for i in main.by}
    derivatives = {names[i]: a for i, a in zip(main.by, main.arriving, strict=True) if a is not None}
    result = {"results": told.result if told.result is not None else {}, "derivatives": derivatives}
    method = replace(told, inputs=_inputs(told, [main]), result=result, updates={}, reader=None)
    return replace(made, methods=(method,))


def _inputs(told: Method, claims: Iterable[Pullback]) -> tuple[int, ...]:
    return (*told.inputs, *(i for c in claims for i in c.seeds))


def _rules(builder: Builder, told: Method) -> list[Rule]:
    """The rules of what the method's results and new state depend on, in the order in which they were called. Those called in a turn of a
    loop are judged with the rule of that loop."""
    behind = upstream(builder, told.ends)
    found = {id(rule): rule for i, rule in builder.rules.items() if i in behind and builder.stages[i].turn is None}
    return [rule for rule in found.values() if any(r.dtype in FLOATS for r in rule.results) and _floats(builder, rule)]


def _floats(builder: Builder, rule: Rule) -> list[int]:
    return [i for i in rule.inputs if whole(builder, i).dtype in FLOATS]


def _of_rule(builder: Builder, rule: Rule) -> Pullback:
    results = [r.source for r in rule.results if r.dtype in FLOATS]
    return _pulled(builder, results, _floats(builder, rule), rule.name, rule.source)


__all__ = ["Derivative", "Pullback", "derivative"]
