"""`fluorite plan init|resolve|diff|schema|directives`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ..command import DONE, REFUSED, Outcome
from ..files import writable, write
from ..models import find_algorithm
from ..plans import load_plan
from ..refusals import usage
from ..terminal import Terminal
from ..values import extents as read_extents
from ..values import known_extents

if TYPE_CHECKING:
    from fluorite.codegen.effects import Change
    from fluorite.schedule import ExecutionPlan


def init(terminal: Terminal, model: str, output: Path | None, force: bool) -> Outcome:
    from fluorite.schedule import ExecutionPlan

    from .skeleton import skeleton

    if output is not None:
        writable(output, force)
    algorithm = find_algorithm(model, "plan init")
    graph = algorithm.graph()
    text = skeleton(graph, algorithm, (output or Path()).parent if output else Path())
    ExecutionPlan.from_yaml(text, str(output or "skeleton"))
    return _text(text, {"yaml": text, "stages": [s.path for s in graph.stages]}, output, force)


def resolve(
    terminal: Terminal, plan: str, holes: bool, model: str | None, extents: list[str] | None, output: Path | None, force: bool
) -> Outcome:
    """Without a model nothing is run; with one, what `memory: recompute: auto` chooses for it stands in its place."""
    from fluorite.algo.errors import PlanError
    from fluorite.schedule import fill, holes_of, label
    from fluorite.schedule.matching import overridden_by_nearness

    from .annotated import annotated

    if output is not None:
        writable(output, force)
    if model is None and extents:
        raise usage("--extents", "they are those of a model", "--model MODEL")
    if model is not None and holes:
        raise usage("--model", "it is about the plan whose holes are filled", "leave --holes out")
    found = load_plan(plan)
    if problems := found.problems():
        raise PlanError(problems)
    opened, origin = holes_of(found), found
    if not holes:
        for hole in opened.values():
            if not hole.within:
                terminal.note(f"note: {hole.id} is open ({hole.place}); its first alternative is used, {label(hole.default)}")
        found = fill(found, {}) if model is None else _chosen(model, found, read_extents(extents))
    if model is None:
        for far, far_place, near, near_place in overridden_by_nearness(found.entries()):
            terminal.note(
                f'note: "{near}" ({near_place}) is of a nearer file and goes before "{far}" ({far_place}), which would win if both stood '
                "in one file; --model MODEL adds a line for each stage that this decides"
            )
    if found.memory is not None and found.memory.recompute == "auto":
        terminal.note("note: memory: recompute: auto depends on the model; --model MODEL shows what it chooses")
    text, places = annotated(found, origin)
    return _text(text, {"yaml": found.to_yaml(), "places": places, "holes": [h.id for h in opened.values()]}, output, force)


def _chosen(model: str, plan: ExecutionPlan, sizes: dict[str, int]) -> ExecutionPlan:
    """The plan filled for the model, with what is chosen for it, and a line for each stage whose own a nearer file decides."""
    from fluorite.codegen.buckets import with_extents
    from fluorite.codegen.driver import prepared
    from fluorite.codegen.target import resolve_target
    from fluorite.codegen.tuning.flat import decided_by_nearness

    algorithm = find_algorithm(model, "plan resolve")
    graph = algorithm.graph()
    known_extents(sizes, graph.symbols(), algorithm.shown)
    chosen = prepared(with_extents(plan, sizes), graph)[0]
    target = resolve_target(chosen.target, chosen.numerics.contract, chosen.runtime.threads)
    for path, do in decided_by_nearness(chosen, graph, target).items():
        chosen = chosen.with_schedule(f"/{path}", do)
    return chosen


def diff(terminal: Terminal, old: str, new: str, model: str | None, extents: list[str] | None) -> Outcome:
    """Without a model nothing is run; with one, the effects of both plans on it are compared too."""
    if extents and model is None:
        raise usage("--extents", "they are those of a model", "--model MODEL")
    plans = load_plan(old), load_plan(new)
    found = plans[0].diff(plans[1])
    value = [{"path": d.path, "old": d.old, "new": d.new} for d in found]
    text, code = "\n".join(d.text() for d in found), REFUSED if found else DONE
    if model is None:
        return Outcome(value, text, code)
    changed, note = _effects(terminal, model, plans, read_extents(extents))
    if note:
        terminal.note(note)
    effects = [{"method": c.method or None, "what": c.what, "old": c.old, "new": c.new} for c in changed]
    shown = "\n".join(c.text() for c in changed) or "neither memory nor numerics change"
    return Outcome({"differences": value, "effects": effects}, f"{text}\n\n{shown}".lstrip(), code)


def _effects(
    terminal: Terminal, model: str, plans: tuple[ExecutionPlan, ExecutionPlan], sizes: dict[str, int]
) -> tuple[tuple[Change, ...], str]:
    """What the second plan makes different, and a remark on what is not known."""
    from fluorite.codegen.effects import changes, effect

    algorithm = find_algorithm(model, "plan diff")
    graph = algorithm.graph()
    known_extents(sizes, graph.symbols(), algorithm.shown)
    before, after = (effect(graph, plan, sizes) for plan in plans)
    unknown = [s for m in graph.methods if not {m.name} <= before.peaks.keys() & after.peaks.keys() for s in graph.symbols(m.name)]
    missing = [s for s in dict.fromkeys(unknown) if s not in sizes]
    note = f"note: give --extents {','.join(f'{s}=1024' for s in missing)} to see what changes in bytes" if missing else ""
    return changes(before, after), note


def schema(terminal: Terminal, output: Path | None, force: bool) -> Outcome:
    from fluorite.schedule import plan_schema

    if output is not None:
        writable(output, force)
    made = plan_schema()
    return _text(json.dumps(made, indent=2), made, output, force)


def directives(terminal: Terminal, name: str | None) -> Outcome:
    from difflib import get_close_matches

    from fluorite.schedule import DIRECTIVES, describe, summary
    from fluorite.schedule.directive_help import SECTIONS, describe_section

    if name in SECTIONS:
        return Outcome({name: describe_section(name)}, describe_section(name))
    if name is None:
        text = summary()
        return Outcome({line.split()[0]: line.split(None, 1)[1] for line in text.splitlines()}, text)
    if name not in DIRECTIVES:
        raise usage(f"plan directives {name}", "there is no such directive", *(get_close_matches(name, DIRECTIVES, 3) or DIRECTIVES))
    from fluorite.codegen.directive_examples import example_text

    lines = ("in a small program", "", *example_text(name).splitlines())
    text = describe(name) + "\n" + "\n".join(f"  {line}".rstrip() for line in lines) + "\n"
    return Outcome({name: text}, text)


def _text(text: str, value: object, output: Path | None, force: bool) -> Outcome:
    if output is None:
        return Outcome(value, text)
    write(output, (text.rstrip("\n") + "\n").encode(), force)
    return Outcome({"file": str(output)}, str(output))
