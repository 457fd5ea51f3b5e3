"""`fluorite show`: one level of the compilation as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..command import DONE, REFUSED, Outcome
from ..files import writable, write
from ..plans import request
from ..refusals import not_built, usage
from ..terminal import Terminal
from ..values import extents as read_extents
from ..values import known_extents

if TYPE_CHECKING:
    from fluorite.algo.graph import Graph
    from fluorite.codegen.lowered import Lowered
    from fluorite.codegen.statements import Kernel
    from fluorite.codegen.target import CodeTarget
    from fluorite.schedule.scheduled import Scheduled

LEVELS = ("graph", "plan", "loops", "lowered", "source", "asm", "ptx")
LATER = ("role",)
CODE = {"llvm": ("source", "asm"), "cuda": ("source", "ptx"), "opencl": ("source",)}
CODE_LEVELS = ("source", "asm", "ptx")
KERNEL_LEVELS = ("lowered", "source", "asm")
"""What there is after a pass over kernels."""


def show(
    terminal: Terminal,
    model: str | None,
    plan: str | None,
    extents: list[str] | None,
    method: str | None,
    at: str | None,
    select: str | None,
    output: Path | None,
    force: bool,
    later: Mapping[str, Any],
    after: str | None = None,
    verify: bool = False,
) -> Outcome:
    unbuilt = next((name for name, value in later.items() if value), f"--at {at}" if at in LATER else None)
    if unbuilt:
        raise not_built(unbuilt, *(f"--at {level}" for level in LEVELS))
    if after is not None and after not in _passes():
        raise usage(f"--after {after}", "there is no such pass", *_passes())
    if at is not None and at not in LEVELS:
        raise usage(f"--at {at}", "there is no such level", *LEVELS)
    if verify:
        _alone({"--at": at, "--after": after, "--method": method, "--select": select})
    level = _level(at, after)
    if output is not None:
        writable(output, force)
    sizes = read_extents(extents)
    asked = request(terminal, model, [plan] if plan else None, "show")
    known_extents(sizes, asked.graph.symbols(), asked.algorithm.shown)
    if verify:
        from fluorite.codegen.verifying import verify_each

        verified = verify_each(asked.graph, asked.plan, sizes)
        return _outcome(output, force, verified.text(), verified.as_dict(), REFUSED if verified.first_wrong else DONE)
    text = _text(terminal, asked.graph, asked.plan, sizes, method, level, after, select)
    return _outcome(output, force, text, {"at": level, **({"after": after} if after else {}), "text": text}, DONE)


def _outcome(output: Path | None, force: bool, text: str, value: Mapping[str, Any], code: int) -> Outcome:
    if output is None:
        return Outcome(value, text, code)
    write(output, (text.rstrip("\n") + "\n").encode(), force)
    return Outcome({key: x for key, x in value.items() if key != "text"} | {"file": str(output)}, str(output), code)


def _alone(options: Mapping[str, str | None]) -> None:
    """Refuses options that say what to print: --verify-each prints what became of every pass."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise usage(f"--verify-each {' '.join(given)}", "it is about every pass of the whole model", "--verify-each", *given)


def _level(at: str | None, after: str | None) -> str:
    """What is printed: --at, else what there is after the pass, else the loops."""
    from fluorite.schedule.passes import GRAPH_PASSES

    if after is None:
        return at or "loops"
    there = ("graph",) if after in GRAPH_PASSES else KERNEL_LEVELS
    if at is not None and at not in there:
        raise usage(f"--at {at} --after {after}", f"after {after} there is {', '.join(there)}", *(f"--at {level}" for level in there))
    return at or there[0]


def _text(
    terminal: Terminal,
    graph: Graph,
    plan: Any,
    sizes: Mapping[str, int],
    method: str | None,
    at: str,
    after: str | None,
    select: str | None,
) -> str:
    from fluorite.algo.interpreter.arguments import choose

    methods = [choose(graph, method).name] if method else [m.name for m in graph.methods]
    if at == "graph":
        return _graph_after(terminal, graph, plan, sizes, methods, after, select) if after else _graph(graph, sizes, methods, select)
    from fluorite.codegen import driver
    from fluorite.codegen.buckets import with_extents
    from fluorite.codegen.diagnosis import every_problem
    from fluorite.codegen.target import resolve_target
    from fluorite.schedule.passes import LAST

    given = with_extents(plan, sizes)
    with every_problem(graph, given):
        chosen, notes = driver.prepared(given, graph)
        target = resolve_target(chosen.target, chosen.numerics.contract, chosen.runtime.threads)
        variants = driver.lower_variants(graph, chosen, target, after or LAST)
    terminal.notes(notes)
    if at == "plan":
        return _each(chosen, lambda when: _plan(driver.schedule(graph, chosen, target, when), methods, select))
    if at in CODE_LEVELS and at not in CODE[target.kind]:
        raise usage(f"--at {at}", f"the plan's target is {target.kind}", *(f"--at {level}" for level in CODE[target.kind]))
    if at == "ptx":
        return _ptx(graph, chosen)
    parts = []
    for lowered in variants:
        head = _heading(lowered.when)
        parts.append(head + _loops(lowered, methods, select) if at == "loops" else head + _kernels(lowered, target, methods, select, at))
    return "\n\n".join(parts)


