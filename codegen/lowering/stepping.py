"""Recurrences: the loop along the clock, with its first steps apart from the rest, and several stages in one such loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from fluorite.algo.expr import Expr, Op, as_expr, axis, binary
from fluorite.algo.linear import is_index, simplify
from fluorite.algo.rewriting import axes_of, walk
from fluorite.algo.stages import Stage
from fluorite.algo.tensor import conjuncts
from fluorite.schedule.nest import SERIAL
from fluorite.schedule.regions import Interval, whole

from ..statements import For, If, Statement, sequence
from . import by_block, evaluating, logic, looping, placing
from .context import Context, Placed


def inside(work: Context, p: Placed, k: int) -> Statement:
    """What loop k holds. The innermost loop along a clock holds it twice: for where what it reads of itself is there, and for the start;
    `partition` makes two loops of that."""
    s, loop = p.stage, p.nest.loops[k]
    if s.clock is None or loop.kind != SERIAL or loop.var not in set(axes_of(p.nest.value(s.clock.axis))):
        return looping.loops(work, p, k + 1)
    around = {x.var for x in p.nest.loops[: k + 1]}
    tests = [c for c in _choices(work, p) if loop.var in set(axes_of(c)) and set(axes_of(c)) <= around]
    if not tests:
        return looping.loops(work, p, k + 1)
    started = set(work.initialised)
    later = looping.loops(work, replace(p, known=(*p.known, *tests)), k + 1)
    work.initialised = started
    return If(logic.conjunction(tests), later, looping.loops(work, p, k + 1))


def _choices(work: Context, p: Placed) -> list[Expr]:
    """The comparisons of positions that decide choices in the stage's value. (What it reads may not have its memory yet.)"""
    value = logic.eager(p.stage.value, p.stage.ranges, partial(evaluating.shape_of, work))
    asked = (c for e in walk(value) if isinstance(e, Op) and e.op in ("where", "select") for c in conjuncts(e.args[0]))
    found = dict.fromkeys(evaluating.over_loops(work, p, c) for c in asked if _of_positions(c))
    return [c for c in found if _of_positions(c) and c not in p.known]


def _of_positions(c: Expr) -> bool:
    return isinstance(c, Op) and c.op in ("lt", "le") and is_index(c.args[0]) and is_index(c.args[1])


def together(work: Context, unit: Sequence[Stage]) -> Statement:
    """The stages of one recurrence: one loop along the clock, in it one stage after the other."""
    clock = unit[0].clock
    assert clock is not None
    n = unit[0].ranges[clock.axis]
    step = axis(clock.axis.name)
    work.ranges[step] = n
    at = simplify(binary("sub", as_expr(n - 1), step), work.ranges) if clock.reverse else step
    placed = [_at(work, s, at) for s in unit]
    tests = list(dict.fromkeys(c for p in placed for c in _choices(work, p) if set(axes_of(c)) == {step}))
    started = set(work.initialised)
    body = sequence(*(by_block.stage(work, replace(p, known=tuple(tests))) for p in placed))
    if tests:
        work.initialised = started
        body = If(logic.conjunction(tests), body, sequence(*(by_block.stage(work, _at(work, s, at)) for s in unit)))
    return For(step, step.name, as_expr(0), as_expr(n), SERIAL, "", body)


def _at(work: Context, s: Stage, at: Expr) -> Placed:
    """A stage at one step: its nest without the loop along the clock."""
    assert s.clock is not None
    clock = s.clock.axis
    box = {a: whole(n) for a, n in zip(s.axes, s.extents, strict=True)} | {clock: Interval(at, as_expr(1), 1)}
    p = placing.place(work, s, box, frozenset())
    shown = tuple(replace(x, extent=s.ranges[clock]) if x.var is clock else x for x in work.nests[s.id].loops)
    work.nests[s.id] = replace(work.nests[s.id], loops=shown)
    nest = replace(p.nest, loops=tuple(x for x in p.nest.loops if x.var is not clock), define={**p.nest.define, clock: as_expr(0)})
    return replace(p, nest=nest, values={**p.values, clock: at})


__all__ = ["inside", "together"]
