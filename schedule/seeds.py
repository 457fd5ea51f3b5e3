"""An adjoint for a seed that is a number of times as large. Adjoints are linear in the seed, so what is multiplied is what hangs on it."""

from __future__ import annotations

from collections.abc import Container

from fluorite.algo.dtypes import NARROW
from fluorite.algo.expr import Const, Expr, Op, Read, binary, cast
from fluorite.algo.rewriting import walk, with_operands


def seeded(value: Expr, adjoints: Container[int], scale: Expr) -> Expr | None:
    """The value of an adjoint that reads others, the `adjoints`, which are scaled already: each term without any of these is multiplied by
    `scale`, a float32 number. None if the value is not linear in what it reads of them."""
    linear: dict[Expr, Expr] = {}  # nodes that hang on other adjoints, as they are when these are scaled
    for n in walk(value):
        if isinstance(n, Read) and n.source in adjoints:
            linear[n] = n
            continue
        inside = [c in linear for c in n.operands]
        if not any(inside):
            continue
        match n:
            case Op(op="add" | "sub" | "neg" | "cast"):
                new = tuple(linear[c] if c in linear else times(c, scale) for c in n.args)
            case Op(op="mul") if sum(inside) == 1:
                new = tuple(linear.get(c, c) for c in n.args)
            case Op(op="div") if inside == [True, False]:
                new = (linear[n.args[0]], n.args[1])
            case Op(op="ne" | "eq", args=(a, Const(value=0))) if linear[a] is a:
                continue  # whether anything arrives does not hang on the scale
            case Op(op="where", args=(condition, *branches)) if not inside[0]:
                new = (condition, *(linear[c] if c in linear else times(c, scale) for c in branches))
            case _:
                return None
        linear[n] = with_operands(n, new)
    return linear[value] if value in linear else times(value, scale)


def times(e: Expr, scale: Expr) -> Expr:
    """e multiplied; masks stay outside, and narrow floats are multiplied in float32, which holds the scale."""
    match e:
        case Const(value=0):
            return e
        case Op(op="where", args=(condition, a, b)):
            return with_operands(e, (condition, times(a, scale), times(b, scale)))
        case Op(op="neg", args=(a,)):
            return with_operands(e, (times(a, scale),))
    if e.dtype in NARROW:
        return cast(binary("mul", cast(e, "float32"), scale), e.dtype)
    return binary("mul", e, cast(scale, e.dtype))


__all__ = ["seeded", "times"]
