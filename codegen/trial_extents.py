"""Extents on which a compiled model is tried: those that were asked for, and awkward ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fluorite.algo.extent import symbols_of
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage
from fluorite.schedule.directives import Directive, Split, Tile, Unroll, Vectorize
from fluorite.schedule.plan import ExecutionPlan
from fluorite.schedule.sections import AtMost, Between, Buckets

from .sampling import work

BASE = 37  # a prime above two vectors of most types, and below most tiles
PRIMES = (1, 2, 3, 7, 19, 67, 131)
MOST_CASES = 24
OPERATIONS, ELEMENTS = 30_000_000, 2_000_000
"""What one case may cost on the interpreter: about a second."""


@dataclass(frozen=True)
class Bounds:
    """The values that a plan lets a symbol take."""

    low: int = 1
    high: int | None = None
    multiple: int = 1
    only: tuple[int, ...] = ()

    def allows(self, n: int) -> bool:
        return n in self.only if self.only else self.low <= n <= (n if self.high is None else self.high) and n % self.multiple == 0

    def nearest(self, n: int) -> int:
        """An allowed value near n."""
        if self.only:
            return min(self.only, key=lambda value: abs(value - n))
        up = max(n, self.low)
        up += -up % self.multiple
        return up if self.high is None or up <= self.high else self.high - self.high % self.multiple


def bounds_of(plan: ExecutionPlan, method: str, symbol: str) -> Bounds:
    given = plan.extents.get(f"{method}/{symbol}", plan.extents.get(symbol))
    match given:
        case int():
            return Bounds(only=(given,))
        case Between():
            return Bounds(given.between[0], given.between[1], given.multiple)
        case AtMost():
            return Bounds(0, given.max)
        case Buckets() if not given.fallback:
            return Bounds(only=tuple(given.buckets))
    return Bounds()


def trial_extents(
    graph: Graph, plan: ExecutionPlan, method: str, directives: Iterable[tuple[Stage, tuple[Directive, ...]]], given: Mapping[str, int]
) -> list[dict[str, int]]:
    """Extents to try one method on, those given first, without repeats; each cheap enough for the interpreter but for those given.

    `directives` of the scheduled stages say which sizes are awkward.
    """
    symbols = graph.symbols(method)
    if not symbols:
        return [{}]
    allowed = {s: bounds_of(plan, method, s) for s in symbols}
    sizes = _sizes(directives)
    asked = {s: given[s] for s in symbols if s in given}
    chosen = [{s: asked.get(s, allowed[s].nearest(BASE)) for s in symbols}] if asked else []
    cost = work(graph, method)
    for case in _proposals(plan, method, symbols, allowed, sizes):
        if len(chosen) >= MOST_CASES:
            break
        if case not in chosen and _affordable(*cost(case)):
            chosen.append(case)
    return chosen


def _proposals(
    plan: ExecutionPlan, method: str, symbols: tuple[str, ...], allowed: Mapping[str, Bounds], sizes: Mapping[str, set[int]]
) -> Iterator[dict[str, int]]:
    yield {s: allowed[s].nearest(BASE) for s in symbols}
    special: dict[str, list[int]] = {}
    for s in symbols:
        values = [1]
        match plan.extents.get(f"{method}/{s}", plan.extents.get(s)):
            case Between() as between:
                values.append(between.between[0])
            case Buckets() as buckets:
                values += buckets.buckets
        tiles = sorted(sizes.get(s, set()) | sizes.get("", set()))
        values += [n for tile in tiles for n in (tile + 1, tile - 1)] + list(PRIMES) + tiles
        special[s] = [n for n in dict.fromkeys(allowed[s].nearest(max(v, allowed[s].low)) for v in values) if allowed[s].allows(n)]
    longest = max(map(len, special.values()), default=0)
    for n in range(longest):  # all symbols awkward at once, each in its own way
        yield {s: values[(n + shift) % len(values)] for shift, (s, values) in enumerate(special.items())}
        yield {s: values[min(n, len(values) - 1)] for s, values in special.items()}
        if len(symbols) > 1:
            moving = symbols[n % len(symbols)]
            yield {s: special[s][min(n, len(special[s]) - 1)] if s == moving else allowed[s].nearest(BASE) for s in symbols}


def _sizes(directives: Iterable[tuple[Stage, tuple[Directive, ...]]]) -> dict[str, set[int]]:
    """Tile sizes and vector widths by the symbol of the axis that they cut; by "" where that is not plain."""
    found: dict[str, set[int]] = {}
    for stage, ds in directives:
        extents = {a.name: n for a, n in stage.ranges.items()}
        for name, size in cuts(ds):
            base = next(
                (a for a in sorted(extents, key=len, reverse=True) if name == a or re.fullmatch(rf"{re.escape(a)}_(outer|inner).*", name)),
                None,
            )
            symbols = symbols_of(extents[base]) if base is not None else ()
            if base is None or symbols:
                for s in symbols or ("",):
                    found.setdefault(s, set()).add(size)
    return found


def cuts(directives: Iterable[Directive]) -> Iterator[tuple[str, int]]:
    """(axis, size) of everything that cuts a loop."""
    for d in directives:
        match d:
            case Split(axis=axis):
                yield from ((axis, n) for n in d.parts if n is not None and n > 1)
            case Tile(sizes=sizes):
                yield from ((axis, n) for axis, n in sizes.items() if n > 1)
            case Vectorize(axis=axis, width=int(width)) if width > 1:
                yield axis, width
            case Vectorize(axis=axis, width="native"):
                yield axis, 16
            case Unroll(axis=axis, factor=int(factor)) if factor > 1:
                yield axis, factor


def _affordable(operations: int, elements: int) -> bool:
    return operations <= OPERATIONS and elements <= ELEMENTS


__all__ = ["Bounds", "bounds_of", "cuts", "trial_extents"]
