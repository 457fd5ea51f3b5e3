"""sin, cos, tan and their inverses, of float32.

Reduction by quarter turns after Cody & Waite, in float64 with pi / 2 in three parts: the first two have 24 bits, so their products with
counts below 2**29 are exact. Up to |x| = 8e8 the angle that is left is right to the last place of float32. Beyond, where neighbouring
float32 numbers are 64 radians apart, a vector with such a lane asks the C library. Forms of the inverses: Cephes. Coefficients: own Remez
exchange, relative to the function, rounded to the type from the first to the last.
"""
from __future__ import annotations

from .lanes import Lanes, Value

_HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151244994428829e-15)
_REACH = 8e8
_HIGH, _LOW = 1.5707963705062866, -4.371139000186243e-08

# (sin(r) / r - 1) / r**2 and (cos(r) - 1 + r**2 / 2) / r**4 in r**2 for |r| <= pi / 4: 2**-27.9, 2**-33, and for tan 2**-37.5, 2**-42.9
_SIN = (-0.16666655242443085, 0.008332187309861183, -0.00019517897453624755)
_COS = (0.04166664555668831, -0.0013887309469282627, 2.4432327336398885e-05)
_SIN_WIDE = (-0.1666666664059273, 0.008333329281022487, -0.00019839304575246705, 2.718048008817661e-06)
_COS_WIDE = (0.041666666619114785, -0.0013888883467901725, 2.4799451716483128e-05, -2.720505995225891e-07)
# (atan(t) / t - 1) / t**2 in t**2 for 0 <= t <= 1: 2**-25.8
_ATAN = (-0.33333152532577515, 0.19993767142295837, -0.14211001992225647, 0.10665767639875412, -0.07551652193069458, 0.04320456460118294,
         -0.01636304147541523, 0.0029193724039942026)
# (asin(t) / t - 1) / t**2 in t**2 for 0 <= t <= 9/16: 2**-29
_ASIN = (0.16666631400585175, 0.07502097636461258, 0.04423220083117485, 0.03401068598031998, 0.006742904894053936, 0.047483429312705994)


def _quarters(wide: Lanes, x: Value) -> tuple[Value, Value]:
    """The number of quarter turns modulo 2**32 in x >= 0, and the angle that is left."""
    fixed = x * 0.6366197723675814 + wide.magic
    count, left = fixed - wide.magic, x
    for part in _HALF_PI:
        left = left - count * part
    return fixed.bits.low_half(), left


def _everywhere(f: Lanes, name: str, x: Value, near: Value) -> Value:
    """`near`, save beyond the reach of the reduction."""
    return f.text.rarely(f.abs(x) > _REACH, near, lambda: f.text.intrinsic(name, x))


def _wave(f: Lanes, x: Value, shift: int) -> Value:
    """sin(|x| + shift quarter turns)."""
    turns, left = _quarters(f.wide(), f.abs(x).double())
    turns, left = turns + shift, left.single()
    square = left * left
    sine = left + (left * square) * f.polynomial(square, _SIN)
    cosine = 1 - (0.5 * square - (square * square) * f.polynomial(square, _COS))
    return ((turns & 1).equals(0).where(sine, cosine).bits ^ ((turns & 2) << 30)).float


def sin(f: Lanes, x: Value) -> Value:
    return _everywhere(f, "sin", x, (_wave(f, x, 0).bits ^ f.sign(x)).float)


def cos(f: Lanes, x: Value) -> Value:
    return _everywhere(f, "cos", x, _wave(f, x, 1))


def tan(f: Lanes, x: Value) -> Value:
    """The quotient of both, in float64."""
    wide = f.wide()
    turns, left = _quarters(wide, f.abs(x).double())
    square = left * left
    sine = left + (left * square) * wide.polynomial(square, _SIN_WIDE)
    cosine = 1 - (0.5 * square - (square * square) * wide.polynomial(square, _COS_WIDE))
    even = (turns & 1).equals(0)
    quotient = even.where(sine, -0.0 - cosine) / even.where(cosine, sine)
    return _everywhere(f, "tan", x, (quotient.single().bits ^ f.sign(x)).float)


def _arc(f: Lanes, t: Value) -> Value:
    """The arc tangent of 0 <= t <= 1."""
    square = t * t
    return t + (t * square) * f.polynomial(square, _ATAN)


def atan2(f: Lanes, y: Value, x: Value) -> Value:
    """The arc tangent of the smaller of |x| and |y| over the larger, reflected into the octant of (x, y)."""
    across, up = f.abs(x), f.abs(y)
    steep = up > across
    low, high = steep.where(across, up), steep.where(up, across)
    same = low.equals(0).where(f.number(0), 1)
    arc = _arc(f, low.equals(high).where(same, low / high))
    arc = steep.where(_HIGH - (arc - _LOW), arc)
    return f.signed_as(f.sign(x).equals(0).where(arc, 2 * _HIGH - (arc - 2 * _LOW)), y)


def atan(f: Lanes, x: Value) -> Value:
    size = f.abs(x)
    steep = size > 1
    arc = _arc(f, steep.where(1 / size, size))
    return f.signed_as(steep.where(_HIGH - (arc - _LOW), arc), x)


def _half_arc(f: Lanes, size: Value) -> tuple[Value, Value]:
    """Whether size > 9/16, and the arc sine of size, or there half the arc cosine."""
    far = size > 0.5625
    square = far.where(0.5 - 0.5 * size, size * size)
    root = far.where(f.sqrt(square), size)
    return far, root + (root * square) * f.polynomial(square, _ASIN)


def asin(f: Lanes, x: Value) -> Value:
    """NaN beyond 1."""
    far, arc = _half_arc(f, f.abs(x))
    return f.signed_as(far.where(_HIGH - (2 * arc - _LOW), arc), x)


def acos(f: Lanes, x: Value) -> Value:
    """NaN beyond 1."""
    far, arc = _half_arc(f, f.abs(x))
    beyond = (x < 0).where(2 * _HIGH - (2 * arc - 2 * _LOW), 2 * arc)
    return far.where(beyond, _HIGH - (f.signed_as(arc, x) - _LOW))
