"""Mappings that are values: frozen, hashable, and equal to a dict of the same entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

V = TypeVar("V")


class Table(Mapping[str, V]):
    """A frozen mapping from names, with the `note` of a YAML mapping."""

    __slots__ = ("_entries", "note")

    def __init__(self, entries: Mapping[str, V] | None = None, note: str | None = None) -> None:
        self._entries: dict[str, V] = dict(entries or {})
        self.note = note

    def __getitem__(self, key: str) -> V:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Table):
            return self._entries == other._entries and self.note == other.note
        return isinstance(other, Mapping) and self._entries == dict(other)

    def __hash__(self) -> int:
        return hash(frozenset(self._entries))

    def __repr__(self) -> str:
        return repr(self._entries)

    def merged(self, entries: Mapping[str, V]) -> Table[V]:
        """This mapping with `entries` added or replaced."""
        return type(self)({**self._entries, **entries}, self.note)


class Sizes(Table[Any]):
    """A frozen mapping from axes whose order means something, as in `tile`."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and isinstance(other, Mapping) and list(self) == list(other)

    __hash__ = Table.__hash__
