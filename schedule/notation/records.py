"""Records: frozen dataclasses whose fields are the keys of a YAML mapping. Reading, writing, repr and schema come from the annotations."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from fluorite.algo.errors import PlanError

from .fields import (
    FAILED,
    NOTE,
    Flag,
    Free,
    Integer,
    Kind,
    ListOf,
    Nullable,
    Number,
    OneOf,
    Reading,
    Schema,
    TableOf,
    Text,
    Words,
    with_holes,
)
from .holes import Hole
from .places import NOWHERE, UNMARKED, Marks, Place, Step
from .tables import Table
from .tree import Keys, Leaf, Ready, Tree, keys, tree_of
from .yaml_reader import nearest

HIDDEN: Mapping[str, Any] = {"hidden": True}


class Complaint(NamedTuple):
    """A contradiction inside one record: the field at fault, why, and what would do."""

    field: str
    asked: str
    why: str = ""
    try_: tuple[str, ...] = ()


class Contradiction(PlanError):
    """A record made in Python that no plan may hold. The reader reports the same complaints with their places."""

    def __init__(self, subject: str, complaints: list[Complaint]) -> None:
        self.complaints = complaints
        super().__init__(NOWHERE.problem("P009", f"{subject}: {one.asked}", one.why, one.try_) for one in complaints)


@dataclass(frozen=True, kw_only=True)
class Record:
    """A mapping of the plan. `note` is any remark; `marks` knows the places of the fields, if the record was read from a file."""

    noun: ClassVar[str] = ""
    note: str | None = None
    marks: Marks = field(default=UNMARKED, compare=False, repr=False, metadata=HIDDEN)

    def __init_subclass__(cls) -> None:
        cls.__repr__ = Record.__repr__  # type: ignore[method-assign]  # defined on each class, so that dataclass keeps it

    def __post_init__(self) -> None:
        reading = Reading()
        for name, kind in kinds(type(self)).items():
            given = getattr(self, name)
            if given != default(type(self), name) or given.__class__ in (list, dict):
                object.__setattr__(self, name, kind.read(tree_of(given), reading.inside(self.label(), name)))
        if reading.problems:
            raise PlanError(reading.problems)
        complaints = list(self.complaints())
        if complaints:
            raise Contradiction(self.label(), complaints)

    def complaints(self) -> list[Complaint]:
        """Contradictions between the fields, as far as no program is needed to see them."""
        return []

    @classmethod
    def label(cls) -> str:
        """What messages call such a record."""
        return cls.noun or cls.__name__.lower()

    @classmethod
    def lengthen(cls, tree: Tree) -> Tree:
        """The long form of a short form."""
        return tree

    @property
    def place(self) -> Place:
        """Where the record is written."""
        return self.marks.at()

    def place_of(self, *path: Step) -> Place:
        """Where a field, or a part of it, is written: `split.place_of("axis")`, `reorder.place_of("loops", 2)`."""
        return self.marks.at(*path)

    def replace(self, **changes: Any) -> Self:
        """The same record with some fields changed."""
        made = object.__new__(type(self))
        changes = {"marks": self.marks.without(*changes), **changes}
        for one in dataclasses.fields(self):
            object.__setattr__(made, one.name, changes.get(one.name, getattr(self, one.name)))
        made.__post_init__()
        return made

    def given(self) -> dict[str, Any]:
        """The fields that differ from their defaults or were written down, by YAML key."""
        values = {name: getattr(self, name) for name in kinds(type(self))}
        return {name: value for name, value in values.items() if value != default(type(self), name) or self.marks.says(name)}

    def tree(self) -> Tree:
        """The record as plain data, defaults left out."""
        return keys(self.given().items())

    def __repr__(self) -> str:
        shown = {name: value for name, value in self.given().items() if value != default(type(self), name)}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


@dataclass(frozen=True)
class RecordKind(Kind):
    """A mapping that is read into a record."""

    record: type[Record] = Record

    @property
    def words(self) -> str:  # type: ignore[override]
        """The type in the words of a message."""
        return f"a mapping with {', '.join(name for name in kinds(self.record) if name != 'note')}"

    def fits(self, tree: Tree) -> bool:
        return isinstance(tree, Keys) or (isinstance(tree, Ready) and isinstance(tree.value, self.record))

    def value(self, tree: Tree, reading: Reading) -> Any:
        if isinstance(tree, Ready) and isinstance(tree.value, self.record):
            return tree.value
        return self.long(self.record.lengthen(tree), reading)

    def long(self, tree: Tree, reading: Reading) -> Any:
        """The record of a tree in its long form, or FAILED."""
        if not isinstance(tree, Keys):
            return self.wrong(tree, reading)
        own = reading.record()
        own.mark(tree.place)
        made = self.fields(tree, own)
        reading.absorb(own)
        return made

    def fields(self, tree: Keys, reading: Reading) -> Any:
        """The record of a mapping in its long form, or FAILED."""
        known = kinds(self.record)
        found: dict[str, Any] = {}
        for key, inner in tree.entries:
            reading.mark(key.place, key.text, "")
            kind = known.get(key.text)
            if kind is None:
                tries = nearest(key.text, known) or (f"there are: {', '.join(known)}",)
                found[key.text] = reading.fail(key.place, "P006", f'{self.record.label()} has no key "{key.text}"', "", tries)
            elif isinstance(inner, Leaf) and inner.is_null and reading.removed is not None:
                reading.mark(inner.place, key.text)
                reading.removed.append((*(str(step) for step in reading.path), key.text))
            else:
                found[key.text] = kind.read(inner, reading.inside(key.text))
        missing = [name for name in known if name not in found and default(self.record, name) is MISSING]
        if missing:
            asked = f"{self.record.label()} needs {' and '.join(missing)}"
            return reading.fail(tree.place, "P007", asked, "", (f"its keys are: {', '.join(known)}",))
        if any(value is FAILED for value in found.values()):
            return FAILED
        return assemble(self.record, found, reading)

    def schema(self) -> Schema:
        return {"$ref": f"#/$defs/{self.record.label()}"}


def assemble(record: type[Record], found: dict[str, Any], reading: Reading) -> Any:
    """The record of typed fields, or FAILED with its contradictions noted at their places."""
    made = object.__new__(record)
    for one in dataclasses.fields(record):
        object.__setattr__(made, one.name, found.get(one.name, default(record, one.name)))
    marks = Marks(reading.places)
    object.__setattr__(made, "marks", marks)
    complaints = made.complaints()
    for complaint in complaints:
        reading.fail(marks.at(complaint.field), "P009", f"{record.label()}: {complaint.asked}", complaint.why, complaint.try_)
    return FAILED if complaints else made


def kinds(record: type[Record]) -> dict[str, Kind]:
    """The fields of a record by YAML key, `note` last."""
    hashable: Any = record
    return _kinds(hashable)


def default(record: type[Record], name: str) -> Any:
    """The default of one field, MISSING where it is required."""
    hashable: Any = record
    return _defaults(hashable)[name]


@cache
def _kinds(record: Any) -> dict[str, Kind]:
    hints = typing.get_type_hints(record, include_extras=True)
    shown = [one.name for one in dataclasses.fields(record) if not one.metadata.get("hidden") and one.name != "note"]
    return {**{name: kind_of(hints[name]) for name in shown}, "note": Nullable(kind=NOTE, open=False)}


@cache
def _defaults(record: Any) -> dict[str, Any]:
    return {one.name: one.default_factory() if one.default_factory is not MISSING else one.default for one in dataclasses.fields(record)}


def record_schema(record: type[Record]) -> Schema:
    """JSON schema of a record's long form."""
    known = kinds(record)
    properties = {name: {"type": "string"} if name == "note" else with_holes(kind) for name, kind in known.items()}
    required = [name for name in known if default(record, name) is MISSING]
    text = (record.__doc__ or "").strip().split("\n")[0]
    made: Schema = {"type": "object", "description": text, "properties": properties, "additionalProperties": False}
    return made | ({"required": required} if required else {})


