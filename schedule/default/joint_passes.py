"""One pass over an image for all that is made of it: sums to a few numbers, filters, and the image itself where others read it.

The owner's rows are cut into strips. What a strip needs of the owner's producers is computed for it (stencils: with their margins), and
what reads the strip alone follows while the strip is in the cache: blocks of sums, sums of single rows, filters along the rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fluorite.algo.dtypes import itemsize
from fluorite.algo.expr import Axis, Expr
from fluorite.algo.extent import volume
from fluorite.algo.graph import Graph
from fluorite.algo.linear import linear
from fluorite.algo.stages import Stage

from ..directives import Cache, ComputeAt, Directive, Parallel, Reorder, Split, StoreIn, Unroll, Vectorize
from ..following import following
from ..typical import TYPICAL, guess
from . import few_results
from .analysis import follows, known, plain, pointwise, sites, steps_along
from .chosen import Chosen
from .kernels import Directives, vector

LEAST = 1 << 18
"""Bytes of an image that is better not read again."""
_WINDOW = 64
_VECTORS = 4


@dataclass
class Group:
    """`before`: producers computed for a strip; `after`: what follows it, each with what is computed in its own loops."""

    owner: Stage
    height: int
    before: list[Stage] = field(default_factory=list)
    after: dict[int, tuple[Stage, list[Stage]]] = field(default_factory=dict)

    @property
    def ids(self) -> set[int]:
        return {self.owner.id, *(s.id for s in self.before), *(s.id for f, cone in self.after.values() for s in (f, *cone))}


def joint_passes(chosen: Chosen) -> None:
    """Directives for the groups that there are, later owners first: they keep what earlier ones would take as well."""
    if chosen.machine.cores < 2 or not any(chosen.free(s) and chosen.one_pass(s) is not None for s in chosen.graph.stages):
        return
    groups: list[set[int]] = []
    for o in reversed(chosen.graph.stages):
        found = _group(chosen, o) if _is_image(chosen, o) else None
        if found is not None and not _reenters(chosen.graph, found.ids, groups):
            groups.append(found.ids)
            chosen.placed |= found.ids
            chosen.directives |= _directives(chosen, found)


def _is_image(chosen: Chosen, o: Stage) -> bool:
    return (
        chosen.free(o)
        and _is_plain(o)
        and o.reduction is None
        and len(o.axes) == 2
        and guess(volume(o.extents)) * itemsize(o.dtype) >= LEAST
        and known(o.extents[1], TYPICAL) >= _VECTORS * chosen.machine.lanes(o.dtype)
    )


def _is_plain(s: Stage) -> bool:
    whole = s.clock, s.turn, s.when, s.scatter, s.rank, s.extern, s.parts_axis
    return all(x is None for x in whole)


# ---------------------------------------------------------------- what belongs together
def _group(chosen: Chosen, o: Stage) -> Group | None:
    """The group of an owner; None unless some sum to a few numbers follows it."""
    height = next((h for h in (32, 16, 8) if known(o.extents[0], TYPICAL) >= 2 * h * chosen.machine.cores), 0)
    if not height:
        return None
    g, group = chosen.graph, Group(o, height)
    later = _after(g, {o.id})
    for f in g.stages:
        if f.id in later and chosen.free(f) and _is_plain(f) and chosen.may_fuse(o.id, f.id) and f.id not in group.ids:
            cone = _cone(chosen, f, later)
            if all(chosen.may_fuse(o.id, c.id) for c in cone) and _follows(chosen, group, f, cone, later):
                group.after[f.id] = (f, cone)
    if not any(chosen.one_pass(f) is not None for f, _ in group.after.values()):
        return None
    group.before = _before(chosen, group)
    return group


def _after(g: Graph, start: set[int]) -> set[int]:
    """What reads the stages, directly or not."""
    found: set[int] = set()
    for s in g.stages:
        if s.id not in start and any(i in start or i in found for i in s.sources):
            found.add(s.id)
    return found


def _reenters(g: Graph, ids: set[int], groups: Iterable[set[int]]) -> bool:
    """Whether something outside would have to be computed after a part of the group and before another part."""
    other = {i: group for group in groups for i in group}
    pending, seen = list(ids), set[int]()
    while pending:
        for c in g.consumers[pending.pop()]:
            if c.id not in ids and c.id not in seen:
                together = other.get(c.id, {c.id})
                seen |= together
                pending += together
    return any(c.id in ids for i in seen for c in g.consumers[i])


def _cone(chosen: Chosen, f: Stage, later: set[int]) -> list[Stage]:
    """What is computed row by row for f: it depends on the owner, and f alone needs it. In producer order."""
    g, inside, cone = chosen.graph, {f.id}, list[Stage]()
    if f.reduction is not None or len(f.axes) != 2:
        return []
    for q in reversed(g.stages):
        readers = g.consumers[q.id]
        if q.id not in later or not readers or any(c.id not in inside for c in readers) or not _is_part(chosen, q):
            continue
        if all(follows(c, q, 1) for c in readers):
            inside.add(q.id)
            cone.append(q)
    return cone[::-1]


def _is_part(chosen: Chosen, q: Stage) -> bool:
    """Whether q may be computed in parts: an image, or a window of one that is summed up."""
    if not chosen.free(q) or not _is_plain(q) or len(q.axes) != 2 or q.id in chosen.graph.outputs or q.id in chosen.graph.pinned:
        return False
    if chosen.one_pass(q) is not None or known(q.extents[1], TYPICAL) < _VECTORS * chosen.machine.lanes(q.dtype):
        return False
    return q.reduction is None or _is_window(q)


def _is_window(q: Stage) -> bool:
    assert q.reduction is not None
    n = volume(q.reduction.extents)
    return isinstance(n, int) and n <= _WINDOW and not q.reduction.in_order and steps_along(q, q.axes[-1], 1)


def _follows(chosen: Chosen, group: Group, f: Stage, cone: list[Stage], later: set[int]) -> bool:
    """Whether f, with its cone, can be computed of a strip, and of what else there is by then."""
    o, over = group.owner, chosen.one_pass(f)
    if over is not None:
        if any(i in later for i in f.sources) or o.id not in f.sources:
            return False
        same = str(f.ranges[over.rows]) == str(o.extents[0])  # all of its rows, not the first ones
        return same and all(index[0] is over.rows and index[1] is over.lanes for index in sites(f, o.id))
    if f.reduction is not None and (len(f.axes) != 1 or guess(volume(f.reduction.extents)) > _WINDOW):
        return False
    mine = {f.id, *(c.id for c in cone)}
    for c in (*cone, f):
        for i in c.sources:
            if i in later and i not in mine and (c is not f or not _is_beside(group, f, i)):
                return False
    tied = following(f, cone, o)
    if tied is None or len(f.axes) not in (1, 2) or 0 in tied.whole:
        return False
    rows = [a for a, t in tied.ties.items() if (t.dimension, t.factor) == (0, 1)]
    return bool(rows) and rows[0] is f.axes[0]


def _is_beside(group: Group, f: Stage, i: int) -> bool:
    """Whether f reads of another stage that follows only the rows of the same strip."""
    if i not in group.after:
        return False
    other, _ = group.after[i]
    return len(other.axes) == 1 and all(index == f.axes[:1] for index in sites(f, i))


def _before(chosen: Chosen, group: Group) -> list[Stage]:
    """Producers of which a strip needs a strip: everyone who reads them is in the group."""
    g, inside, found = chosen.graph, group.ids, list[Stage]()
    for p in reversed(g.stages):
        readers = g.consumers[p.id]
        if p.id in inside or not readers or not all(c.id in inside for c in readers) or not _is_part(chosen, p):
            continue
        found_at = [(c, index) for c in readers for index in sites(c, p.id)]
        if chosen.may_fuse(group.owner.id, p.id) and all(_moves_along(_rows(chosen, c), c, index) for c, index in found_at):
            inside.add(p.id)
            found.append(p)
    return found[::-1]


def _rows(chosen: Chosen, c: Stage) -> Axis | None:
    over = chosen.one_pass(c)
    return over.rows if over is not None else c.axes[0] if c.axes else None


def _moves_along(y: Axis | None, c: Stage, index: tuple[Expr, ...]) -> bool:
    """Whether the row that is read moves with y, plus constants and what is short."""
    form = linear(plain(index[0]))
    if y is None or form.coefficient(y) != 1 or not isinstance(form.constant, int) or abs(form.constant) > _WINDOW:
        return False
    return all(x is y or (isinstance(x, Axis) and known(c.ranges[x], TYPICAL) <= _WINDOW and k in (1, -1)) for x, k in form.terms)


# ---------------------------------------------------------------- how it is computed
def _directives(chosen: Chosen, group: Group) -> dict[str, Directives]:
    o, strip = group.owner, ComputeAt(stage="/" + group.owner.path, axis="strip")
    out: dict[str, Directives] = {}
    rows = (Split(o.axes[0].name, group.height, into=("strip", "line")), Parallel("strip"))
    images = {o.id: o} | {s.id: s for s in group.before if s.reduction is None}
    out[o.path] = (*rows, *_tiles(chosen, o))
    for s in group.before:
        out |= _part(chosen, s, strip, images)
    for f, cone in group.after.values():
        over = chosen.one_pass(f)
        if over is not None:
            out |= few_results.in_one_pass(f, chosen.machine, over, group.height, strip)
        elif len(f.axes) == 1:
            out[f.path] = (strip,)
        else:
            out[f.path] = (strip, *_tiles(chosen, f))
            row = ComputeAt(stage="/" + f.path, axis=f.axes[0].name)
            for q in cone:
                out |= _part(chosen, q, row, {f.id: f})
    return out


def _tiles(chosen: Chosen, s: Stage) -> Directives:
    """The columns of a row, some vectors at a time."""
    x, lanes = s.axes[-1].name, chosen.machine.lanes(s.dtype)
    tile = (Split(x, _VECTORS * lanes, into=("tile", "columns")), Split("columns", lanes, into=("vector", "lane")))
    return (*tile, Unroll("vector"), Vectorize("lane"))


def _part(chosen: Chosen, s: Stage, at: ComputeAt, images: dict[int, Stage]) -> dict[str, Directives]:
    """A stage computed for a strip or a row. Windows are summed up in registers, for the tile of their only reader if it has tiles."""
    if s.reduction is None:
        return {s.path: (at, *(_tiles(chosen, s) if s.id in images else vector(s, s.axes[-1].name, chosen.machine)))}
    lanes, (*lead, x) = chosen.machine.lanes(s.dtype), [a.name for a in s.axes]
    readers = chosen.graph.consumers[s.id]
    reduced = [a.name for a in s.reduction.axes]
    loops: list[Directive] = [Split(x, lanes, into=("vector", "lane")), Reorder(*reduced, *lead, "vector", "lane")]
    summed = (StoreIn("registers"), *loops, Unroll("vector"), Vectorize("lane"))
    if len(readers) == 1 and readers[0].id in images and pointwise(readers[0], s):
        return {s.path: (ComputeAt(stage="/" + readers[0].path, axis="tile"), *summed)}
    inner = ComputeAt(stage="/" + s.path, axis="tile")
    return {s.path: (Cache("acc"), at, *_tiles(chosen, s)), f"{s.path}/acc": (inner, *summed)}


__all__ = ["joint_passes"]
