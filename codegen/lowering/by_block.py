"""Recurrences and loops on a GPU: one kernel, in whose blocks the threads compute one stage after the other, waiting for one another."""

from __future__ import annotations

from collections.abc import Sequence

from fluorite.algo.errors import PlanError
from fluorite.algo.expr import Expr, as_expr, axis
from fluorite.algo.rewriting import axes_of
from fluorite.algo.stages import Stage
from fluorite.schedule.independent import steps
from fluorite.schedule.nest import BLOCK, THREAD, Loop
from fluorite.schedule.shaping import shape
from fluorite.schedule.unscheduled import unscheduled

from ..gpu import legality, memory_legality, nests, stepped
from ..statements import Barrier, For, If, Statement, sequence
from . import evaluating, guarding, logic, looping, placing
from .context import Context, Placed


def is_stepped(work: Context, s: Stage) -> bool:
    """Whether a kernel of the plan's computes the stage together with others, or with itself at other places."""
    return work.plan.gpu and bool(steps(work.graph, s))


def enter(work: Context, stages: Sequence[Stage]) -> None:
    """From here on the kernel's stages are computed together."""
    found = {}
    for s in stages:
        nest, problems = shape(unscheduled(s, True), placing.shaping(work, s), work.native, s.dtype, s.source)
        work.problems += problems
        found[s.id] = nests.arranged(nest)
        work.problems += legality.any_nest(s, found[s.id], work.plan.directives.get(s.id, ()), work.native)
        work.problems += legality.block_size(s, found[s.id], work.plan.directives.get(s.id, ()))
    work.problems += [p for s in stages for p in memory_legality.no_sharing(s, work.plan.placements, work.plan.directives, work.by_id)]
    if work.problems:
        raise PlanError(work.problems)
    work.stepped, work.lanes = stepped.together(stages, found, work.plan.directives)
    work.ranges |= {loop.var: loop.extent for loop in work.stepped.blocks.values()}


def in_blocks(work: Context, body: Statement) -> Statement:
    """What one block does, in every block."""
    assert work.stepped is not None
    blocks = list(work.stepped.blocks.values()) or [Loop("block", axis("block"), 1, False, BLOCK, "x")]
    for loop in reversed(blocks):
        body = For(loop.var, loop.name, as_expr(0), as_expr(loop.extent), BLOCK, loop.lane, body)
    return body


def stage(work: Context, p: Placed) -> Statement:
    """One of the stages, over all of its positions in this step. It is left out where the whole block knows that nobody needs it."""
    body = looping.nest(work, p)
    if work.stepped is None:
        return body
    own = {loop.var for loop in p.nest.loops}
    if not any(loop.kind == THREAD for loop in p.nest.loops):
        body = _by_first(work, body)
    tests: list[Expr] = [v < n for v, n in guarding.guards_of(work, p) if not set(axes_of(v)) & own]
    if p.stage.when is not None and not set(axes_of(asked := evaluating.over_loops(work, p, p.stage.when))) & own:
        tests.append(asked)
    return sequence(If(logic.conjunction(tests), body) if tests else body, *barrier(work))


def once(work: Context, body: Statement) -> Statement:
    """What is no stage's, done by one thread of the block for all."""
    return body if work.stepped is None else sequence(_by_first(work, body), *barrier(work))


def barrier(work: Context) -> tuple[Statement, ...]:
    return () if work.stepped is None or work.stepped.apart else (Barrier(everywhere=True),)


def _by_first(work: Context, body: Statement) -> Statement:
    """By the first thread of the block."""
    used = [lane for lane in nests.LANES if lane in work.lanes]
    loops = [Loop(f"thread {lane}", axis(f"thread {lane}"), work.lanes[lane], False, THREAD, lane) for lane in used]
    if loops:
        body = If(logic.conjunction([loop.var < as_expr(1) for loop in loops]), body)
    for loop in reversed(loops):
        body = For(loop.var, loop.name, as_expr(0), as_expr(loop.extent), THREAD, loop.lane, body)
    return body


__all__ = ["barrier", "enter", "in_blocks", "is_stepped", "once", "stage"]
