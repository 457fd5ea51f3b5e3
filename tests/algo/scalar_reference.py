"""A second meaning of a stage, one element at a time in plain Python: slow, obvious, and written without looking at the interpreter."""

from __future__ import annotations

import fractions
import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from fluorite.algo.dtypes import kind
from fluorite.algo.expr import Axis, Const, Expr, Op, Read, Size
from fluorite.algo.extent import evaluate
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage


def wrapped(v: int, dtype: str) -> int:
    bits = np.dtype(dtype).itemsize * 8
    v %= 2**bits
    return v - 2**bits if dtype.startswith("i") and v >= 2 ** (bits - 1) else v


def scalar(v: Any, dtype: str) -> Any:
    """v, of another type, as this type."""
    match kind(dtype):
        case "bool":
            return bool(v != 0)
        case "float":
            return np.dtype(dtype).type(v)
    if not isinstance(v, int | np.integer | np.bool_):
        v = float(v)
        if math.isnan(v):
            return 0
        info = np.iinfo(dtype)
        return info.max if v >= float(info.max) + 1 or v == math.inf else info.min if v <= info.min else min(math.trunc(float(v)), info.max)
    return wrapped(int(v), dtype)


def place(kind_: str, i: int, n: int) -> int:
    if kind_ == "edge":
        return min(max(i, 0), n - 1)
    if kind_ == "wrap":
        return i - n * math.floor(fractions.Fraction(i, n))
    if abs(i) > 1000 and n > 1:  # whole periods first, then one mirror after the other
        i -= 2 * (n - 1) * (i // (2 * (n - 1)))
    while n > 1 and not 0 <= i < n:
        i = -i if i < 0 else 2 * (n - 1) - i
    return i if n > 1 else 0


def integer(op: str, a: int, b: int, dtype: str | None) -> int:
    """dtype None is exact index arithmetic."""
    bits = 64 if dtype is None else np.dtype(dtype).itemsize * 8
    out = {
        "add": lambda: a + b,
        "sub": lambda: a - b,
        "mul": lambda: a * b,
        "floordiv": lambda: a // b if b else 0,
        "mod": lambda: a % b if b else 0,
        "min": lambda: min(a, b),
        "max": lambda: max(a, b),
        "and": lambda: a & b,
        "or": lambda: a | b,
        "xor": lambda: a ^ b,
        "shl": lambda: a << b if 0 <= b < bits else 0,
        "shr": lambda: a >> b if 0 <= b < bits else (-1 if a < 0 else 0),
    }[op]()
    return out if dtype is None else wrapped(out, dtype)


def real(op: str, a: Any, b: Any) -> Any:
    if op in ("min", "max"):
        return a if a != a else b if b != b else (min if op == "min" else max)(a, b)
    return {"add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b, "div": lambda: a / b}[op]()


class Element:
    def __init__(self, graph: Graph, arrays: Mapping[int, np.ndarray[Any, Any]], symbols: Mapping[str, int]) -> None:
        self.graph, self.arrays, self.symbols = graph, arrays, symbols

    def at(self, e: Expr, env: Mapping[Axis, int]) -> Any:
        match e:
            case Const(value, dtype, weak):
                return value if weak and kind(dtype) == "int" else scalar(value, dtype)
            case Size(extent):
                return evaluate(extent, self.symbols)
            case Axis():
                return env[e]
            case Read(source, index):
                where = tuple(self.at(i, env) for i in index)
                assert all(0 <= i < n for i, n in zip(where, self.arrays[source].shape, strict=True)), (
                    "a read that is evaluated is in bounds"
                )
                found = self.arrays[source][where]
                return found if kind(e.dtype) == "float" else found.item()
            case Op(op="where", args=(c, a, b)):
                taken = self.at(a if self.at(c, env) else b, env)
                return taken if e.weak and kind(e.dtype) == "int" else scalar(taken, e.dtype)
            case Op():
                return self.operator(e, [self.at(a, env) for a in e.args])
        raise TypeError(e)

    def operator(self, e: Op, args: list[Any]) -> Any:
        op, which = e.op, kind(e.dtype)
        exact = e.weak and which == "int"
        if op in ("edge", "reflect", "wrap"):
            return place(op, wrapped(int(args[0]), "int64"), int(args[1]))
        if op in ("lt", "le", "eq", "ne"):
            a, b = args
            return bool({"lt": a < b, "le": a <= b, "eq": a == b, "ne": a != b}[op])
        if op == "cast":
            return args[0] if exact else scalar(args[0], e.dtype)
        if not exact:
            args = [scalar(a, e.dtype) for a in args]
        if op == "not":
            return not args[0] if which == "bool" else wrapped(~args[0], e.dtype) if not exact else ~args[0]
        if len(args) == 1:
            a = args[0]
            match op:
                case "neg":
                    return -a
                case "abs":
                    return a if which == "bool" else scalar(abs(a), e.dtype)
                case "sign":
                    return a if which == "bool" or a != a else scalar(int(a > 0) - int(a < 0), e.dtype)
                case "floor" | "ceil" | "round" | "trunc":
                    if which != "float" or not math.isfinite(a):
                        return a
                    return type(a)({"floor": math.floor, "ceil": math.ceil, "round": round, "trunc": math.trunc}[op](float(a)))
        if which == "bool":
            a, b = args
            return bool({"and": a and b, "or": a or b, "xor": a != b, "min": a and b, "max": a or b}[op])
        return integer(op, args[0], args[1], None if exact else e.dtype) if which == "int" else real(op, *args)


def evaluate_stage(graph: Graph, s: Stage, arrays: Mapping[int, np.ndarray[Any, Any]], symbols: Mapping[str, int]) -> np.ndarray[Any, Any]:
    """The whole stage, by loops. Float sums are taken in float64."""
    shape = tuple(evaluate(n, symbols) for n in s.extents)
    out = np.zeros(shape, s.dtype)
    element = Element(graph, arrays, symbols)
    inner = s.reduction.extents if s.reduction else ()
    ranges = [range(evaluate(n, symbols)) for n in inner]
    with np.errstate(all="ignore"):
        for point in np.ndindex(shape):
            env = dict(zip(s.axes, point, strict=True))
            values = [element.at(s.value, env | dict(zip(s.reduce_axes, k, strict=True))) for k in itertools.product(*ranges)]
            out[point] = values[0] if s.reduction is None else reduced(s.reduction.kind, values, s.dtype)
    return out


def reduced(kind_: str, values: list[Any], dtype: str) -> Any:
    match kind_:
        case "sum" | "prod":
            if kind(dtype) == "float":
                wide = [np.float64(v) for v in values]
                return sum(wide, np.float64(0)) if kind_ == "sum" else math.prod(wide, start=np.float64(1))
            return wrapped(sum(values) if kind_ == "sum" else math.prod(values), dtype)
        case "any" | "all":
            return (any if kind_ == "any" else all)(values)
        case "max" | "min":
            best = values[0]
            for v in values[1:]:
                best = v if v != v or (best == best and (v > best if kind_ == "max" else v < best)) else best
            return best
    best = 0
    for n, v in enumerate(values):
        old = values[best]
        if old == old and (v != v or (v > old if kind_ == "argmax" else v < old)):
            best = n
    return best
