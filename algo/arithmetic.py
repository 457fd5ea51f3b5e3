"""Scalar arithmetic as nodes: the common type of the operands, what is folded while it is written, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .dtypes import DEFAULT, FLOATS, canonical, infinite, kind, largest, promote
from .expr import Const, Expr, Op, Size, refuse
from .extent import Dim
from .operations import COMPARISON, LOGICAL, REAL, SYMBOL


def as_expr(value: Any) -> Expr:
    """An expression from a Python scalar, a symbolic extent, a rank-0 tensor or an expression."""
    match value:
        case Expr():
            return value
        case bool():
            return Const(value, "bool", True)
        case int():
            return Const(value, "int32" if -(2**31) <= value < 2**31 else "int64", True)
        case float():
            return Const(value, "float32", True)
        case Dim():
            return Size(value)
    if hasattr(value, "as_scalar"):
        scalar: Expr = value.as_scalar()
        return scalar
    if hasattr(value, "as_complex") or isinstance(value, complex):
        raise refuse("A211", "a complex number where a real one is needed", "it is a pair", "fl.abs(z)", "fl.real(z)", "fl.imag(z)")
    if hasattr(value, "dtype") and getattr(value, "shape", None) == ():
        return Const(value.item(), canonical(value.dtype), False)
    raise refuse(
        "A103",
        f"{type(value).__name__} in an expression",
        "an element is a number, a read such as x[i, j], or an axis",
        "index it: x[i, j]",
    )


def cast(value: Any, dtype: Any) -> Expr:
    e, to = as_expr(value), canonical(dtype)
    if isinstance(e, Const) and e.weak:
        return Const(_python(e.value, to), to, False)
    if e.dtype == to and not e.weak:
        return e
    return _computed(e, to)


def _python(value: Any, dtype: str) -> bool | int | float:
    """A constant as a value of this type: integers wrap, floats truncate and saturate, as in every cast."""
    if dtype == "bool":
        return bool(value)
    if dtype in FLOATS:
        try:
            return float(value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    if isinstance(value, float):
        return 0 if value != value else int(min(max(value, low), high))
    return (int(value) - low) % (high - low + 1) + low


def common(what: str, *args: Expr) -> tuple[str, bool]:
    dtype, weak = args[0].dtype, args[0].weak
    for other in args[1:]:
        joined = promote(dtype, weak, other.dtype, other.weak)
        if joined is None:
            raise refuse(
                "A104",
                f"{what} of {dtype} and {other.dtype}",
                "these two have no common type",
                f"fl.cast(x, '{'float32' if 'float' in dtype + other.dtype else 'int64'}') one of them",
            )
        dtype, weak = joined
    return dtype, weak


def _coerce(e: Expr, dtype: str, weak: bool) -> Expr:
    if e.dtype == dtype and e.weak == weak:
        return e
    if isinstance(e, Const):
        value = _python(e.value, dtype)
        if e.weak and not weak and kind(dtype) == "int" and value != e.value:
            info = np.iinfo(dtype)
            raise refuse("A104", f"the number {e.value} beside {dtype}", f"{dtype} holds {info.min} to {info.max}", "fl.cast(x, fl.i32)")
        if e.weak and not weak and dtype in FLOATS and abs(value) > largest(dtype) and not (abs(value) == float("inf") and infinite(dtype)):
            instead = ('float("inf")',) if infinite(dtype) else ()
            raise refuse("A104", f"the number {value:.3g} beside {dtype}", f"{dtype} holds up to {largest(dtype):.3g}", *instead)
        return Const(value, dtype, weak)
    if e.dtype == dtype:
        return e
    if weak and kind(e.dtype) == kind(dtype):
        return e
    return _computed(e, dtype) if not weak else Op("cast", (e,), dtype, weak)


def _computed(e: Expr, dtype: str) -> Expr:
    """The expression in a definite type. Arithmetic on numbers and positions alone, such as 5 - 1.3 or i * 0.1, has no type of its own:
    in float64 it is done in float64, since float32 on the way would round. A narrower float gets what float32 makes of it, rounded once."""
    if not (e.weak and kind(e.dtype) == "float" and dtype == "float64"):
        return Op("cast", (e,), dtype, False)
    from .rewriting import walk

    made: dict[Expr, Expr] = {}
    for n in walk(e):
        match n:
            case Const(value, of) if kind(of) == "float":
                made[n] = Const(value, dtype, False)
            case Op(op, args, of) if n.weak and kind(of) == "float":
                parts = tuple(made[a] for a in args)
                made[n] = parts[0] if op == "cast" and parts[0].dtype == dtype else Op(op, parts, dtype, False)
            case _:
                made[n] = n
    return made[e]


def applied(op: str, left: Any, right: Any) -> Expr:
    """What Python's operators do. Beside a complex number the result is one too: no Expr, but what has the same operators."""
    other = right if isinstance(left, Expr) else left
    if not isinstance(other, Expr | int | float):
        from .complex.elements import arithmetic, is_complex

        if is_complex(other):
            return arithmetic(op, left, right)  # type: ignore[no-any-return]
    return power(left, right) if op == "pow" else binary(op, left, right)


