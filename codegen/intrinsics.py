"""What each scalar operation is in TVM's IR."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from fluorite.algo.dtypes import kind

from .float_operations import add, div, eq, le, lt, mul, ne, sub
from .real_functions import CALLS
from .tvm_adapter import tirx


def _maximum(t: str, a: Any, b: Any) -> Any:
    """The larger; NaN if either is. One comparison suffices where one side is a number."""
    if t == "bool":
        return tirx.Or(a, b)
    if kind(t) != "float":
        return tirx.max(a, b)
    if isinstance(b, tirx.FloatImm):
        return tirx.Select(le(t, a, b), b, a)
    return tirx.Select(tirx.Or(lt(t, b, a), ne(t, a, a)), a, b)


def _minimum(t: str, a: Any, b: Any) -> Any:
    if t == "bool":
        return tirx.And(a, b)
    if kind(t) != "float":
        return tirx.min(a, b)
    if isinstance(b, tirx.FloatImm):
        return tirx.Select(le(t, b, a), b, a)
    return tirx.Select(tirx.Or(lt(t, a, b), ne(t, a, a)), a, b)


def _crosses(t: str, remainder: Any, b: Any) -> Any:
    """Whether fmod's remainder has the other sign than the divisor, so that floor division goes one further."""
    zero = tirx.const(0.0, t)
    return tirx.And(ne(t, remainder, zero), ne("bool", lt(t, remainder, zero), lt(t, b, zero)))


def _negated(t: str, a: Any) -> Any:
    """Not 0 - a for numbers without sign: TVM's simplifier takes that for 0."""
    if t in _FLAGGED:
        return CALLS["minus"](t, tirx.const(0, t), a)
    if t.startswith("u"):
        return tirx.bitwise_not(a) + tirx.const(1, t)
    return sub(tirx.FloatImm(t, -0.0), a) if kind(t) == "float" else tirx.const(0, t) - a


def _floordiv(t: str, a: Any, b: Any) -> Any:
    if kind(t) == "float":
        remainder, one = CALLS["fmod"](t, a, b), tirx.const(1.0, t)
        exact = div(sub(a, remainder), b)  # floor(a / b) alone is one too much where the quotient rounds up
        exact = tirx.Select(_crosses(t, remainder, b), sub(exact, one), exact)
        whole = tirx.floor(exact)
        whole = tirx.Select(lt(t, tirx.const(0.5, t), sub(exact, whole)), add(whole, one), whole)
        return tirx.Select(eq(t, b, tirx.const(0.0, t)), div(a, b), whole)
    return CALLS["quotient"](t, a, b)


def _mod(t: str, a: Any, b: Any) -> Any:
    if kind(t) == "float":
        remainder = CALLS["fmod"](t, a, b)
        return tirx.Select(_crosses(t, remainder, b), add(remainder, b), remainder)
    return CALLS["remainder"](t, a, b)


def _shift(left: bool) -> Callable[..., Any]:
    def emit(t: str, a: Any, b: Any) -> Any:
        width = np.dtype(t).itemsize * 8
        inside = tirx.And(tirx.GE(b, tirx.const(0, t)), tirx.LT(b, tirx.const(width, t)))
        safe = tirx.Select(inside, b, tirx.const(0, t))
        if left:
            return tirx.Select(inside, tirx.shift_left(a, safe), tirx.const(0, t))
        beyond = tirx.const(0, t) if t.startswith("u") else tirx.shift_right(a, tirx.const(width - 1, t))
        return tirx.Select(inside, tirx.shift_right(a, safe), beyond)

    return emit


def _logical(word: Callable[..., Any], bits: Callable[..., Any]) -> Callable[..., Any]:
    return lambda t, a, b: word(a, b) if t == "bool" else bits(a, b)


def _sign(t: str, a: Any) -> Any:
    if t == "bool":
        return a
    zero, one = (tirx.const(v, t) if kind(t) != "float" else tirx.FloatImm(t, float(v)) for v in (0, 1))
    if t.startswith("u"):
        return tirx.Select(tirx.GT(a, zero), one, zero)
    small = tirx.Select(lt(t, a, zero), zero - one, zero if kind(t) != "float" else tirx.Select(eq(t, a, zero), zero, a))
    return tirx.Select(lt(t, zero, a), one, small)


def _difference(t: str, a: Any, b: Any) -> Any:
    return sub(a, b) if kind(t) == "float" else a + _negated(t, b) if t.startswith("u") else a - b


def _divided(t: str, a: Any, b: Any) -> Any:
    """a / b. TVM refuses to divide by a number that is 0; the product with infinity is the same."""
    if isinstance(b, tirx.FloatImm) and float(b) == 0:
        infinity = tirx.infinity(t)
        return mul(a, infinity if math.copysign(1, float(b)) > 0 else tirx.const(0.0, t) - infinity)
    return div(a, b)


def _absolute(t: str, a: Any) -> Any:
    if kind(t) == "float":
        return tirx.abs(a)
    return a if t.startswith("u") or t == "bool" else tirx.Select(tirx.LT(a, tirx.const(0, t)), _negated(t, a), a)


_FLAGGED = ("int32", "int64", "uint32", "uint64")
"""Types whose sums TVM tells LLVM not to overflow."""

INTRINSICS: dict[str, Callable[..., Any]] = {
    "add": lambda t, a, b: CALLS["plus"](t, a, b) if t in _FLAGGED else add(a, b) if kind(t) == "float" else a + b,
    "sub": lambda t, a, b: CALLS["minus"](t, a, b) if t in _FLAGGED else _difference(t, a, b),
    "mul": lambda t, a, b: CALLS["times"](t, a, b) if t in _FLAGGED else mul(a, b) if kind(t) == "float" else a * b,
    "div": _divided,
    "floordiv": _floordiv,
    "mod": _mod,
    "max": _maximum,
    "min": _minimum,
    "neg": _negated,
    "abs": _absolute,
    "sign": _sign,
    "floor": lambda t, a: tirx.floor(a) if kind(t) == "float" else a,
    "ceil": lambda t, a: tirx.ceil(a) if kind(t) == "float" else a,
    "trunc": lambda t, a: tirx.trunc(a) if kind(t) == "float" else a,
    "round": lambda t, a: tirx.nearbyint(a) if kind(t) == "float" else a,
    "lt": lt,
    "le": le,
    "eq": eq,
    "ne": ne,
    "and": _logical(tirx.And, tirx.bitwise_and),
    "or": _logical(tirx.Or, tirx.bitwise_or),
    "xor": lambda t, a, b: ne(t, a, b) if t == "bool" else tirx.bitwise_xor(a, b),
    "not": lambda t, a: tirx.Not(a) if t == "bool" else tirx.bitwise_not(a),
    "shl": _shift(True),
    "shr": _shift(False),
    "isnan": lambda _, a: ne(str(a.ty.dtype), a, a),
    "isinf": lambda _, a: eq(str(a.ty.dtype), tirx.abs(a), tirx.infinity(str(a.ty.dtype))),
    "isfinite": lambda _, a: lt(str(a.ty.dtype), tirx.abs(a), tirx.infinity(str(a.ty.dtype))),
    "sqrt": lambda t, a: tirx.sqrt(a),
    "rsqrt": lambda t, a: div(tirx.FloatImm(t, 1.0), tirx.sqrt(a)),
    **CALLS,
}
