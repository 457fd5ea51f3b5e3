"""The real functions that vectorise: each a straight line of arithmetic instead of a call to the C library for every lane.

Error bounds in units in the last place, for every argument unless said otherwise:
  float32  below 2; sin, cos and tan for |x| <= 8e8
  float64  below 2, by way of the same forms, for exp exp2 expm1 log log1p tanh sigmoid sinh cosh erf; the others call the C library
Signed zeros, infinities, NaN, subnormal arguments and results, overflow and underflow are as in C99.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import angles, exponentials, logarithms
from .tvm_adapter import tirx

Function = Callable[..., Any]

_BOTH: dict[str, Function] = {
    "exp": exponentials.exp, "exp2": exponentials.exp2, "expm1": exponentials.expm1, "sigmoid": exponentials.sigmoid, "tanh": exponentials.tanh,
    "sinh": exponentials.sinh, "cosh": exponentials.cosh, "erf": exponentials.erf, "log": logarithms.log, "log1p": logarithms.log1p,
}
_SINGLE: dict[str, Function] = {
    "log2": logarithms.log2, "log10": logarithms.log10, "pow": logarithms.power, "sin": angles.sin, "cos": angles.cos, "tan": angles.tan,
    "asin": angles.asin, "acos": angles.acos, "atan": angles.atan, "atan2": angles.atan2,
}


def _single(name: str) -> Function:
    def emit(dtype: str, *args: Any) -> Any:
        return _SINGLE[name](*args) if dtype == "float32" else tirx.call_pure_extern(dtype, name, *args)

    return emit


FUNCTIONS: dict[str, Function] = {**_BOTH, **{name: _single(name) for name in _SINGLE}}
"""Operation -> its expression, from the dtype and the arguments, for processors with vectors."""


def _native_expm1(dtype: str, x: Any) -> Any:
    """Kahan's correction of e**x - 1."""
    one = tirx.FloatImm(dtype, 1.0)
    grown = tirx.exp(x)
    flat = tirx.Or(tirx.EQ(grown, one), tirx.Not(tirx.LT(tirx.abs(x), tirx.FloatImm(dtype, 16.0))))
    safe = tirx.Select(flat, tirx.FloatImm(dtype, 2.0), grown)
    near = tirx.Div((safe - one) * x, tirx.log(safe))
    return tirx.Select(tirx.EQ(grown, one), x, tirx.Select(flat, grown - one, near))


NATIVE: dict[str, Function] = {
    **{name: (lambda f: lambda _dtype, *args: f(*args))(getattr(tirx, name)) for name in FUNCTIONS if name != "expm1"},
    "expm1": _native_expm1,
}
"""The same operations by the device's own functions."""
