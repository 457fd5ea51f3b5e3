"""The verbs of the Python API: from a model and a plan to each level of compilation and to a model that runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from fluorite.algo.data.reading import streams
from fluorite.algo.errors import BuildError, PlanError, Problem
from fluorite.algo.graph import Graph
from fluorite.algo.method_gradients import gradient_of
from fluorite.algo.numerics import NO_CASTS
from fluorite.algo.parameters import initial_parameters
from fluorite.algo.program import Program, trace
from fluorite.algo.specialise import specialise
from fluorite.schedule import ExecutionPlan, fill, holes_of, satisfies
from fluorite.schedule.checks import problems_of
from fluorite.schedule.default import default_schedule
from fluorite.schedule.divisors import divisor_problems, extent_lookup
from fluorite.schedule.loss_scaling import scaled
from fluorite.schedule.narrowing import Narrowed, narrowed
from fluorite.schedule.notation.places import Marks
from fluorite.schedule.passes import LAST, Step
from fluorite.schedule.plan import Misread, entries_of
from fluorite.schedule.precision import gradient_type, refusals, stored_types, types_of
from fluorite.schedule.scheduled import Scheduled
from fluorite.schedule.scheduled import apply as apply_plan
from fluorite.schedule.sections import ScheduleEntry, Variant

from . import artifact
from .buckets import bounded, buckets_of, meets, variant_problems, with_extents
from .compiled import Compiled, compile_kernels
from .diagnosis import every_problem, misread_problems
from .host_functions import lost
from .lowered import Lowered, extents_of, lower_all
from .peaks import within_limit
from .prebuilt import prebuilt
from .recomputing import with_recompute
from .runtime import assemble
from .runtime.model import Model
from .target import CodeTarget, resolve_target

Plan = ExecutionPlan | str | Path | None


def as_plan(plan: Plan, graph: Graph | None = None) -> ExecutionPlan:
    """An ExecutionPlan from a plan, a file, a preset's name or nothing; parents merged in.

    Raises PlanError, with what is wrong for `graph` in the lines that can be read too.
    """
    if plan is not None and not isinstance(plan, ExecutionPlan | str | Path):
        tries = ("fl.ExecutionPlan(schedule={...})", "fl.ExecutionPlan.from_yaml(text)", "the name of a file")
        raise PlanError(Problem("P010", "plan", asked=f"a plan is no {type(plan).__name__}", why="it is an ExecutionPlan", try_=tries))
    try:
        loaded = plan if isinstance(plan, ExecutionPlan) else ExecutionPlan() if plan is None else ExecutionPlan.load(plan)
        return loaded.resolve()
    except Misread as error:
        if graph is None:
            raise
        raise PlanError(misread_problems(graph, error)) from None


def prepared(plan: Plan, graph: Graph) -> tuple[ExecutionPlan, tuple[str, ...]]:
    """The plan without holes, and notes on the holes that took their defaults. Raises PlanError with everything that is wrong so far."""
    resolved = as_plan(plan, graph)
    if problems := [*problems_of(resolved), *divisor_problems(resolved, graph)]:
        raise PlanError(problems)
    lookup = extent_lookup(graph, resolved)
    opened = holes_of(resolved, lookup)
    notes = tuple(f"{h.id} is open; its first alternative is used" for h in opened.values() if not h.within)
    filled = fill(resolved, {}, lookup)
    unmet = [] if satisfies(resolved, {}, lookup) else [_unmet_defaults(resolved)]
    if problems := [*unmet, *_extents_problems(filled, graph), *variant_problems(filled, graph)]:
        raise PlanError(problems)
    if filled.memory is not None and filled.memory.recompute == "auto":
        target = host_target(filled)
        filled = with_recompute(filled, graph, target, lambda some: lower_variants(graph, some, target))
    return filled, notes


def _unmet_defaults(plan: ExecutionPlan) -> Problem:
    why, place = "they are what an untuned build takes", plan.tune.place_of("where")
    return place.problem("P124", "the first alternatives of the holes break tune: where:", why, ("put first what the conditions allow",))


def _extents_problems(plan: ExecutionPlan, graph: Graph) -> list[Problem]:
    out = []
    known = {*graph.symbols(), *(f"{m.name}/{s}" for m in graph.methods for s in graph.symbols(m.name))}
    named = [(name, plan.place_of("extents", name), "extents") for name in plan.extents]
    named += [(name, variant.place_of("when", name), "when") for variant in plan.variants for name in variant.when]
    for name, place, key in named:
        if name not in known:
            why = f"it has {', '.join(sorted(known)) or 'none'}"
            out.append(place.problem("P111", f"{key}: {graph.name} has no symbolic extent {name}", why))
    return out


def schedule(graph: Graph, plan: ExecutionPlan, target: CodeTarget, when: Mapping[str, int] | None = None) -> Scheduled:
    """A plan without holes applied to the graph, specialised to `when`."""
    chosen, source = plan, graph
    found = in_types(plan, graph)
    graph = found.graph
    steps = [Step("trace", "the algorithm", source)]
    if graph is not source:
        steps.append(Step("precision", "stages in the types that the plan says", graph))
    for variant in plan.variants:
        if when and meets(variant, when):
            chosen = chosen.replace(schedule=(*chosen.entries(), *_nearer(variant)), fusion=variant.fusion or chosen.fusion)
    for m in graph.methods:
        if values := extents_of(when or {}, m.name, graph.symbols(m.name)):
            graph = specialise(graph, values, m.name)
    if graph is not steps[-1].graph:
        steps.append(Step("specialise", ", ".join(f"{k} = {n}" for k, n in (when or {}).items()), graph))
    graph = bounded(graph, chosen)
    made = apply_plan(chosen, graph, target.machine, default_schedule, found.casts)
    problems = (*found.problems, *made.problems)
    return replace(made, problems=problems, steps=(*steps, *made.steps[1:]), when=dict(when or {}))


def in_types(plan: ExecutionPlan, graph: Graph) -> Narrowed:
    """The graph with its losses scaled, in the types of the plan's `precision`."""
    if (asked := plan.precision) is None:
        return Narrowed(graph, NO_CASTS)
    whole, wrong = scaled(asked, graph)
    types, problems = types_of(asked, whole)
    found = narrowed(whole, types, stored_types(asked, whole), gradient_type(asked))
    casts = replace(found.casts, state=found.casts.state or asked.loss_scale != "none")
    return Narrowed(found.graph, casts, (*wrong, *refusals(asked, graph), *problems))


