"""sin, cos, tan and their inverses, of float32.

Reduction by quarter turns after Cody & Waite, in float64 with pi / 2 in three parts: the first two have 24 bits, so their products with counts below
2**29 are exact. Up to |x| = 8e8 the angle that is left is right to the last place of float32. Beyond, where neighbouring float32 numbers are 64
radians apart, the results are some number within the function's range. Forms of the inverses: Cephes. Coefficients: own Remez exchange, relative to the
function, rounded to the type from the first to the last.
"""
from __future__ import annotations

from typing import Any

from .lanes import Lanes
from .tvm_adapter import tirx

_HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151244994428829e-15)
_HIGH, _LOW = 1.5707963705062866, -4.371139000186243e-08

# (sin(r) / r - 1) / r**2 and (cos(r) - 1 + r**2 / 2) / r**4 in r**2 for |r| <= pi / 4: 2**-27.9, 2**-33, and for tan 2**-37.5, 2**-42.9
_SIN = (-0.16666655242443085, 0.008332187309861183, -0.00019517897453624755)
_COS = (0.04166664555668831, -0.0013887309469282627, 2.4432327336398885e-05)
_SIN_WIDE = (-0.1666666664059273, 0.008333329281022487, -0.00019839304575246705, 2.718048008817661e-06)
_COS_WIDE = (0.041666666619114785, -0.0013888883467901725, 2.4799451716483128e-05, -2.720505995225891e-07)
# (atan(t) / t - 1) / t**2 in t**2 for 0 <= t <= 1: 2**-25.8
_ATAN = (-0.33333152532577515, 0.19993767142295837, -0.14211001992225647, 0.10665767639875412, -0.07551652193069458, 0.04320456460118294,
         -0.01636304147541523, 0.0029193724039942026)
# (asin(t) / t - 1) / t**2 in t**2 for 0 <= t <= 1/2: 2**-27.6
_ASIN = (0.16666752099990845, 0.074953094124794, 0.04546915367245674, 0.024184739217162132, 0.04215840622782707)


def _quarters(wide: Lanes, x: Any) -> tuple[Any, Any]:
    """The number of quarter turns modulo 2**32 in x >= 0, and the angle that is left, in [-1, 1] whatever x is."""
    fixed = wide.fixed(x * wide(0.6366197723675814))
    count = wide.whole(fixed)
    left = x
    for part in _HALF_PI:
        left = left - count * wide(part)
    return wide.let(wide.unsigned(fixed).astype("uint32")), wide.let(wide.at_most(wide.at_least(wide.let(left), -1.0), 1.0))


def _wave(x: Any, shift: int) -> Any:
    """sin(|x| + shift quarter turns), with the sign of x where nothing is shifted."""
    f, wide = Lanes("float32"), Lanes("float64")
    x = f.let(x)
    turns, left = _quarters(wide, wide.let(tirx.abs(x).astype("float64")))
    turns, left = wide.let(turns + tirx.const(shift, "uint32")), wide.let(left.astype("float32"))
    square = wide.let(left * left)
    sine = left + (left * square) * f.polynomial(square, _SIN)
    cosine = f(1.0) - (f(0.5) * square - (square * square) * f.polynomial(square, _COS))
    odd = tirx.NE(tirx.bitwise_and(turns, tirx.const(1, "uint32")), tirx.const(0, "uint32"))
    sign = tirx.shift_left(tirx.bitwise_and(turns, tirx.const(2, "uint32")), tirx.const(30, "uint32"))
    bits = tirx.bitwise_xor(f.unsigned(tirx.Select(odd, cosine, sine)), sign)
    if shift == 0:
        bits = tirx.bitwise_xor(bits, tirx.reinterpret("uint32", f.sign(x)))
    return f.around(wide.around(f.float(bits)))


def sin(x: Any) -> Any:
    return _wave(x, 0)


def cos(x: Any) -> Any:
    return _wave(x, 1)


