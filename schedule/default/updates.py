"""New values of state that are made element by element of one another, as Adam's moments and the weight: one pass over memory for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fluorite.algo.extent import volume
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage

from ..directives import ComputeAt, Directive, Fuse, Parallel, Split, Vectorize
from ..directives.base import Tail
from ..machine import Machine
from .analysis import is_flat, pointwise
from .kernels import Directives, pays_parallel

MOST = 1 << 14
"""Elements of a part that all stages make in turn: those of a few stages stay in the second-level cache."""
LINE = 1 << 10
"""Elements of a part of a vector."""


def members(g: Graph, root: Stage, joins: Callable[[Stage], bool]) -> list[Stage]:
    """The new values of state that `root`, a new value or a step towards one, is made of, at the same place, and that nothing else reads.
    None of them reads the old value of another one, which could not be written over in the same kernel, but for that of root, which is
    written last: weight decay adds it to the gradient."""
    if not _whole_numbers(root) or root.role != "update" or not _is_elementwise(g, root):
        return []
    inside, found = {root.id}, list[Stage]()
    pending = [root]
    while pending:
        reader = pending.pop()
        for i in reader.sources:
            p = g.stage(i)
            if p is None or p.id in inside or not _is_update(g, p) or not joins(p):
                continue
            same = all(c.id in inside and pointwise(c, p) and c.extents == p.extents for c in g.consumers[i])
            apart = any(_reads_old(g, a, p) or _reads_old(g, p, a) for a in found) or _reads_old(g, root, p)
            if same and not apart and (not _reads_old(g, p, root) or _ahead(g, p, root)):
                inside.add(p.id)
                found.append(p)
                pending.append(p)
    return sorted(found, key=lambda s: g.positions[s.id])


def _reads_old(g: Graph, s: Stage, other: Stage) -> bool:
    return other.id in g.updates and g.updates[other.id].id in s.sources


def _ahead(g: Graph, p: Stage, root: Stage) -> bool:
    """Whether p reads the old value of root where it is about to be written. (Parts of a vector are cut in other ways for each stage.)"""
    index = [r.index for r in p.reads if r.source == g.updates[root.id].id]
    return len(root.axes) > 1 and all(len(i) == len(p.axes) and all(x is a for x, a in zip(i, p.axes, strict=True)) for i in index)


def _is_update(g: Graph, s: Stage) -> bool:
    return s.id in g.updates and _is_elementwise(g, s)


def _is_elementwise(g: Graph, s: Stage) -> bool:
    plain = s.reduction is None and s.clock is None and s.turn is None and s.when is None and s.extern is None
    return plain and s.id not in g.pinned and is_flat(g, s)


def _whole_numbers(s: Stage) -> bool:
    return bool(s.axes) and all(isinstance(n, int) for n in s.extents)


def together(root: Stage, others: Sequence[Stage], machine: Machine) -> Mapping[str, Directives]:
    """Parts of root in parallel: the others' elements of a part, then its own. Nothing where no part is long enough for vectors."""
    lanes, parallel = machine.lanes(root.dtype), pays_parallel(root, *others)
    if len(root.axes) == 1:
        (name,) = root.axis_names
        if not isinstance(n := root.extents[0], int) or n < lanes:
            return {}
        own: list[Directive] = [Split(name, LINE, into=("part", "item"), tail="guard"), *([Parallel("part")] if parallel else [])]
        return {
            root.path: (*own, Vectorize("item", width=lanes)),
            **{s.path: (ComputeAt(stage="/" + root.path, axis="part"), Vectorize(s.axis_names[0], width=lanes)) for s in others},
        }
    fits = (d for d in range(1, len(root.axes)) if isinstance(n := volume(root.extents[d:]), int) and lanes <= n <= MOST)
    if (depth := next(fits, None)) is None:
        return {}
    part = root.axis_names[0] if depth == 1 else "part"
    own = [Fuse(*root.axis_names[:depth], into=part)] if depth > 1 else []
    own += [Parallel(part)] if parallel else []
    at = ComputeAt(stage="/" + root.path, axis=part)
    return {root.path: (*own, *_flat(root, depth, lanes, "guard")), **{s.path: (at, *_flat(s, depth, lanes)) for s in others}}


def _flat(s: Stage, depth: int, lanes: int, tail: Tail = "auto") -> Directives:
    """Vectors along the inner axes. (A last vector of root that is moved back would count as computing the others twice.)"""
    *_, last = inner = s.axis_names[depth:]
    if len(inner) == 1:
        return (Vectorize(last, width=lanes, tail=tail),)
    return (Fuse(*inner, into="flat"), Vectorize("flat", width=lanes, tail=tail))


__all__ = ["members", "together"]
