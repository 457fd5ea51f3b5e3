"""Where in memory an index is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fluorite.algo.expr import Expr, Op
from fluorite.algo.extent import Extent
from fluorite.algo.linear import Linear, is_index, linear

Shapes = Mapping[int, Sequence[Extent]]
"""Of buffers."""


def position(index: Sequence[Expr], shape: Sequence[Extent]) -> Linear:
    """The elements before this one in a tensor of this shape. Axes that were made one, as x // n and x % n, count as x."""
    total = Linear((), 0)
    for i, n in zip(index, shape, strict=True):
        total = _whole(total.scaled(n) + linear(i))
    return total


def _whole(form: Linear) -> Linear:
    """n * (x // n) + x % n as x."""
    for rest, c in form.terms:
        match rest:
            case Op(op="mod", args=(x, by)) if is_index(rest):
                n = linear(by)
                for quotient, k in form.terms:
                    match quotient:
                        case Op(op="floordiv", args=(y, of)) if y is x and of is by and not n.terms and k == c * n.constant:
                            others = Linear(tuple(t for t in form.terms if t[0] is not rest and t[0] is not quotient), form.constant)
                            return _whole(others + linear(x).scaled(c))
    return form


__all__ = ["Shapes", "position"]
