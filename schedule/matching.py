"""Which entry of a schedule each stage takes: the nearest file's, then the most specific."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic

from fluorite.algo.errors import PlanError, Problem

from .notation.places import Place
from .sections import ScheduleEntry
from .selectors import C, Selector, parse_selector, select


@dataclass(frozen=True)
class Match(Generic[C]):
    """A stage with the entry that it takes, and the selector by which the entry found it."""

    stage: C
    entry: ScheduleEntry
    selector: str
    place: Place


def assign(
    entries: Sequence[ScheduleEntry], stages: Iterable[C], program: str = "the program", missing_ok: bool = False
) -> dict[str, Match[C]]:
    """The entry of every stage that has one, by path, in the order of the stages.

    `missing_ok` passes over selectors that match nothing yet, as before rewrites have made their stages. Raises PlanError with every
    problem: as `select`, and P103 where two equally specific entries of one file claim a stage.
    """
    pool = list(stages)
    claims: dict[str, list[tuple[tuple[int, ...], Match[C]]]] = {}
    problems: list[Problem] = []
    for entry in entries:
        for index, text in enumerate(entry.select):
            place = entry.place if len(entry.select) == 1 and not entry.marks.says("select", index) else entry.place_of("select", index)
            try:
                parsed = parse_selector(text, place)
                found = select(text, pool, place, program, scopes=False)
            except PlanError as error:
                lenient = missing_ok or entry.optional
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
    return {stage.path: chosen[stage.path] for stage in pool if stage.path in chosen}


def _rank(selector: Selector, place: Place) -> tuple[int, ...]:
    return (-place.nearness, *selector.specificity)
