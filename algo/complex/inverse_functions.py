"""The inverse circular and hyperbolic functions of complex elements.

Hull, Fairgrieve and Tang, "Implementing the complex arcsine and arccosine functions using exception handling" (1997): from the distances
of z to -1 and 1, without a difference of numbers that may be close. Next to the real axis, and in parts that are odd, the signed number
is used and not its size, so that derivatives hold there too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from .. import expr as E
from ..expr import Expr, as_expr
from .elements import ComplexExpr, Element, divide, parts

_LARGE, _SMALL = 1e15, 1e-15
"""Sizes whose squares and reciprocals of squares float32 still has."""


def is_below(b: Expr) -> Expr:
    """Whether a number has the sign of minus, that of its zero included."""
    return (b < 0) | (E.binary("eq", b, 0) & (1 / b < 0))


class _Arc(NamedTuple):
    """asin z is atan2(re z, side) + i height, acos z atan2(side, re z) - i height; both have the sign of im z, and `size` is |height|."""

    side: Expr
    signed_side: Expr
    height: Expr
    size: Expr


def _arc(z: Element) -> _Arc:
    from ..ops.derived import length

    re, im = parts(z)
    large = (abs(re) > _LARGE) | (abs(im) > _LARGE)
    a, b = (E.where(large, 0.25, p) for p in (re, im))
    x, y = abs(a), abs(b)
    far, near = length(x + 1, b), length(x - 1, b)
    inside, point = x <= 1, E.binary("eq", x, 1) & E.binary("eq", b, 0)
    rim = near + abs(x - 1)
    rim = E.where(point, 1, rim)  # where z is 1 everything is 0
    outer, other = b * (b / (far + x + 1)), E.where(point, 0, b * (b / rim))
    middle = (far + near) / 2
    above = (outer + E.where(inside, other, E.where(point, 0, rim))) / 2  # middle - 1
    root = E.unary("sqrt", E.where(point, 1, (middle + x) * E.where(inside, outer + rim, 1 / (far + x + 1) + 1 / rim) / 2))
    size = E.where(point, 0, E.where(inside, root, y * root))
    low = is_below(im)
    signed = E.where(inside, E.where(low, -size, size), b * root)
    flat = inside & (y < _SMALL) & (x < 1)
    risen = E.where(flat | E.binary("eq", above, 0), 1, above)
    height = E.unary("log1p", risen + E.unary("sqrt", risen * (middle + 1)))
    height = E.where(flat, y / root, E.where(E.binary("eq", above, 0), 0, height))
    upright = E.where(flat, b / root, E.where(low, -height, height))
    away = E.unary("log", length(E.where(large, re, 1), im)) + math.log(2)
    return _Arc(
        E.where(large, abs(im), size),
        E.where(large, im, signed),
        E.where(large, E.where(low, -away, away), upright),
        E.where(large, away, height),
    )


def asin(z: Element) -> ComplexExpr:
    arc = _arc(z)
    return ComplexExpr(E.binary("atan2", parts(z)[0], arc.side), arc.height)


def acos(z: Element) -> ComplexExpr:
    arc = _arc(z)
    return ComplexExpr(E.binary("atan2", arc.side, parts(z)[0]), -arc.height)


def acosh(z: Element) -> ComplexExpr:
    arc = _arc(z)
    return ComplexExpr(arc.size, E.binary("atan2", arc.signed_side, parts(z)[0]))


def atanh(z: Element) -> ComplexExpr:
    """Of large numbers by way of 1 / z, whose squares do not overflow."""
    a, b = parts(z)
    large = (abs(a) > 4) | (abs(b) > 4)
    back = divide(as_expr(1), ComplexExpr(E.where(large, a, 1), E.where(large, b, 1)))
    x, y = E.where(large, back.real, a), E.where(large, back.imag, b)
    size, square, small = abs(x), y * y, abs(x) < 0.5
    signed = E.where(small, x, size)
    grown = E.unary("log1p", 4 * signed / ((1 - signed) * (1 - signed) + square)) / 4
    turn = E.binary("atan2", 2 * y, (1 - x) * (1 + x) - square) / 2
    quarter = E.where(is_below(b), -math.pi / 2, math.pi / 2)  # between atanh(1 / z) and atanh(z)
    return ComplexExpr(E.where(small | (x >= 0), grown, -grown), E.where(large, turn + quarter, turn))


def turned(fn: Callable[[Element], ComplexExpr], z: Element) -> ComplexExpr:
    """fn(i z) / i."""
    a, b = parts(z)
    found = fn(ComplexExpr(-b, a))
    return ComplexExpr(found.imag, -found.real)


def asinh(z: Element) -> ComplexExpr:
    return turned(asin, z)


def atan(z: Element) -> ComplexExpr:
    return turned(atanh, z)


__all__ = ["acos", "acosh", "asin", "asinh", "atan", "atanh", "is_below", "turned"]
