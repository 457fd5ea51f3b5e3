"""Holes: values that are left open in a plan and filled by tuning. Any scalar, list or mapping may be one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .constraint import evaluate, is_condition, parse, variables
from .places import NOWHERE, Place
from .tree import Keys, Leaf, Tree, keys

if TYPE_CHECKING:

    class _Anything(Any):  # type: ignore[misc]  # a hole may stand for a value of any type, so type checkers must let it stand anywhere
        pass
else:

    class _Anything:
        pass


@dataclass(frozen=True, kw_only=True)
class Hole(_Anything):
    """An open value."""

    note: str | None = field(default=None, repr=False)
    place: Place = field(default=NOWHERE, compare=False, repr=False)

    def placed(self, place: Place) -> Hole:
        """The same hole, written at `place`."""
        return replace(self, place=place)

    def tree(self) -> Tree:
        """The hole as plain data."""
        raise NotImplementedError

    def _noted(self, *entries: tuple[str, object]) -> Keys:
        return keys([*entries, *([("note", self.note)] if self.note is not None else [])])


@dataclass(frozen=True, init=False)
class Choose(Hole):
    """One of `values`; the first is the default of an untuned build. `name` lets other places say `$name`."""

    values: tuple[Any, ...]
    name: str | None = None

    def __init__(self, *values: Any, name: str | None = None, note: str | None = None, place: Place = NOWHERE) -> None:
        if not values:
            raise ValueError("Choose() needs at least one value")
        object.__setattr__(self, "values", tuple(_frozen(value) for value in values))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "note", note)
        object.__setattr__(self, "place", place)

    def placed(self, place: Place) -> Choose:
        return self.of(self.values, place)

    def of(self, values: tuple[Any, ...], place: Place | None = None) -> Choose:
        """The same hole with other values."""
        return Choose(*values, name=self.name, note=self.note, place=place or self.place)

    def tree(self) -> Tree:
        return self._noted(("choose", self.values), *([("name", self.name)] if self.name else []))


@dataclass(frozen=True)
class Range(Hole):
    """An integer from `low` to `high`, both included, in steps of `step`; `low` is the default."""

    low: int
    high: int
    step: int = 1

    def __post_init__(self) -> None:
        if self.step < 1 or self.high < self.low:
            raise ValueError("a range goes from low to high in steps of at least 1")

    def tree(self) -> Tree:
        return self._noted(("range", (self.low, self.high)), *([("step", self.step)] if self.step != 1 else []))


@dataclass(frozen=True)
class Pow2(Hole):
    """A power of two from `low` to `high`, both included; the smallest is the default."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low < 1 or self.high < 1 << (self.low - 1).bit_length():
            raise ValueError("there is no power of two between low and high")

    def tree(self) -> Tree:
        return self._noted(("pow2", (self.low, self.high)))


@dataclass(frozen=True)
class Divides(Hole):
    """A divisor of the extent of `axis`; 1 is the default."""

    axis: str

    def tree(self) -> Tree:
        return self._noted(("divides", self.axis))


@dataclass(frozen=True)
class Auto(Hole):
    """`auto`: the default scheduler decides in build, search decides in tune."""

    def tree(self) -> Tree:
        return Leaf("auto")

    def __repr__(self) -> str:
        return "AUTO"


AUTO = Auto()


@dataclass(frozen=True)
class Ref(Hole):
    """`$name`, or integer arithmetic on named holes: `Ref("tx") * 2` is `"$tx * 2"`."""

    text: str

    def __post_init__(self) -> None:
        text = self.text.strip()
        expression = parse(text if "$" in text else f"${text}")
        if is_condition(expression) or not variables(expression):
            raise ValueError(f"{text!r} is no value of named holes")
        object.__setattr__(self, "text", text if "$" in text else f"${text}")

    @property
    def names(self) -> tuple[str, ...]:
        """The named holes that the value depends on."""
        return variables(parse(self.text))

    @property
    def is_name(self) -> bool:
        """Whether this is one named hole and no arithmetic, so that its value may be of any type."""
        return self.text == f"${self.names[0]}"

    def value(self, values: dict[str, Any]) -> Any:
        """The value under `values`, by name. Raises ConstraintError (a ValueError)."""
        return values[self.text[1:]] if self.is_name and self.text[1:] in values else evaluate(parse(self.text), values)

    def tree(self) -> Tree:
        return Leaf(self.text, plain=False)

    def _with(self, operator: str, other: Ref | int, swapped: bool = False) -> Ref:
        mine = self.text if self.is_name else f"({self.text})"
        theirs = str(other) if isinstance(other, int) else other.text if other.is_name else f"({other.text})"
        return Ref(f"{theirs} {operator} {mine}" if swapped else f"{mine} {operator} {theirs}")

    def __add__(self, other: Ref | int) -> Ref:
        return self._with("+", other)

    def __sub__(self, other: Ref | int) -> Ref:
        return self._with("-", other)

    def __mul__(self, other: Ref | int) -> Ref:
        return self._with("*", other)

    def __floordiv__(self, other: Ref | int) -> Ref:
        return self._with("//", other)

    def __mod__(self, other: Ref | int) -> Ref:
        return self._with("%", other)

    def __rmul__(self, other: int) -> Ref:
        return self._with("*", other, swapped=True)

    def __radd__(self, other: int) -> Ref:
        return self._with("+", other, swapped=True)


def _frozen(value: Any) -> Any:
    from .tables import Table

    match value:
        case list() | tuple():
            return tuple(_frozen(inner) for inner in value)
        case dict():
            return Table({str(key): _frozen(inner) for key, inner in value.items()})
        case _:
            return value
