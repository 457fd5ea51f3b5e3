"""One pass over the tree of a plan: what collects problems, places and deletions on the way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from fluorite.algo.errors import Problem

from .places import NOWHERE, Place, Step


class _Failed:
    """A value that could not be read; the problem is on the list."""

    def __repr__(self) -> str:
        return "FAILED"


FAILED: Any = _Failed()


@dataclass
class Reading:
    """One pass over a tree: collects problems, the place of every value, and the deletions."""

    problems: list[Problem] = field(default_factory=list)
    places: dict[tuple[Step, ...], Place] = field(default_factory=dict)
    path: tuple[Step, ...] = ()
    removed: list[tuple[str, ...]] | None = None
    root: int = 0

    def inside(self, *steps: Step) -> Reading:
        """The reading of a part."""
        return Reading(self.problems, self.places, (*self.path, *steps), self.removed, self.root)

    def sealed(self) -> Reading:
        """The reading of something in which null deletes nothing: lists, directives, alternatives of a hole."""
        return Reading(self.problems, self.places, self.path, None, self.root)

    def record(self) -> Reading:
        """The reading of a record, which keeps the places of its own parts."""
        return Reading(self.problems, {}, self.path, self.removed, len(self.path))

    def absorb(self, inner: Reading) -> None:
        """Take over the places of a record that was read here."""
        here = self.path[self.root :]
        self.places.update({here + path: place for path, place in inner.places.items()})

    def mark(self, place: Place, *steps: Step) -> None:
        """Note where the value at `path` stands."""
        if place is not NOWHERE:
            self.places[(*self.path[self.root :], *steps)] = place

    def fail(self, place: Place, code: str, asked: str, why: str = "", try_: Iterable[str] = ()) -> Any:
        """Note a problem; the value of this call stands for what could not be read."""
        self.problems.append(place.problem(code, asked, why, tuple(try_)))
        return FAILED

    @property
    def name(self) -> str:
        """The path in words, for messages."""
        return "/".join(str(step) for step in self.path) or "the plan"
