"""Elementwise stages that read across memory (transpositions, changes of layout): tiles in which reads and writes both run along it."""

from __future__ import annotations

from collections.abc import Mapping

from fluorite.algo.expr import Axis
from fluorite.algo.linear import linear
from fluorite.algo.stages import Stage

from ..directives import Directive, Fuse, Parallel, Reorder, Split, Unroll, Vectorize
from ..machine import Machine
from ..typical import TYPICAL
from .analysis import axes_of_index, known, plain
from .kernels import Directives, pays_parallel

_LINES = 4  # of a tile: what a vector of results is gathered from serves so many results
_SHORT = 8  # vectors of a row


def turned_axis(s: Stage, machine: Machine) -> Axis | None:
    """The axis along whose memory some operand lies while the last axis steps across it; None if there is none worth a tile."""
    if s.reduction is not None or len(s.axes) < 2 or known(s.extents[-1], TYPICAL) < machine.lanes(s.dtype):
        return None
    last = s.axes[-1]
    for r in s.reads:
        if not r.index or last not in set(axes_of_index(r.index)):
            continue
        inner = linear(plain(r.index[-1]))
        along = next((a for a in s.axes[:-1] if inner.coefficient(a) == 1), None)
        if along is not None and inner.coefficient(last) == 0 and known(s.ranges[along], TYPICAL) >= _LINES:
            return along
    return None


def transposition(s: Stage, a: Axis, machine: Machine) -> Mapping[str, Directives]:
    """Columns of one vector, walked down along the operand's memory a few lines at a time; where rows are short, a tile of lines first."""
    last, lanes = s.axes[-1].name, machine.lanes(s.dtype)
    others = [x.name for x in s.axes[:-1] if x is not a]
    column, lane, block, line, tile = f"{last}_vec", f"{last}_lane", f"{a.name}_block", f"{a.name}_line", f"{a.name}_tile"
    short = known(s.extents[-1], TYPICAL) <= _SHORT * lanes
    ds: list[Directive] = [Split(last, lanes, into=(column, lane)), Split(a.name, _LINES, into=(block, line))]
    if short:
        ds += [Split(block, _LINES, into=(tile, block)), Reorder(*others, tile, column, block, line, lane)]
    else:
        ds += [Reorder(*others, column, block, line, lane)]
    head = [*others, tile if short else column]
    task = head[0] if len(head) == 1 else "task"
    ds += [Fuse(*head, into=task)] if len(head) > 1 else []
    ds += [Parallel(task)] if pays_parallel(s) else []
    return {s.path: (*ds, Unroll(line), Vectorize(lane))}
