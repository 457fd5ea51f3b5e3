"""Open holes of a plan: which there are, what each may become, and the plan that a choice makes. Tuning is built on these."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from fluorite.algo.errors import PlanError, Problem

from .directives import Directive
from .directives.base import BySizes
from .notation.constraint import ConstraintError, evaluate, parse, variables
from .notation.fields import Kind, ListOf, Nullable, OneOf, TableOf
from .notation.holes import AUTO, Choose, Divides, Hole, Pow2, Range, Ref
from .notation.places import Place, Step
from .notation.records import Record, kinds
from .notation.tables import Table
from .notation.tree import Items, Keys, Leaf, Tree, core_value, tree_of
from .notation.yaml_reader import nearest
from .notation.yaml_writer import flow
from .plan import ExecutionPlan
from .sections import Variant

P = TypeVar("P", bound=ExecutionPlan)
R = TypeVar("R", bound=Record)
Extents = Callable[[str | None, str], int | None]
_SKIPPED = ("holes", "tune", "provenance")
_ROUNDS = 64
_NAMED = Kind(auto=())


@dataclass(frozen=True)
class OpenHole:
    """One decision that a plan leaves open.

    `id` is its path in the plan, `schedule/unsharp/0/tile/y`, or `$tx` for a named hole. `candidates` are the values it may take, the
    default first. A hole inside an alternative of another one counts only if that one has taken the alternative: `within` has the
    outer hole's id and the index of the alternative.
    """

    id: str
    hole: Hole
    candidates: Sequence[Any]
    place: Place
    within: tuple[tuple[str, int], ...] = ()

    @property
    def default(self) -> Any:
        """The value of an untuned build."""
        return self.candidates[0]

    def index(self, value: Any) -> int:
        """The position among the candidates of a value, given typed or as `plain` data. Raises PlanError if it is none of them."""
        for i, candidate in enumerate(self.candidates):
            if type(candidate) is type(value) and candidate == value:
                return i
        for i, candidate in enumerate(self.candidates):
            if plain(candidate) == plain(value):
                return i
        raise PlanError(
            self.place.problem("P016", f"{self.id} cannot become {label(value)}", "it is none of the values that the plan allows")
        )

    def counts(self, assignment: Mapping[str, Any], holes: Mapping[str, OpenHole]) -> bool:
        """Whether the hole matters under `assignment`; defaults stand for what is missing there."""
        return all(holes[outer].index(assignment.get(outer, holes[outer].default)) == i for outer, i in self.within)


def plain(value: Any) -> Any:
    """A value of a plan as JSON data, for journals."""
    return _data(tree_of(value, expand=True))


def label(value: Any) -> str:
    """A value of a plan on one line, as its YAML."""
    return flow(tree_of(value, expand=True))


def holes_of(plan: ExecutionPlan, extents: Extents | None = None) -> dict[str, OpenHole]:
    """The open holes of a resolved plan by id, named ones first, then in the order of the plan; named ones that nothing uses are left out.

    `extents(selector, axis)` gives the extent of an axis of the stage under whose selector a `{divides: axis}` stands (None for a named
    hole), or None if it is not known: then 1 is the only candidate. `auto` for a whole stage is no hole here; the scheduler decides it.
    """
    walk = _Walk(plan, extents or (lambda stage, axis: None))
    return walk.found


def defaults(plan: ExecutionPlan, extents: Extents | None = None) -> dict[str, Any]:
    """The first alternative of every hole."""
    return {name: hole.default for name, hole in holes_of(plan, extents).items()}


def fill(plan: P, assignment: Mapping[str, Any], extents: Extents | None = None) -> P:
    """The plan with every hole filled from `assignment` (by id; values typed or `plain`), or with its default where that says nothing.

    The result has no holes but `auto` for stages left to the scheduler, and no `holes` section. Raises PlanError for an id that the plan
    does not have, a value that it does not allow, or arithmetic on named holes that has no value.
    """
    walk = _Walk(plan, extents or (lambda stage, axis: None))
    unknown = [name for name in assignment if name not in walk.found]
    if unknown:
        raise PlanError(plan.place.problem("P016", f"the plan has no hole {name}", "", nearest(name, walk.found)) for name in unknown)
    names = _named(plan, assignment, walk.found)
    problems: list[Problem] = []
    for name, kind in kinds(type(plan)).items():
        value = getattr(plan, name)
        if name in _SKIPPED or value is None:
            continue
        try:
            filled = _Filling(walk, assignment, names).value(value, kind, (name,), plan.place_of(name))
            if filled is not value:
                plan = _replaced(plan, {name: filled}, plan.place_of(name))
        except PlanError as error:
            problems += error.problems
    if problems:
        raise PlanError(problems)
    return plan.replace(holes=Table()) if plan.holes else plan


def satisfies(plan: ExecutionPlan, assignment: Mapping[str, Any], extents: Extents | None = None) -> bool:
    """Whether the named holes under `assignment` fulfil all of `tune.where`; a condition without a value counts as unfulfilled."""
    conditions = plan.tune.where
    if not conditions:
        return True
    try:
        names = _named(plan, assignment, holes_of(plan, extents))
        return all(evaluate(parse(condition), names) for condition in conditions)
    except (ConstraintError, PlanError):
        return False


def autos_of(plan: ExecutionPlan) -> tuple[str, ...]:
    """The selectors of `schedule` that are left to the scheduler; `**` if the whole schedule is."""
    if isinstance(plan.schedule, Hole):
        return ("**",) if plan.schedule == AUTO else ()
    return tuple(selector for entry in plan.entries() if entry.do == AUTO for selector in entry.select)


def _named(plan: ExecutionPlan, assignment: Mapping[str, Any], holes: Mapping[str, OpenHole]) -> dict[str, Any]:
    """The values of all named holes."""
    names: dict[str, Any] = {}
    for hole_id, hole in holes.items():
        if hole_id.startswith("$"):
            names[hole_id[1:]] = hole.candidates[hole.index(assignment[hole_id])] if hole_id in assignment else hole.default
    waiting = {name: value for name, value in plan.holes.items() if f"${name}" not in holes}
    waiting |= {name: names.pop(name) for name, value in list(names.items()) if isinstance(value, Ref)}
    for _ in range(_ROUNDS):
        for name, value in list(waiting.items()):
            if not isinstance(value, Ref):
                names[name] = waiting.pop(name)
            elif all(each in names for each in value.names):
                names[name] = _value_of(waiting.pop(name), names, plan.place_of("holes", name))
    return names


def _value_of(ref: Ref, names: dict[str, Any], place: Place) -> Any:
    try:
        return ref.value(names)
    except ConstraintError as error:
        tries = tuple(f"${name}" for one in ref.names if one not in names for name in nearest(one, names))
        raise PlanError((ref.place if ref.place.line else place).problem("P014", f"{ref.text} has no value", str(error), tries)) from None


def _replaced(record: R, changes: dict[str, Any], place: Place) -> R:
    """The record with some fields filled; what a named hole may not be there is refused at `place`."""
    try:
        return record.replace(marks=record.marks, **changes)  # filled values stand where the holes stood
    except PlanError as error:
        nowhere = [one.line is None for one in error.problems]
        facts = {"file": place.file, "line": place.line or None, "column": place.column or None}
        raise PlanError(replace(one, **facts) if lost else one for one, lost in zip(error.problems, nowhere, strict=True)) from None  # type: ignore[arg-type]


def _inner(kind: Kind, step: Step) -> Kind:
    """The kind of a part of a list or mapping."""
    match kind:
        case ListOf() if isinstance(step, int):
            return kind.element
        case TableOf() if isinstance(step, str):
            return kind.element
        case Nullable():
            return _inner(kind.kind, step)
        case OneOf():
            wanted = ListOf if isinstance(step, int) else TableOf
            return next((_inner(one, step) for one in kind.kinds if isinstance(one, wanted)), kind)
    return kind


def _parts(value: Any, kind: Kind) -> Iterator[tuple[Step, Any, Kind, tuple[Step, ...]]]:
    """The parts of a value: field or index, value, kind, and the steps that their paths take."""
    match value:
        case Record():
            for name, inner_kind in kinds(type(value)).items():
                short: tuple[Step, ...] = () if isinstance(value, BySizes) and name == "sizes" else (name,)
                yield name, getattr(value, name), inner_kind, short
        case tuple():
            for i, inner in enumerate(value):
                key: tuple[Step, ...] = (i, inner.key) if isinstance(inner, Directive) else (i,)
                yield i, inner, _inner(kind, i), key
        case Table():
            for name, inner in value.items():
                yield name, inner, _inner(kind, name), (name,)


class _Walk:
    """Finds the holes of a plan."""

    def __init__(self, plan: ExecutionPlan, extents: Extents) -> None:
        self.plan, self.extents = plan, extents
        self.found: dict[str, OpenHole] = {}
        self.paths: dict[str, tuple[Step, ...]] = {}
        self.used: dict[str, None] = dict.fromkeys(name for text in plan.tune.where for name in variables(parse(text)))
        for name, value in plan.holes.items():
            self.visit(value, _NAMED, (f"${name}",), plan.place_of("holes", name), ())
        for section, kind in kinds(type(plan)).items():
            if section not in _SKIPPED:
                self.visit(getattr(plan, section), kind, (section,), plan.place_of(section), ())
        unused = {f"${name}" for name in plan.holes if name not in self.used}
        self.found = {name: hole for name, hole in self.found.items() if name.split("/")[0] not in unused}

    def visit(self, value: Any, kind: Kind, path: tuple[Step, ...], place: Place, within: tuple[tuple[str, int], ...]) -> None:
        if isinstance(value, Ref):
            self.used.update(dict.fromkeys(value.names))
            return
        if isinstance(value, Hole) and value == AUTO and not kind.auto and kind is not _NAMED:
            return
        if isinstance(value, Hole):
            here = value.place if value.place.line else place
            hole_id = name_of(value, path)
            candidates = self.candidates(value, kind, _selector(self.plan, path), here)
            known = self.found.get(hole_id)
            if known is None:
                self.found[hole_id] = OpenHole(hole_id, value, candidates, here, within)
                self.paths[hole_id] = path
            elif list(known.candidates) != list(candidates):
                asked = f"{hole_id} is defined twice, with different values"
                raise PlanError(here.problem("P014", asked, f"first at {known.place}", ("give one of them another name",)))
            if isinstance(value, Choose):
                for i, alternative in enumerate(value.values):
                    self.visit(alternative, kind, (*path, "choose", i), here, (*within, (hole_id, i)))
            return
        for _, inner, inner_kind, steps in _parts(value, kind):
            where = value.place if isinstance(value, Record) and value.place.line else place
            self.visit(inner, inner_kind, (*path, *steps), where, within)

    def candidates(self, hole: Hole, kind: Kind, selector: str | None, place: Place) -> Sequence[Any]:
        match hole:
            case Choose(values=values):
                return values
            case Range(low=low, high=high, step=step):
                return range(low, high + 1, step)
            case Pow2(low=low, high=high):
                return tuple(1 << n for n in range((low - 1).bit_length(), high.bit_length()))
            case Divides(axis=axis):
                extent = self.extents(selector, axis) or 1
                small = [n for n in range(1, int(extent**0.5) + 1) if extent % n == 0]
                return tuple(sorted({*small, *(extent // n for n in small)}))
        if not kind.auto:
            raise PlanError(place.problem("P014", "auto leaves open what only the plan can say", "", ("{choose: [...]}",)))
        return kind.auto


class _Filling:
    """Puts values in the place of holes."""

    def __init__(self, walk: _Walk, assignment: Mapping[str, Any], names: dict[str, Any]) -> None:
        self.walk, self.assignment, self.names = walk, assignment, names
        self.active: list[str] = []

    def named(self, ref: Ref, kind: Kind, place: Place) -> Any:
        """The value of a named hole, or of arithmetic on some, holes inside it filled as well."""
        value = _value_of(ref, self.names, place)
        if not ref.is_name or not isinstance(value, (Record, tuple, Table)):
            return value
        if ref.text in self.active:
            raise PlanError(place.problem("P014", f"{ref.text} contains itself", " -> ".join((*self.active, ref.text))))
        hole = self.walk.found.get(ref.text)
        choice = ("choose", hole.index(value)) if hole else ()
        self.active.append(ref.text)
        filled = self.value(value, kind, (*self.walk.paths.get(ref.text, (ref.text,)), *choice), place)
        self.active.pop()
        return filled

    def value(self, value: Any, kind: Kind, path: tuple[Step, ...], place: Place) -> Any:
        """The value without holes; the same object if it has none."""
        if isinstance(value, Ref):
            return self.named(value, kind, place)
        if isinstance(value, Hole):
            if value == AUTO and not kind.auto:
                return value
            hole = self.walk.found[name_of(value, path)]
            index = hole.index(self.assignment[hole.id]) if hole.id in self.assignment else 0
            return self.value(hole.candidates[index], kind, (*path, "choose", index), hole.place)
        changes = {}
        for step, inner, inner_kind, steps in _parts(value, kind):
            filled = self.value(inner, inner_kind, (*path, *steps), value.place if isinstance(value, Record) else place)
            if filled is not inner:
                changes[step] = filled
        if not changes:
            return value
        match value:
            case Record():
                return _replaced(value, {str(name): inner for name, inner in changes.items()}, value.place if value.place.line else place)
            case tuple():
                return tuple(changes.get(i, inner) for i, inner in enumerate(value))
            case _:
                return value.merged(changes)


def name_of(hole: Hole, path: tuple[Step, ...]) -> str:
    """The id of a hole at `path`."""
    return f"${hole.name}" if isinstance(hole, Choose) and hole.name else "/".join(str(step) for step in path)


def _selector(plan: ExecutionPlan, path: tuple[Step, ...]) -> str | None:
    """The selector of the line of a schedule, the plan's own or a variant's, that a path leads into."""
    owner: ExecutionPlan | Variant = plan
    if len(path) > 2 and path[0] == "variants" and isinstance(path[1], int) and isinstance(plan.variants, tuple):
        owner, path = plan.variants[path[1]], path[2:]
    match path:
        case ("schedule", str(selector), *_):
            return selector
        case ("schedule", int(n), *_) if isinstance(owner.schedule, tuple):
            select = owner.schedule[n].select
            return select[0] if isinstance(select, tuple) and isinstance(select[0], str) else None
    return None


def _data(tree: Tree) -> Any:
    match tree:
        case Leaf():
            return core_value(tree)
        case Items(values):
            return [_data(value) for value in values]
        case Keys(entries):
            return {key.text: _data(value) for key, value in entries}
        case _:
            raise TypeError(f"{tree!r} is not plain data")


__all__ = ["OpenHole", "autos_of", "defaults", "fill", "holes_of", "label", "plain", "satisfies"]
