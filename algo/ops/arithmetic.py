"""Arithmetic, comparisons, choices, bits and truth, element by element."""

from __future__ import annotations

from typing import Any

from .. import expr as E
from ..dtypes import kind
from ..expr import Expr, Op, as_expr
from .elementwise import elementwise


@elementwise
def add(x: Any, y: Any) -> Expr:
    """x + y. Integers wrap."""
    return E.binary("add", x, y)


@elementwise
def subtract(x: Any, y: Any) -> Expr:
    """x - y. Integers wrap."""
    return E.binary("sub", x, y)


@elementwise
def multiply(x: Any, y: Any) -> Expr:
    """x * y. Integers wrap."""
    return E.binary("mul", x, y)


@elementwise
def divide(x: Any, y: Any) -> Expr:
    """x / y; integers give float32."""
    return E.binary("div", x, y)


@elementwise
def floor_divide(x: Any, y: Any) -> Expr:
    """The floor of x / y; an integer divided by zero gives 0."""
    return E.binary("floordiv", x, y)


@elementwise
def mod(x: Any, y: Any) -> Expr:
    """The remainder of floor division, which has the sign of y; 0 for an integer y of zero."""
    return E.binary("mod", x, y)


@elementwise
def pow(x: Any, y: Any) -> Expr:
    """x to the power y. Whole constant powers up to 16 are products."""
    return E.power(x, y)


@elementwise
def negative(x: Any) -> Expr:
    """-x."""
    return E.unary("neg", x)


@elementwise
def abs(x: Any) -> Expr:
    """The absolute value."""
    return as_expr(x) if as_expr(x).dtype.startswith("u") else E.unary("abs", x)


@elementwise
def sign(x: Any) -> Expr:
    """-1, 0 or 1."""
    return E.unary("sign", x)


@elementwise
def square(x: Any) -> Expr:
    """x * x."""
    return E.binary("mul", x, x)


@elementwise
def reciprocal(x: Any) -> Expr:
    """1 / x."""
    return E.binary("div", 1, x)


@elementwise
def minimum(x: Any, y: Any) -> Expr:
    """The smaller of x and y; NaN if either is."""
    return E.binary("min", x, y)


@elementwise
def maximum(x: Any, y: Any) -> Expr:
    """The larger of x and y; NaN if either is."""
    return E.binary("max", x, y)


@elementwise
def clamp(x: Any, min: Any = None, max: Any = None) -> Expr:
    """x kept within [min, max]; either may be None."""
    if min is not None:
        x = E.binary("max", x, min)
    return as_expr(x) if max is None else E.binary("min", x, max)


# ---------------------------------------------------------------- tests and choices
def _test(x: Expr, op: str) -> Expr:
    return Op(op, (x,), "bool", False)


@elementwise
def isnan(x: Any) -> Expr:
    """Whether x is NaN."""
    e = as_expr(x)
    return _test(e, "isnan") if kind(e.dtype) == "float" else E.cast(False, "bool")


@elementwise
def isinf(x: Any) -> Expr:
    """Whether x is infinite."""
    e = as_expr(x)
    return _test(e, "isinf") if kind(e.dtype) == "float" else E.cast(False, "bool")


@elementwise
def isfinite(x: Any) -> Expr:
    """Whether x is neither infinite nor NaN."""
    e = as_expr(x)
    return _test(e, "isfinite") if kind(e.dtype) == "float" else E.cast(True, "bool")


@elementwise
def where(condition: Any, x: Any, y: Any) -> Expr:
    """x where the condition holds, else y. The other branch is never evaluated as far as anyone can see."""
    return E.where(condition, x, y)


@elementwise
def equal(x: Any, y: Any) -> Expr:
    """x == y."""
    return E.binary("eq", x, y)


@elementwise
def not_equal(x: Any, y: Any) -> Expr:
    """x != y."""
    return E.binary("ne", x, y)


@elementwise
def less(x: Any, y: Any) -> Expr:
    """x < y."""
    return E.binary("lt", x, y)


@elementwise
def less_equal(x: Any, y: Any) -> Expr:
    """x <= y."""
    return E.binary("le", x, y)


@elementwise
def greater(x: Any, y: Any) -> Expr:
    """x > y."""
    return E.binary("lt", y, x)


@elementwise
def greater_equal(x: Any, y: Any) -> Expr:
    """x >= y."""
    return E.binary("le", y, x)


# ---------------------------------------------------------------- bits and truth
@elementwise
def bitwise_and(x: Any, y: Any) -> Expr:
    """x & y, on booleans and integers."""
    return E.binary("and", x, y)


@elementwise
def bitwise_or(x: Any, y: Any) -> Expr:
    """x | y, on booleans and integers."""
    return E.binary("or", x, y)


@elementwise
def bitwise_xor(x: Any, y: Any) -> Expr:
    """x ^ y, on booleans and integers."""
    return E.binary("xor", x, y)


@elementwise
def invert(x: Any) -> Expr:
    """~x: not on booleans, the complement on integers."""
    return E.unary("not", x)


@elementwise
def left_shift(x: Any, y: Any) -> Expr:
    """x << y; 0 when y is the width or more."""
    return E.binary("shl", x, y)


@elementwise
def right_shift(x: Any, y: Any) -> Expr:
    """x >> y, arithmetic on signed types; 0 or the sign when y is the width or more."""
    return E.binary("shr", x, y)


def _truth(x: Any) -> Expr:
    e = as_expr(x)
    return e if e.dtype == "bool" else E.binary("ne", e, 0)


@elementwise
def logical_and(x: Any, y: Any) -> Expr:
    """Whether both are nonzero."""
    return _truth(x) & _truth(y)


@elementwise
def logical_or(x: Any, y: Any) -> Expr:
    """Whether either is nonzero."""
    return _truth(x) | _truth(y)


@elementwise
def logical_xor(x: Any, y: Any) -> Expr:
    """Whether exactly one is nonzero."""
    return _truth(x) ^ _truth(y)


@elementwise
def logical_not(x: Any) -> Expr:
    """Whether x is zero."""
    return ~_truth(x)
