"""A consumer inside its producer's nest: which part of it follows from the part of the producer that one iteration has made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fluorite.algo.expr import Axis, Expr, as_expr, binary
from fluorite.algo.extent import Extent, at_most, ceildiv, exact_quotient, nonnegative
from fluorite.algo.linear import Linear, bounds, linear
from fluorite.algo.rewriting import axes_of
from fluorite.algo.stages import Stage

from .regions import Box, Interval, whole


@dataclass(frozen=True)
class Tie:
    """An axis of the consumer stands for `factor` neighbouring positions of the producer's dimension; 1: it is the position."""

    dimension: int
    factor: int


@dataclass(frozen=True)
class Following:
    """How a consumer follows: its tied axes, and the dimensions of which it reads more, so that an iteration has to make all of them."""

    ties: Mapping[Axis, Tie]
    whole: frozenset[int]

    def box(self, s: Stage, owner: Stage, made: Box) -> dict[Axis, Interval] | None:
        """What of s can be computed from what was made of the owner; None if nothing."""
        if not all(made[owner.axes[d]].whole for d in self.whole):
            return None
        box = {a: whole(n) for a, n in zip(s.axes, s.extents, strict=True)}
        for a, tie in self.ties.items():
            part = _part(made[owner.axes[tie.dimension]], tie.factor)
            if part is None:
                return None
            box[a] = part
        return box


def following(s: Stage, inside: Sequence[Stage], owner: Stage) -> Following | None:
    """How s, with the stages that are computed inside its loops, follows the owner; None where some iteration has not made what it reads.

    `inside` in producer order.
    """
    if not any(owner.id in c.sources for c in (*inside, s)):
        return None
    names = _axes_as_seen(s, inside)
    found: dict[Axis, set[Tie]] = {}
    all_of: set[int] = set()
    for c in (*inside, s):
        for r in c.reads:
            for d, e in enumerate(r.index if r.source == owner.id else ()):
                tied = _tie(e, d, c, names[c.id])
                if tied is None:
                    all_of.add(d)
                else:
                    found.setdefault(tied[0], set()).add(tied[1])
    ties: dict[Axis, Tie] = {}
    for a, seen in found.items():
        rest = [t for t in seen if t.dimension not in all_of]
        if len(rest) > 1 or not all(_covers(s.ranges[a], owner.extents[t.dimension], t.factor) for t in rest):
            return None
        if rest:
            ties[a] = rest[0]
    dimensions = [t.dimension for t in ties.values()]
    return Following(ties, frozenset(all_of)) if len(set(dimensions)) == len(dimensions) else None


def _axes_as_seen(s: Stage, inside: Sequence[Stage]) -> Mapping[int, Mapping[Axis, Axis]]:
    """By stage: those of its axes that are axes of s, because all of its readers read it there."""
    names: dict[int, dict[Axis, Axis]] = {s.id: {a: a for a in s.axes}}
    ordered = (*inside, s)
    for c in reversed(inside):
        seen = [(names[q.id], r.index) for q in ordered if q.id in names for r in q.reads if r.source == c.id]
        own: dict[Axis, Axis] = {}
        for d, a in enumerate(c.axes):
            meant = {known.get(e) if isinstance(e := index[d], Axis) else None for known, index in seen}
            if len(meant) == 1 and (m := next(iter(meant))) is not None:
                own[a] = m
        names[c.id] = own
    return names


def _tie(e: Expr, d: int, c: Stage, known: Mapping[Axis, Axis]) -> tuple[Axis, Tie] | None:
    """The axis of s that says where in dimension d a read of the owner lies; None if more than that axis says it."""
    own = {a for a in axes_of(e) if a in known}
    if len(own) != 1:
        return None
    (a,) = own
    form = linear(e)
    factor = form.coefficient(a)
    rest = Linear(tuple((x, k) for x, k in form.terms if x is not a), form.constant)
    low, high = bounds(rest.expr(), c.ranges)
    if not isinstance(factor, int) or factor < 1 or any(a in set(axes_of(x)) for x, _ in rest.terms):
        return None
    if low is None or high is None or not nonnegative(low) or not at_most(high, factor - 1):
        return None
    return known[a], Tie(d, factor)


def _covers(n: Extent, whole_: Extent, factor: int) -> bool:
    """Whether an axis of n positions, each of `factor` of the owner's, is done when all of the owner is made."""
    return str(n) == str(ceildiv(whole_, factor) if factor > 1 else whole_)


def _part(made: Interval, factor: int) -> Interval | None:
    if factor == 1:
        return made
    first = linear(made.start)
    parts = [exact_quotient(c, factor) for c in (first.constant, *(c for _, c in first.terms))]
    if not at_most(made.bound, factor) or any(p is None for p in parts):
        return None
    start: Expr = as_expr(0)
    for p, x in zip(parts, (as_expr(1), *(x for x, _ in first.terms)), strict=True):
        assert p is not None
        start = binary("add", start, binary("mul", x, as_expr(p)))
    return Interval(start, as_expr(1), 1)


__all__ = ["Following", "Tie", "following"]
