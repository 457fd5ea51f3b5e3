"""Bounds inference: the box of a producer that one iteration of its consumers needs."""

from __future__ import annotations

from collections.abc import Sequence

from fluorite.algo.errors import InternalError, PlanError
from fluorite.algo.expr import Axis, Expr, as_expr, binary
from fluorite.algo.extent import Extent, at_most, ceildiv, exact_quotient, nonnegative
from fluorite.algo.linear import Ranges, bounds, simplify
from fluorite.algo.rewriting import axes_of
from fluorite.algo.stages import Stage
from fluorite.schedule.nest import TENSOR, THREAD, UNROLLED, VECTOR
from fluorite.schedule.notation.places import NOWHERE
from fluorite.schedule.regions import Box, Interval, Raw, image, raw_required, required, whole
from fluorite.schedule.rewrites import pads_of
from fluorite.schedule.shaping import shape
from fluorite.schedule.unscheduled import sorts, unscheduled

from ..gpu import nests
from . import logic, placing
from .context import Context, Placed


def boxes_at(work: Context, p: Placed, k: int, by_block: bool = False) -> dict[int, Box]:
    """What one iteration of loop k computes of the owner: the loops outside are points, those inside their whole range.

    `by_block`: what all threads of the block compute of it together.
    """
    free: dict[Axis, Interval] = {loop.var: whole(loop.extent) for loop in p.nest.loops[k + 1 :]}
    if by_block:
        free |= {loop.var: whole(loop.extent) for loop in work.threads}
    box: dict[Axis, Interval] = {}
    s = p.stage
    for a in (*s.axes, *s.reduce_axes):
        box[a] = span(work, p, a, image(p.values[a], free), free if by_block else {})
    if (row := sorts(s, work.plan.gpu)) is not None:  # which has no loop along the row that it sorts
        box |= {a: whole(s.ranges[a]) for a in (row.axis, row.over)}
    if s.parts_axis is not None:  # which are combined together
        box[s.parts_axis] = whole(s.ranges[s.parts_axis])
    return {s.id: box}


def span(work: Context, p: Placed, a: Axis, raw: Raw | None, free: Box) -> Interval:
    """The part of axis a that one iteration covers: not beyond the owner's own box."""
    mine = p.box.get(a) or whole(p.stage.ranges[a])
    if free and (set(axes_of(mine.start)) | set(axes_of(mine.length))) & free.keys():
        first_, last_ = image(mine.start, free), image(mine.last, free)
        if first_ is None or last_ is None or raw is None:
            return whole(p.stage.ranges[a])
        length = binary("add", binary("sub", last_.last, first_.first), as_expr(1))
        mine = Interval(first_.first, length, raw.bound)
    if raw is None:
        return mine
    first, last = simplify(raw.first, work.ranges), simplify(raw.last, work.ranges)
    if a not in p.padded:
        if logic.same(first, mine.start) and at_most(mine.bound, raw.bound):
            return mine
        past = simplify(binary("sub", last, mine.last), work.ranges)
        _, high = bounds(past, work.ranges)
        if high is None or not nonnegative(high * -1):
            last = simplify(binary("min", last, mine.last), work.ranges)
    return Interval(first, simplify(binary("add", binary("sub", last, first), as_expr(1)), work.ranges), raw.bound, sticking=a in p.padded)


def needed_box(
    work: Context, s: Stage, boxes: dict[int, Box], owner: Placed, exact: bool = False
) -> tuple[list[Interval], frozenset[Axis]]:
    """The box of s that everything computed in this iteration reads, and the axes along which it may stick out: none if `exact`."""
    consumers = consumers_inside(work, s, owner, boxes, exact)
    indices: list[tuple[Expr, ...]] = []
    where_: list[Box] = []
    ranges: list[Ranges] = []
    for c in consumers:
        for r in c.reads:
            if r.source == s.id:
                indices.append(r.index)
                where_.append(boxes[c.id])
                ranges.append(c.ranges)
    if not indices:
        raise InternalError(f"{s.path} has no reader inside {owner.stage.path}")
    least = required(indices, where_, s.extents, work.ranges, inside=not work.plan.gpu, readers=() if work.plan.gpu else ranges)
    if s.clock is not None:  # what is needed of a recurrence needs all that comes before
        least = [whole(s.ranges[a]) if a is s.clock.axis else i for a, i in zip(s.axes, least, strict=True)]
    least = [whole(s.ranges[a]) if a is s.parts_axis else i for a, i in zip(s.axes, least, strict=True)]
    if exact:
        return least, frozenset()
    tile = raw_required(indices, where_, s.extents, work.ranges)
    pads = {a: n for d in work.plan.directives.get(s.id, ()) for a, n in pads_of(d, s, work.native).items()}
    padded = [padded_to(e, pads.get(a.name, 1)) for a, e in zip(s.axes, least, strict=True)]
    marked = constant_axes(work, s, padded)
    sticking: set[Axis] = set()
    out = []
    for a, e, t in zip(s.axes, padded, tile, strict=True):
        if a in marked and t is not None and not e.whole:
            bound = rounded(work, s, a, t.bound)
            reach = e.reach and Raw(e.reach.first, binary("add", e.reach.first, as_expr(bound - 1)), bound)  # what sticks out reads, too
            out.append(Interval(t.start, as_expr(bound), bound, sticking=True, reach=reach))
            sticking.add(a)
        else:
            out.append(e)
            if e.sticking:
                sticking.add(a)
    return out, frozenset(sticking)


