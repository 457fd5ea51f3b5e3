"""The statements of what runs one after the other in a kernel: single stages and recurrences."""

from __future__ import annotations

from collections.abc import Sequence

from fluorite.algo.expr import as_expr, axis
from fluorite.algo.stages import Stage
from fluorite.schedule.nest import BLOCK
from fluorite.schedule.regions import whole
from fluorite.schedule.unscheduled import scatters

from ..statements import For, Statement, sequence
from . import by_block, looping, placing, scattering, stepping
from .context import Context


def statements(work: Context, unit: Sequence[Stage]) -> list[Statement]:
    """Of one stage, or of all stages of one recurrence."""
    if len(unit) > 1 or (unit[0].clock is not None and by_block.is_stepped(work, unit[0])):
        return [stepping.together(work, unit)]
    (s,) = unit
    placed = placing.place(work, s, {a: whole(n) for a, n in zip(s.axes, s.extents, strict=True)}, frozenset())
    if scatters(s, work.plan.gpu):
        made = sequence(scattering.cleared(work, s), scattering.hoisted(looping.unasked(work, placed)))
        return [looping.if_taken(work, placed, made)]
    loops = by_block.stage(work, placed)
    if work.plan.gpu and work.stepped is None and not any(x.kind == BLOCK for x in placed.nest.loops):
        loops = For(axis("block"), "block", as_expr(0), as_expr(1), BLOCK, "x", loops)
    return [loops]
