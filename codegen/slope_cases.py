"""The derivatives of a model beside the slopes of what they are derivatives of, as cases of `check`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fluorite.algo.autodiff.pullbacks import Derivative, Pullback
from fluorite.algo.autodiff.slopes import Point, Slope
from fluorite.algo.errors import RunError
from fluorite.algo.graph import Graph
from fluorite.algo.interpreter import method_symbols
from fluorite.algo.numerics import Comparison
from fluorite.schedule import ExecutionPlan

from .check_report import Case
from .derived_cases import Found, Place
from .sampling import random_inputs, work
from .trial_extents import bounds_of

PRIMES = (5, 7, 11, 3, 13)
LARGER = (1, 3, 8)  # times the primes, where the algorithm refuses extents as small
POINTS = 3  # that are tried for what is not smooth at the first
DIRECTIONS = 2
OPERATIONS, MOST = 20_000_000, 400_000_000
"""Of one call, for more than one direction, and at all: a direction takes some ten calls."""


def slope_cases(d: Derivative, graph: Graph, plan: ExecutionPlan, place: Place) -> Found:
    """Every claim of a method's derivative, at the inputs given, else at random ones of few elements, until it is judged."""
    operations, _ = work(graph, place.method)(_sizes(graph, plan, place, 1))
    left = dict.fromkeys(d.claims, "")
    refusals: list[str] = []
    if operations > MOST:
        left = dict.fromkeys(d.claims, f"a call of {operations:.0e} operations is too long to be made some ten times")
    if d.surrogates:
        names = ", ".join(f"{name} ({source})" for name, source in d.surrogates)
        left[d.claims[0]] = f"it goes through surrogates, which are meant to differ: {names}"
    judged = d.claims[bool(d.surrogates) :]
    cases: list[Case] = []
    for sizes, origin, point in _points(d, graph, plan, place, refusals) if operations <= MOST else ():
        for claim in [c for c in judged if c in left]:
            slopes = point.judge(claim, DIRECTIONS if operations <= OPERATIONS else 1)
            if all(s.verdict == "unsure" for s in slopes):
                left[claim] = slopes[0].why
            else:
                cases.append(Case(place.method, sizes, origin, _comparison(d, place.method, slopes), "slope"))
                del left[claim]
        if left.keys().isdisjoint(judged):
            break
    unjudged = [(place.method, f"{_label(d, place.method, c)} with its slope", why or refusals[0]) for c, why in left.items()]
    return Found((*cases,), (*unjudged,))


def _points(
    d: Derivative, graph: Graph, plan: ExecutionPlan, place: Place, refusals: list[str]
) -> Iterator[tuple[Mapping[str, int], str, Point]]:
    """Where to look: extents, what kind of inputs, the point. What the algorithm says against extents goes to `refusals`."""
    if place.given is not None:
        yield method_symbols(graph, place.method, place.given), "given", Point(d, place.given, place.parameters, place.seed)
    for factor in LARGER:
        sizes = _sizes(graph, plan, place, factor)
        try:
            for n in range(POINTS):
                inputs = random_inputs(graph, place.method, sizes, 2 * place.seed + n)
                yield sizes, "random", Point(d, inputs, place.parameters, place.seed + n)
            return
        except RunError as refused:
            refusals.append(refused.problems[0].asked)


def _sizes(graph: Graph, plan: ExecutionPlan, place: Place, factor: int) -> dict[str, int]:
    """Small extents that differ, within what the plan allows."""
    symbols = graph.symbols(place.method)
    small = {s: bounds_of(plan, place.method, s).nearest(factor * PRIMES[n % len(PRIMES)]) for n, s in enumerate(symbols)}
    return small | {s: n for s, n in place.extents.items() if s in small}


def _comparison(d: Derivative, method: str, slopes: Sequence[Slope]) -> Comparison:
    """The worst of several directions."""
    unsure = sum(s.verdict == "unsure" for s in slopes)
    worst = max((s for s in slopes if s.verdict != "unsure"), key=lambda s: (s.verdict == "wrong", s.used))
    wrong = worst.verdict == "wrong"
    path = f"{_label(d, method, worst.claim)} slope"
    return Comparison(path, worst.off, worst.tolerance, not wrong, (), unsure, len(slopes), worst.used, _said(d, worst) if wrong else "")


def _said(d: Derivative, s: Slope) -> str:
    whose = f"the derivative that {s.claim.name} ({s.claim.source}) gives" if s.claim.name else "the derivative"
    by = ", ".join(dict.fromkeys(d.judged.path_of(i) for i in s.by))
    along = f"along a random direction, where the slope is {s.measured:.6g} (tolerance {s.tolerance:.2g})"
    silent = [] if s.claim.name else [f"{c.name} ({c.source}) reads it without taking it as an argument" for c in _beside(d, s)]
    return "; ".join([f"{whose} by {by} says {s.claimed:.6g} {along}", *silent])


def _beside(d: Derivative, s: Slope) -> Iterator[Pullback]:
    """The rules whose functions read what a derivative is wrong by beside their arguments, of which a rule is silent."""
    for c in d.claims:
        seen, pending = {*c.by}, [*c.results] if c.name else []
        while pending:
            i = pending.pop()
            if i not in seen:
                seen.add(i)
                pending += stage.sources if (stage := d.judged.stage(i)) is not None else ()
        if not seen.isdisjoint(set(s.by) - {*c.by}):
            yield c


def _label(d: Derivative, method: str, c: Pullback) -> str:
    """The method, or the function whose rule it is, under the path of its result."""
    return "/".join([*d.judged.path_of(c.results[0]).split("/")[:-1], c.name]) if c.name else method


__all__ = ["slope_cases"]
