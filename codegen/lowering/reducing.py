"""Reductions: where they start, what they accumulate into, and when the result is stored."""

from __future__ import annotations

from collections.abc import Sequence

from fluorite.algo.expr import Expr, as_expr
from fluorite.algo.rewriting import axes_of
from fluorite.schedule.nest import THREAD, VECTOR, Loop

from ..gpu import block_reductions, nests
from ..reductions import accumulators, begun, finished, initial
from ..statements import Allocate, If, Statement, Store, sequence
from . import evaluating, guarding, logic, looping, tiling
from .context import Context, Placed


def reduction(work: Context, p: Placed, k: int) -> Statement:
    """Initialise what the loops inside k accumulate into, then run them."""
    inner = p.nest.loops[k:]
    spatial = tuple(loop for loop in inner if not loop.reduction)
    reduction = p.stage.reduction
    assert reduction is not None
    if work.plan.gpu and nests.reduces_by_block(p.nest):
        return block_reduction(work, p, k)
    outside_vector = any(loop.kind == VECTOR for loop in p.nest.loops[:k])
    if not spatial and not outside_vector:
        start_scalars(work, p)
        return accumulated(work, p, looping.loops(work, p, k), ())
    start = begun(p.stage, evaluating.own_index(work, p))
    return sequence(initialising(work, p, spatial, start), looping.loops(work, p, k))


def start_scalars(work: Context, p: Placed) -> None:
    """From here on the reduction accumulates into scalars of its own."""
    for b in accumulators(p.stage):
        work.storage[b.id] = (b, (as_expr(0),))


def accumulated(work: Context, p: Placed, loops: Statement, guards: Sequence[tuple[Expr, Expr]]) -> Statement:
    """The loops of a reduction between the start of its scalars and the store of its result."""
    scalars = accumulators(p.stage)
    init = [Store(b.id, (as_expr(0),), e) for b, e in zip(scalars, initial(p.stage), strict=True)]
    store = kept(work, p, finished(p.stage, evaluating.own_index(work, p)))
    if guards:
        store = If(logic.conjunction([v < n for v, n in guards]), store)
    body = sequence(*init, loops, store)
    for b in reversed(scalars):
        body = Allocate(b, body)
    return body


def block_reduction(work: Context, p: Placed, k: int) -> Statement:
    start_scalars(work, p)
    reducing = [loop for loop in p.nest.loops[k:] if loop.kind == THREAD]
    work.threads += reducing
    body = looping.loops(work, p, k + len(reducing))
    del work.threads[len(work.threads) - len(reducing) :]
    return block_reductions.block_reduction(
        p.stage,
        p.nest,
        body,
        lambda state: kept(work, p, finished(p.stage, evaluating.own_index(work, p), state)),
        own_barriers=work.stepped is not None,
    )


def kept(work: Context, p: Placed, store: Statement) -> Statement:
    """The store of a finished reduction, inside the guards that could not be tested further out."""
    reduced = {loop.var for loop in p.nest.loops if loop.reduction}
    tests = [v < n for v, n in guarding.late_guards(work, p) if not set(axes_of(v)) & reduced]
    return If(logic.conjunction(tests), store) if tests else store


def initialising(work: Context, p: Placed, spatial: tuple[Loop, ...], store: Statement) -> Statement:
    if not spatial:
        return store
    reduced = {loop.var for loop in p.nest.loops if loop.reduction}
    guards = [
        (v, n) for v, n in guarding.guards_of(work, p) if not (set(axes_of(v)) & reduced) and set(axes_of(v)) & {x.var for x in spatial}
    ]
    outer = [(v, n) for v, n in guarding.late_guards(work, p) if not set(axes_of(v)) & (reduced | {x.var for x in spatial})]
    body = tiling.versions(work, p, spatial, guards, [], lambda _known, _at: store)
    return If(logic.conjunction([v < n for v, n in outer]), body) if outer else body


def initialised(work: Context, p: Placed) -> bool:
    return p.stage.id in work.initialised
