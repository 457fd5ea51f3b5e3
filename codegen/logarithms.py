"""log, log1p and what rests on them: log2, log10 and pow.

x = 2**e m with sqrt(1/2) <= m < sqrt(2) comes from the bits. float32 has Cephes' form f - f**2 / 2 + f**3 P(f) with f = m - 1, float64 that of
Muller, "Elementary Functions" (2 atanh(f / (2 + f))). Coefficients: own Remez exchange, relative to the logarithm, rounded to the type from the
first to the last. log2, log10 and pow of float32 go through float64, which rounds exact cases such as log2(8) and pow(3, 4) exactly.
"""
from __future__ import annotations

from typing import Any

from .exponentials import exponential
from .lanes import Lanes
from .tvm_adapter import tirx

# (log(1 + f) - f + f**2 / 2) / f**3: 2**-27.3
_CUBIC = (0.3333333134651184, -0.250008225440979, 0.20001259446144104, -0.16623346507549286, 0.14201074838638306, -0.13159531354904175,
          0.1276567429304123, -0.0764114186167717)
# (2 atanh(s) - 2 s) / s**3 in s**2: 2**-59.5
_ATANH = (0.6666666666666735, 0.3999999999940938, 0.28571428743677085, 0.22222198430188736, 0.18183572280839524, 0.15313834326298872,
          0.14798234632728044)
_LN2_PARTS = {"float32": (0.693359375, -0.00021219444005469057), "float64": (0.6931471803691238, 1.9082149292705877e-10)}
_ROOT_HALF = {"float32": 0x3F3504F3, "float64": 0x3FE6A09E667F3BCD}
LOG2E, LOG10E = 1.4426950408889634, 0.4342944819032518
_NONE, _INFINITE = float("nan"), float("inf")


def _split(f: Lanes, x: Any) -> tuple[Any, Any]:
    """e as an integer and m of a positive normal number."""
    root = f.natural(_ROOT_HALF[f.dtype])
    above = f.let(f.unsigned(x) - root)
    e = f.let(tirx.shift_right(f.signed(above), f.integer(f.format.mantissa)))
    m = f.float(tirx.bitwise_and(above, f.natural((1 << f.format.mantissa) - 1)) + root)
    return e, f.let(m)


def _number(f: Lanes, e: Any, minus: Any) -> Any:
    """The integer e - minus as a float; most vector units cannot convert 64-bit integers."""
    return f.let(f.float(f.unsigned(f(f.magic)) + f.unsigned(e)) - (f(f.magic) + minus))


def _logarithm(f: Lanes, e: Any, part: Any) -> Any:
    """e ln(2) + log(1 + part)."""
    high, low = _LN2_PARTS[f.dtype]
    square = f.let(part * part)
    if f.dtype == "float32":
        tail = (part * square) * f.polynomial(part, _CUBIC) + e * f(low) - f(0.5) * square
        return (part + tail) + e * f(high)
    s = f.let(tirx.Div(part, f(2.0) + part))
    half, z = f.let(f(0.5) * square), f.let(s * s)
    rest = s * (half + z * f.polynomial(z, _ATANH)) + e * f(low)
    return e * f(high) - ((half - rest) - part)


def _finite_logarithm(f: Lanes, x: Any) -> Any:
    """log(x) of a positive number, subnormal or normal."""
    tiny, steps = 2.0 ** (1 - f.format.bias), f.format.mantissa + 2
    small = tirx.LT(x, f(tiny))
    e, m = _split(f, f.let(tirx.Select(small, x * f(2.0**steps), x)))
    return _logarithm(f, _number(f, e, tirx.Select(small, f(float(steps)), f(0.0))), f.let(m - f(1.0)))


def log(dtype: str, x: Any) -> Any:
    """The natural logarithm; -inf at 0, NaN below."""
    f = Lanes(dtype)
    x = f.let(x)
    positive = tirx.Select(tirx.LT(x, f(_INFINITE)), _finite_logarithm(f, x), x)
    return f.around(tirx.Select(tirx.GT(x, f(0.0)), positive, tirx.Select(tirx.EQ(x, f(0.0)), f(-_INFINITE), f(_NONE))))


def log1p(dtype: str, x: Any) -> Any:
    """log(1 + x): what rounding 1 + x lost is put back before the polynomial."""
    f = Lanes(dtype)
    x = f.let(x)
    sum_ = f.let(x + f(1.0))
    lost = tirx.Select(tirx.LT(x, f(1.0)), x - (sum_ - f(1.0)), f(1.0) - (sum_ - x))
    e, m = _split(f, sum_)
    place = tirx.shift_left(f.unsigned(tirx.min(e, f.integer(f.format.bias - 1))), f.natural(f.format.mantissa))
    inverse = f.float(f.natural(f.format.bias << f.format.mantissa) - place)
    found = _logarithm(f, _number(f, e, f(0.0)), f.let((m - f(1.0)) + lost * inverse))
    inside = tirx.Select(tirx.LT(x, f(_INFINITE)), tirx.Select(tirx.EQ(x, f(0.0)), x, found), x)
    return f.around(tirx.Select(tirx.GT(x, f(-1.0)), inside, tirx.Select(tirx.EQ(x, f(-1.0)), f(-_INFINITE), f(_NONE))))


def _through_float64(x: Any, factor: float) -> Any:
    return (log("float64", x.astype("float64")) * tirx.FloatImm("float64", factor)).astype("float32")


def log2(x: Any) -> Any:
    """The logarithm to base 2 of a float32."""
    return _through_float64(x, LOG2E)


def log10(x: Any) -> Any:
    """The logarithm to base 10 of a float32."""
    return _through_float64(x, LOG10E)


def power(x: Any, y: Any) -> Any:
    """x**y of float32, with C99's special cases."""
    f = Lanes("float64")
    x = f.let(x.astype("float64"))
    y = f.let(f.at_most(f.at_least(f.let(y.astype("float64")), -1e30), 1e30))      # as infinity to every base but 1 and -1, where it gives 1
    w = f.let(y * log("float64", tirx.abs(x)))
    magnitude = f.let(exponential(f, f.let(f.at_most(f.at_least(w, -120.0), 100.0))))
    whole = f.let(tirx.floor(y))
    parity = f.let(whole - f(2.0) * tirx.floor(whole * f(0.5)))
    of_whole = f.let(tirx.Select(tirx.NE(parity, f(0.0)), f.signed_as(magnitude, x), magnitude))
    of_other = f.let(tirx.Select(tirx.LT(x, f(0.0)), tirx.Select(tirx.GT(x, f(-_INFINITE)), f(_NONE), magnitude), magnitude))
    result = tirx.Select(tirx.EQ(whole, y), of_whole, of_other)
    return f.around(tirx.Select(tirx.EQ(y, f(0.0)), f(1.0), tirx.Select(tirx.EQ(x, f(1.0)), f(1.0), result)).astype("float32"))
