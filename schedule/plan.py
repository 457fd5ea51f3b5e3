"""The ExecutionPlan: how a program is computed, as one value. YAML is its projection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from fluorite.algo.errors import PlanError, Problem

from .directives import Directive
from .graph_sections import Memory, Precision
from .later_sections import DEVICES, MESH, PLACEMENT, ROLES, Parallelism, Parameters
from .notation.fields import FAILED, Integer, Reading, Text
from .notation.holes import AUTO, Hole
from .notation.places import Place
from .notation.records import HIDDEN, Record, RecordKind
from .notation.tables import Table
from .notation.tree import Items, Keys, Leaf, Tree, keys, shape, tree_of
from .notation.yaml_reader import read_tree
from .notation.yaml_writer import write_yaml
from .sections import (
    EXTENDS,
    EXTENTS,
    HOLES,
    PROVENANCE,
    SCHEDULE,
    Extent,
    Fusion,
    Numerics,
    Runtime,
    Schedule,
    ScheduleEntry,
    Target,
    Tune,
    Variant,
)  # fmt: skip

if TYPE_CHECKING:
    from fluorite.algo.graph import Graph

    from .scheduled import Scheduled

VERSION = 1
EMPTY: Table[Any] = Table()
_NUMERICS, _TARGET, _FUSION, _RUNTIME, _TUNE = Numerics(), Target(), Fusion(), Runtime(), Tune()


@dataclass(frozen=True)
class ExecutionPlan(Record):
    """Every section may be left out; the empty plan is valid. Fields are the sections of the YAML file, in its order.

    A value may be a hole, the value of any section included; `holes_of` and `fill` deal with those. Raises PlanError for anything
    that no plan may hold.
    """

    noun: ClassVar[str] = "a plan"

    version: Annotated[int, Integer(least=1, open=False)] = VERSION
    program: Annotated[str, Text(form="FILE.py:Name, FILE.onnx or package.module:Name", open=False)] | None = None
    extends: Annotated[tuple[str, ...], EXTENDS] = ()
    numerics: Numerics = _NUMERICS
    extents: Annotated[Mapping[str, Extent], EXTENTS] = EMPTY
    target: Target = _TARGET
    devices: Annotated[Mapping[str, Any], DEVICES] = EMPTY
    mesh: Annotated[Mapping[str, Any], MESH] = EMPTY
    roles: Annotated[Mapping[str, Any], ROLES] = EMPTY
    placement: Annotated[Mapping[str, str], PLACEMENT] = EMPTY
    precision: Precision | None = None
    parameters: Parameters | None = None
    parallelism: Parallelism | None = None
    memory: Memory | None = None
    fusion: Fusion = _FUSION
    schedule: Annotated[Schedule, SCHEDULE] = EMPTY
    variants: tuple[Variant, ...] = ()
    runtime: Runtime = _RUNTIME
    holes: Annotated[Mapping[str, Any], HOLES] = EMPTY
    tune: Annotated[Tune, RecordKind(Tune, open=False)] = _TUNE
    provenance: Annotated[Mapping[str, Any], PROVENANCE] = EMPTY

    removed: tuple[tuple[str, ...], ...] = field(default=(), kw_only=True, metadata=HIDDEN)
    source: Keys | None = field(default=None, kw_only=True, compare=False, repr=False, metadata=HIDDEN)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.extends, str):
            object.__setattr__(self, "extends", (self.extends,))
        if self.version > VERSION:
            raise PlanError(_newer(self.place_of("version"), self.version))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a plan file, or a preset such as `fluorite:cpu`. Parents in `extends` are not read yet: see `resolve`. Raises PlanError."""
        from .extends import read_source

        file, data = read_source(str(path), Place())
        return cls.from_yaml(data, file)

    @classmethod
    def from_yaml(cls, text: str | bytes, file: str = "plan") -> Self:
        """Read a plan from text; paths in it are relative to `file`, its name in messages. Raises PlanError with every problem."""
        tree, problems = read_tree(text, file)
        if tree is None or (isinstance(tree, Leaf) and tree.is_null):
            tree = Keys((), Place(file, 1, 1))
        if not isinstance(tree, Keys):
            asked = f"a plan is a mapping of sections, this is {shape(tree)}"
            raise PlanError(tree.place.problem("P008", asked, "each section has a name", ("schedule: {...}",)))
        return cls.from_tree(tree, problems)

    @classmethod
    def from_tree(cls, tree: Keys, problems: Sequence[Problem] = ()) -> Self:
        """Read a plan from plain data. `problems` were found before. Raises PlanError with every problem, in the order of the file."""
        reading = Reading(problems=list(problems), removed=[])
        made = RecordKind(cls).value(tree, reading)
        version = made.version if made is not FAILED else VERSION
        if version > VERSION:
            reading.problems.append(_newer(made.place_of("version"), version))
        if reading.problems:
            raise Misread(sorted(reading.problems, key=lambda one: (one.file or "", one.line or 0, one.column or 0)), tree)
        if isinstance(made.extends, str):
            object.__setattr__(made, "extends", (made.extends,))
        object.__setattr__(made, "removed", tuple(reading.removed or ()))
        object.__setattr__(made, "source", tree)
        assert isinstance(made, cls)
        return made

    def to_yaml(self) -> str:
        """The plan as YAML text; `from_yaml` of it is equal to the plan."""
        tree = self.tree()
        assert isinstance(tree, Keys)
        return write_yaml(tree)

    def annotated(self) -> str:
        """The plan as YAML text in which each line ends with the file and line that it comes from, as far as that is known."""
        read = {key.text: (key, value) for key, value in self.source.entries} if self.source else {}
        tree = self.tree()
        assert isinstance(tree, Keys)
        return write_yaml(Keys(tuple(read.get(key.text, (key, value)) for key, value in tree.entries)), origins=True)

    def tree(self) -> Tree:
        """The plan as plain data, defaults left out, deletions as null."""
        given = self.given()
        if "version" not in given:
            given = {"version": self.version, **given}
        if len(self.extends) == 1:
            given["extends"] = self.extends[0]
        tree: Tree = keys(given.items())
        for path in self.removed:
            tree = _delete(tree, path)
        return tree

    def replace(self, **changes: Any) -> Self:
        """The same plan with some sections changed."""
        if self.source is not None and "source" not in changes:
            kept = tuple(entry for entry in self.source.entries if entry[0].text not in changes)
            changes["source"] = Keys(kept, self.source.place)
        removed = tuple(path for path in self.removed if path[0] not in changes)
        return super().replace(**{"removed": removed, **changes})

    def with_section(self, name: str, value: Any) -> Self:
        """The plan with one section replaced; None puts its default back, and takes away what parents say. Raises PlanError."""
        from .notation.records import default, kinds
        from .notation.yaml_reader import nearest

        if name not in kinds(type(self)):
            raise PlanError(self.place.problem("P006", f'a plan has no section "{name}"', "", nearest(name, kinds(type(self)))))
        if value is None:
            gone = ((name,),) if self.extends else ()
            return self.replace(**{name: default(type(self), name)}, removed=(*(path for path in self.removed if path[0] != name), *gone))
        return self.replace(**{name: value})

    def with_schedule(self, selector: str, directives: Sequence[Directive] | Hole) -> Self:
        """The plan with the directives (or a hole) of one selector replaced or added. Raises PlanError."""
        if isinstance(self.schedule, Table):
            kept_marks = self.marks.without_part("schedule", selector)
            kept_removed = tuple(path for path in self.removed if path != ("schedule", selector))
            changed = self.schedule.merged({selector: directives})
            made = self.replace(schedule=changed, marks=kept_marks, removed=kept_removed)
            return made if self.source is None else made.replace(source=_with_line(self.source, selector, made.schedule))
        if isinstance(self.schedule, tuple):
            kept = tuple(entry for entry in self.schedule if entry.select != (selector,))
            return self.replace(schedule=(*kept, ScheduleEntry(select=(selector,), do=tuple(directives))))
        if self.schedule == AUTO:
            return self.replace(schedule={selector: directives})
        why = "it is a hole, which has to be filled first"
        raise PlanError(self.place_of("schedule").problem("P008", f"no line can be added to schedule for {selector}", why))

    @property
    def limit(self) -> int | None:
        """The bytes that a call may take beside its inputs, None where the plan does not say."""
        return None if self.memory is None else self.memory.most

    def entries(self) -> tuple[ScheduleEntry, ...]:
        """The schedule as a list, whichever way it is written; each entry knows its place and how near its file is."""
        return self._entries

    @cached_property
    def _entries(self) -> tuple[ScheduleEntry, ...]:
        return entries_of(self.schedule, self)

    def resolve(self) -> Self:
        """The plan with its parents merged in. Raises PlanError for a parent that is missing, wrong, or its own ancestor."""
        from .extends import resolve

        return resolve(self)

    def problems(self) -> list[Problem]:
        """What is wrong with the resolved plan as far as no program is needed to see it, sections not built yet included."""
        from .checks import problems_of

        return problems_of(self)

    def apply(self, graph: Graph, when: Mapping[str, int] | None = None) -> Scheduled:
        """The plan applied to what it schedules: `plan.apply(fl.trace(model))`, a Scheduled to check, print, run, lower and build.

        Holes take their defaults; `when` asks for the code of one bucket, as {"n": 8}. Raises PlanError for what makes no schedule at all.
        """
        from .scheduled import levels

        return levels().applied(self, graph, when)  # type: ignore[no-any-return]

    def diff(self, other: ExecutionPlan) -> tuple[Any, ...]:
        """The differences from this plan to `other`, by path: `Difference` values, empty if the plans are equal."""
        from .diff import diff

        return diff(self, other)

    def merging_tree(self) -> Keys:
        """The plan as a tree with the places of what was read, for merging with its parents."""
        source = {key.text: (key, value) for key, value in self.source.entries} if self.source else {}
        entries = []
        for name, value in self.given().items():
            if name in source:
                entries.append(source[name])
            else:
                inner = value.given() if isinstance(value, Record) else value
                entries.append((Leaf(name, plain=False), tree_of(inner)))
        tree: Tree = Keys(tuple(entries), self.place)
        for path in self.removed:
            if path[0] not in source:
                tree = _delete(tree, path)
        written = {key.text for key, _ in entries}
        assert isinstance(tree, Keys)
        nulls = tuple(entry for name, entry in source.items() if name not in written)
        return Keys((*tree.entries, *nulls), tree.place)


