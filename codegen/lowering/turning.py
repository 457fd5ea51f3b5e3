"""Loops that run as long as a condition holds: one loop in the kernel, in it what the condition needs and what a turn does.

carries = what they start with
go = true
while go:
    go = the condition
    if go: the turn, then carries = what they become
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fluorite.algo.expr import Const, Read
from fluorite.algo.ordering import turns
from fluorite.algo.rewriting import axes_of
from fluorite.algo.stages import Stage

from ..statements import If, Statement, Store, While, sequence
from . import by_block, parts
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
    ask, turn = made(loop.asking), made(loop.doing)
    after = made([[_becoming(work, s, loop.becomes[s.id])] for s in loop.carries])
    all_here = by_block.barrier(work)  # every thread has seen that there is a turn before one of them asks for the next
    body = sequence(*all_here, *ask, If(go, sequence(*turn, *after)))
    whole = sequence(*start, by_block.once(work, Store(loop.condition, (), Const(True, "bool", False))), While(go, body))
    when = loop.carries[0].when
    return [whole if when is None or axes_of(when) else If(when, whole)]


def _becoming(work: Context, carry: Stage, new: int) -> Stage:
    """The carry as a copy of its value after a turn."""
    work.initialised.discard(carry.id)
    return replace(carry, value=Read(new, carry.axes, carry.dtype), reduction=None)


__all__ = ["repeated"]
