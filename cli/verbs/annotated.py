"""A plan as YAML in which every value says which file and line it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fluorite.schedule import Directive, ExecutionPlan, Place, ScheduleEntry, label
from fluorite.schedule.notation.records import Record

Line = tuple[str, Place | None]


def annotated(plan: ExecutionPlan, origin: ExecutionPlan) -> tuple[str, dict[str, str]]:
    """The text, and the places by path in the plan. `origin` is the plan before holes were filled; it knows the places of all keys."""
    lines: list[Line] = []
    places: dict[str, str] = {}
    given = plan.given()
    for section, value in {"version": plan.version, **given}.items():
        for path, text, place in _section(origin, section, value):
            lines.append((text, place))
            if place is not None and place.line and path:
                places[path] = f"{place.file}:{place.line}"
    width = min(100, max((len(text) for text, place in lines if place is not None and place.line), default=0))
    shown = [f"{text.ljust(width)}  # {place.file}:{place.line}" if place is not None and place.line else text for text, place in lines]
    return "\n".join(shown) + "\n", places


def _section(origin: ExecutionPlan, section: str, value: object) -> Iterator[tuple[str, str, Place | None]]:
    here = origin.place_of(section)
    match value:
        case Record():
            yield from _fields(section, value, here)
        case Mapping() if value and section == "schedule":
            yield "", "schedule:", None
            for selector, steps in value.items():
                yield from _steps(origin, selector, steps)
        case Mapping() if value:
            yield "", f"{section}:", None
            for key, inner in value.items():
                yield f"{section}/{key}", f"  {label(key)}: {label(inner)}", _place(inner, origin.place_of(section, key))
        case tuple() if value and any(isinstance(inner, Record) for inner in value):
            yield "", f"{section}:", None
            for n, inner in enumerate(value):
                yield f"{section}/{n}", f"  - {_entry(inner)}", _place(inner, origin.place_of(section, n))
        case _:
            yield section, f"{section}: {label(value)}", here


def _fields(section: str, record: Record, here: Place) -> Iterator[tuple[str, str, Place | None]]:
    given = record.given()
    if not given:
        return
    yield "", f"{section}:", None
    for name, value in given.items():
        place = record.place_of(name)
        yield f"{section}/{name}", f"  {name}: {label(value)}", place if place.line else here


def _steps(origin: ExecutionPlan, selector: str, steps: object) -> Iterator[tuple[str, str, Place | None]]:
    place = origin.marks.key("schedule", selector)
    if not isinstance(steps, tuple) or not steps:
        yield f"schedule/{selector}", f"  {label(selector)}: {label(steps)}", place
        return
    yield f"schedule/{selector}", f"  {label(selector)}:", place
    for n, step in enumerate(steps):
        yield f"schedule/{selector}/{n}", f"    - {_entry(step)}", _place(step, place)


def _place(value: object, outer: Place) -> Place:
    inner = getattr(value, "place", None)
    return inner if isinstance(inner, Place) and inner.line else outer


def _entry(value: object) -> str:
    """One list element; a mapping with one key stands without braces, as people write it."""
    text = label(value)
    if isinstance(value, Directive) and not isinstance(value, ScheduleEntry) and text.startswith("{") and text.endswith("}"):
        return text[1:-1]
    return text
