"""What selectors choose among, with an index by the ends of paths: a plan may have as many selectors as a program has stages.

The meaning of a selector is `Selector.match` and `Selector.inside`; the index only finds the same candidates without asking each of them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from .selectors import Selector

RESERVED = ("grad", "update", "recompute")


class Candidate(Protocol):
    """What a selector chooses among: a stage, a parameter, a state."""

    @property
    def path(self) -> str:
        """METHOD/module path/operator/stage; parameters and state have no method."""
        ...

    @property
    def method(self) -> str:
        """The first part of the path; empty for parameters and state."""
        ...

    @property
    def facts(self) -> Mapping[str, str]:
        """`kind`, `role`, `op` and `dtype`, as far as they apply."""
        ...


C = TypeVar("C", bound=Candidate)


class Pool(Generic[C]):
    """Candidates in their order. The index is made when the first selector asks."""

    def __init__(self, candidates: Iterable[C]) -> None:
        self.all = tuple(candidates)
        self._suffixes: dict[tuple[int, bool], dict[str, dict[str, int]]] = {}

    def matching(self, selector: Selector) -> list[C]:
        """The candidates that the selector matches."""
        if not selector.is_wild:
            return list(self._ends.get(_key(selector), ()))
        if not self._possible(selector):
            return []
        return [one for one in self.all if selector.match(one) is not None]

    def below(self, selector: Selector) -> list[C]:
        """The candidates below a scope that the selector names."""
        if selector.facts:
            return []
        if not selector.is_wild:
            return list(self._scopes.get(_key(selector), ()))
        return [one for one in self.all if selector.inside(one.path) is not None] if self._possible(selector) else []

    def suffixes(self, length: int, general: bool) -> dict[str, dict[str, int]]:
        """The ends of all paths, of at most `length` parts, with how many stages have them in each method."""
        if (length, general) not in self._suffixes:
            self._suffixes[length, general] = self._counted(length, general)
        return self._suffixes[length, general]

    def spelled(self, name: str) -> tuple[str, ...]:
        """The shortest selectors for the paths that end in a name; more than the name where that is inside a gradient or an update."""
        if name in self._ends or name in self._scopes:
            return (name,)
        found: dict[str, None] = {}
        for one in self.all:
            head, there, _ = f"{one.path}/".partition(f"/{name}/")
            if there:
                found[_selectors_of(f"{head}/{name}".split("/"))[-1]] = None
        return tuple(found)

    @cached_property
    def _ends(self) -> dict[str, list[C]]:
        """By every selector without a wildcard that matches: the ends of a path that leave nothing reserved out, and the whole of it."""
        found: dict[str, list[C]] = {}
        for one in self.all:
            for key in _selectors_of(one.path.split("/")):
                found.setdefault(key, []).append(one)
        return found

    @cached_property
    def _scopes(self) -> dict[str, list[C]]:
        """The same for every scope that a candidate lies below, nothing reserved between the two."""
        found: dict[str, list[C]] = {}
        for one in self.all:
            parts = one.path.split("/")
            last = next((n for n in range(len(parts), 0, -1) if parts[n - 1] in RESERVED), 1)
            keys = (key for end in range(len(parts) - 1, last - 1, -1) for key in _selectors_of(parts[:end]))
            for key in dict.fromkeys(keys):
                found.setdefault(key, []).append(one)
        return found

    @cached_property
    def _parts(self) -> list[str]:
        return sorted({part for one in self.all for part in one.path.split("/")})

    def _possible(self, selector: Selector) -> bool:
        """Whether every part of the selector begins like some part of a path: a cheap test before the expression is built."""
        return all(part == "**" or self._begins(re.split(r"[*<]", part, maxsplit=1)[0]) for part in selector.parts)

    def _begins(self, start: str) -> bool:
        at = bisect_left(self._parts, start)
        return at < len(self._parts) and self._parts[at].startswith(start)

    def _counted(self, length: int, general: bool) -> dict[str, dict[str, int]]:
        names: dict[str, dict[str, int]] = {}
        for one in self.all:
            parts = one.path.split("/")
            for end in dict.fromkeys((len(parts), *range(1, len(parts)))):
                text = "/".join(parts[max(0, end - length) : end])
                text = re.sub(r"\.[0-9]+(?=/|$)", ".*", text) if general else text
                counts = names.setdefault(text, {})
                counts[one.method] = counts.get(one.method, 0) + 1
        return names


def pool_of(candidates: Iterable[C] | Pool[C]) -> Pool[C]:
    return candidates if isinstance(candidates, Pool) else Pool(candidates)


def _key(selector: Selector) -> str:
    return ("/" if selector.anchored else "") + "/".join(selector.parts)


def _selectors_of(parts: list[str]) -> list[str]:
    """The selectors without wildcards that match this path."""
    first = next((n for n, part in enumerate(parts) if part in RESERVED), len(parts) - 1)
    return ["/" + "/".join(parts), *("/".join(parts[start:]) for start in range(min(first, len(parts) - 1) + 1))]
