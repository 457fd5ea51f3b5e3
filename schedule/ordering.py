"""Whether loops still run in the order of the axes that they came from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from fluorite.algo.expr import Axis, Expr, Op
from fluorite.algo.extent import evaluate, symbols_of
from fluorite.algo.linear import linear
from fluorite.algo.rewriting import axes_of

from .nest import Loop, Nest


def keeps_order(nest: Nest, axes: Sequence[Axis], loops: Sequence[Loop]) -> bool:
    """Whether these loops, outermost first, visit the positions of the axes in row-major order."""
    order = [loop.var for loop in loops]
    wanted: list[Axis] = []
    for a in axes:
        value = nest.value(a)
        steps = [(atom, evaluate(c, dict.fromkeys(symbols_of(c), 1 << 20))) for atom, c in linear(value).terms if isinstance(atom, Axis)]
        wanted += [atom for atom, _ in sorted(steps, key=lambda step: -step[1])] or axes_of(value)
    wanted = [v for v in dict.fromkeys(wanted) if any(v is o for o in order)]
    return [id(v) for v in order] == [id(v) for v in wanted] and all(_fused_in_order(nest, axes, v) for v in wanted)


def _fused_in_order(nest: Nest, axes: Sequence[Axis], fused: Axis) -> bool:
    """Whether of the axes that one loop runs over the first moves slowest."""
    grains = [grain for a in axes if (grain := _grain(nest.value(a), fused)) is not None]
    return all(slow > fast for slow, fast in pairwise(grains))


def _grain(e: Expr, fused: Axis) -> int | None:
    """After how many iterations of a fused loop an expression of its variable moves on."""
    match e:
        case Axis():
            return 1 if e is fused else None
        case Op(op="floordiv", args=(a, b)):
            inner = _grain(a, fused)
            return None if inner is None else inner * _guessed(b)
        case Op(op="add" | "sub" | "mul" | "mod" | "min" | "max", args=args):
            return min((g for a in args if (g := _grain(a, fused)) is not None), default=None)
    return None


def _guessed(e: Expr) -> int:
    form = linear(e).constant
    total = linear(e).terms
    known = dict.fromkeys((n for c in (form, *(c for _, c in total)) for n in symbols_of(c)), 1 << 20)
    return max(2, evaluate(form, known) + sum(evaluate(c, known) << 20 for _, c in total))


__all__ = ["keeps_order"]
