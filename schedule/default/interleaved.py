"""Stages whose last axis is a few parts of each element: complex numbers, pixels, what is stacked along a new last axis.

Vectors run over elements. What all parts are made of is computed once for all, in registers, and the results are woven as they are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fluorite.algo.expr import Axis, Read, as_expr
from fluorite.algo.extent import Extent, volume
from fluorite.algo.graph import Graph
from fluorite.algo.linear import simplify
from fluorite.algo.rewriting import reads, substitute, walk
from fluorite.algo.stages import Stage

from ..directives import Directive, Fuse, Parallel, Reorder, Split, Unroll, Vectorize
from ..machine import Machine
from ..typical import TYPICAL
from .analysis import MOST_PARTS, axes_of_index, is_flat, known, sites, work
from .chosen import Chosen
from .kernels import Directives, by_rows, chunk, pays_parallel

_LONGEST = 1000
"""Nodes of all that is computed in registers for one element."""


def suits(g: Graph, s: Stage, machine: Machine) -> bool:
    """Whether a stage has elements of a few parts, and rows of elements for vectors. Threads of a GPU compute a part each."""
    if machine.is_gpu or s.reduction is not None or s.scatter is not None or s.rank is not None or s.clock is not None or len(s.axes) < 2:
        return False
    parts = s.extents[-1]
    if not isinstance(parts, int) or not 1 < parts <= MOST_PARTS or s.dtype == "bool" or is_flat(g, s):
        return False
    return known(volume(_elements(g, s)), TYPICAL) >= machine.lanes(s.dtype)


def _elements(g: Graph, s: Stage) -> tuple[Extent, ...]:
    """The extents that one vector axis can be made of: all but the parts where everything is read in the same order, else the last one."""
    return s.extents[:-1] if _in_order(g, s) else s.extents[-2:-1]


def _in_order(g: Graph, s: Stage) -> bool:
    """Whether the elements of s and of all that it reads can be walked as one row."""
    *lead, _ = s.axes
    for r in s.reads:
        t = g[r.source]
        first, rest = r.index[: len(lead)], r.index[len(lead) :]
        if not r.index or not set(axes_of_index(r.index)) & set(lead):
            continue
        if len(first) < len(lead) or any(i is not a for i, a in zip(first, lead, strict=True)) or set(axes_of_index(rest)) & set(lead):
            return False
        if tuple(map(str, t.shape[: len(lead)])) != tuple(map(str, s.extents[:-1])):
            return False
    return not any(isinstance(n, Axis) and n in set(lead) for n in outside_indices(s))


def outside_indices(s: Stage) -> Iterator[Axis]:
    """The axes whose positions are values."""
    pending, seen = [s.value], set()
    while pending:
        n = pending.pop()
        if n not in seen:
            seen.add(n)
            if isinstance(n, Axis):
                yield n
            pending += [] if isinstance(n, Read) else n.operands


def interleaved(g: Graph, s: Stage, machine: Machine) -> Mapping[str, Directives]:
    """Vectors of elements, each part of them in turn."""
    lanes, parallel = machine.lanes(s.dtype), pays_parallel(s)
    *lead, part = [a.name for a in s.axes]
    *others, along = lead
    inner = (Reorder("vec", part, "lane"), Unroll(part), Vectorize("lane"))
    if not _in_order(g, s):
        return {s.path: (Split(along, lanes, into=("vec", "lane")), *by_rows(others, parallel), *inner)}
    ds: list[Directive] = []
    if others:
        along = "flat"
        ds += [Fuse(*lead, into=along)]
    if parallel:
        ds += [Split(along, chunk(volume(s.extents[:-1]), lanes, machine), into=("task", "item")), Parallel("task")]
        along = "item"
    return {s.path: (*ds, Split(along, lanes, into=("vec", "lane")), *inner)}


# ---------------------------------------------------------------- what they are made of
def cones(g: Graph, chosen: Chosen) -> frozenset[int]:
    """The stages that are made element by element for one of these alone: what is shared there is computed once."""
    undecided = chosen.undecided
    root: dict[int, Stage] = {}
    size: dict[int, int] = {}
    for s in reversed(g.stages):
        if s.id not in undecided.stages:
            continue
        if suits(g, s, undecided.machine):
            root[s.id], size[s.id] = s, _nodes(s)
            continue
        readers = g.consumers[s.id]
        if s.reduction is not None or s.id in g.outputs or s.id in g.pinned or s.earlier or s.clock or s.turn or s.extern or not readers:
            continue
        of = root.get(readers[0].id)
        if of is None or any(root.get(c.id) is not of or not _at_element(c, s, c is of) for c in readers):
            continue
        if all(chosen.may_fuse(c.id, s.id) for c in readers) and size[of.id] + _nodes(s) <= _LONGEST:
            root[s.id] = of
            size[of.id] += _nodes(s)
    return frozenset(i for i, s in root.items() if s.id != i)


def _nodes(s: Stage) -> int:
    return sum(1 for _ in walk(s.value))


def _at_element(c: Stage, s: Stage, whole: bool) -> bool:
    """Whether c reads s at its own element only; a stage of whole elements, with all of its parts."""
    axes = c.axes[:-1] if whole else c.axes
    if tuple(map(str, s.extents)) != tuple(map(str, c.extents[: len(axes)])):
        return False
    return all(len(r.index) == len(axes) and all(i is a for i, a in zip(r.index, axes, strict=True)) for r in c.reads if r.source == s.id)


def evaluations(g: Graph, c: Stage, p: Stage, machine: Machine) -> Extent:
    """How often p is evaluated inside its reader c: of elements of a few parts, by those parts that are made of it."""
    if not suits(g, c, machine):
        return volume((len(sites(c, p.id)), work(c)))
    part, parts = c.axes[-1], known(c.extents[-1], 1)
    values = [simplify(substitute(c.value, {part: as_expr(n)}), {}) for n in range(parts)]
    return volume((len({r.index for v in values for r in reads(v) if r.source == p.id}), *c.extents[:-1]))


__all__ = ["cones", "evaluations", "interleaved", "outside_indices", "suits"]
