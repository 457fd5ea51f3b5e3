"""Which entry of a schedule each stage takes: the nearest file's, then the most specific."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Generic

from fluorite.algo.errors import PlanError, Problem

from .notation.places import Place
from .pool import C, Pool, pool_of
from .sections import ScheduleEntry
from .selectors import Selector, parse_selector, select

_HINTS = 20
"""Selectors that match nothing for which the nearest names are looked up: a plan of another program has thousands."""


@dataclass(frozen=True)
class Match(Generic[C]):
    """A stage with the entry that it takes, and the selector by which the entry found it."""

    stage: C
    entry: ScheduleEntry
    selector: str
    place: Place


def assign(
    entries: Sequence[ScheduleEntry], stages: Iterable[C] | Pool[C], program: str = "the program", missing_ok: bool = False
) -> dict[str, Match[C]]:
    """The entry of every stage that has one, by path, in the order of the stages.

    `missing_ok` passes over selectors that match nothing yet, as before rewrites have made their stages. Raises PlanError with every
    problem: as `select`, and P103 where two equally specific entries of one file claim a stage.
    """
    pool = pool_of(stages)
    claims: dict[str, list[tuple[tuple[int, ...], Match[C]]]] = {}
    problems: list[Problem] = []
    missing = 0
    for entry in entries:
        for index, text in enumerate(entry.select):
            place = entry.place if len(entry.select) == 1 and not entry.marks.says("select", index) else entry.place_of("select", index)
            lenient = missing_ok or entry.optional
            try:
                parsed = parse_selector(text, place)
                found = select(text, pool, place, program, scopes=False, hints=not lenient and missing < _HINTS)
            except PlanError as error:
                missing += not lenient
                problems += [problem for problem in error.problems if not (lenient and problem.code == "P101")]
                continue
            for stage in found:
                claims.setdefault(stage.path, []).append((_rank(parsed, place), Match(stage, entry, text, place)))
    chosen: dict[str, Match[C]] = {}
    for path, some in claims.items():
        best = max(rank for rank, _ in some)
        winners = [match for rank, match in some if rank == best]
        if len(winners) > 1:
            first, second = winners[:2]
            asked = f'"{second.selector}" and "{first.selector}" both mean {path}, and neither is more specific'
            problems.append(
                second.place.problem("P103", asked, f"the other one is at {first.place}", ("make one of them longer",), path=path)
            )
        chosen[path] = winners[-1]
    if problems:
        raise PlanError(dict.fromkeys(problems))
    return {stage.path: chosen[stage.path] for stage in pool.all if stage.path in chosen}


def overridden_by_nearness(entries: Iterable[ScheduleEntry]) -> list[tuple[str, Place, str, Place]]:
    """Pairs of lines, (selector, place) of the farther file's and of the nearer one's, that may mean one stage, and of which the farther
    one would win if both stood in one file."""
    lines = [(parse_selector(text, entry.place), text, entry.place) for entry in entries for text in entry.select]
    return [
        (text, place, near_text, near_place)
        for far, text, place in lines
        for near, near_text, near_place in lines
        if near_place.nearness < place.nearness and near.specificity < far.specificity and _may_meet(far, near)
    ]


def _may_meet(a: Selector, b: Selector) -> bool:
    """As far as the last parts of their paths say."""
    one, other = (s.parts[-1] if s.parts and not s.facts and "<" not in s.parts[-1] else "*" for s in (a, b))
    return fnmatchcase(one, other) or fnmatchcase(other, one) or ("*" in one and "*" in other)


def _rank(selector: Selector, place: Place) -> tuple[int, ...]:
    return (-place.nearness, *selector.specificity)