def kind_of(hint: Any) -> Kind:
    """The kind of an annotation."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return next(extra for extra in arguments[1:] if isinstance(extra, Kind))
    if origin in (typing.Union, types.UnionType):
        some = [kind_of(argument) for argument in arguments if argument is not type(None) and not _is_hole(argument)]
        kind = some[0] if len(some) == 1 else OneOf(kinds=tuple(some), auto=next((one.auto for one in some if one.auto is not None), None))
        return Nullable(kind=kind, open=kind.open, auto=kind.auto) if type(None) in arguments else kind
    if origin is Literal:
        return Words(tuple(str(argument) for argument in arguments))
    if origin is tuple:
        return ListOf(kind_of(arguments[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return TableOf(kind_of(arguments[1]), origin if issubclass(origin, Table) else Table)
    if isinstance(hint, type) and issubclass(hint, Record):
        return RecordKind(hint)
    simple: dict[Any, Kind] = {str: Text(), int: Integer(), float: Number(), bool: Flag(), Any: Free()}
    return simple[hint]


def _is_hole(argument: Any) -> bool:
    return isinstance(argument, type) and issubclass(argument, Hole)


__all__ = [
    "HIDDEN",
    "MISSING",
    "Complaint",
    "Contradiction",
    "Record",
    "RecordKind",
    "assemble",
    "default",
    "kind_of",
    "kinds",
    "record_schema",
]
