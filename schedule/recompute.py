"""Stages computed again for late readers, so that their buffers need not be kept until then."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
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
    ids, behind = {s.id for s in chosen}, backward(graph)
    late = {s.id: frozenset(c.id for c in _late(s, graph, ids, behind)) for s in chosen}
    again = {s.id: _copy(s, n) for n, s in enumerate(chosen, max(graph.by_id) + 1)}
    paths = {t.path for t in graph.by_id.values()}
    clashes = [s for s in again.values() if s.path in paths]
    if clashes:
        return graph, [*problems, memory.place_of("recompute").problem("P220", f"{clashes[0].path} exists already", "", ())]
    place = {s.id: n for n, s in enumerate(graph.stages)}
    waiting = {s.id for s in graph.stages if s.id in behind and s.role == "forward" and s.id not in ids}
    stages: list[Stage] = []
    known = {s.id: s for s in graph.stages}
    written: set[int] = set()  # of the stages that wait, and of those of which there is a copy

    def needed(found: Iterable[int], among: Container[int]) -> Iterator[Stage]:
        """These stages and the sources of theirs that are `among` some, as far as they have not been written, in their order."""
        pending, some = [i for i in found if i in among], set[int]()
        while pending:
            if (i := pending.pop()) not in written:
                written.add(i)
                some.add(i)
                pending += [k for k in known[i].sources if k in among]
        return iter([known[i] for i in sorted(some, key=place.__getitem__)])

    for s in graph.stages:
        if s.id in waiting:
            continue
        for t in (*needed(s.sources, waiting), s):  # what only the backward pass reads comes where it is read
            mine = [i for i in t.sources if t.id in late.get(i, ())]
            stages += [redirect(again[c.id], {k: again[k].id for k in c.sources if k in again}) for c in needed(mine, again)]
            stages.append(redirect(t, {i: again[i].id for i in mine}))
    return graph.with_stages(stages), problems


def backward(graph: Graph) -> frozenset[int]:
    """The stages of gradients and updates, and those that nothing else reads."""
    found: set[int] = set()
    for s in reversed(graph.stages):
        readers = graph.consumers[s.id]
        only = readers and s.id not in graph.outputs and s.clock is None and s.turn is None and all(c.id in found for c in readers)
        if s.role != "forward" or only:
            found.add(s.id)
    return frozenset(found)


def able(s: Stage, graph: Graph) -> bool:
    """Whether a stage may be chosen to be computed again: its value is no result, and depends on nothing but what it reads. Functions of
    the user's are not called twice."""
    return s.role == "forward" and s.extern is None and _fixed(s, graph) is None


def closed(graph: Graph, method: str, again: Container[int], kept: Container[int]) -> list[Stage]:
    """The stages of a method to compute again so that the values in `again` are: with those that lie between them and the values that are
    `kept`, before and behind, as far as the backward pass needs them."""
    behind = backward(graph)
    free = {s.id for s in graph.stages if s.method == method and s.id not in behind and s.id not in kept and able(s, graph)}
    some: set[int] = set()
    for s in graph.stages:
        if s.id in free and (s.id in again or any(i in some for i in s.sources)):
            some.add(s.id)
    chosen: set[int] = set()
    for s in reversed(graph.stages):
        if s.id in some and any(c.id in behind or c.id in chosen for c in graph.consumers[s.id]):
            chosen.add(s.id)
            some |= {i for i in s.sources if i in free}
    return [s for s in graph.stages if s.id in chosen]


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
    behind = backward(graph)
    learns = {s.method for s in graph.stages if s.role != "forward"}
    served = {places[s.id] for s in chosen if s.method in learns}  # one line may mean a stage of each method, and has a use in some
    for s in chosen:
        if (why := _refusal(s, graph, places.keys(), behind)) is not None:
            if s.method not in learns and places[s.id] in served:
                del places[s.id]
                continue
            instead = ("leave it out of recompute",)
            problems.append(places[s.id].problem("P402", f"recompute: {s.path} cannot be computed again", why, instead, path=s.path))
    return ([] if problems else [s for s in chosen if s.id in places]), problems


def _fixed(s: Stage, graph: Graph) -> str | None:
    """Why a stage cannot be computed again, whoever reads it."""
    if s.id in graph.outputs:
        return "it is a result, which is kept anyway"
    if s.clock is not None:
        return "it is part of a recurrence, whose steps depend on one another"
    if s.turn is not None:
        return "it is computed at each turn of a loop, and kept for that turn only"
    return None


def _refusal(s: Stage, graph: Graph, others: Container[int], behind: Container[int]) -> str | None:
    if (why := _fixed(s, graph)) is not None:
        return why
    read_again = any(c.id in others for c in graph.consumers[s.id])
    if not read_again and not _late(s, graph, others, behind):
        return "it is read by one stage only, so that nothing is kept for later"
    return None


def _late(s: Stage, graph: Graph, others: Container[int], behind: Container[int]) -> list[Stage]:
    """The readers for which a stage is computed again: those of the backward pass; where there are none, those of which copies read the
    copy, or else all but the first."""
    readers = graph.consumers[s.id]
    gradient = [c for c in readers if c.id in behind]
    if gradient and len(gradient) < len(readers):
        return gradient
    return [] if behind and not gradient and any(c.id in others for c in readers) else list(readers[1:])


def _copy(s: Stage, number: int) -> Stage:
    fresh = {a: axis(a.name) for a in (*s.axes, *s.reduce_axes)}
    reduction = s.reduction and replace(s.reduction, axes=tuple(fresh[a] for a in s.reduction.axes))
    path = f"{s.method}/{RECOMPUTE}/{s.path.removeprefix(f'{s.method}/')}"
    axes, value = tuple(fresh[a] for a in s.axes), substitute(s.value, dict(fresh))
    when = None if s.when is None else substitute(s.when, dict(fresh))
    return replace(s, id=number, path=path, axes=axes, value=value, reduction=reduction, origin="derived", when=when)


__all__ = ["able", "backward", "closed", "recomputed"]