def with_scales(plan: ExecutionPlan, graph: Graph) -> Graph:
    """The graph with the state that the plan adds to it, if it does: scales of losses. A scale that is a number stays in the kernels."""
    if plan.precision is None or plan.precision.loss_scale != "dynamic":
        return graph
    return scaled(plan.precision, graph)[0]


def _nearer(variant: Variant) -> Iterable[ScheduleEntry]:
    """The variant's entries, placed nearer than the plan's own, so that they override these."""
    for entry in entries_of(variant.schedule, variant):
        marks = {
            path: replace(place, nearness=place.nearness - 1) for path, place in ({(): entry.place} | dict(entry.marks.items())).items()
        }
        yield entry.replace(marks=Marks(marks))


def lower_variants(graph: Graph, plan: ExecutionPlan, target: CodeTarget, last: str = LAST) -> tuple[Lowered, ...]:
    """The kernels of every bucket after pass `last`."""
    found, _ = buckets_of(plan)
    return tuple(
        lower_all(schedule(graph, plan, target, when), when, f"_v{n}" if len(found) > 1 else "", last) for n, when in enumerate(found)
    )


def decided(plan: Plan, graph: Graph, strict: bool = False) -> tuple[ExecutionPlan, tuple[str, ...]]:
    """As `prepared`; `strict` refuses open holes. Raises PlanError."""
    chosen, notes = prepared(plan, graph)
    if strict:
        refuse_open(chosen, notes)
    return chosen, notes


def refuse_open(plan: ExecutionPlan, notes: Iterable[str]) -> None:
    """P017 for each note on a hole that took its default."""
    why, file = "--strict refuses open holes", plan.place.file
    if problems := [Problem("P017", file=file, asked=note, why=why, try_=("fluorite tune",)) for note in notes]:
        raise PlanError(problems)


def compile_graph(graph: Graph, plan: Plan = None, cache: bool = True, strict: bool = False) -> Compiled:
    """Raises PlanError, BuildError."""
    chosen, notes = decided(plan, graph, strict)
    target = host_target(chosen)
    variants = lower_variants(graph, chosen, target)
    graph = with_scales(chosen, graph)
    within_limit(Compiled(graph, chosen, variants, Path(), target, notes))
    return Compiled(graph, chosen, variants, compile_kernels(variants, target, cache), target, notes)


def ready(graph: Graph, plan: Plan = None, cache: bool = True, strict: bool = False) -> tuple[dict[str, Any], Path]:
    """The manifest and the library of a model; an unchanged one comes from the build cache. Raises PlanError, BuildError."""
    resolved = as_plan(plan, graph)
    with every_problem(graph, resolved):
        chosen, notes = decided(resolved, graph, strict)
        return prebuilt(graph, chosen, notes, host_target(chosen), lambda: compile_graph(graph, resolved, cache, strict), cache)


