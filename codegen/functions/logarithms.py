"""log, log1p and what rests on them: log2, log10 and pow.

x = 2**e m with sqrt(1/2) <= m < sqrt(2) comes from the bits. float32 has Cephes' form f - f**2 / 2 + f**3 P(f) with f = m - 1, float64 that
of Muller, "Elementary Functions" (2 atanh(f / (2 + f))). Coefficients: own Remez exchange, relative to the logarithm, rounded to the type
from the first to the last. log2, log10 and pow of float32 go through float64, so that cases such as log2(8) and pow(3, 4) are exact.
"""
from __future__ import annotations

from .exponentials import LN2_PARTS, exponential
from .lanes import Lanes, Value

# (log(1 + f) - f + f**2 / 2) / f**3: 2**-27.3
_CUBIC = (0.3333333134651184, -0.250008225440979, 0.20001259446144104, -0.16623346507549286, 0.14201074838638306, -0.13159531354904175,
          0.1276567429304123, -0.0764114186167717)
# (2 atanh(s) - 2 s) / s**3 in s**2: 2**-59.5
_ATANH = (0.6666666666666735, 0.3999999999940938, 0.28571428743677085, 0.22222198430188736, 0.18183572280839524, 0.15313834326298872,
          0.14798234632728044)
_ROOT_HALF = {"float32": 0x3F3504F3, "float64": 0x3FE6A09E667F3BCD}
LOG2E, LOG10E = 1.4426950408889634, 0.4342944819032518
_NONE, _INFINITE = float("nan"), float("inf")


def _split(f: Lanes, x: Value) -> tuple[Value, Value]:
    """e as an integer and m of a positive normal number."""
    root, m = _ROOT_HALF[f.dtype], f.format.mantissa
    above = x.bits - root
    return above >> m, ((above & ((1 << m) - 1)) + root).float


def _logarithm(f: Lanes, e: Value, part: Value) -> Value:
    """e ln(2) + log(1 + part)."""
    high, low = LN2_PARTS[f.dtype]
    square = part * part
    if f.dtype == "float32":
        tail = (part * square) * f.polynomial(part, _CUBIC) + e * low - 0.5 * square
        return (part + tail) + e * high
    s, half = part / (part + 2), 0.5 * square
    z = s * s
    rest = s * (half + z * f.polynomial(z, _ATANH)) + e * low
    return e * high - ((half - rest) - part)


def _number(f: Lanes, e: Value, plus: Value | float = 0.0) -> Value:
    """The integer e as a float, less `plus`; most vector units cannot convert 64-bit integers."""
    return (e + f.number(f.magic).bits).float - (plus + f.magic)


def _finite_logarithm(f: Lanes, x: Value) -> Value:
    """log(x) of a positive number, subnormal or normal."""
    steps = f.format.mantissa + 2
    small = x < 2.0 ** (1 - f.format.bias)
    e, m = _split(f, small.where(x * 2.0**steps, x))
    return _logarithm(f, _number(f, e, small.where(f.number(steps), 0)), m - 1)


def log(f: Lanes, x: Value) -> Value:
    """The natural logarithm; -inf at 0, NaN below."""
    positive = (x < _INFINITE).where(_finite_logarithm(f, x), x)
    return (x > 0).where(positive, x.equals(0).where(f.number(-_INFINITE), _NONE))


def log1p(f: Lanes, x: Value) -> Value:
    """log(1 + x): what rounding 1 + x lost is put back before the polynomial."""
    total = x + 1
    lost = (x < 1).where(x - (total - 1), 1 - (total - x))
    e, m = _split(f, total)
    most = f.format.bias - 1
    inverse = ((f.format.bias << f.format.mantissa) - ((e > most).where(most, e) << f.format.mantissa)).float
    found = _logarithm(f, _number(f, e), (m - 1) + lost * inverse)
    inside = (x < _INFINITE).where(x.equals(0).where(x, found), x)
    return (x > -1).where(inside, x.equals(-1).where(f.number(-_INFINITE), _NONE))


def log2(f: Lanes, x: Value) -> Value:
    """The logarithm to base 2 of float32."""
    return (log(f.wide(), x.double()) * LOG2E).single()


def log10(f: Lanes, x: Value) -> Value:
    """The logarithm to base 10 of float32."""
    return (log(f.wide(), x.double()) * LOG10E).single()


def power(f: Lanes, x: Value, y: Value) -> Value:
    """x**y of float32, with C99's special cases."""
    wide, x = f.wide(), x.double()
    y = wide.at_most(wide.at_least(y.double(), -1e30), 1e30)        # as infinity to every base but 1 and -1, where it gives 1
    exponent = y * log(wide, wide.abs(x))
    magnitude = exponential(wide, wide.at_most(wide.at_least(exponent, -120.0), 100.0))
    whole, half = wide.floor(y), y * 0.5
    of_whole = wide.floor(half).equals(half).where(magnitude, wide.signed_as(magnitude, x))
    of_other = (x < 0).where((x > -_INFINITE).where(wide.number(_NONE), magnitude), magnitude)
    result = whole.equals(y).where(of_whole, of_other)
    return y.equals(0).where(1.0, x.equals(1).where(1.0, result)).single()