def _passes() -> tuple[str, ...]:
    from fluorite.schedule.passes import PASSES

    return tuple(PASSES)


def _graph_after(
    terminal: Terminal, graph: Graph, plan: Any, sizes: Mapping[str, int], methods: Sequence[str], name: str, select: str | None
) -> str:
    """The graph after one pass, as far as a plan that is refused comes."""
    from fluorite.codegen import driver
    from fluorite.codegen.buckets import with_extents
    from fluorite.codegen.target import resolve_target
    from fluorite.schedule.passes import after

    chosen, notes = driver.prepared(with_extents(plan, sizes), graph)
    terminal.notes(notes)
    target = resolve_target(chosen.target, chosen.numerics.contract, chosen.runtime.threads)
    return _each(chosen, lambda when: _graph(after(driver.schedule(graph, chosen, target, when).steps, name), {}, methods, select))


def _each(plan: Any, text: Any) -> str:
    from fluorite.codegen.buckets import buckets_of

    return "\n".join(_heading(when) + text(when) for when in buckets_of(plan)[0])


def _heading(when: Mapping[str, int]) -> str:
    return f"# {', '.join(f'{k} = {v}' for k, v in when.items())}\n" if when else ""


def _paths(graph: Graph, methods: Sequence[str], select: str | None) -> set[str]:
    """The stages of these methods, or those of them that the selector means. Raises PlanError."""
    from fluorite.schedule import select as find
    from fluorite.schedule.notation.places import Place

    pool = [s for s in graph.stages if s.method in methods]
    return {s.path for s in (find(select, pool, Place("--select"), graph.name) if select else pool)}


def _graph(graph: Graph, sizes: Mapping[str, int], methods: Sequence[str], select: str | None) -> str:
    from fluorite.algo.specialise import specialise

    fixed = specialise(graph, sizes)
    if select is None:
        return replace(fixed, methods=tuple(m for m in fixed.methods if m.name in methods)).text()
    wanted = _paths(fixed, methods, select)
    return "\n".join(s.text(fixed.path_of) for s in fixed.stages if s.path in wanted)


def _plan(scheduled: Scheduled, methods: Sequence[str], select: str | None) -> str:
    from fluorite.algo.errors import PlanError

    if scheduled.problems:
        raise PlanError(scheduled.problems)
    if select is None:
        return scheduled.text()
    wanted = _paths(scheduled.source, methods, select) | (_paths_after(scheduled, methods, select))
    kept = {"/" + path: ds for path, ds in scheduled.chosen.items() if ds and path in wanted}
    return scheduled.plan.replace(schedule=kept).to_yaml()


def _paths_after(scheduled: Scheduled, methods: Sequence[str], select: str) -> set[str]:
    from fluorite.algo.errors import PlanError

    try:
        return _paths(scheduled.graph, methods, select)
    except PlanError:  # the stage was inlined
        return set()


def _loops(lowered: Lowered, methods: Sequence[str], select: str | None) -> str:
    wanted = _paths(lowered.graph, methods, select)
    placed = {i: p for group in lowered.scheduled.groups for i, p in group.placements.items()}
    texts = []
    for s in lowered.graph.stages:
        if s.id in lowered.nests and s.path in wanted:
            head, _, loops = lowered.nests[s.id].text().partition("\n")
            at = f"  (computed at {placed[s.id].loop} of {lowered.graph.path_of(placed[s.id].owner)})" if s.id in placed else ""
            texts.append(f"{head}{at}\n{loops}".rstrip("\n"))
    return "\n".join(texts)


def _kernels(lowered: Lowered, target: CodeTarget, methods: Sequence[str], select: str | None, at: str) -> str:
    wanted = _paths(lowered.graph, methods, select)
    chosen = [k for k in lowered.kernels if any(path in wanted for path in k.stages)]
    if at == "lowered":
        return "\n\n".join(k.text() for k in chosen)
    return _code(lowered, chosen, target, at)


def _code(lowered: Lowered, kernels: Sequence[Kernel], target: CodeTarget, at: str) -> str:
    """What the code generator makes of these kernels: LLVM IR or assembly for a CPU, CUDA C or OpenCL C for a GPU."""
    if target.machine.is_gpu:
        from fluorite.codegen.gpu.building import device_source, kernels_of

        whole = device_source([lowered], target)
        names = {k.name for k in kernels}
        return (
            whole if len(names) == len(lowered.kernels) else "\n\n".join(text for name, text in kernels_of(whole).items() if name in names)
        )
    from fluorite.codegen.emit import emit
    from fluorite.codegen.tvm_adapter import compile_functions

    module = compile_functions({k.name: emit(k) for k in kernels if k.call is None}, target.dict()).mod
    return str(module.inspect_source("s" if at == "asm" else "ll"))


def _ptx(graph: Graph, plan: Any) -> str:
    from fluorite.codegen.gpu import cross_build

    made = cross_build(graph, plan).ptx
    return "\n".join(text if len(made) == 1 else f"// {arch}\n{text}" for arch, text in made.items())
