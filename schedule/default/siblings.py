"""Reductions over the same places that have costly parts in common, or large tensors that each reads once: better computed in one nest,
where the parts are computed once and the tensors go through the caches once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fluorite.algo.dtypes import itemsize
from fluorite.algo.expr import REAL, Axis, Expr, Op, Read
from fluorite.algo.extent import volume
from fluorite.algo.graph import Graph
from fluorite.algo.linear import is_index
from fluorite.algo.rewriting import substitute, walk
from fluorite.algo.stages import Stage

from ..placing import reaches
from ..typical import guess
from .analysis import EXPENSIVE, price, work
from .chosen import Chosen

WORTH = 8
"""Vector instructions that are worth having two nests in one, which takes registers."""
FROM_MEMORY = 8
"""Vector instructions that take as long as one vector of a tensor that no cache holds."""
MOST = 4
"""Stages of one nest."""

Axes = Mapping[Axis, Axis]
"""By the axes of one stage those of another one that mean the same."""


@dataclass(frozen=True, eq=False)
class Family:
    """Stages that go over the same places; `axes` has, for each of the others, its axes by those of the leader."""

    leader: Stage
    others: tuple[Stage, ...]
    axes: Mapping[int, Axes]

    @property
    def members(self) -> tuple[Stage, ...]:
        return (self.leader, *self.others)

    @property
    def ids(self) -> frozenset[int]:
        return frozenset(s.id for s in self.members)


def families(chosen: Chosen) -> list[Family]:
    """All of a graph, by leaders in producer order. The member with the most axes of its own leads: its nest has the fewest choices."""
    g = chosen.graph
    able = [s for s in g.stages if _may_join(chosen, s) and any(_counts(chosen, s, e) for e in walk(s.value))]
    found: list[Family] = []
    taken: set[int] = set()
    for s in sorted(able, key=lambda s: (-len(s.axes), g.positions[s.id])):
        if s.id in taken:
            continue
        others: list[Stage] = []
        axes: dict[int, Axes] = {}
        for t in able:
            if t.id in taken or t.id == s.id or len(others) == MOST - 1 or not chosen.may_fuse(s.id, t.id):
                continue
            if any(reaches(g, a.id, t.id) or reaches(g, t.id, a.id) for a in (s, *others)):
                continue
            same = same_places(chosen, s, t)
            if same is not None and shared_cost(chosen, s, t, same) >= WORTH and _go_alike(chosen, s, t, same):
                others.append(t)
                axes[t.id] = same
        if others and _is_convex(g, [s, *others]):
            taken |= {s.id, *axes}
            found.append(Family(s, tuple(others), axes))
    return found


def _may_join(chosen: Chosen, s: Stage) -> bool:
    ordinary = (s.clock, s.turn, s.when, s.scatter, s.rank, s.extern, s.parts_axis)
    return s.reduction is not None and not s.reduction.in_order and all(x is None for x in ordinary) and chosen.free(s)


def _go_alike(chosen: Chosen, s: Stage, t: Stage, axes: Axes) -> bool:
    """Whether the rules for both go over these places in the same way: image-sized sums in one pass, others result by result."""
    one, other = chosen.one_pass(s), chosen.one_pass(t)
    if one is not None and other is not None:
        return axes[one.rows] is other.rows and axes[one.lanes] is other.lanes
    return one is None and other is None and len(s.axes) == len(t.axes) and all(axes[a] is b for a, b in zip(s.axes, t.axes, strict=True))


def _is_convex(g: Graph, members: Sequence[Stage]) -> bool:
    """Whether nothing needs one of the members and is needed by another one."""
    return not any(reaches(g, a.id, b.id) for a in members for b in members if a is not b)


def _counts(chosen: Chosen, s: Stage, e: Expr) -> bool:
    """Whether a part of s is worth being shared."""
    return is_streamed(chosen, s, e) or (isinstance(e, Op) and not is_index(e) and (e.op in REAL or e.op in EXPENSIVE))


def is_streamed(chosen: Chosen, s: Stage, e: Expr) -> bool:
    """Whether a part of s reads a tensor that the caches do not hold, and each of its elements about once. What is reduced in one pass over
    an image goes with that image (see `joint_passes`)."""
    if not isinstance(e, Read) or chosen.one_pass(s) is not None or chosen.is_product(s):
        return False
    elements = guess(volume(chosen.graph[e.source].shape))
    return elements * itemsize(e.dtype) >= chosen.machine.l2 and guess(work(s)) <= 2 * elements


# ---------------------------------------------------------------- the same places
def same_places(chosen: Chosen, s: Stage, t: Stage) -> Axes | None:
    """The axes of t by those of s where both go over the same box and some part of t that counts is, over these, one of s."""
    if sorted(map(str, s.ranges.values())) != sorted(map(str, t.ranges.values())):
        return None
    of_s = [e for e in walk(s.value) if _counts(chosen, s, e)]
    for f in (e for e in walk(t.value) if _counts(chosen, t, e)):
        for e in of_s:
            matched = _matched(e, f, s, t)
            if matched is not None and (whole := _completed(matched, s, t)) is not None:
                return whole
    return None


def _matched(e: Expr, f: Expr, s: Stage, t: Stage) -> dict[Axis, Axis] | None:
    """The axes of t by those of s under which two expressions are the same."""
    found: dict[Axis, Axis] = {}
    pending = [(e, f)]
    seen: dict[Expr, set[Expr]] = {}
    while pending:
        a, b = pending.pop()
        if b in seen.setdefault(a, set()):
            continue
        seen[a].add(b)
        match a, b:
            case Axis(), Axis():
                if a not in s.ranges or b not in t.ranges or str(s.ranges[a]) != str(t.ranges[b]):
                    return None
                if found.setdefault(a, b) is not b:
                    return None
            case (Op(), Op()) if (a.op, a.dtype, a.weak, len(a.args)) == (b.op, b.dtype, b.weak, len(b.args)):
                pending += zip(a.args, b.args, strict=True)
            case Read(), Read() if (a.source, len(a.index)) == (b.source, len(b.index)):
                pending += zip(a.index, b.index, strict=True)
            case _:
                if a is not b:
                    return None
    return found if len(set(found.values())) == len(found) else None


def _completed(found: dict[Axis, Axis], s: Stage, t: Stage) -> Axes | None:
    """The axes that the common part does not speak of, in their order: those of a kind, result or reduction, with one another first."""
    left = [b for b in t.ranges if b not in set(found.values())]
    reduced, reduced_ = set(s.reduce_axes), set(t.reduce_axes)
    for a in (a for a in s.ranges if a not in found):
        fitting = [b for b in left if str(t.ranges[b]) == str(s.ranges[a])]
        b = next((b for b in fitting if (a in reduced) == (b in reduced_)), next(iter(fitting), None))
        if b is None:
            return None
        found[a] = b
        left.remove(b)
    return {a: found[a] for a in s.ranges}


def shared_cost(chosen: Chosen, s: Stage, t: Stage, axes: Axes) -> int:
    """The vector instructions of one evaluation of t that s makes as well."""
    mine = set(walk(s.value))
    value = substitute(t.value, {b: a for a, b in axes.items()})
    return worth(chosen, s, [e for e in walk(value) if e in mine])


def worth(chosen: Chosen, s: Stage, parts: Sequence[Expr]) -> int:
    """The vector instructions that these parts of s are worth."""
    return sum(price(e) + FROM_MEMORY * is_streamed(chosen, s, e) for e in parts)


__all__ = ["Axes", "Family", "families", "same_places", "shared_cost", "worth"]
