"""The innermost statement: a stage's value over loop variables, reading buffers at their own origins."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fluorite.algo.expr import Axis, Expr, Op, Read, as_expr, binary
from fluorite.algo.extent import Extent
from fluorite.algo.linear import simplify, within
from fluorite.algo.rewriting import rewrite
from fluorite.schedule.nest import VECTOR
from fluorite.schedule.unscheduled import scatters, sorts

from ..reductions import accumulate, accumulators
from ..statements import Statement, Store
from . import logic, scattering, sorting
from .context import Context, Placed


def update(work: Context, p: Placed, known: Sequence[Expr]) -> Statement:
    s = p.stage
    if (found := scatters(s, work.plan.gpu)) is not None:
        return scattering.update(work, p, found, known)
    if (row := sorts(s, work.plan.gpu)) is not None:
        return sorting.row(work, p, row)
    value = value_of(work, p)
    if known or p.known:
        value = logic.assume(value, [*known, *p.known], work.ranges)
    if s.reduction is None:
        return Store(s.id, own_index(work, p), value)
    scalar = accumulators(s)[0].id
    if scalar in work.storage:
        return accumulate(s, scalar, (as_expr(0),), value, p.values)
    lane = next((loop for loop in p.nest.loops if loop.kind == VECTOR), None)
    return accumulate(s, s.id, own_index(work, p), value, p.values, lane)


def own_index(work: Context, p: Placed) -> tuple[Expr, ...]:
    return position_of(work, p.stage.id, tuple(p.values[a] for a in p.stage.axes))


def position_of(work: Context, source: int, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Where the buffer of a stage of this kernel holds what the stage has at `index`."""
    _, origin = work.storage[source]
    local = [simplify(binary("sub", i, o), work.ranges) for i, o in zip(index, origin, strict=True)]
    folds = [work.folds.get((source, a)) for a in work.by_id[source].axes]
    inside = (i if n is None else simplify(binary("mod", i, as_expr(n)), work.ranges) for i, n in zip(local, folds, strict=True))
    if source not in work.slots:
        return tuple(inside)
    turn, parts = work.slots[source]
    return (simplify(binary("mod", turn, as_expr(parts)), work.ranges), *inside)


def value_of(work: Context, p: Placed) -> Expr:
    """The stage's value over loop variables, reading buffers at their own origins."""
    return over_loops(work, p, p.stage.value)


def over_loops(work: Context, p: Placed, e: Expr) -> Expr:
    """An expression of the stage over loop variables, reading buffers at their own origins."""
    memo: dict[Expr, Expr] = {}

    def rule(n: Expr) -> Expr | None:
        if isinstance(n, Axis):
            return p.values.get(n)
        if isinstance(n, Read):
            if n.source in work.by_id:
                buffer, _ = work.storage[n.source]
                local = position_of(work, n.source, n.index)
                return Read(n.source, clamped(work, local, buffer.shape) if p.padded else local, n.dtype)
            if p.padded:
                return Read(n.source, clamped(work, n.index, work.graph[n.source].shape), n.dtype)
        return None

    return simplify(rewrite(logic.eager(e, p.stage.ranges, partial(shape_of, work)), rule, memo), work.ranges)


def shape_of(work: Context, source: int) -> tuple[Extent, ...]:
    return work.graph[source].shape


def clamped(work: Context, index: tuple[Expr, ...], shape_: tuple[Extent, ...]) -> tuple[Expr, ...]:
    """The index, clamped where a tile that sticks out could leave the tensor."""
    return tuple(
        i if within(i, n, work.ranges) or not i.weak else Op("edge", (i, as_expr(n)), "int32", True)
        for i, n in zip(index, shape_, strict=True)
    )