def tan(x: Any) -> Any:
    """The quotient of both, in float64."""
    f, wide = Lanes("float32"), Lanes("float64")
    x = f.let(x)
    turns, left = _quarters(wide, wide.let(tirx.abs(x).astype("float64")))
    square = wide.let(left * left)
    sine = wide.let(left + (left * square) * wide.polynomial(square, _SIN_WIDE))
    cosine = wide.let(wide(1.0) - (wide(0.5) * square - (square * square) * wide.polynomial(square, _COS_WIDE)))
    odd = tirx.NE(tirx.bitwise_and(turns, tirx.const(1, "uint32")), tirx.const(0, "uint32"))
    quotient = tirx.Div(tirx.Select(odd, wide(-0.0) - cosine, sine), tirx.Select(odd, sine, cosine)).astype("float32")
    return f.around(wide.around(f.float(tirx.bitwise_xor(f.signed(quotient), f.sign(x)))))


def atan2(y: Any, x: Any) -> Any:
    """The arc tangent of the smaller of |x| and |y| over the larger, reflected into the octant of (x, y)."""
    f = Lanes("float32")
    x, y = f.let(x), f.let(y)
    across, up = f.let(tirx.abs(x)), f.let(tirx.abs(y))
    steep = tirx.GT(up, across)
    low, high = f.let(tirx.Select(steep, across, up)), f.let(tirx.Select(steep, up, across))
    same = tirx.Select(tirx.EQ(low, f(0.0)), f(0.0), f(1.0))
    arc = _arc(f, f.let(tirx.Select(tirx.EQ(low, high), same, tirx.Div(low, high))))
    arc = f.let(tirx.Select(steep, f(_HIGH) - (arc - f(_LOW)), arc))
    behind = tirx.NE(f.sign(x), f.integer(0))
    return f.around(f.signed_as(tirx.Select(behind, f(2 * _HIGH) - (arc - f(2 * _LOW)), arc), y))


def atan(x: Any) -> Any:
    """As atan2(x, 1)."""
    f = Lanes("float32")
    x = f.let(x)
    size = f.let(tirx.abs(x))
    steep = tirx.GT(size, f(1.0))
    arc = _arc(f, f.let(tirx.Select(steep, tirx.Div(f(1.0), size), size)))
    return f.around(f.signed_as(tirx.Select(steep, f(_HIGH) - (arc - f(_LOW)), arc), x))


def _arc(f: Lanes, t: Any) -> Any:
    """The arc tangent of 0 <= t <= 1."""
    square = f.let(t * t)
    return f.let(t + (t * square) * f.polynomial(square, _ATAN))


def _half_arc(f: Lanes, size: Any) -> tuple[Any, Any]:
    """Whether size > 1/2, and the arc sine of size, or there half the arc cosine."""
    far = tirx.GT(size, f(0.5))
    square = f.let(tirx.Select(far, f(0.5) - f(0.5) * size, size * size))
    root = f.let(tirx.Select(far, tirx.sqrt(square), size))
    return far, f.let(root + (root * square) * f.polynomial(square, _ASIN))


def asin(x: Any) -> Any:
    """The arc sine; NaN beyond 1."""
    f = Lanes("float32")
    x = f.let(x)
    far, arc = _half_arc(f, f.let(tirx.abs(x)))
    return f.around(f.signed_as(tirx.Select(far, f(_HIGH) - (f(2.0) * arc - f(_LOW)), arc), x))


def acos(x: Any) -> Any:
    """The arc cosine; NaN beyond 1."""
    f = Lanes("float32")
    x = f.let(x)
    far, arc = _half_arc(f, f.let(tirx.abs(x)))
    behind = tirx.LT(x, f(0.0))
    beyond = tirx.Select(behind, f(2 * _HIGH) - (f(2.0) * arc - f(2 * _LOW)), f(2.0) * arc)
    return f.around(tirx.Select(far, beyond, f(_HIGH) - (f.signed_as(arc, x) - f(_LOW))))
