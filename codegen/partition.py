"""Moving a test out of the loop that decides it: before, steady and after parts instead of a branch in every iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce

from fluorite.algo.expr import Axis, Expr, Op, as_expr, binary
from fluorite.algo.linear import is_index, linear, simplify
from fluorite.algo.rewriting import axes_of
from fluorite.algo.tensor import conjuncts

from .statements import For, If, Statement, sequence, transform


def partition(s: Statement) -> Statement:
    """Every serial loop whose body is one test with two versions, split where the test changes its answer."""
    return transform(s, _rule)


def _rule(s: Statement) -> Statement | None:
    match s:
        case For(kind="serial", body=If() as test) if test.otherwise is not None:
            return _hoisted(s, test)
    return None


def _hoisted(loop: For, test: If) -> Statement | None:
    """The test outside the loop as far as the loop does not decide it, then the loop in parts."""
    parts = conjuncts(test.condition)
    outside = [c for c in parts if loop.var not in set(axes_of(c))]
    if not outside:
        return _split(loop, test)
    assert test.otherwise is not None
    inside = [c for c in parts if loop.var in set(axes_of(c))]
    then: Statement = replace(loop, body=If(joined(inside), test.then, test.otherwise) if inside else test.then)
    otherwise: Statement = replace(loop, body=test.otherwise)
    return If(joined(outside), _rule(then) or then, _rule(otherwise) or otherwise)


def joined(conditions: list[Expr]) -> Expr:
    out = conditions[0]
    for c in conditions[1:]:
        out = out & c
    return out


def _split(loop: For, test: If) -> Statement | None:
    assert test.otherwise is not None
    lows, highs, rest = limits(loop, conjuncts(test.condition))
    if len(lows) == 1 and len(highs) == 1:
        return None
    end = highs[0]
    low = simplify(binary("min", reduce(partial(binary, "max"), lows), end), {}) if len(lows) > 1 else lows[0]
    high = simplify(binary("max", reduce(partial(binary, "min"), highs), low), {})
    steady: Statement = If(joined(rest), test.then, test.otherwise) if rest else test.then

    def part(first: Expr, last: Expr, body: Statement) -> Statement:
        made = replace(loop, low=first, extent=simplify(binary("sub", last, first), {}), body=body)
        return _rule(made) or made

    parts: list[Statement] = []
    if len(lows) > 1:
        parts.append(part(loop.low, low, test.otherwise))
    parts.append(part(low, high, steady))
    if len(highs) > 1:
        parts.append(part(high, end, test.otherwise))
    return sequence(*parts)


def limits(loop: For, conditions: Sequence[Expr]) -> tuple[list[Expr], list[Expr], list[Expr]]:
    """Where conditions let a loop begin and end, its own ends first, and those that bound no loop."""
    lows: list[Expr] = [loop.low]
    highs: list[Expr] = [binary("add", loop.low, loop.extent)]
    rest: list[Expr] = []
    for c in conditions:
        edge = _edge(c, loop.var)
        if edge is None:
            rest.append(c)
        else:
            (lows if edge[0] == "from" else highs).append(edge[1])
    return lows, highs, rest


def _edge(c: Expr, var: Axis) -> tuple[str, Expr] | None:
    """A comparison as var >= e or var < e, where it is linear in var with a constant coefficient and e does not depend on var."""
    if not isinstance(c, Op) or c.op not in ("lt", "le") or not is_index(c.args[0]) or not is_index(c.args[1]):
        return None
    form = linear(binary("sub", c.args[1], c.args[0]))  # a < b  <=>  b - a - 1 >= 0
    k = form.coefficient(var)
    others = [atom for atom in form.atoms if atom is not var]
    if not isinstance(k, int) or k == 0 or any(var in set(axes_of(atom)) for atom in others):
        return None
    rest = binary("sub", binary("sub", form.expr(), binary("mul", var, as_expr(k))), as_expr(1 if c.op == "lt" else 0))
    rest = linear(rest).expr()
    if k > 0:  # k*var + rest >= 0
        return "from", simplify(binary("floordiv", binary("sub", as_expr(k - 1), rest), as_expr(k)), {})
    return "until", simplify(binary("add", binary("floordiv", rest, as_expr(-k)), as_expr(1)), {})
