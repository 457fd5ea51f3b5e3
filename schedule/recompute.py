"""Stages computed again for late readers, so that their buffers need not be kept until then."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.expr import axis
from fluorite.algo.graph import Graph
from fluorite.algo.rewriting import substitute
from fluorite.algo.stages import Stage, redirect

from .graph_sections import Memory
from .notation.places import Place
from .pool import Pool
from .precision import within

RECOMPUTE = "recompute"


def recomputed(memory: Memory, graph: Graph) -> tuple[Graph, list[Problem]]:
    """f; first(f); late(f)  ->  f; first(f); recompute/f; late(recompute/f). What is recomputed reads what is recomputed before it."""
    chosen, problems = _chosen(memory, graph)
    if not chosen:
        return graph, problems
    late = {s.id: frozenset(c.id for c in _late(s, graph)) for s in chosen}
    again = {s.id: _copy(s, n) for n, s in enumerate(chosen, max(graph.by_id) + 1)}
    paths = {t.path for t in graph.by_id.values()}
    clashes = [s for s in again.values() if s.path in paths]
    if clashes:
        return graph, [*problems, memory.place_of("recompute").problem("P220", f"{clashes[0].path} exists already", "", ())]
    stages: list[Stage] = []
    written: set[int] = set()

    def write(i: int) -> None:
        """The copy of stage i, after those that it reads."""
        if i not in written:
            written.add(i)
            sources = [k for k in again[i].sources if k in again]
            for k in sources:
                write(k)
            stages.append(redirect(again[i], {k: again[k].id for k in sources}))

    for s in graph.stages:
        mine = [i for i in s.sources if s.id in late.get(i, ())]
        for i in mine:
            write(i)
        stages.append(redirect(s, {i: again[i].id for i in mine}))
    return graph.with_stages(stages), problems


def _chosen(memory: Memory, graph: Graph) -> tuple[list[Stage], list[Problem]]:
    """The stages that the plan names, in their order, and why some cannot be computed again."""
    pool, problems = Pool(graph.stages), list[Problem]()
    places: dict[int, Place] = {}
    for n, text in enumerate(memory.recompute if isinstance(memory.recompute, tuple) else ()):
        place = memory.place_of("recompute", n)
        try:
            for s in within(text, pool, place, graph.name):
                places.setdefault(s.id, place)
        except PlanError as error:
            problems += error.problems
    chosen = [s for s in graph.stages if s.id in places]
    for s in chosen:
        if (why := _refusal(s, graph, places.keys())) is not None:
            instead = ("leave it out of recompute",)
            problems.append(places[s.id].problem("P402", f"recompute: {s.path} cannot be computed again", why, instead, path=s.path))
    return ([] if problems else chosen), problems


def _refusal(s: Stage, graph: Graph, others: Container[int]) -> str | None:
    if s.id in graph.outputs:
        return "it is a result, which is kept anyway"
    if s.clock is not None:
        return "it is part of a recurrence, whose steps depend on one another"
    if s.turn is not None:
        return "it is computed at each turn of a loop, and kept for that turn only"
    read_again = any(c.id in others for c in graph.consumers[s.id])
    if not read_again and not _late(s, graph):
        return "it is read by one stage only, so that nothing is kept for later"
    return None


def _late(s: Stage, graph: Graph) -> list[Stage]:
    """The readers for which a stage is computed again."""
    readers = graph.consumers[s.id]
    gradient = [c for c in readers if c.role != "forward"]
    return gradient if gradient and len(gradient) < len(readers) else list(readers[1:])


def _copy(s: Stage, number: int) -> Stage:
    fresh = {a: axis(a.name) for a in (*s.axes, *s.reduce_axes)}
    reduction = s.reduction and replace(s.reduction, axes=tuple(fresh[a] for a in s.reduction.axes))
    path = f"{s.method}/{RECOMPUTE}/{s.path.removeprefix(f'{s.method}/')}"
    axes, value = tuple(fresh[a] for a in s.axes), substitute(s.value, dict(fresh))
    when = None if s.when is None else substitute(s.when, dict(fresh))
    return replace(s, id=number, path=path, axes=axes, value=value, reduction=reduction, origin="derived", when=when)


__all__ = ["recomputed"]