def padded_to(i: Interval, multiple: int) -> Interval:
    """The interval made longer to a multiple, beyond the tensor if need be."""
    if multiple == 1 or (i.whole and exact_quotient(i.bound, multiple) is not None):
        return i
    bound = ceildiv(i.bound, multiple) * multiple
    return Interval(i.start, as_expr(bound), bound, sticking=True)


def consumers_inside(work: Context, s: Stage, owner: Placed, boxes: dict[int, Box], exact: bool = False) -> list[Stage]:
    """The readers of s; boxes of readers that are computed deeper are found on the way, without what sticks out if `exact`."""
    found = []
    for c in work.plan.stages:
        if s.id in c.sources:
            if c.id not in boxes:
                if c.id not in work.plan.placements:
                    place = work.plan.placements[s.id].directive
                    why = f"{c.name} reads it too and is computed outside that loop"
                    problem = (place.at() if place else NOWHERE).problem(
                        "P204",
                        f'{s.name} cannot be computed at {owner.stage.name}\'s "{work.plan.placements[s.id].loop}"',
                        why,
                        (f"compute_root, or compute {c.name} there as well",),
                        path=s.path,
                        source=s.source,
                    )
                    raise PlanError([problem])
                interval, _ = needed_box(work, c, boxes, owner, exact)
                boxes[c.id] = dict(zip(c.axes, interval, strict=True)) | {
                    a: whole(n) for a, n in zip(c.reduce_axes, c.reduction.extents if c.reduction else (), strict=True)
                }
            elif c.reduction is not None and c.id != owner.stage.id:
                boxes[c.id] = {**boxes[c.id], **{a: whole(n) for a, n in zip(c.reduce_axes, c.reduction.extents, strict=True)}}
            found.append(c)
    return found


def constant_axes(work: Context, s: Stage, box: Sequence[Interval]) -> set[Axis]:
    """Axes with a loop that must be constant and not longer than the box: unrolled, vectorised, tensorized, or dealt to threads."""
    nest = unscheduled(s, work.plan.gpu, [i.bound for i in box])
    nest, _ = shape(nest, placing.shaping(work, s), work.native, s.dtype)
    marked = (
        {loop.var for loop in nest.loops if loop.kind in (VECTOR, UNROLLED, THREAD, TENSOR)}
        if not work.plan.gpu
        else {loop.var for loop in nest.loops}
    )
    if any(loop.kind == TENSOR for loop in nest.loops):  # what is inside the reduction is written out
        first = next((n for n, loop in enumerate(nest.loops) if loop.reduction), 0)
        marked |= {loop.var for loop in nest.loops[first:]}
    out: set[Axis] = set()
    for a in s.axes:
        used = set(axes_of(nest.value(a)))
        if used & marked:
            out.add(a)
    return out


def rounded(work: Context, s: Stage, a: Axis, bound: Extent) -> Extent:
    """The bound rounded up so that this axis's splits divide it."""
    assert isinstance(bound, int)
    if work.plan.gpu and (fetch := nests.fetch_of(work.plan.directives.get(s.id, ()))) is not None:
        vector = (fetch.vector or 1) if a is s.axes[-1] else 1
        return -(-bound // vector) * vector
    nest = unscheduled(s, work.plan.gpu, [bound if x is a else 1 for x in s.axes])
    nest, _ = shape(nest, placing.shaping(work, s), work.native, s.dtype)
    _, high = bounds(nest.value(a), {loop.var: loop.extent for loop in nest.loops})
    return max(bound, high + 1) if isinstance(high, int) else bound
