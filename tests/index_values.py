"""Plain Python's value of an index expression, for brute force."""

from __future__ import annotations

from collections.abc import Mapping

from fluorite.algo.expr import Axis, Const, Expr, Op, Size
from fluorite.algo.extent import evaluate


def index_value(e: Expr, at: Mapping[Axis, int], sizes: Mapping[str, int]) -> int:
    """The integer (or truth value) that e is at these axes and symbols."""
    match e:
        case Axis():
            return at[e]
        case Const(value=value):
            return int(value)
        case Size(extent=extent):
            return evaluate(extent, sizes)
        case Op(op=op, args=args):
            a, b, *_ = (index_value(x, at, sizes) for x in (*args, *args[:1]))
            match op:
                case "add":
                    return a + b
                case "sub":
                    return a - b
                case "mul":
                    return a * b
                case "floordiv":
                    return a // b
                case "mod" | "wrap":
                    return a % b
                case "min":
                    return min(a, b)
                case "max":
                    return max(a, b)
                case "edge":
                    return max(min(a, b - 1), 0)
                case "lt":
                    return a < b
                case "le":
                    return a <= b
                case "and":
                    return a and b
    raise NotImplementedError(e)
