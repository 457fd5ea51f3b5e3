"""Rounding and the real functions, element by element."""

from __future__ import annotations

from typing import Any

from .. import expr as E
from ..dtypes import kind
from ..expr import Expr, as_expr
from .elementwise import elementwise


def _whole(op: str, x: Any) -> Expr:
    e = as_expr(x)
    return E.unary(op, e) if kind(e.dtype) == "float" else e


@elementwise
def floor(x: Any) -> Expr:
    """The largest whole number that is not above x, in the type of x."""
    return _whole("floor", x)


@elementwise
def ceil(x: Any) -> Expr:
    """The smallest whole number that is not below x, in the type of x."""
    return _whole("ceil", x)


@elementwise
def round(x: Any) -> Expr:
    """The nearest whole number, halves to even, in the type of x."""
    return _whole("round", x)


@elementwise
def trunc(x: Any) -> Expr:
    """x without its fraction, in the type of x."""
    return _whole("trunc", x)


# ---------------------------------------------------------------- real functions
@elementwise
def exp(x: Any) -> Expr:
    """e to the power x."""
    return E.unary("exp", x)


@elementwise
def exp2(x: Any) -> Expr:
    """2 to the power x."""
    return E.unary("exp2", x)


@elementwise
def expm1(x: Any) -> Expr:
    """exp(x) - 1, accurate near 0."""
    return E.unary("expm1", x)


@elementwise
def log(x: Any) -> Expr:
    """The natural logarithm; -inf at 0, NaN below."""
    return E.unary("log", x)


@elementwise
def log2(x: Any) -> Expr:
    """The logarithm to base 2."""
    return E.unary("log2", x)


@elementwise
def log10(x: Any) -> Expr:
    """The logarithm to base 10."""
    return E.unary("log10", x)


@elementwise
def log1p(x: Any) -> Expr:
    """log(1 + x), accurate near 0."""
    return E.unary("log1p", x)


@elementwise
def sqrt(x: Any) -> Expr:
    """The square root; NaN below 0."""
    return E.unary("sqrt", x)


@elementwise
def rsqrt(x: Any) -> Expr:
    """1 / sqrt(x)."""
    return E.unary("rsqrt", x)


@elementwise
def sin(x: Any) -> Expr:
    """The sine of x radians."""
    return E.unary("sin", x)


@elementwise
def cos(x: Any) -> Expr:
    """The cosine of x radians."""
    return E.unary("cos", x)


@elementwise
def tan(x: Any) -> Expr:
    """The tangent of x radians."""
    return E.unary("tan", x)


@elementwise
def asin(x: Any) -> Expr:
    """The angle in [-pi/2, pi/2] radians whose sine is x."""
    return E.unary("asin", x)


@elementwise
def acos(x: Any) -> Expr:
    """The angle in [0, pi] radians whose cosine is x."""
    return E.unary("acos", x)


@elementwise
def atan(x: Any) -> Expr:
    """The angle in (-pi/2, pi/2) radians whose tangent is x."""
    return E.unary("atan", x)


@elementwise
def atan2(y: Any, x: Any) -> Expr:
    """The angle of the point (x, y) in radians, in [-pi, pi]."""
    return E.binary("atan2", y, x)


@elementwise
def sinh(x: Any) -> Expr:
    """The hyperbolic sine."""
    return E.unary("sinh", x)


@elementwise
def cosh(x: Any) -> Expr:
    """The hyperbolic cosine."""
    return E.unary("cosh", x)


@elementwise
def tanh(x: Any) -> Expr:
    """The hyperbolic tangent."""
    return E.unary("tanh", x)


@elementwise
def sigmoid(x: Any) -> Expr:
    """1 / (1 + exp(-x))."""
    return E.unary("sigmoid", x)


@elementwise
def erf(x: Any) -> Expr:
    """The error function."""
    return E.unary("erf", x)
