"""What `{divides: axis}` divides: extents of the stages that a line of the schedule means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.extent import Extent, substitute, symbol
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage

from .checks import values_in
from .notation.holes import Divides
from .notation.places import Place
from .notation.yaml_reader import nearest
from .plan import ExecutionPlan, entries_of
from .pool import Pool
from .sections import ScheduleEntry
from .selectors import select

Lookup = Callable[[str | None, str], int | None]


def extent_lookup(graph: Graph, plan: ExecutionPlan | None = None) -> Lookup:
    """The extent of an axis of the stage that a selector means, where it is a number, if only because the plan fixes it."""
    pool = Pool(graph.stages)

    def lookup(selector: str | None, axis: str) -> int | None:
        found = {n for s in _meant(selector, pool) for a, n in _fixed(s, plan) if a == axis} if selector is not None else set()
        only = found.pop() if len(found) == 1 else None
        return only if isinstance(only, int) else None

    return lookup


def divisor_problems(plan: ExecutionPlan, graph: Graph) -> list[Problem]:
    """Every `{divides: axis}` that says nothing: no such axis, no number, no stage that it could be an axis of. P014."""
    pool = Pool(graph.stages)
    out: list[Problem] = []
    for entry in _entries(plan):
        stages = [s for text in entry.selectors for s in _meant(text, pool)]
        for value, place in values_in(entry.do, entry.place):
            if isinstance(value, Divides):
                out += _problems(value, value.place if value.place.line else place, stages, entry, plan)
    for name, hole in plan.holes.items():
        for value, place in values_in(hole, plan.place_of("holes", name)):
            if isinstance(value, Divides):
                where = value.place if value.place.line else place
                why = "a named hole is of no stage, so nobody knows of which stage that is an axis"
                out.append(where.problem("P014", f"${name}: divides: {value.axis}", why, _INSTEAD))
    return out


_INSTEAD = ("write it in the line of the stage", "{choose: [8, 16, 32]}", "{pow2: [8, 64]}")


def _problems(hole: Divides, place: Place, stages: Sequence[Stage], entry: ScheduleEntry, plan: ExecutionPlan) -> Iterator[Problem]:
    if not stages:
        return  # the selector is refused as such, or names a stage that a rewrite makes
    asked = f"divides: {hole.axis}"
    extents = {n for s in stages for a, n in _fixed(s, plan) if a == hole.axis}
    names = list(dict.fromkeys(a for s in stages for a, _ in _fixed(s, plan)))
    lacking = next((s for s in stages if all(a != hole.axis for a, _ in _fixed(s, plan))), None)
    if lacking is not None:
        why = f"{lacking.name} has no axis {hole.axis}; it has {', '.join(a for a, _ in _fixed(lacking, plan)) or 'none'}"
        yield replace(place.problem("P014", asked, why, nearest(hole.axis, names)), path=lacking.path, source=lacking.source)
    elif len(extents) > 1 or not isinstance(next(iter(extents)), int):
        said = " and ".join(sorted(map(str, extents)))
        why = f"{hole.axis} has {said} in {' and '.join(entry.selectors)}, and that is no one number"
        yield replace(place.problem("P014", asked, why, _INSTEAD[1:]), path=stages[0].path, source=stages[0].source)


def _entries(plan: ExecutionPlan) -> Iterator[ScheduleEntry]:
    yield from plan.entries()
    for variant in plan.variants if isinstance(plan.variants, tuple) else ():
        yield from entries_of(variant.schedule, variant)


def _meant(selector: str, pool: Pool[Stage]) -> list[Stage]:
    try:
        return select(selector, pool, hints=False)
    except PlanError:
        return []


def _fixed(s: Stage, plan: ExecutionPlan | None) -> list[tuple[str, Extent]]:
    """The axes of a stage with their extents, as far as the plan fixes those."""
    fixed = {} if plan is None else {name: n for name, n in plan.extents.items() if isinstance(n, int)}

    def value(name: str) -> Extent:
        return fixed.get(f"{s.method}/{name}", fixed.get(name, symbol(name)))

    return [(a.name, substitute(n, value)) for a, n in s.ranges.items()]


__all__ = ["divisor_problems", "extent_lookup"]
