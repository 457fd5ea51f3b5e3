"""Sliding windows: a stage that store_at keeps across iterations computes in each only what those before it have not made.

Of a dimension that one loop moves forwards, iteration v computes what it needs beyond the last position that iteration v - 1 needed, and
the first iteration everything that it needs. What is left out was needed, and so made, one iteration of that loop before, by the same
iteration of the loops inside it. That holds if the loop moves no other dimension and is the innermost one that moves this one; if a
folded buffer still holds it; and if the guards of the owner leave out only iterations at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.expr import Axis, Expr, Op, as_expr, binary
from fluorite.algo.extent import Extent, at_most, nonnegative
from fluorite.algo.linear import is_index, linear, simplify
from fluorite.algo.rewriting import axes_of, substitute
from fluorite.algo.stages import Stage
from fluorite.schedule.directives import Fold
from fluorite.schedule.grouping import Keeping
from fluorite.schedule.nest import SERIAL, Loop
from fluorite.schedule.regions import Box, Interval

from . import bounding, guarding
from .context import Context, Placed

Part = tuple[list[Interval], frozenset[Axis], list[Interval]]
"""What an iteration computes of a stage, the axes along which that may stick out, and what is kept of the stage."""


@dataclass(frozen=True, eq=False)
class Windows:
    """The stages that slide at one loop, and the boxes that an iteration would need if none did."""

    of: Mapping[int, Part]
    full: dict[int, Box]


def windows(work: Context, p: Placed, k: int, kept: Sequence[Stage], boxes: dict[int, Box]) -> Windows:
    """The parts of the stages that are kept across iterations of loop k. `boxes` then says of them what an iteration computes.

    A window is that of all that its readers need, new or not: its end is the same, and its start is simple. What a reader's tile of
    constant size covers beyond that is not made, and not kept: reads of it land somewhere else in the window, and nobody reads on.
    """
    full = dict(boxes)
    of: dict[int, Part] = {}
    for s in reversed(kept):
        part, exact = slide(work, p, k, s, full)
        of[s.id] = part
        full[s.id] = dict(zip(s.axes, exact, strict=True))
        boxes[s.id] = dict(zip(s.axes, part[0], strict=True))
    return Windows(of, full)


def nearest(
    work: Context, p: Placed, s: Stage, found: Windows, interval: list[Interval], sticking: frozenset[Axis]
) -> tuple[list[Interval], frozenset[Axis]]:
    """What a stage that is computed anew needs of each dimension: for what is new of its readers, or if that is unknown, for all of it."""
    wide, out = bounding.needed_box(work, s, found.full, p)
    better = [i.whole and not w.whole for i, w in zip(interval, wide, strict=True)]
    picked = [w if b else i for i, w, b in zip(interval, wide, better, strict=True)]
    return picked, frozenset(a for a, b in zip(s.axes, better, strict=True) if a in (out if b else sticking))


def slide(work: Context, p: Placed, k: int, s: Stage, boxes: dict[int, Box]) -> tuple[Part, list[Interval]]:
    """What an iteration of loop k computes of s, and what it needs of it."""
    kept = work.plan.placements[s.id].kept
    assert kept is not None
    outside = home(p, kept)
    between = p.nest.loops[outside + 1 : k + 1]
    check_loops(p, s, kept, between)
    exact, _ = bounding.needed_box(work, s, boxes, p, exact=True)
    tile, sticking = bounding.needed_box(work, s, boxes, p)
    whole, _ = bounding.needed_box(work, s, bounding.boxes_at(work, p, outside), p, exact=True)
    moved = [[loop for loop in between if loop.var in {*axes_of(i.start), *axes_of(i.length)}] for i in exact]
    sliding = sliding_loops(work, p, s, exact, moved, between)
    if not any(sliding):
        raise PlanError([nothing_left(s, p, kept, exact, between)])
    computed, stored, out = [], [], set()
    for d, a in enumerate(s.axes):
        loop = sliding[d]
        if not moved[d] and a in sticking:  # the same tile in every iteration
            computed.append(tile[d])
            stored.append(tile[d])
            out.add(a)
            continue
        computed.append(exact[d] if loop is None else rest(work, exact[d], loop, s.extents[d]))
        stored.append(folded(work, s, a, exact[d], whole[d]))
    return (computed, frozenset(out), stored), exact


def home(p: Placed, kept: Keeping) -> int:
    """The position of the loop at which the stage is kept; -1 for the loop around the owner's nest."""
    return p.nest.position(kept.loop) if kept.owner == p.stage.id else -1


