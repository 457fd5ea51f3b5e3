"""`memory: recompute: auto`: what is computed again so that every call stays within `limit`. Kernels are lowered as they would be built,
what they take is planned as the runtime will, and a choice that turns out to take more than was expected is looked for again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fluorite.algo.cost import cost
from fluorite.algo.dtypes import itemsize
from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.extent import volume
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Leaf
from fluorite.schedule.plan import ExecutionPlan
from fluorite.schedule.recompute import able, backward, closed
from fluorite.schedule.rematerialisation import Choice, Kernel, Rematerialisation

from .cache import cached_file, key_of
from .compiled import Compiled
from .lowered import Lowered, structure_hash
from .peaks import largest, planned
from .prebuilt import compiler_hash
from .runtime.peak import Peak, size
from .sampling import number
from .target import CodeTarget

Lower = Callable[[ExecutionPlan], tuple[Lowered, ...]]
Sizes = Mapping[str, int]
ROUNDS, LOOKS = 6, 24
"""Choices that are lowered, and looked for, at most."""
BYTES = 8
"""The operations that a processor does in the time in which it moves a byte to memory or from it, about."""


@dataclass(frozen=True)
class _Need:
    """What one method takes at most: in variant number `variant`, at `sizes`."""

    method: str
    variant: int
    sizes: Sizes
    peak: Peak


def with_recompute(plan: ExecutionPlan, graph: Graph, target: CodeTarget, lower: Lower) -> ExecutionPlan:
    """The (filled) plan with the stages written out that `auto` chooses; `lower` makes the kernels of a plan. What was chosen for the same
    model and plan before is read from the build cache. Raises PlanError."""
    if plan.memory is None or plan.memory.recompute != "auto":
        return plan
    plain = plan.replace(provenance={}, program=None)
    key = key_of("recompute", compiler_hash(), repr(target), structure_hash(graph), plain.to_yaml())
    path = cached_file(key, ".recompute.json", lambda path: _write(path, _chosen(plan, graph, target, lower)))
    return saying(plan, tuple(json.loads(path.read_text(encoding="utf-8"))))


def _write(path: Path, chosen: tuple[str, ...]) -> None:
    path.write_text(json.dumps(chosen), encoding="utf-8")


def saying(plan: ExecutionPlan, chosen: tuple[str, ...]) -> ExecutionPlan:
    """The plan with these stages in the place of `auto`."""
    assert plan.memory is not None
    return plan.replace(memory=plan.memory.replace(recompute=chosen, marks=plan.memory.marks), marks=plan.marks)


def chosen_again(asked: ExecutionPlan, made: ExecutionPlan) -> tuple[str, ...] | None:
    """What `auto` chose, if the plan asks for it; `made` is the plan that came of it."""
    return made.memory.recompute if asked.memory is not None and made.memory is not None and asked.memory.recompute == "auto" else None


def _chosen(plan: ExecutionPlan, graph: Graph, target: CodeTarget, lower: Lower) -> tuple[str, ...]:
    assert plan.memory is not None and plan.limit is not None
    usual = lower(saying(plan, ()))
    needs = _needs(plan, graph, target, usual)
    chosen: tuple[str, ...] = ()
    for need in needs.values():
        if need.peak.total > plan.limit:
            chosen += _of_method(need, plan, graph, target, usual[need.variant], lower)
    return chosen


def _of_method(need: _Need, plan: ExecutionPlan, graph: Graph, target: CodeTarget, usual: Lowered, lower: Lower) -> tuple[str, ...]:
    """The selectors of the stages of one method. What else there is (parameters, results, what kernels take for themselves, gaps) is
    counted as it turned out to be. Raises PlanError with the least that was reached."""
    assert plan.limit is not None
    values = rematerialisation(usual, need.method, need.sizes)
    beside = need.peak.total - values.choice(()).peak
    tried: dict[tuple[str, ...], Peak] = {(): need.peak}
    looked: set[frozenset[int]] = set()
    while len(tried) <= ROUNDS and len(looked) < LOOKS:
        choice = values.found(plan.limit - beside)
        if choice.again in looked:
            break  # there is no choice of less
        looked.add(choice.again)
        stages = _selectors(usual, values, need.method, choice)  # fewer than chosen: what kernels share stays where it is
        if stages not in tried:
            written = saying(plan, stages)
            tried[stages] = _needs(written, graph, target, lower(written))[need.method].peak
            if tried[stages].total <= plan.limit:
                return stages
        beside = max(beside + 1, tried[stages].total - choice.peak)
    raise PlanError([_out_of_reach(plan, need, min(tried.values(), key=lambda p: p.total))])


def _selectors(usual: Lowered, values: Rematerialisation, method: str, choice: Choice) -> tuple[str, ...]:
    stages, late = {s.path: s.id for s in usual.graph.stages}, backward(usual.graph)
    inside = [[stages[path] for path in k.stages] for k in usual.kernels]
    joint = {i for ids in inside if any(i in late for i in ids) for i in ids}  # computed where gradients are: they stay there
    kept = (values.sizes.keys() - choice.again) | joint
    return tuple(f"/{s.path}" for s in closed(usual.scheduled.source, method, choice.again, kept))


def _needs(plan: ExecutionPlan, graph: Graph, target: CodeTarget, lowered: tuple[Lowered, ...]) -> dict[str, _Need]:
    """What each method takes at its largest extents. Raises PlanError where the plan does not bound these."""
    assert plan.memory is not None
    made = planned(Compiled(graph, plan, lowered, Path(), target))
    found: dict[str, _Need] = {}
    unbounded: list[Problem] = []
    for name, spec in made._manifest.methods.items():
        some = [_Need(name, n, sizes, made.peak(sizes, name)) for n, sizes in largest(spec) if sizes is not None]
        if len(some) < len(spec.variants):
            open_ = next(s for s, symbol in spec.symbols.items() if symbol.max is None)
            asked, why = f"recompute: auto for {name}, whose extent {open_} has no bound", "what a call takes depends on it"
            instead = (f"extents: {{{open_}: {{between: [1, 1024]}}}}", f"extents: {{{open_}: 1024}}")
            unbounded.append(plan.memory.place_of("recompute").problem("P404", asked, why, instead))
        else:
            found[name] = max(some, key=lambda need: need.peak.total)
    if unbounded:
        raise PlanError(unbounded)
    return found


def _out_of_reach(plan: ExecutionPlan, need: _Need, best: Peak) -> Problem:
    assert plan.memory is not None and plan.limit is not None
    given = ", ".join(f"{n} = {v}" for n, v in need.sizes.items())
    asked = f"recompute: auto finds no way for {need.method}{f' with {given}' if given else ''} to stay within {size(plan.limit)}"
    why = f"without it a call takes {size(need.peak.total)}; the least that was found is {best.text()}"
    instead = (f"limit: {best.total}", "smaller extents", "precision: {compute: bf16}")
    return plan.memory.place_of("recompute").problem("P404", asked, why, instead)


def rematerialisation(lowered: Lowered, method: str, sizes: Sizes) -> Rematerialisation:
    """The kernels of one method as the search sees them."""
    g, source = lowered.graph, lowered.scheduled.source
    late, stages = backward(g), {s.path: s for s in g.stages}
    kernels: list[Kernel] = []
    for k, of in zip(lowered.kernels, lowered.methods, strict=True):
        if of != method or k.name in lowered.setup:
            continue
        mine = [stages[path] for path in k.stages]
        costs = [cost(g, s) for s in mine]
        moved = sum(number(volume(b.shape), sizes) * itemsize(b.dtype) for b in k.arguments)
        work = max(sum(number(c.flops + c.integer_ops, sizes) for c in costs), BYTES * moved)
        new = {b.id: g.updates[b.id].id for b in k.outputs if b.id in g.updates}
        lasting = lowered.in_place.keys() | set(g.method(method).outputs)
        makes = {b.id: 0 if b.id in lasting else _rounded(number(volume(b.shape), sizes) * itemsize(b.dtype)) for b in k.outputs}
        leaves = frozenset({b.id for b in k.inputs if isinstance(g[b.id], Leaf)} | set(new.values()))
        reads = tuple(b.id for b in k.inputs if b.id not in leaves)
        kernels.append(Kernel(makes, reads, leaves, frozenset(new.values()), float(work), all(s.id in late for s in mine)))
    known = {s.id: s for s in source.stages}
    early = [v for k in kernels if not k.late for v in k.makes]
    bound = frozenset(v for v in early if v not in known)
    return Rematerialisation(tuple(kernels), frozenset(v for v in early if v in known and able(known[v], source)), bound)


def _rounded(nbytes: int) -> int:
    """The bytes that the runtime's arena has for a value."""
    return -(-nbytes // 64) * 64


__all__ = ["chosen_again", "rematerialisation", "saying", "with_recompute"]