def host_target(plan: ExecutionPlan) -> CodeTarget:
    """The plan's target, which has to be one that runs in this process. Raises PlanError, BuildError."""
    target = resolve_target(plan.target, plan.numerics.contract, plan.runtime.threads)
    if target.machine.is_gpu:
        raise BuildError(
            [
                Problem(
                    "B020",
                    "build",
                    asked=f"running a model on {target.kind}",
                    why="models run on the CPU so far; kernels of a GPU are built, and checked, but not run",
                    try_=("target: {kind: llvm}", "fluorite build writes the GPU's kernels"),
                )
            ]
        )
    return target


def compile(
    model: Any,
    plan: Plan = None,
    *,
    seed: int = 0,
    weights: str | Path | None = None,
    extents: Mapping[str, int] | None = None,
    inputs: Mapping[str, Any] | None = None,
    method: str | None = None,
    cache: bool = True,
    batch_size: int | None = None,
    data: Any = None,
) -> Model:
    """The compiled model of a function or a Program under a plan (a value, a file, `fluorite:cpu`, or none).

    `weights` is a safetensors file; without it parameters start from their initialisers and `seed`. `extents` fixes symbolic extents;
    `inputs` declares those of an unannotated function. `batch_size` and `data` are for methods that read: `data` is a dataset, an iterable,
    the path of a file like the one that the Program reads, or a mapping of these by reader. Raises AlgorithmError, PlanError, BuildError,
    RunError.
    """
    if isinstance(model, type) and issubclass(model, Program):
        model = model()
    graph = model if isinstance(model, Graph) else trace(model, method, inputs)
    read = streams(model, graph, batch_size, data)
    chosen = with_extents(as_plan(plan, graph), extents)
    manifest, library = ready(graph, chosen, cache)
    whole = _as_compiled(chosen, graph)

    def initial(other: int | None) -> dict[str, np.ndarray[Any, Any]]:
        return initial_parameters(whole, seed if other is None else other)

    def slopes(method: str, path: str, of: str | None) -> Model:
        sloping = gradient_of(model, method, path, of, inputs)
        plain = ExecutionPlan(target=chosen.target, numerics=chosen.numerics, runtime=chosen.runtime)
        return assemble(*ready(sloping, plain, cache), parameter_arrays(sloping, seed), functions=sloping.functions)

    known = None if isinstance(model, Graph) else slopes
    made = assemble(manifest, library, parameter_arrays(whole, seed), initial, read, graph.functions, known)
    if weights is not None:
        made.load(weights)
    return made


def _as_compiled(plan: ExecutionPlan, graph: Graph) -> Graph:
    """The graph with the state that is compiled; the plan may have holes."""
    return graph if plan.precision is None else with_scales(prepared(plan, graph)[0], graph)


def parameter_arrays(graph: Graph, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Initial parameters and the algorithm's constants, by path."""
    constants = {t.path: np.asarray(t.value) for t in graph.leaves if t.kind == "constant"}
    return {**constants, **initial_parameters(graph, seed)}


def build(
    model: Any,
    plan: Plan,
    output: str | Path,
    *,
    name: str | None = None,
    weights: str | Path | None = None,
    seed: int = 0,
    extents: Mapping[str, int] | None = None,
    strict: bool = False,
    force: bool = False,
    cache: bool = True,
    model_file: Path | None = None,
    inputs: Mapping[str, Any] | None = None,
) -> Path:
    """Write the artefact folder `output`, importable by its name. Raises AlgorithmError, PlanError, BuildError.

    For a GPU target: a folder of cubins (see `gpu.folder`), without parameters.
    """
    graph = model if isinstance(model, Graph) else trace(model, None, inputs)
    chosen = with_extents(as_plan(plan, graph), extents)
    if chosen.target.kind in ("cuda", "opencl"):
        from .gpu import cross_build, folder

        return folder.write(cross_build(graph, chosen, strict=strict), output, force=force)
    if problems := [p for s in graph.stages if (p := lost(s)) is not None]:
        raise BuildError(problems)
    artifact.require_place(output, model_file=model_file, force=force)
    manifest, library = ready(graph, chosen, cache, strict)
    parameters = parameter_arrays(_as_compiled(chosen, graph), seed)
    if weights is not None:
        loaded = assemble(manifest, library, parameters, functions=graph.functions)
        loaded.load(weights)
        parameters = {k: np.asarray(v) for k, v in loaded.parameters.items()}
    named = {**manifest, "name": name or Path(output).name}
    return artifact.write(named, library, parameters, output, model_file=model_file, force=force)
