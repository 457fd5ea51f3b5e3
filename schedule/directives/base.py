"""What every directive is: a record that knows its key, its short forms and its help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from ..notation.fields import Integer, Kind, ListOf, Reading, Schema, TableOf, Text
from ..notation.holes import AUTO, Hole
from ..notation.places import Place, Step
from ..notation.records import MISSING, Complaint, Record, RecordKind, default, kinds
from ..notation.tables import Sizes
from ..notation.tree import Items, Keys, Leaf, Ready, Tree, shape
from ..notation.yaml_reader import nearest

Name: TypeAlias = Annotated[str, Text(form="a name")]
Selector: TypeAlias = Annotated[str, Text(form="a selector")]
Tail: TypeAlias = Literal["auto", "guard", "shift", "pad"]

_COUNT = Integer(least=1, auto=(32, 8, 16, 64, 128, 256))
Count: TypeAlias = Annotated[int, _COUNT]
AxisSizes: TypeAlias = Annotated[Mapping[str, int], TableOf(_COUNT, Sizes, least=1)]

_HOLES = ("choose", "range", "pow2", "divides")
DIRECTIVES: dict[str, type[Directive]] = {}


@dataclass(frozen=True)
class Directive(Record):
    """One instruction of a schedule. The class name in lower case is its YAML key, its fields are the keys below it."""

    key: ClassVar[str] = ""
    rewrites: ClassVar[bool] = False
    short: ClassVar[bool] = True
    before: ClassVar[str] = ""
    after: ClassVar[str] = ""

    def __init_subclass__(cls, listed: bool = True) -> None:
        super().__init_subclass__()
        if not listed:
            return
        cls.key = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in cls.__name__).lstrip("_")
        DIRECTIVES[cls.key] = cls

    @classmethod
    def label(cls) -> str:
        """What messages call the directive."""
        return cls.key

    def at(self, *path: Step) -> Place:
        """Where a field, or a part of it, is written: `split.at("axis")`, `reorder.at("loops", 2)`; without a path, the directive."""
        return self.place_of(*path)

    @classmethod
    def first(cls) -> str:
        """The field that a short form gives; empty if there is none."""
        return next((name for name in kinds(cls) if name != "note"), "")

    @classmethod
    def lengthen(cls, tree: Tree) -> Tree:
        """The mapping of fields that a short form stands for."""
        first = cls.first()
        match tree:
            case Leaf() if tree.is_null:
                return Keys((), tree.place)
            case Leaf() | Items() | Ready() if first:
                return Keys(((Leaf(first, place=tree.place), tree),), tree.place)
            case Keys() if first and tree.names and tree.names[0] in _HOLES and tree.names[0] not in kinds(cls):
                return Keys(((Leaf(first, place=tree.place), tree),), tree.place)
        return tree

    def brief(self) -> Tree:
        """What stands after the directive's key, in its shortest form."""
        given = self.given()
        tree = super().tree()
        assert isinstance(tree, Keys)
        if self.short and list(given) == [self.first()] and (not isinstance(tree.entries[0][1], Keys) or _is_hole(tree.entries[0][1])):
            return tree.entries[0][1]
        return tree

    def tree(self) -> Tree:
        """A bare word, or a mapping from the directive's key to its argument."""
        argument = self.brief()
        bare = isinstance(argument, Keys) and not argument.entries
        return Leaf(self.key, plain=False) if bare else Keys(((Leaf(self.key, plain=False), argument),))


@dataclass(frozen=True)
class BySizes(Directive, listed=False):
    """A directive whose short form is a mapping from axes to sizes: `tile: {y: 32, x: 64}`."""

    sizes: AxisSizes

    @classmethod
    def lengthen(cls, tree: Tree) -> Tree:
        if isinstance(tree, Keys) and not _is_long(tree):
            return Keys(((Leaf("sizes", place=tree.place), tree),), tree.place)
        return super().lengthen(tree)

    def brief(self) -> Tree:
        tree = super().brief()
        if list(self.given()) == ["sizes"] and isinstance(tree, Keys):
            inner = tree.get("sizes")
            if isinstance(inner, Keys) and not _is_long(inner):
                return inner
        return tree

    def place_of(self, *path: Step) -> Place:
        """As for every record; the place of an axis may be asked for by its name alone."""
        return super().place_of("sizes", *path) if path and path[0] in self.sizes and path[0] != "tail" else super().place_of(*path)


def _is_long(tree: Keys) -> bool:
    """Whether `sizes` is the field here, rather than an axis of that name."""
    inner = tree.get("sizes")
    return isinstance(inner, (Keys, Ready)) or (isinstance(inner, Leaf) and inner.text.startswith("$"))


def _is_hole(tree: Tree) -> bool:
    return isinstance(tree, Keys) and bool(tree.names) and tree.names[0] in _HOLES