def rest(work: Context, i: Interval, loop: Loop, n: Extent) -> Interval:
    """The interval without what the iteration before it needed. In the first iteration, v * n is nothing and the whole interval remains."""
    before = substitute(i.last, {loop.var: binary("sub", loop.var, as_expr(1))})
    made = binary("min", binary("add", before, as_expr(1)), binary("mul", loop.var, as_expr(n)))
    start = simplify(binary("max", i.start, made), work.ranges)
    return Interval(start, simplify(binary("add", binary("sub", i.last, start), as_expr(1)), work.ranges), i.bound)


def sliding_loops(
    work: Context, p: Placed, s: Stage, exact: Sequence[Interval], moved: Sequence[Sequence[Loop]], between: Sequence[Loop]
) -> list[Loop | None]:
    """For each dimension the loop along which its window slides."""
    folds = {a for a in s.axes if fold_of(work, s, a) is not None}
    guards = [value for value, _ in guarding.guards_of(work, p)]
    out: list[Loop | None] = []
    for d, (a, i) in enumerate(zip(s.axes, exact, strict=True)):
        loop = moved[d][-1] if moved[d] else None
        if loop is not None:
            inside = between[between.index(loop) + 1 :]
            alone = not any(loop in others for e, others in enumerate(moved) if e != d)
            overwritten = any(x in inside for e, b in enumerate(s.axes) if b in folds and b is not a for x in moved[e])
            steady = all(rises(v, x.var) for v in guards for x in between)
            if not (alone and steady and not overwritten and rises(i.start, loop.var) and rises(i.last, loop.var)):
                loop = None
        out.append(loop)
    return out


def rises(e: Expr, var: Axis) -> bool:
    """Whether e provably never falls as var grows."""
    return all(nonnegative(c) and _atom_rises(atom, var) for atom, c in linear(e).terms if var in set(axes_of(atom)))


def _atom_rises(atom: Expr, var: Axis) -> bool:
    match atom:
        case Axis():
            return True
        case Op(op="edge" | "floordiv", args=(a, n)) if is_index(atom):
            form = linear(n)
            return not form.terms and nonnegative(form.constant - (1 if atom.op == "floordiv" else 0)) and rises(a, var)
        case Op(op="min" | "max", args=(a, b)) if is_index(atom):
            return rises(a, var) and rises(b, var)
    return False


def fold_of(work: Context, s: Stage, a: Axis) -> Fold | None:
    return next((d for d in work.plan.directives.get(s.id, ()) if isinstance(d, Fold) and d.axis == a.name), None)


def folded(work: Context, s: Stage, a: Axis, window: Interval, whole: Interval) -> Interval:
    """What is kept of a dimension: all that an iteration of the outer loop needs, or the circular buffer of a fold, from position 0."""
    fold = fold_of(work, s, a)
    if fold is None or at_most(whole.bound, fold.extent):
        return whole
    if not at_most(window.bound, fold.extent):
        asked = f"fold: {{axis: {a.name}, extent: {fold.extent}}}: one iteration needs {window.bound} positions of {s.name}"
        try_ = (f"extent: {window.bound}",) if isinstance(window.bound, int) else ("leave fold out",)
        raise PlanError([fold.at("extent").problem("P261", asked, "all that it needs is kept at once", try_, path=s.path, source=s.source)])
    work.folds[s.id, a] = fold.extent
    return Interval(as_expr(0), as_expr(fold.extent), fold.extent)


# ---------------------------------------------------------------- refusals
def check_loops(p: Placed, s: Stage, kept: Keeping, between: Sequence[Loop]) -> None:
    loop = next((x for x in between if x.kind != SERIAL), None)
    if not between:
        why = f"compute_at computes it at that loop or further out; outside are {', '.join(p.nest.names) or 'no loops'}"
    elif loop is not None:
        why = f"{loop.name} of {p.stage.name} lies between that and compute_at and is {loop.kind}: its iterations do not follow one another"
    else:
        return
    raise PlanError([refused(s, kept, why)])


def nothing_left(s: Stage, p: Placed, kept: Keeping, exact: Sequence[Interval], between: Sequence[Loop]) -> Problem:
    """P260: no dimension of the stage slides."""
    loops = ", ".join(x.name for x in between)
    whole = [a.name for a, i in zip(s.axes, exact, strict=True) if i.whole]
    why = (
        f"what {loops} of {p.stage.name} needs of it does not move forwards along one axis, so no iteration can use what one before it made"
    )
    if whole:
        why += f" (every iteration needs all of {', '.join(whole)})"
    return refused(s, kept, why, "leave store_at out", "compute_root")


def refused(s: Stage, kept: Keeping, why: str, *try_: str) -> Problem:
    asked = f'{s.name} cannot be kept at "{kept.loop}"'
    return kept.directive.at("axis").problem("P260", asked, why, try_, path=s.path, source=s.source)
