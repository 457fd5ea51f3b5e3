"""Operators that take tensors element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
from operator_case import ALL, FLOATS, INTEGERS, NUMBERS, Case, one, spread


def _erf(x: Any) -> Any:
    from scipy import special

    return special.erf(x)


def _sigmoid(x: Any) -> Any:
    return np.exp(-np.logaddexp(0, -np.asarray(x, np.float64)))  # 1 / (1 + exp(-x)) that does not overflow


def _real(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A real function in float64, where NumPy would take small integers as float16."""
    return lambda *x: fn(*(np.asarray(a, np.float64) for a in x))


UNARY: dict[str, tuple[Callable[..., Any], tuple[str, ...], str]] = {
    **{n: (getattr(np, n), FLOATS, "any") for n in ("floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite", "sqrt", "tanh")},
    **{n: (_real(getattr(np, n)), NUMBERS, "small") for n in ("exp", "exp2", "expm1", "sin", "cos", "sinh", "cosh")},
    **{n: (_real(getattr(np, n)), NUMBERS, "positive") for n in ("log", "log2", "log10", "log1p")},
    **{n: (_real(getattr(np, n)), NUMBERS, "unit") for n in ("asin", "acos", "atan", "tan")},
    "asinh": (_real(np.arcsinh), NUMBERS, "any"),
    "square": (np.square, NUMBERS, "small"),
    "atanh": (np.arctanh, FLOATS, "unit"),
    "acosh": (_real(np.arccosh), NUMBERS, "positive"),
    "abs": (np.abs, NUMBERS, "any"),
    "negative": (lambda x: -x, NUMBERS, "any"),
    "positive": (lambda x: +x, NUMBERS, "any"),
    "sign": (np.sign, NUMBERS, "any"),
    "reciprocal": (_real(lambda x: 1 / x), NUMBERS, "positive"),
    "rsqrt": (_real(lambda x: 1 / np.sqrt(x)), NUMBERS, "positive"),
    "sigmoid": (_sigmoid, NUMBERS, "small"),
    "erf": (_erf, NUMBERS, "small"),
    "invert": (np.invert, (*INTEGERS, "bool"), "any"),
    "logical_not": (np.logical_not, ALL, "any"),
}
UNARY_NATIVE = {"signbit": np.signbit}
BINARY: dict[str, tuple[Callable[..., Any], tuple[str, ...], str]] = {
    **{n: (getattr(np, n), NUMBERS, "any") for n in ("add", "subtract", "multiply", "maximum", "minimum")},
    **{n: (getattr(np, n), ALL, "any") for n in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")},
    **{n: (getattr(np, n), ALL, "any") for n in ("logical_and", "logical_or", "logical_xor")},
    **{n: (getattr(np, n), (*INTEGERS, "bool"), "any") for n in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    **{n: (getattr(np, n), INTEGERS, "bits") for n in ("left_shift", "right_shift")},
    "divide": (_real(np.divide), NUMBERS, "positive"),
    "floor_divide": (np.floor_divide, INTEGERS, "positive"),
    "mod": (np.mod, NUMBERS, "positive"),
    "atan2": (np.arctan2, FLOATS, "small"),
    "hypot": (_real(np.hypot), NUMBERS, "any"),
    "logaddexp": (_real(np.logaddexp), NUMBERS, "small"),
    "pow": (np.power, FLOATS, "positive"),
}
BINARY_NATIVE = {"copysign": np.copysign, "nextafter": np.nextafter}


def elementwise() -> list[Case]:
    cases = [Case(n, getattr(fl, n), fn, one, dtypes=dtypes, values=domain) for n, (fn, dtypes, domain) in UNARY.items()]
    cases += [Case(n, getattr(fl, n), fn, spread(2), dtypes=dtypes, values=domain) for n, (fn, dtypes, domain) in BINARY.items()]
    cases += [Case(n, getattr(fl, n), fn, one, dtypes=FLOATS, native=True) for n, fn in UNARY_NATIVE.items()]
    cases += [Case(n, getattr(fl, n), fn, spread(2), dtypes=FLOATS, native=True) for n, fn in BINARY_NATIVE.items()]
    cases += [
        Case("clamp", lambda x: fl.clamp(x, 1, 3), lambda x: np.clip(x, 1, 3), one),
        Case("where", lambda x, y: fl.where(x > y, x, y), lambda x, y: np.where(x > y, x, y), spread(2)),
    ]
    return cases
