"""What is wrong with a plan as a whole, as far as no program is needed to see it."""

from __future__ import annotations

from collections.abc import Iterator

from fluorite.algo.errors import PlanError, Problem

from .filling import holes_of
from .graph_sections import unbuilt_keys
from .notation.constraint import parse, variables
from .notation.fields import Kind
from .notation.holes import Choose, Hole, Ref
from .notation.places import Place
from .notation.records import Record, kinds
from .notation.tables import Table
from .notation.yaml_reader import nearest
from .plan import ExecutionPlan, entries_of
from .selectors import parse_selector

LATER = ("devices", "mesh", "roles", "placement", "parameters", "parallelism")
_INSTEAD = "leave the section out: the program then runs on one device, with the types and the memory layout of the algorithm"


def problems_of(plan: ExecutionPlan) -> list[Problem]:
    """Sections not built yet, holes that nobody defines, selectors that are none, contradictions between sections."""
    found = [*_later_sections(plan), *unbuilt_keys(plan), *_unknown_names(plan)]
    found += [*_misspelt_holes(plan), *_bad_selectors(plan)]
    if plan.mesh and plan.roles:
        found.append(plan.place_of("roles").problem("P009", "mesh and roles exclude each other", "mesh is short for one role called main"))
    try:
        holes_of(plan)
    except PlanError as error:
        found.extend(error.problems)
    return sorted(dict.fromkeys(found), key=lambda one: (one.file or "", one.line or 0, one.column or 0))


def _later_sections(plan: ExecutionPlan) -> Iterator[Problem]:
    given = plan.given()
    for section in LATER:
        if given.get(section):
            yield plan.marks.key(section).problem("P901", f"the section {section} is not built yet", "", (_INSTEAD,))


def _unknown_names(plan: ExecutionPlan) -> Iterator[Problem]:
    known = dict.fromkeys(plan.holes)
    known.update(dict.fromkeys(value.name for value, _ in values_in(plan, plan.place) if isinstance(value, Choose) and value.name))
    used = [
        (name, value.place if value.place.line else place)
        for value, place in values_in(plan, plan.place)
        if isinstance(value, Ref)
        for name in value.names
    ]
    used += [(name, plan.tune.place_of("where", i)) for i, text in enumerate(plan.tune.where) for name in variables(parse(text))]
    for name, place in used:
        if name not in known:
            tries = nearest(f"${name}", [f"${one}" for one in known]) or (f"define it: holes: {{{name}: {{choose: [8, 16]}}}}",)
            yield place.problem("P014", f"${name} is no hole of this plan", "", tries)


def _misspelt_holes(plan: ExecutionPlan) -> Iterator[Problem]:
    for name, value in plan.holes.items():
        if isinstance(value, Table) and len(value) == 1 and (close := nearest(next(iter(value)), ("choose", "range", "pow2", "divides"))):
            yield plan.place_of("holes", name).problem("P014", f"${name} is {{{next(iter(value))}: ...}}, which is no hole", "", close)


def _bad_selectors(plan: ExecutionPlan) -> Iterator[Problem]:
    entries = list(plan.entries())
    for variant in plan.variants if isinstance(plan.variants, tuple) else ():
        entries += entries_of(variant.schedule, variant)
    for entry in entries:
        for index, text in enumerate(entry.selectors):
            try:
                parse_selector(text, entry.place_of("select", index))
            except PlanError as error:
                yield from error.problems


def values_in(value: object, place: Place) -> Iterator[tuple[object, Place]]:
    """Every value inside a value, holes and directives included, with the nearest place that is known."""
    match value:
        case Record():
            here = value.place if value.place.line else place
            yield value, here
            for name in kinds(type(value)):
                yield from values_in(getattr(value, name), value.place_of(name) if value.place.line else here)
        case Choose():
            yield value, place
            for inner in value.values:
                yield from values_in(inner, value.place if value.place.line else place)
        case Hole() | Kind():
            yield value, place
        case tuple():
            for inner in value:
                yield from values_in(inner, place)
        case Table():
            for inner in value.values():
                yield from values_in(inner, place)
