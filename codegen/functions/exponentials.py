"""exp and the functions made of it.

Reduction: Cody & Waite, "Software Manual for the Elementary Functions" (1980): x = n ln 2 + r with ln 2 in two parts, the first so short
that n times it is exact. The forms of tanh and erf follow Cephes and Muller, "Elementary Functions". Coefficients: our own Remez exchange
on the remaining factor, relative to the whole function, rounded to the type from the first to the last. The error stated beside each is
the polynomial's.
"""
from __future__ import annotations

from typing import NamedTuple

from .lanes import Lanes, Value

LOG2E, LN2 = 1.4426950408889634, 0.6931471805599453


class _Limits(NamedTuple):
    """Arguments beyond which exp is 0 or infinite, sinh and cosh are infinite, and expm1, tanh and erf are flat."""

    low: float
    high: float
    half: float
    minus_one: float
    tanh: float
    erf: float


_LIMITS = {"float32": _Limits(-104.0, 89.0, 90.0, -20.0, 10.0, 3.93), "float64": _Limits(-746.0, 710.0, 711.0, -40.0, 22.0, 5.93)}
_EXP2_LIMITS = {"float32": (-151.0, 129.0), "float64": (-1077.0, 1025.0)}

LN2_PARTS = {"float32": (0.693359375, -0.00021219444005469057), "float64": (0.6931471803691238, 1.9082149292705877e-10)}

# (exp(r) - 1 - r) / r**2 for |r| <= ln(2) / 2: 2**-28.2, 2**-57.9
_EXP = {
    "float32": (0.4999999403953552, 0.16666516661643982, 0.041668105870485306, 0.00836914125829935, 0.001383674913085997),
    "float64": (0.5000000000000011, 0.1666666666666643, 0.04166666666652567, 0.008333333333479765, 0.0013888888944916028,
                0.00019841269545940163, 2.4801491668675332e-05, 2.755754463265068e-06, 2.7630790029307745e-07, 2.5015322162517078e-08),
}
# (tanh(x) / x - 1) / x**2 in x**2 for |x| <= 0.625: 2**-27.7, 2**-56.4
_TANH = {
    "float32": (-0.3333328068256378, 0.13331405818462372, -0.05373651534318924, 0.02062816731631756, -0.0056922961957752705),
    "float64": (-0.33333333333332854, 0.13333333333261932, -0.05396825393119626, 0.02186948757455361, -0.008863220983951963,
                0.0035919890363874615, -0.0014549582420389671, 0.0005863146817665006, -0.00022856088624398664, 7.71410468674766e-05,
                -1.6071154301802664e-05),
}
# (sinh(x) / x - 1) / x**2 in x**2 for |x| <= 1: 2**-25.3, 2**-61.8
_SINH = {
    "float32": (0.1666671633720398, 0.008330270648002625, 0.00020373340521473438),
    "float64": (0.16666666666666669, 0.008333333333332912, 0.00019841269841593416, 2.7557319106752585e-06, 2.505213099978865e-08,
                1.605665904964432e-10, 7.77660490133557e-13),
}
# erf(x) / x - 1 in x**2 for |x| <= 1: 2**-29.4, 2**-56
_ERF = {
    "float32": (0.12837916612625122, -0.3761262595653534, 0.11283578723669052, -0.026853347197175026, 0.005187162198126316,
                -0.0007997853099368513, 7.806903158780187e-05),
    "float64": (0.12837916709551256, -0.37612638903183343, 0.1128379167093695, -0.026866170641957184, 0.005223977596675922,
                -0.0008548325478565326, 0.00012055280163076994, -1.4924456052581702e-05, 1.6443989209751649e-06, -1.6182407553714268e-07,
                1.3608302464086571e-08, -7.589220470364859e-10),
}
# -log(1 - erf(x)) for 1 <= x <= _LIMITS.erf, relative to erf: 2**-29.8, 2**-57
_ERFC = {
    "float32": (0.0003415340033825487, 1.1270891427993774, 0.6381449103355408, 0.10310669243335724, -0.02183803729712963,
                0.002947651781141758, -0.00018637836910784245),
    "float64": (5.028418399769764e-07, 1.1283740895616088, 0.6366436276664926, 0.10270344078259228, -0.01899018143050268,
                -0.00041062414076833325, 0.0019159392892141153, -0.0007706399350111843, 0.00013504834942983153, 2.026762325814043e-05,
                -2.282285973989739e-05, 8.667266676879015e-06, -2.1356996589743886e-06, 3.733063589074384e-07, -4.6423258523668e-08,
                3.934284910859026e-09, -2.0449720637558624e-10, 4.92863486304437e-12),
}


