"""Random numbers for initial values, the same on every machine.

NumPy promises the raw bits of a bit generator, but not that its normals or LAPACK's factors agree to the last bit from one machine to the
next. So these are made from raw bits by additions, multiplications, divisions and square roots alone, which IEEE 754 rounds in one way,
and sums are taken in a fixed order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


def _bits(generator: np.random.Generator, shape: Shape) -> Array:
    return generator.integers(0, 2**64, shape, dtype=np.uint64)


def uniform(generator: np.random.Generator, shape: Shape, low: float = 0.0, high: float = 1.0) -> Array:
    """Uniform in [low, high), in steps of 2^-53 of the range."""
    unit = (_bits(generator, shape) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return low + (high - low) * unit


def normal(generator: np.random.Generator, shape: Shape) -> Array:
    """Normal with mean 0 and variance 1: the quantiles of uniform numbers inside (0, 1)."""
    return quantile(_inside(generator, shape))


TWO_DEVIATIONS = 0.022750131948179209
"""How likely a normal number is below two deviations under its mean."""


def truncated_normal(generator: np.random.Generator, shape: Shape) -> Array:
    """The normal distribution of deviation 1 given that a number lies within two deviations."""
    return np.clip(quantile(TWO_DEVIATIONS + (1 - 2 * TWO_DEVIATIONS) * _inside(generator, shape)), -2.0, 2.0)


def _inside(generator: np.random.Generator, shape: Shape) -> Array:
    """Uniform in (0, 1), never an end."""
    return ((_bits(generator, shape) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


# ---------------------------------------------------------------- the normal quantile (Wichura, 1988: AS 241, PPND16)
_CENTRE = (
    (3.3871328727963666080, 133.14166789178437745, 1971.5909503065514427, 13731.693765509461125,
     45921.953931549871457, 67265.770927008700853, 33430.575583588128105, 2509.0809287301226727),
    (1.0, 42.313330701600911252, 687.18700749205790830, 5394.1960214247511077,
     21213.794301586595867, 39307.895800092710610, 28729.085735721942674, 5226.4952788528545610),
)  # fmt: skip
_SIDE = (
    (1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550, 3.64784832476320460504,
     1.27045825245236838258, 0.241780725177450611770, 0.0227238449892691845833, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187, 1.67638483018380384940, 0.689767334985100004550,
     0.148103976427480074590, 0.0151986665636164571966, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
)  # fmt: skip
_TAIL = (
    (6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580, 0.296560571828504891230,
     0.0265321895265761230930, 0.00124266094738807843860, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 0.599832206555887937690, 0.136929880922735805310, 0.0148753612908506148525,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15),
)  # fmt: skip


CHUNK = 2**14  # numbers worked on at once: they and what is made of them stay in the cache


def quantile(p: Array) -> Array:
    """The x below which a normal number lies with probability p, to about 1e-16."""
    flat = p.reshape(-1)
    out = np.empty_like(flat)
    for low in range(0, flat.size, CHUNK):
        out[low : low + CHUNK] = _quantile(flat[low : low + CHUNK])
    return out.reshape(p.shape)


def _quantile(p: Array) -> Array:
    off = p - 0.5
    out: Array = off * _ratio(_CENTRE, 0.180625 - off * off)
    (far,) = np.nonzero(np.abs(off) > 0.425)
    below = off[far] < 0
    away = np.sqrt(-logarithm(np.where(below, p[far], 1 - p[far])))
    outer = np.where(away <= 5, _ratio(_SIDE, away - 1.6), _ratio(_TAIL, away - 5))
    out[far] = np.where(below, -outer, outer)
    return out


def _ratio(coefficients: tuple[Sequence[float], Sequence[float]], x: Array) -> Array:
    above, below = (_polynomial(c, x) for c in coefficients)
    return above / below


def _polynomial(coefficients: Sequence[float], x: Array) -> Array:
    total = np.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total *= x
        total += c
    return total


def logarithm(x: Array) -> Array:
    """log(x) of positive numbers, from the series of artanh on a mantissa in [sqrt(1/2), sqrt(2))."""
    mantissa, exponent = np.frexp(x)
    small = mantissa < math.sqrt(0.5)
    mantissa, exponent = np.where(small, mantissa * 2, mantissa), exponent - small
    s = (mantissa - 1) / (mantissa + 1)
    series: Array = 2 * s * _polynomial([1 / (2 * k + 1) for k in range(12)], s * s)
    return exponent * math.log(2) + series


# ---------------------------------------------------------------- orthonormal columns
def orthonormal(a: Array) -> Array:
    """The Q of ``a = Q R`` with a positive diagonal of R, by Householder's reflections; a has no fewer rows than columns."""
    rest = a.copy()
    rows, columns = a.shape
    mirrors: list[Array] = []
    signs = np.ones(columns)
    for k in range(columns):
        x = rest[k:, k].copy()
        length = math.sqrt(float(np.cumsum(x * x)[-1]))
        signs[k] = -1.0 if x[0] >= 0 else 1.0
        x[0] -= signs[k] * length
        mirrors.append(x)
        _reflect(rest[k:, k:], x)
    q = np.eye(rows, columns)
    for k in reversed(range(columns)):
        _reflect(q[k:, k:], mirrors[k])
    return q * signs


def _reflect(a: Array, x: Array) -> None:
    """a - 2 x (x . a) / (x . x), in place; rows are added one after the other."""
    square = float(np.cumsum(x * x)[-1])
    if square:
        a -= x[:, None] * (np.add.reduce(x[:, None] * a, axis=0) * (2 / square))
