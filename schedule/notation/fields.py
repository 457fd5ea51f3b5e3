"""Types of lists, mappings and alternatives of fields; those of scalars are passed on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from .kinds import Kind, Schema
from .reading import FAILED, Reading
from .scalars import NOTE, Condition, Flag, Integer, Number, Size, Text, Words
from .tables import Table
from .tree import Items, Keys, Leaf, Ready, Tree, core_value, shape
from .yaml_reader import nearest


@dataclass(frozen=True)
class Free(Kind):
    """Anything, by the core schema: what no field gives a type, such as the alternatives of a named hole."""

    words: ClassVar[str] = "any value"
    scalar: ClassVar[bool] = True
    arithmetic: ClassVar[bool] = True

    def fits(self, tree: Tree) -> bool:
        return not self.open or not (isinstance(tree, Leaf) and tree.is_null)

    def value(self, tree: Tree, reading: Reading) -> Any:
        match tree:
            case Leaf():
                return core_value(tree)
            case Items(values):
                return tuple(self.read(value, reading.inside(i)) for i, value in enumerate(values))
            case Keys(entries):
                return Table({key.text: self.read(value, reading.inside(key.text)) for key, value in entries})
            case Ready(value):
                return value

    def schema(self) -> Schema:
        return {}


@dataclass(frozen=True)
class ListOf(Kind):
    """A list; empty unless `least` says otherwise."""

    element: Kind = field(default_factory=Free)
    least: int = 0

    @property
    def words(self) -> str:  # type: ignore[override]
        """The type in the words of a message."""
        return f"a list of {self.element.words}"

    def fits(self, tree: Tree) -> bool:
        return isinstance(tree, Items)

    def value(self, tree: Tree, reading: Reading) -> Any:
        if not isinstance(tree, Items):
            return self.wrong(tree, reading)
        if (count := len(tree.values)) < self.least:
            return reading.fail(
                tree.place, "P008", f"{reading.name} is a list of {count or 'nothing'}", f"expected {self.words}, at least {self.least}"
            )
        values = tuple(self.element.read(value, reading.inside(i).sealed()) for i, value in enumerate(tree.values))
        return FAILED if any(value is FAILED for value in values) else values

    def schema(self) -> Schema:
        return {"type": "array", "items": with_holes(self.element)} | ({"minItems": self.least} if self.least else {})


@dataclass(frozen=True)
class TableOf(Kind):
    """A mapping whose keys are the writer's."""

    element: Kind = field(default_factory=Free)
    make: type[Table[Any]] = Table
    least: int = 0

    @property
    def words(self) -> str:  # type: ignore[override]
        """The type in the words of a message."""
        return f"a mapping from names to {self.element.words}"

    def fits(self, tree: Tree) -> bool:
        return isinstance(tree, Keys)

    def value(self, tree: Tree, reading: Reading) -> Any:
        if not isinstance(tree, Keys):
            return self.wrong(tree, reading)
        found: dict[str, Any] = {}
        note: str | None = None
        for key, inner in tree.entries:
            reading.mark(key.place, key.text, "")
            if key.text == "note":
                note = NOTE.read(inner, reading.inside("note"))
            elif not key.text or len(key.text) > 1000:
                found["?"] = reading.fail(
                    key.place, "P008", f"a key of {reading.name} is {len(key.text):,} characters long", "1 to 1,000 will do"
                )
            elif isinstance(inner, Leaf) and inner.is_null and reading.removed is not None and not self.element.fits(inner):
                reading.mark(inner.place, key.text)
                reading.removed.append((*(str(step) for step in reading.path), key.text))
            else:
                found[key.text] = self.element.read(inner, reading.inside(key.text))
        if len(found) < self.least:
            return reading.fail(tree.place, "P008", f"{reading.name} is empty", f"expected {self.words}")
        return FAILED if note is FAILED or any(value is FAILED for value in found.values()) else self.make(found, note)

    def schema(self) -> Schema:
        return {
            "type": "object",
            "properties": {"note": {"type": "string"}},
            "additionalProperties": {"anyOf": [with_holes(self.element), {"type": "null"}]},
        }


@dataclass(frozen=True)
class OneOf(Kind):
    """Any of several types: the first that has the shape of what is written."""

    kinds: tuple[Kind, ...] = ()

    @property
    def words(self) -> str:  # type: ignore[override]
        """The type in the words of a message."""
        return " or ".join(kind.words for kind in self.kinds)

    @property
    def scalar(self) -> bool:  # type: ignore[override]
        """Whether one of the types is a scalar."""
        return any(kind.scalar for kind in self.kinds)

    @property
    def arithmetic(self) -> bool:  # type: ignore[override]
        """Whether one of the types is a number."""
        return any(kind.arithmetic for kind in self.kinds)

    def fits(self, tree: Tree) -> bool:
        return any(kind.fits(tree) for kind in self.kinds)

    def value(self, tree: Tree, reading: Reading) -> Any:
        for kind in self.kinds:
            if kind.fits(tree):
                return kind.value(tree, reading)
        words = [word for kind in self.kinds if isinstance(kind, Words) for word in kind.choices]
        if isinstance(tree, Leaf) and (near := nearest(tree.text, words)):
            return reading.fail(tree.place, "P008", f"{reading.name} is {shape(tree)}", f"expected {self.words}", near)
        return self.wrong(tree, reading)

    def schema(self) -> Schema:
        return {"anyOf": [kind.schema() for kind in self.kinds]}


@dataclass(frozen=True)
class Nullable(Kind):
    """A type, or nothing."""

    kind: Kind = field(default_factory=Free)

    @property
    def words(self) -> str:  # type: ignore[override]
        """The type in the words of a message."""
        return self.kind.words

    @property
    def scalar(self) -> bool:  # type: ignore[override]
        """Whether the type is a scalar."""
        return self.kind.scalar

    @property
    def arithmetic(self) -> bool:  # type: ignore[override]
        """Whether the type is a number."""
        return self.kind.arithmetic

    def fits(self, tree: Tree) -> bool:
        return (isinstance(tree, Leaf) and tree.is_null) or self.kind.fits(tree)

    def value(self, tree: Tree, reading: Reading) -> Any:
        return None if isinstance(tree, Leaf) and tree.is_null else self.kind.value(tree, reading)

    def schema(self) -> Schema:
        return {"anyOf": [with_holes(self.kind), {"type": "null"}]}


def with_holes(kind: Kind) -> Schema:
    """The schema of a field, holes included where they may stand."""
    inner = kind.schema()
    return {"anyOf": [inner, {"$ref": "#/$defs/hole"}]} if kind.open and inner and not isinstance(kind, Nullable) else inner


__all__ = [
    "FAILED", "NOTE", "Condition", "Flag", "Free", "Integer", "Kind", "ListOf", "Nullable", "Number", "OneOf", "Reading", "Schema", "Size",
    "TableOf", "Text", "Words", "with_holes",
]  # fmt: skip
