"""Real functions made of the others, so that no accuracy is lost where the textbook formula cancels or overflows."""

from __future__ import annotations

import math
from typing import Any

from .. import expr as E
from ..dtypes import kind
from ..expr import Expr, as_expr
from .elementwise import elementwise, once

_LARGE = 2.0**28  # above it x*x + 1 is x*x even in float64


def real(x: Any) -> Expr:
    """Integers and booleans as float32, as true division would take them."""
    e = as_expr(x)
    return e if kind(e.dtype) == "float" else E.cast(e, "float32")


def reals(x: Any, y: Any) -> tuple[Expr, Expr]:
    """Two operands in their common float type."""
    a, b = real(x), real(y)
    dtype, weak = E.common("a real function", a, b)
    return (a, b) if weak else (E.cast(a, dtype), E.cast(b, dtype))


def _odd(x: Expr, magnitude: Expr) -> Expr:
    """The value of an odd function, whose value at |x| is `magnitude`; a zero keeps its sign."""
    return E.where(x < 0, -magnitude, E.where(E.binary("eq", x, 0), x, magnitude))


@elementwise
@once
def asinh(x: Any) -> Expr:
    """The number whose hyperbolic sine is x; accurate near 0, and finite for every finite x."""
    e = real(x)
    size = E.unary("abs", e)
    small = E.where(size < _LARGE, size, 0)  # the square of a larger one may overflow
    square = small * small
    near = E.unary("log1p", small + square / (E.unary("sqrt", square + 1) + 1))
    return _odd(e, E.where(size < _LARGE, near, E.unary("log", size) + math.log(2)))


@elementwise
@once
def acosh(x: Any) -> Expr:
    """The number from 0 up whose hyperbolic cosine is x; NaN below 1."""
    e = real(x)
    above = e - 1
    near = E.unary("log1p", above + E.unary("sqrt", above) * E.unary("sqrt", e + 1))
    return E.where(e < _LARGE, near, E.unary("log", e) + math.log(2))


@elementwise
@once
def atanh(x: Any) -> Expr:
    """The number whose hyperbolic tangent is x; infinite at -1 and 1, NaN beyond."""
    e = real(x)
    size = E.unary("abs", e)
    return _odd(e, E.unary("log1p", 2 * size / (1 - size)) / 2)


@elementwise
@once
def hypot(x: Any, y: Any) -> Expr:
    """The length of (x, y): sqrt(x*x + y*y) where the squares may overflow. Infinite if either is, even beside NaN."""
    return length(x, y)


def length(x: Any, y: Any) -> Expr:
    """`hypot` of two elements."""
    a, b = (E.unary("abs", e) for e in reals(x, y))
    long, short = E.binary("max", a, b), E.binary("min", a, b)
    ratio = short / E.where(E.binary("eq", long, 0), 1, long)
    infinite = E.binary("eq", a, math.inf) | E.binary("eq", b, math.inf)
    return E.where(infinite, math.inf, long * E.unary("sqrt", ratio * ratio + 1))


@elementwise
@once
def logaddexp(x: Any, y: Any) -> Expr:
    """log(exp(x) + exp(y)) without overflow; -inf of two -inf."""
    a, b = reals(x, y)
    apart = E.where(E.binary("eq", a, b), 0, E.unary("abs", a - b))  # equal infinities are at no distance
    return E.binary("max", a, b) + E.unary("log1p", E.unary("exp", -apart))
