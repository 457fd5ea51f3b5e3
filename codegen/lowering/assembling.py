"""The statements of a whole kernel and its arguments."""

from __future__ import annotations

from fluorite.algo.errors import PlanError
from fluorite.algo.expr import as_expr
from fluorite.algo.extent import symbols_of
from fluorite.algo.ordering import units
from fluorite.algo.stages import Stage, extents_in

from ..gpu import legality
from ..statements import Allocate, Buffer, Kernel, Statement, sequence
from . import by_block, checks, parts, storing, turning
from .context import Context


def roots(work: Context) -> Statement:
    done: list[Statement] = []
    checks.check_results(work)
    checks.check_readers(work)
    for s in work.plan.stages:
        storing.streamed(work, s)
    if work.plan.gpu:
        work.problems += legality.kernel_shape([s for s in work.plan.stages if s.id not in work.plan.placements], work.plan.directives)
    if work.problems:
        raise PlanError(work.problems)
    placed = {i for i, at in work.plan.placements.items() if not at.after} - work.plan.outputs
    whole_stages = [s for s in work.plan.stages if s.id not in placed]
    for s in whole_stages:
        shape = storing.aligned(work, s, s.extents)
        buffer = Buffer(s.id, s.name, s.dtype, shape, "global" if s.id in work.plan.outputs else "workspace")
        work.storage[s.id] = (buffer, tuple(as_expr(0) for _ in s.axes))
        if buffer.memory == "workspace":
            work.allocated.append(buffer)
    roots_ = [s for s in work.plan.stages if s.id not in work.plan.placements]
    if by_block.is_stepped(work, roots_[-1]):
        by_block.enter(work, roots_)
    for unit in units(roots_):
        done += turning.repeated(work, unit) if unit[0].turn else parts.statements(work, unit)
    body = sequence(*done) if work.stepped is None else by_block.in_blocks(work, sequence(*done))
    for b in reversed(work.allocated):
        body = Allocate(b, body)
    return body


def kernel(work: Context, body: Statement) -> Kernel:
    outside = dict.fromkeys(i for s in work.plan.stages for i in s.sources if i not in work.by_id)
    inputs = []
    for i in outside:
        t = work.graph[i]
        inputs.append(Buffer(i, t.name, t.dtype, t.shape))
    outputs = [
        Buffer(s.id, s.name, s.dtype, s.extents, streamed=storing.streamed(work, s)) for s in work.plan.stages if s.id in work.plan.outputs
    ]
    symbols = dict.fromkeys(n for s in work.plan.stages for n in symbols_in(s))
    symbols |= dict.fromkeys(n for b in (*inputs, *outputs) for e in b.shape for n in symbols_of(e))
    return Kernel(
        work.plan.name, tuple(inputs), tuple(outputs), tuple(symbols), body, tuple(s.path for s in work.plan.stages), _again(work)
    )


def _again(work: Context) -> frozenset[int]:
    """The outputs of which some elements are computed twice: those of loops that are moved back, and what is computed inside these."""
    found = set(work.again)
    while more := {i for i, at in work.plan.placements.items() if at.owner in found} - found:
        found |= more
    return frozenset(found & work.plan.outputs)


def symbols_in(s: Stage) -> list[str]:
    return [n for e in extents_in(s) for n in symbols_of(e)]
