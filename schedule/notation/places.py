"""Where a value was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from fluorite.algo.errors import Problem

Step = str | int


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a plan file; line and column count from 1, and are 0 for a plan that was made in Python.

    `nearness` is 0 in the plan itself and grows with every parent that `extends` brings in: nearer entries win.
    """

    file: str = "plan"
    line: int = 0
    column: int = 0
    nearness: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    def problem(
        self, code: str, asked: str, why: str = "", try_: tuple[str, ...] = (), path: str | None = None, source: str | None = None
    ) -> Problem:
        """A plan problem found here."""
        return Problem(code, "plan", self.file, self.line or None, self.column or None, path, source, asked, why, try_)


NOWHERE = Place()


class Marks:
    """The places of everything inside one record, by path from the record: `()` is the record itself."""

    __slots__ = ("_places",)

    def __init__(self, places: Mapping[tuple[Step, ...], Place] | None = None) -> None:
        self._places = dict(places or {})

    def at(self, *path: Step) -> Place:
        """The place of the value at `path`, else of the nearest value around it."""
        while path and path not in self._places:
            path = path[:-1]
        return self._places.get(path, NOWHERE)

    def key(self, *path: Step) -> Place:
        """The place of the key (or the list element) at `path`, rather than of its value."""
        return self._places.get((*path, ""), self.at(*path))

    def says(self, *path: Step) -> bool:
        """Whether there is something at `path`, rather than around it."""
        return path in self._places

    def without(self, *names: str) -> Marks:
        """The places of everything but these fields, whose values have changed since."""
        return Marks({path: place for path, place in self._places.items() if not path or path[0] not in names})

    def without_part(self, *path: Step) -> Marks:
        """The places of everything but what is at `path`, which has changed since."""
        return Marks({each: place for each, place in self._places.items() if each[: len(path)] != path})

    def items(self) -> Iterator[tuple[tuple[Step, ...], Place]]:
        """Every known path and its place."""
        return iter(self._places.items())


UNMARKED = Marks()
