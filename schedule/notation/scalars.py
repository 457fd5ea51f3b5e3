"""Types of scalar fields."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from .constraint import ConstraintError, is_condition, parse, size
from .kinds import Kind, Schema
from .reading import FAILED, Reading
from .tree import FALSE, INTEGER, NUMBER, TRUE, Leaf, Tree, integer, number, shape
from .yaml_reader import nearest

_LARGEST = (1 << 63) - 1


@dataclass(frozen=True)
class Text(Kind):
    """Any text; `pattern` and `form` narrow it. In Python a number stands for its text, since unnamed axes are numbers."""

    form: str = "text"
    pattern: str = ""
    scalar: ClassVar[bool] = True

    @property
    def words(self) -> str:  # type: ignore[override]
        """The type in the words of a message."""
        return self.form

    def value(self, tree: Tree, reading: Reading) -> Any:
        if not isinstance(tree, Leaf) or tree.is_null or (self.pattern and not re.fullmatch(self.pattern, tree.text)):
            return self.wrong(tree, reading)
        return tree.text

    def schema(self) -> Schema:
        return {"type": ["string", "integer", "boolean"]} if self.form == "a name" else {"type": "string"}


@dataclass(frozen=True)
class Integer(Kind):
    """An integer of at least `least`, at most `most`."""

    least: int | None = None
    most: int | None = None
    scalar: ClassVar[bool] = True
    arithmetic: ClassVar[bool] = True

    @property
    def words(self) -> str:  # type: ignore[override]
        """The type in the words of a message."""
        bounds = [f"at least {self.least:,}"] if self.least is not None else []
        return "an integer" + "".join(f" of {bound}" for bound in bounds) + (f", at most {self.most:,}" if self.most is not None else "")

    def fits(self, tree: Tree) -> bool:
        return isinstance(tree, Leaf) and tree.plain and bool(INTEGER.fullmatch(tree.text))

    def value(self, tree: Tree, reading: Reading) -> Any:
        if not isinstance(tree, Leaf) or not self.fits(tree):
            return self.wrong(tree, reading)
        found = integer(tree.text) if len(tree.text) <= 24 else 1 << 63
        if self.most is None and found > _LARGEST:
            return reading.fail(tree.place, "P008", f"{reading.name} is {shape(tree)}", f"expected {self.words}, at most {_LARGEST:,}")
        if (self.least is not None and found < self.least) or (self.most is not None and found > self.most):
            return self.wrong(tree, reading)
        return found

    def schema(self) -> Schema:
        bounds = {"minimum": self.least, "maximum": self.most}
        return {"type": "integer"} | {name: bound for name, bound in bounds.items() if bound is not None}


@dataclass(frozen=True)
class Number(Kind):
    """A number of at least `least`."""

    least: float | None = None
    words: ClassVar[str] = "a number"
    scalar: ClassVar[bool] = True
    arithmetic: ClassVar[bool] = True

    def fits(self, tree: Tree) -> bool:
        return isinstance(tree, Leaf) and tree.plain and bool(NUMBER.fullmatch(tree.text))

    def value(self, tree: Tree, reading: Reading) -> Any:
        if not isinstance(tree, Leaf) or not self.fits(tree):
            return self.wrong(tree, reading)
        found = number(tree.text)
        if found != found or (self.least is not None and found < self.least):
            return reading.fail(tree.place, "P008", f"{reading.name} is {tree.text}", f"expected a number of at least {self.least}")
        return found

    def schema(self) -> Schema:
        return {"type": "number"} | ({} if self.least is None else {"minimum": self.least})


@dataclass(frozen=True)
class Flag(Kind):
    """true or false."""

    words: ClassVar[str] = "true or false"
    scalar: ClassVar[bool] = True

    def fits(self, tree: Tree) -> bool:
        return isinstance(tree, Leaf) and tree.plain and tree.text in TRUE + FALSE

    def value(self, tree: Tree, reading: Reading) -> Any:
        return tree.text in TRUE if isinstance(tree, Leaf) and self.fits(tree) else self.wrong(tree, reading)

    def schema(self) -> Schema:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Words(Kind):
    """One of a few words."""

    choices: tuple[str, ...] = ()
    scalar: ClassVar[bool] = True

    @property
    def words(self) -> str:  # type: ignore[override]
        """The type in the words of a message."""
        return self.choices[0] if len(self.choices) == 1 else ", ".join(self.choices[:-1]) + f" or {self.choices[-1]}"

    def fits(self, tree: Tree) -> bool:
        return isinstance(tree, Leaf) and tree.text in self.choices

    def value(self, tree: Tree, reading: Reading) -> Any:
        if isinstance(tree, Leaf) and self.fits(tree):
            return tree.text
        tries = nearest(tree.text, self.choices) if isinstance(tree, Leaf) else ()
        return reading.fail(tree.place, "P008", f"{reading.name} is {shape(tree)}", f"expected {self.words}", tries)

    def schema(self) -> Schema:
        return {"enum": list(self.choices)}


@dataclass(frozen=True)
class Size(Kind):
    """Bytes: an integer, or one with KiB, MiB, GiB or TiB. Kept as written."""

    words: ClassVar[str] = "a number of bytes such as 25MiB"
    scalar: ClassVar[bool] = True
    arithmetic: ClassVar[bool] = True

    def value(self, tree: Tree, reading: Reading) -> Any:
        if isinstance(tree, Leaf) and tree.plain and INTEGER.fullmatch(tree.text) and len(tree.text) < 20 and integer(tree.text) >= 0:
            return integer(tree.text)
        try:
            return tree.text if isinstance(tree, Leaf) and size(tree.text) else self.wrong(tree, reading)
        except ConstraintError:
            return self.wrong(tree, reading)

    def fits(self, tree: Tree) -> bool:
        return self.value(tree, Reading()) is not FAILED

    def schema(self) -> Schema:
        return {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9]+(KiB|MiB|GiB|TiB)$"}]}


@dataclass(frozen=True)
class Condition(Kind):
    """A constraint between named holes; kept as written."""

    words: ClassVar[str] = 'a condition between named holes such as "$tx * $ty <= 1024"'

    def value(self, tree: Tree, reading: Reading) -> Any:
        if not isinstance(tree, Leaf) or tree.is_null:
            return self.wrong(tree, reading)
        try:
            if not is_condition(parse(tree.text)):
                return reading.fail(tree.place, "P015", f"{tree.text!r} is no condition", "it has to compare something", ("$tx <= 64",))
        except ConstraintError as error:
            return reading.fail(tree.place, "P015", f"{tree.text!r} cannot be understood", str(error), (f"write {self.words}",))
        return tree.text

    def schema(self) -> Schema:
        return {"type": "string"}


NOTE = Text(form="text", open=False)