class Misread(PlanError):
    """A plan that cannot be read whole. `rest` is the plan of what can be read, if that is any.

    `unread` are the selectors of lines of its schedule that say nothing now, `unmade` the names of stages that these would have made,
    `unread_sections` sections that are left out.
    """

    def __init__(self, problems: Sequence[Problem], tree: Keys) -> None:
        super().__init__(problems)
        self._tree = tree

    @cached_property
    def rest(self) -> ExecutionPlan | None:
        from .remainder import legible

        kept = legible(self._tree, self.problems)
        try:
            return None if kept is None else ExecutionPlan.from_tree(kept)
        except PlanError:
            return None

    @property
    def unread_sections(self) -> frozenset[str]:
        return frozenset(self._tree.names) - frozenset(self.rest.source.names if self.rest and self.rest.source else ())

    @property
    def unread(self) -> frozenset[str]:
        return self._lines[0]

    @property
    def unmade(self) -> frozenset[str]:
        return self._lines[1]

    @cached_property
    def _lines(self) -> tuple[frozenset[str], frozenset[str]]:
        from .remainder import unread

        return unread(self._tree, self.problems)


def entries_of(schedule: Schedule, owner: Record) -> tuple[ScheduleEntry, ...]:
    """A schedule, of a plan or of a variant, as a list of entries."""
    if not isinstance(schedule, Mapping):
        return tuple(schedule) if isinstance(schedule, tuple) else ()
    made = []
    for selector, steps in schedule.items():
        place = owner.marks.key("schedule", selector)
        made.append(assemble_entry(selector, steps, place))
    return tuple(made)