def binary(op: str, left: Any, right: Any) -> Expr:
    a, b = as_expr(left), as_expr(right)
    dtype, weak = common(SYMBOL.get(op, op), a, b)
    if op == "div" and kind(dtype) != "float":
        dtype = "float32"
    if op in REAL and kind(dtype) != "float":
        dtype = "float32"
    if op in ("shl", "shr") and kind(dtype) != "int":
        raise refuse("A104", f"a shift of {dtype}", "only integers have bits")
    if op in ("add", "sub", "mul", "floordiv", "mod") and dtype == "bool":
        dtype = "int32"
    if op in LOGICAL and kind(dtype) == "float":
        raise refuse("A104", f"{SYMBOL[op]} of {dtype}", "only booleans and integers have bits", "compare first: (a > 0) & (b > 0)")
    a, b = _coerce(a, dtype, weak), _coerce(b, dtype, weak)
    if op in COMPARISON:
        return Op(op, (a, b), "bool", False)
    if weak and kind(dtype) == "int" and (folded := fold(op, a, b)) is not None:
        return folded
    return Op(op, (a, b), dtype, weak)


def fold(op: str, a: Expr, b: Expr) -> Expr | None:
    """Index arithmetic on constants and the neutral elements, folded while it is written."""
    if isinstance(a, Const) and isinstance(b, Const):
        x, y = int(a.value), int(b.value)
        table: dict[str, Callable[[], int]] = {
            "add": lambda: x + y,
            "sub": lambda: x - y,
            "mul": lambda: x * y,
            "floordiv": lambda: x // y if y else 0,
            "mod": lambda: x % y if y else 0,
            "min": lambda: min(x, y),
            "max": lambda: max(x, y),
        }
        return as_expr(table[op]()) if op in table else None
    if isinstance(b, Const):
        if b.value == 0 and op in ("add", "sub"):
            return a
        if b.value == 1 and op in ("mul", "floordiv"):
            return a
    if isinstance(a, Const) and ((a.value == 0 and op == "add") or (a.value == 1 and op == "mul")):
        return b
    return None


def unary(op: str, value: Any) -> Expr:
    e = as_expr(value)
    if op == "neg":
        return (
            Const(-e.value, e.dtype, e.weak)
            if isinstance(e, Const) and kind(e.dtype) != "bool"
            else binary("sub", Const(0, "int32", True), e)
            if kind(e.dtype) != "float"
            else Op("neg", (e,), e.dtype, e.weak)
        )
    if op == "not":
        if kind(e.dtype) == "float":
            raise refuse("A104", f"~ of {e.dtype}", "only booleans and integers have bits")
        return Op("not", (e,), e.dtype, e.weak)
    if op in REAL:
        if kind(e.dtype) != "float":
            e = _coerce(e, "float32", e.weak)
        return Op(op, (e,), e.dtype, e.weak)
    return Op(op, (e,), e.dtype, e.weak)


def power(base: Any, exponent: Any) -> Expr:
    """Whole powers up to 16 become products; others the real power."""
    b, x = as_expr(base), as_expr(exponent)
    if isinstance(x, Const) and float(x.value).is_integer() and 1 <= x.value <= 16:
        result, square, n = None, b, int(x.value)
        while n:
            if n & 1:
                result = square if result is None else result * square
            square, n = square * square, n >> 1
        assert result is not None
        return result
    if isinstance(x, Const) and x.value == 0.5:
        return unary("sqrt", b)
    return binary("pow", b, x)


def where(condition: Any, a: Any, b: Any) -> Expr:
    """a where the condition holds, else b; the branch that is not taken is never evaluated as far as anyone can see."""
    c, x, y = as_expr(condition), as_expr(a), as_expr(b)
    if c.dtype != "bool":
        raise refuse("A104", f"where({c.dtype}, ...)", "the condition must be bool", "where(x != 0, ...)")
    dtype, weak = common("where", x, y)
    return Op("where", (c, _coerce(x, dtype, weak), _coerce(y, dtype, weak)), dtype, weak)


def strong(e: Expr, dtype: str | None = None) -> Expr:
    """e with a definite type: the one given, or the default of its kind where it is weak."""
    to = dtype or (DEFAULT[kind(e.dtype)] if e.weak and kind(e.dtype) != "int" else e.dtype)
    if e.dtype == to and not e.weak:
        return e
    return Const(_python(e.value, to), to, False) if isinstance(e, Const) else _computed(e, to)
