"""Which stages a plan's `precision` computes in a narrower type: what the most specific of `keep` and `overrides` says, else `compute`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage

from .graph_sections import TYPES, Precision, PrecisionOverride
from .notation.places import Place
from .pool import Pool
from .selectors import parse_selector, select


def types_of(precision: Precision, graph: Graph) -> tuple[dict[int, str], list[Problem]]:
    """The type of arithmetic by stage, for stages that have one by the plan; and selectors that say nothing, or two things (P103)."""
    pool = Pool(graph.stages)
    problems: list[Problem] = []
    claims: dict[int, tuple[tuple[int, ...], str, str | None, Place]] = {}
    for text, to, place in _entries(precision):
        try:
            found = within(text, pool, place, graph.name)
        except PlanError as error:
            problems += error.problems
            continue
        parsed = parse_selector(text, place)
        for s in found:
            before = claims.get(s.id)
            if before is None or parsed.specificity > before[0]:
                claims[s.id] = (parsed.specificity, text, to, place)
            elif parsed.specificity == before[0] and to != before[2]:
                problems.append(_tied(s, text, place, before[1], before[3]))
    usual = TYPES.get(precision.compute or "")
    chosen = {s.id: claims[s.id][2] if s.id in claims else usual for s in graph.stages}
    return {i: to for i, to in chosen.items() if to is not None}, list(dict.fromkeys(problems))


def within(text: str, pool: Pool[Stage], place: Place, program: str) -> list[Stage]:
    """The stages of a list that names what it speaks of: of an operator whose result bears its name, all stages. Raises PlanError."""
    found = select(text, pool, place, program)
    return [*found, *(s for s in pool.below(parse_selector(text, place)) if all(s is not t for t in found))]


def _entries(precision: Precision) -> Iterator[tuple[str, str | None, Place]]:
    """Selectors with the types that they ask for, None for the algorithm's own."""
    for n, text in enumerate(precision.keep):
        yield text, None, precision.place_of("keep", n)
    overrides: Mapping[str, PrecisionOverride] = precision.overrides
    for text, override in overrides.items():
        yield text, TYPES.get(override.compute or precision.compute or ""), precision.place_of("overrides", text)


def _tied(s: Stage, text: str, place: Place, other: str, there: Place) -> Problem:
    asked = f'"{text}" and "{other}" both mean {s.path}, and neither is more specific'
    return place.problem("P103", asked, f"the other one is at {there}", ("make one of them longer",), path=s.path)


__all__ = ["types_of", "within"]
