"""Scatters: the whole result set to the identity, then one pass over what is scattered, which updates the places that there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fluorite.algo.expr import Axis, Const, Expr, Op, as_expr, axis
from fluorite.algo.linear import simplify, within
from fluorite.algo.rewriting import axes_of, substitute
from fluorite.algo.scatter import Scatter
from fluorite.algo.stages import Stage
from fluorite.schedule.nest import PARALLEL, SERIAL

from ..reductions import accumulate, initial
from ..statements import For, If, Statement, Store, transform
from . import evaluating, logic
from .context import Context, Placed


def somewhere(s: Stage, found: Scatter, values: Mapping[Axis, Expr]) -> dict[Axis, Expr]:
    """Where the targets are, as far as bounds need to know: at a position inside the result."""
    out: dict[Axis, Expr] = {}
    for a, e in zip(found.targets, found.index, strict=True):
        out[a] = _inside(substitute(e, {**values, **out}), s, a)
    return out


def cleared(work: Context, s: Stage) -> Statement:
    """The result before anything has arrived. From here on the reduction counts as begun."""
    work.initialised.add(s.id)
    places = [axis(a.name) for a in s.axes]
    body: Statement = Store(s.id, tuple(places), initial(s)[0])
    for a, n in reversed(list(zip(places, s.extents, strict=True))):
        body = For(a, a.name, as_expr(0), as_expr(n), SERIAL, "", body)
    return body


def update(work: Context, p: Placed, found: Scatter, known: Sequence[Expr]) -> Statement:
    """The value combined into its place, if there is such a place and the conditions hold."""
    s = p.stage
    tests: list[Expr] = []
    at = p
    for a, e in zip(found.targets, found.index, strict=True):
        place = evaluating.over_loops(work, at, e)
        n = s.ranges[a]
        if not within(place, n, work.ranges):
            tests += [as_expr(0) <= place, place < as_expr(n)]
        at = replace(at, values={**at.values, a: simplify(_inside(place, s, a), work.ranges)})

    def here(e: Expr) -> Expr:
        lowered = evaluating.over_loops(work, at, e)
        return logic.assume(lowered, known, work.ranges) if known else lowered

    body = accumulate(s, s.id, evaluating.own_index(work, at), here(found.value), at.values)
    for conditions in ([here(c) for c in found.predicates], tests):
        test = logic.conjunction([simplify(c, work.ranges) for c in conditions])
        if not (isinstance(test, Const) and test.value):
            body = If(test, body)
    return body


def hoisted(loops: Statement) -> Statement:
    """Tests outside the loops that do not decide them: a whole vector arrives at one place, or at none."""

    def rule(n: Statement) -> Statement | None:
        match n:
            case For(body=If(condition=c, otherwise=None) as test) if n.kind != PARALLEL and n.var not in set(axes_of(c)):
                return If(c, replace(n, body=test.then))
        return None

    return transform(loops, rule)


def _inside(place: Expr, s: Stage, a: Axis) -> Expr:
    return Op("edge", (place, as_expr(s.ranges[a])), "int32", True)


__all__ = ["cleared", "hoisted", "somewhere", "update"]