def assemble_entry(selector: str, steps: tuple[Directive, ...], place: Place) -> ScheduleEntry:
    """The long form of one line of a schedule."""
    from .notation.places import Marks

    return ScheduleEntry(select=(selector,), do=steps, marks=Marks({(): place}))


def _with_line(source: Keys, selector: str, schedule: Any) -> Keys:
    """What was read, with one line of the schedule replaced by what it is now."""
    old = source.get("schedule")
    if not isinstance(old, Keys):
        return Keys(tuple(entry for entry in source.entries if entry[0].text != "schedule"), source.place)
    line = (Leaf(selector, plain=False), tree_of(schedule[selector]))
    known = selector in old.names
    entries = tuple(line if key.text == selector else (key, value) for key, value in old.entries)
    changed = Keys(entries if known else (*entries, line), old.place)
    return Keys(tuple((key, changed if key.text == "schedule" else value) for key, value in source.entries), source.place)


def _newer(place: Place, version: int) -> Problem:
    why = f"this fluorite reads version {VERSION}"
    return place.problem("P013", f"the plan is of version {version}", why, ("use the fluorite that wrote it, or a newer one",))


def _delete(tree: Tree, path: tuple[str, ...]) -> Tree:
    """The tree with null at `path`."""
    if not path:
        return Leaf("~")
    entries = tree.entries if isinstance(tree, Keys) else ()
    inner = next((value for key, value in entries if key.text == path[0]), Keys(()))
    changed = (Leaf(path[0], plain=False), _delete(inner, path[1:]))
    if any(key.text == path[0] for key, _ in entries):
        return Keys(tuple(changed if key.text == path[0] else (key, value) for key, value in entries))
    return Keys((*entries, changed))


__all__ = ["ExecutionPlan", "Items", "Misread", "entries_of"]