def _reduced(f: Lanes, x: Value) -> tuple[Value, Value]:
    """n + magic and r of x = n ln 2 + r."""
    high, low = LN2_PARTS[f.dtype]
    fixed = x * LOG2E + f.magic
    n = fixed - f.magic
    return fixed, (x - n * high) - n * low


def _less_one(f: Lanes, r: Value) -> Value:
    """exp(r) - 1 for |r| <= ln(2) / 2."""
    return r + _rest(f, r)


def _rest(f: Lanes, r: Value) -> Value:
    """exp(r) - 1 - r."""
    return (r * r) * f.polynomial(r, _EXP[f.dtype])


def _scaled(f: Lanes, fixed: Value, r: Value) -> Value:
    """exp(r) 2**n, with underflow and overflow."""
    first, second = f.scales(fixed)
    return ((_less_one(f, r) + 1) * first) * second


def exponential(f: Lanes, x: Value) -> Value:
    """exp(x) for x within the type's limits, or NaN."""
    return _scaled(f, *_reduced(f, x))


def _normal_exponential(f: Lanes, x: Value) -> Value:
    """exp(x) where that is a normal number."""
    fixed, r = _reduced(f, x)
    return (_less_one(f, r) + 1) * f.power(f.exponent(fixed))


def _half_exponential(f: Lanes, x: Value) -> Value:
    """exp(x) / 2 for x >= 0, finite wherever sinh and cosh are."""
    fixed, r = _reduced(f, f.at_most(x, _LIMITS[f.dtype].half))
    return _scaled(f, fixed - 1, r)


def exp(f: Lanes, x: Value) -> Value:
    """e**x."""
    limits = _LIMITS[f.dtype]
    return exponential(f, f.at_most(f.at_least(x, limits.low), limits.high))


def exp2(f: Lanes, x: Value) -> Value:
    """2**x; exact at whole numbers."""
    low, high = _EXP2_LIMITS[f.dtype]
    x = f.at_most(f.at_least(x, low), high)
    fixed = x + f.magic
    return _scaled(f, fixed, (x - (fixed - f.magic)) * LN2)


def expm1(f: Lanes, x: Value) -> Value:
    """e**x - 1 as ((e**r - 1) a + (a - 1 / b)) b, where a b = 2**n. What rounding r lost counts here: the sum cancels."""
    limits = _LIMITS[f.dtype]
    bounded = f.at_most(f.at_least(x, limits.minus_one), limits.high)
    fixed, r = _reduced(f, bounded)
    high, low = LN2_PARTS[f.dtype]
    n = fixed - f.magic
    lost = ((bounded - n * high) - r) - n * low
    a, b = f.scales(fixed)
    inverse = ((2 * f.format.bias << f.format.mantissa) - b.bits).float
    return x.equals(0).where(x, ((r + (_rest(f, r) + lost)) * a + (a - inverse)) * b)


def sigmoid(f: Lanes, x: Value) -> Value:
    """1 / (1 + e**-x), by the exponential of -|x|, accurate down to 0. What rounding the sum lost is taken off the quotient."""
    small = exponential(f, f.at_least(-0.0 - f.abs(x), _LIMITS[f.dtype].low))
    total = small + 1
    quotient = (x >= 0).where(1.0, small) / total
    return quotient - quotient * (small - (total - 1))


def tanh(f: Lanes, x: Value) -> Value:
    """A polynomial below 0.625, else 1 - 2 / (e**2x + 1)."""
    size = f.abs(x)
    square = size * size
    near = size + (size * square) * f.polynomial(square, _TANH[f.dtype])
    grown = _normal_exponential(f, f.at_most(size, _LIMITS[f.dtype].tanh) * 2)
    return f.signed_as((size < 0.625).where(near, 1 - 2 / (grown + 1)), x)


def sinh(f: Lanes, x: Value) -> Value:
    """A polynomial below 1, else (e**x - e**-x) / 2."""
    size = f.abs(x)
    square = size * size
    near = size + (size * square) * f.polynomial(square, _SINH[f.dtype])
    half = _half_exponential(f, size)
    return f.signed_as((size < 1).where(near, half - 0.25 / half), x)


def cosh(f: Lanes, x: Value) -> Value:
    """(e**x + e**-x) / 2."""
    half = _half_exponential(f, f.abs(x))
    return half + 0.25 / half


def erf(f: Lanes, x: Value) -> Value:
    """A polynomial below 1, else 1 - exp(a polynomial)."""
    size = f.abs(x)
    near = size + size * f.polynomial(size * size, _ERF[f.dtype])
    bounded = f.at_most(size, _LIMITS[f.dtype].erf)
    rest = _normal_exponential(f, f.polynomial(bounded, tuple(-c for c in _ERFC[f.dtype])))
    return f.signed_as((size < 1).where(near, 1 - rest), x)