@dataclass(frozen=True)
class StepKind(Kind):
    """One directive: a bare word, or a mapping from its key to its argument."""

    words: ClassVar[str] = "a directive"

    def fits(self, tree: Tree) -> bool:
        return True

    def value(self, tree: Tree, reading: Reading) -> Any:
        match tree:
            case Ready(Directive()):
                return tree.value
            case Leaf() if tree.text == "auto":
                asked = "auto stands among directives"
                return reading.fail(
                    tree.place, "P008", asked, "auto leaves a whole stage to the scheduler", ("write it alone:  STAGE: auto",)
                )
            case Leaf() if not tree.is_null:
                return self.directive(tree, Leaf("", place=tree.place), None, reading)
            case Keys(((Leaf() as key, argument),)):
                return self.directive(key, argument, None, reading)
            case Keys(((Leaf() as key, argument), (Leaf(text="note"), Leaf() as note))):
                return self.directive(key, argument, note, reading)
            case Keys(entries) if len(entries) > 1:
                asked = f"a list element holds {len(entries)} directives: {', '.join(tree.names)}"
                return reading.fail(
                    tree.place, "P008", asked, "their order matters, so each is an element of its own", ("start each with  - ",)
                )
        tries = ("STAGE: {choose: [[...], [...]]}  chooses between whole lists",) if isinstance(tree, Items) else ()
        asked, why = f"{shape(tree)} stands where a directive should", f"directives are: {', '.join(DIRECTIVES)}"
        return reading.fail(tree.place, "P008", asked, why, tries)

    def directive(self, key: Leaf, argument: Tree, note: Leaf | None, reading: Reading) -> Any:
        """The directive `key` with its argument, or FAILED."""
        kind = DIRECTIVES.get(key.text)
        if kind is None:
            tries = nearest(key.text, DIRECTIVES) or (f"there are: {', '.join(DIRECTIVES)}",)
            return reading.fail(key.place, "P006", f'there is no directive "{key.text}"', "", tries)
        long = kind.lengthen(argument)
        if isinstance(long, Keys):
            extra = ((Leaf("note", place=note.place), note),) if note is not None else ()
            long = replace(long, entries=(*long.entries, *extra), place=key.place)
        return RecordKind(kind).long(long, reading.inside(key.text))

    def schema(self) -> Schema:
        forms: list[Schema] = [{"enum": [key for key, kind in DIRECTIVES.items() if _may_be_bare(kind)]}]
        forms += [
            {
                "type": "object",
                "properties": {key: {"$ref": f"#/$defs/{key}"}, "note": {"type": "string"}},
                "required": [key],
                "additionalProperties": False,
            }
            for key in DIRECTIVES
        ]
        return {"anyOf": forms}


def _may_be_bare(kind: type[Directive]) -> bool:
    return all(default(kind, name) is not MISSING for name in kinds(kind)) and not kind.key.startswith("tile")


@dataclass(frozen=True)
class StepsKind(Kind):
    """The schedule of one stage: `auto`, or a list of directives."""

    words: ClassVar[str] = "auto or a list of directives"

    def fits(self, tree: Tree) -> bool:
        return isinstance(tree, Items)

    def value(self, tree: Tree, reading: Reading) -> Any:
        match tree:
            case Items((Leaf("auto") as word,)):
                return AUTO.placed(word.place)
            case Items():
                return ListOf(StepKind()).value(tree, reading)
            case Leaf() if tree.text in DIRECTIVES:
                return reading.fail(tree.place, "P008", f"{reading.name} is {shape(tree)}", "", (f"write a list: [{tree.text}]",))
            case Keys() if set(tree.names) & set(DIRECTIVES):
                return reading.fail(
                    tree.place, "P008", f"{reading.name} is a mapping", "the order of directives matters", ("write a list",)
                )
        return self.wrong(tree, reading)

    def schema(self) -> Schema:
        return {"anyOf": [{"enum": ["auto"]}, {"type": "array", "items": {"$ref": "#/$defs/directive"}}]}


STEPS = StepsKind(auto=())


def loops_of(given: tuple[object, ...]) -> tuple[object, ...]:
    """Loops given one by one, or as one list."""
    first = given[0] if len(given) == 1 else None
    return tuple(first) if isinstance(first, (list, tuple)) else given


def fill_in(record: Record, values: Mapping[str, object]) -> None:
    """What a generated __init__ would do."""
    for name, value in values.items():
        object.__setattr__(record, name, value)
    record.__post_init__()


def named_twice(field: str, names: tuple[str, ...]) -> list[Complaint]:
    """The complaint about a name that a list holds twice."""
    twice = [] if isinstance(names, Hole) else [name for i, name in enumerate(names) if name in names[:i]]
    return [Complaint(field, f"{twice[0]} is named twice", "each name stands once")] if twice else []
