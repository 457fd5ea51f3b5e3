"""A plan as plain data with places: what YAML text is read into and written from.

Scalars keep their text, because only the type of the field that reads one can say what it is: an axis may be called `y`, `no` or `on`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Protocol, TypeAlias, runtime_checkable

from .places import NOWHERE, Place

INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
NULLS = ("", "~", "null", "Null", "NULL")
TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar: its text, and whether it was written without quotes."""

    text: str
    plain: bool = True
    place: Place = NOWHERE

    @property
    def is_null(self) -> bool:
        """Whether this is YAML's null."""
        return self.plain and self.text in NULLS


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    values: tuple[Tree, ...]
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Keys:
    """A mapping, in the order written, without duplicates."""

    entries: tuple[tuple[Leaf, Tree], ...]
    place: Place = NOWHERE

    def get(self, name: str) -> Tree | None:
        """The value of `name`, or None."""
        return next((value for key, value in self.entries if key.text == name), None)

    @property
    def names(self) -> tuple[str, ...]:
        """The keys, in order."""
        return tuple(key.text for key, _ in self.entries)


@dataclass(frozen=True, slots=True)
class Ready:
    """A value that is typed already: a record or hole given in Python."""

    value: object
    place: Place = NOWHERE


@runtime_checkable
class Writable(Protocol):
    """A value that knows how it is written in a plan."""

    def tree(self) -> Tree:
        """The value as plain data."""
        ...


Tree: TypeAlias = Leaf | Items | Keys | Ready


def core_value(leaf: Leaf) -> str | int | float | bool | None:
    """What YAML 1.2's core schema makes of a scalar that no field gives a type."""
    text = leaf.text
    if not leaf.plain:
        return text
    if text in NULLS:
        return None
    if text in TRUE or text in FALSE:
        return text in TRUE
    if INTEGER.fullmatch(text):
        return integer(text)
    if NUMBER.fullmatch(text):
        return number(text)
    return text


def integer(text: str) -> int:
    """The integer that `text` (matching INTEGER) writes."""
    return int(text, 0) if text[:2] in ("0x", "0o") else int(text)


def number(text: str) -> float:
    """The number that `text` (matching NUMBER) writes."""
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


def tree_of(value: object, expand: bool = False) -> Tree:
    """A Python value as a tree, so that one set of rules reads both; `expand` writes records and holes out instead of keeping them."""
    if expand and isinstance(value, Writable):
        return value.tree()
    match value:
        case Leaf() | Items() | Keys() | Ready():
            return value
        case None:
            return Leaf("~")
        case bool():
            return Leaf("true" if value else "false")
        case int():
            return Leaf(str(value))
        case Integral():
            return Leaf(str(int(value)))
        case float():
            text = repr(value)
            return Leaf({"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}.get(text, text))
        case str():
            return Leaf(value, plain=False)
        case Mapping():
            entries = [(Leaf(str(key), plain=False), tree_of(inner, expand)) for key, inner in value.items()]
            note = getattr(value, "note", None)
            return Keys((*entries, (Leaf("note"), tree_of(note))) if note is not None else tuple(entries))
        case Sequence():
            return Items(tuple(tree_of(inner, expand) for inner in value))
        case _:
            return Ready(value)


def keys(entries: Iterable[tuple[str, object]]) -> Keys:
    """A mapping tree from names and values, records and holes written out."""
    return Keys(tuple((Leaf(name, plain=False), tree_of(value, expand=True)) for name, value in entries))


def shape(tree: Tree) -> str:
    """A tree in the words of a message."""
    match tree:
        case Leaf() if tree.is_null:
            return "nothing"
        case Leaf():
            return repr(tree.text) if len(tree.text) <= 60 else repr(tree.text[:57] + "...")
        case Items():
            return "a list"
        case Keys():
            return "a mapping"
        case Ready():
            return repr(tree.value)
