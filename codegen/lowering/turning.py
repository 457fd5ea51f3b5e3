"""Loops that run as long as a condition holds: one loop in the kernel, in it what the condition needs and what a turn does.

carries = what they start with
go = true
while go:
    go = the condition
    if go: the turn, then carries = what they become; of some only one row, where they lie
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fluorite.algo.expr import Const, Op, Read, as_expr, axis
from fluorite.algo.ordering import turns
from fluorite.algo.rewriting import axes_of, reads, substitute
from fluorite.algo.row_turns import RowTurn
from fluorite.algo.stages import Stage
from fluorite.schedule.nest import SERIAL

from ..statements import For, If, Statement, Store, While, sequence
from . import by_block, logic, parts
from .context import Context


def repeated(work: Context, unit: Sequence[Stage]) -> list[Statement]:
    """The stages of one loop."""
    members = [s for s in work.plan.stages if s.loops[:1] == unit[0].loops[:1]]
    return _loop(work, members, frozenset(s.id for s in unit))


def _loop(work: Context, members: Sequence[Stage], here: frozenset[int]) -> list[Statement]:
    """A loop with those inside it. What is not `here` is computed at a loop of what is."""
    loop = turns(members)

    def made(units: Sequence[Sequence[Stage]]) -> list[Statement]:
        done: list[Statement] = []
        for part in units:
            kept = [s for s in part if s.id in here]
            if kept:
                done += _loop(work, part, here) if part[0].turn else parts.statements(work, kept)
        return done

    start = made([[s] for s in loop.carries])
    go = Read(loop.condition, (), "bool")
    rows = {i: w for i, w in loop.rows.items() if i in here and _writable(work, w)}
    dropped = {i for w in rows.values() for i in w.within}
    work.allocated[:] = [b for b in work.allocated if b.id not in dropped]
    doing = [kept for part in loop.doing if (kept := [s for s in part if s.id not in dropped])]
    ask, turn = made(loop.asking), made(doing)
    after = [*map(_row, rows.values()), *made([[_becoming(work, s, loop.becomes[s.id])] for s in loop.carries if s.id not in rows])]
    all_here = by_block.barrier(work)  # every thread has seen that there is a turn before one of them asks for the next
    body = sequence(*all_here, *ask, If(go, sequence(*turn, *after)))
    whole = sequence(*start, by_block.once(work, Store(loop.condition, (), Const(True, "bool", False))), While(go, body))
    when = loop.carries[0].when
    return [whole if when is None or axes_of(when) else If(when, whole)]


def _writable(work: Context, w: RowTurn) -> bool:
    """Whether one row of a carry can be written where it lies: what goes into it is whole, and all else of the new value is its own."""
    owners = {at.owner for at in work.plan.placements.values()} | work.plan.placements.keys()
    read = {r.source for e in (w.value, w.position, *w.guards) for r in reads(e)}
    return not w.within & (work.plan.outputs | owners) and not read & work.plan.placements.keys() and not work.plan.gpu


def _row(w: RowTurn) -> Statement:
    """The write of one row."""
    fresh = {a: axis(a.name) for a in w.others}
    n = as_expr(w.carry.ranges[w.axis])
    place, value, *guards = (substitute(e, dict(fresh)) for e in (w.position, w.value, *w.guards))
    row = Op("edge", (place, n), "int64", True)
    body: Statement = Store(w.carry.id, tuple(row if a is w.axis else fresh[a] for a in w.carry.axes), value)
    tests = [*guards, as_expr(0) <= place, place < n]
    outside = [t for t in tests if not axes_of(t)]
    if inside := [t for t in tests if axes_of(t)]:
        body = If(logic.conjunction(inside), body)
    for a in reversed(w.others):
        body = For(fresh[a], a.name, as_expr(0), as_expr(w.carry.ranges[a]), SERIAL, "", body)
    return If(logic.conjunction(outside), body) if outside else body


def _becoming(work: Context, carry: Stage, new: int) -> Stage:
    """The carry as a copy of its value after a turn."""
    work.initialised.discard(carry.id)
    return replace(carry, value=Read(new, carry.axes, carry.dtype), reduction=None)


__all__ = ["repeated"]
