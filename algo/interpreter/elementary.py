"""What every scalar operator means, on NumPy arrays. No operation warns; see the semantics that the language states.

Integers wrap; // and % are floor division, by zero 0; shifts by the width or more give 0, or the sign; float to integer truncates and
saturates, NaN is 0; max and min propagate NaN; round is half to even. Narrow floats come and go as float32: see `dtypes`.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import NARROW, kind
from .special import erf

Array = np.ndarray[Any, Any]


def convert(x: Array, dtype: str) -> Array:
    """x as `dtype`: floats to integers truncate toward zero and saturate, integers wrap, bool is x != 0."""
    to = np.dtype(dtype)
    out: Array
    if x.dtype == to:
        return x
    if x.dtype.name in NARROW:
        x = x.astype(np.float32)
    if to.name in NARROW:
        return (x if x.dtype.itemsize == 1 or x.dtype == np.float32 else _sticky(x.astype(np.float64))).astype(to)
    if to.kind == "b":
        out = x != 0
        return out
    if to.kind in "iu" and x.dtype.kind == "f":
        info = np.iinfo(to)
        low, past = float(info.min), float(info.max // 2 + 1) * 2
        fits = (x >= low) & (x < past)
        out = np.where(fits, x, 0).astype(to)
        return np.where(x >= past, np.asarray(info.max, to), np.where(x < low, np.asarray(info.min, to), out))
    return x.astype(to)


def _sticky(x: Array) -> Array:
    """float64 as float32, the last bit 1 wherever something was lost: what that is then rounded to has been rounded once.

    Rounding to odd: S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008.
    """
    near = x.astype(np.float32)
    bits = near.view(np.uint32)
    back = near.astype(np.float64)
    odd = (bits - (np.abs(back) > np.abs(x)).astype(np.uint32)) | np.uint32(1)
    return np.where((back == x) | np.isnan(x), bits, odd).view(np.float32)


def literal(value: Any, dtype: str) -> Array:
    """A Python number as a rank-0 array; integers wrap."""
    if kind(dtype) == "int" and isinstance(value, int):
        return np.asarray(value & (2**64 - 1), np.uint64).astype(dtype)
    return convert(np.asarray(value), dtype) if dtype in NARROW else np.asarray(value).astype(dtype)


def _floordiv(a: Array, b: Array) -> Array:
    return np.where(b == 0, 0, np.floor_divide(a, b)) if a.dtype.kind in "iu" else np.floor_divide(a, b)


def _mod(a: Array, b: Array) -> Array:
    return np.where(b == 0, 0, np.remainder(a, b)) if a.dtype.kind in "iu" else np.remainder(a, b)


def _shift(left: bool) -> Callable[[Array, Array], Array]:
    def shift(a: Array, b: Array) -> Array:
        width = a.dtype.itemsize * 8
        small = (b >= 0) & (b < width)
        by = np.where(small, b, 0).astype(a.dtype)
        if left:
            return np.where(small, np.left_shift(a, by), 0)
        return np.where(small, np.right_shift(a, by), np.where(a < 0, -1, 0).astype(a.dtype))

    return shift


def _not(a: Array) -> Array:
    return np.logical_not(a) if a.dtype.kind == "b" else np.invert(a)


def _whole(fn: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Rounding is the identity on integers."""
    return lambda a: fn(a) if a.dtype.kind == "f" else a


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.where(np.isnan(x), x, np.where(x >= 0, 1 / (1 + small), small / (1 + small)))


def _through_float64(fn: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda a: fn(a).astype(a.dtype)


def _edge(i: Array, n: Array) -> Array:
    out: Array = np.maximum(np.minimum(i, n - 1), 0)
    return out


def _reflect(i: Array, n: Array) -> Array:
    period = np.maximum(2 * (n - 1), 1)
    around = np.remainder(i, period)
    out: Array = np.minimum(around, np.maximum(period - around, 0)) * (n > 1)
    return out


def _wrap(i: Array, n: Array) -> Array:
    return np.remainder(i, np.maximum(n, 1))


BOUNDARY: dict[str, Callable[[Array, Array], Array]] = {"edge": _edge, "reflect": _reflect, "wrap": _wrap}

OPERATORS: dict[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide, "floordiv": _floordiv, "mod": _mod,
    "min": np.minimum, "max": np.maximum, "neg": np.negative, "abs": lambda a: a if a.dtype.kind in "bu" else np.abs(a),
    "sign": lambda a: a if a.dtype.kind == "b" else np.sign(a),
    "floor": _whole(np.floor), "ceil": _whole(np.ceil), "round": _whole(np.rint), "trunc": _whole(np.trunc),
    "not": _not, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "shl": _shift(True), "shr": _shift(False),
    "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal, "where": np.where,
    "isnan": lambda a: np.isnan(a) if a.dtype.kind == "f" else np.zeros(a.shape, bool),
    "isinf": lambda a: np.isinf(a) if a.dtype.kind == "f" else np.zeros(a.shape, bool),
    "isfinite": lambda a: np.isfinite(a) if a.dtype.kind == "f" else np.ones(a.shape, bool),
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda a: 1 / np.sqrt(a), "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "tanh": np.tanh, "sigmoid": _sigmoid, "erf": _through_float64(erf), "log1p": np.log1p, "expm1": np.expm1, "exp2": np.exp2,
    "log2": np.log2, "log10": np.log10, "sinh": np.sinh, "cosh": np.cosh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "pow": np.power,
    **BOUNDARY,
}
"""Operator name -> its meaning. Operands come converted to one dtype; the caller holds np.errstate."""

__all__ = ["BOUNDARY", "OPERATORS", "Array", "convert", "literal"]
