"""How what a GPU kernel may not be is said: of a stage, at the place of the plan that asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fluorite.algo.errors import Problem
from fluorite.algo.stages import Stage
from fluorite.schedule.directives import Directive
from fluorite.schedule.notation.places import NOWHERE, Place

Directives = Sequence[Directive]


def found(ds: Iterable[Directive], kind: type[Directive]) -> Directive | None:
    return next((d for d in ds if isinstance(d, kind)), None)


def place_of(ds: Directives, *kinds: type[Directive]) -> Place:
    """Where the first directive of these kinds is written."""
    for kind in kinds:
        if (d := found(ds, kind)) is not None:
            return d.at()
    return NOWHERE


def problem(place: Place, code: str, s: Stage, asked: str, why: str, *try_: str) -> Problem:
    return place.problem(code, asked, why, try_, path=s.path, source=s.source)
