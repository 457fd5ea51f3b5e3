"""The language's constants and casts as TVM's expressions: what saturates, wraps and rounds, where TVM's own would not."""

from __future__ import annotations

from typing import Any

import numpy as np
from fluorite.algo.dtypes import NARROW, held, kind
from fluorite.algo.interpreter.elementary import convert, literal

from .float_operations import le, lt, ne
from .intrinsics import INTRINSICS
from .tvm_adapter import tirx


def constant(value: Any, dtype: str) -> Any:
    if dtype == "bool":
        return tirx.const(bool(value), "bool")
    if kind(dtype) == "int":
        return tirx.IntImm(dtype, int(value)) if int(value) < 2**63 else tirx.reinterpret(dtype, tirx.IntImm("int64", int(value) - 2**64))
    with np.errstate(all="ignore"):
        value = float(convert(literal(value, dtype), held(dtype)))
    dtype = held(dtype)
    if np.isinf(value):
        return tirx.infinity(dtype) if value > 0 else tirx.const(0.0, dtype) - tirx.infinity(dtype)
    if np.isnan(value):
        return tirx.FloatImm(dtype, float("nan"))
    return tirx.FloatImm(dtype, value)


def cast(value: Any, source: str, to: str) -> Any:
    """The language's cast: float to integer truncates, saturates and takes NaN to 0. Narrow floats come and go as float32."""
    if source == to:
        return value
    source = held(source)
    if to in NARROW:
        if source != "float32" and source not in _SMALL:
            value = INTRINSICS["sticky"](source, value if source == "float64" else value.astype("float64"))
        return rounded(value.astype("float32"), to)
    if to == "bool":
        return ne(source, value, constant(0, source))
    if kind(source) == "float" and kind(to) == "int":
        info = np.iinfo(to)
        low, high = float(info.min), float(info.max)
        top = (
            np.nextafter(np.dtype(source).type(high), np.dtype(source).type(0))
            if float(np.dtype(source).type(high)) > high or high != info.max
            else np.dtype(source).type(high)
        )
        clipped = tirx.Select(le(source, constant(low, source), value), value, constant(low, source))
        clipped = tirx.Select(le(source, clipped, constant(float(top), source)), clipped, constant(float(top), source))
        whole = clipped.astype(to)
        over = tirx.Select(
            lt(source, constant(float(top), source), value), tirx.const(info.max, to) if info.max < 2**63 else constant(info.max, to), whole
        )
        return tirx.Select(ne(source, value, value), tirx.const(0, to), over)
    if kind(source) == kind(to) == "int":
        return wrapped(value, source, to)
    return value.astype(to)


def wrapped(value: Any, source: str, to: str) -> Any:
    """An integer as another integer type, modulo 2**bits.

    TVM takes it that casts of integers keep the number, and refuses to fold one that does not. So the number is brought into the range
    first, by operations that it folds as they are; LLVM removes them.
    """
    high = np.iinfo(to)
    if high.min <= np.iinfo(source).min and np.iinfo(source).max <= high.max:
        return value.astype(to)
    if source == "uint64":
        source, value = "int64", tirx.reinterpret("int64", value)
    low = np.iinfo(source)
    if to in ("int64", "uint64"):
        return value if to == "int64" else tirx.reinterpret("uint64", value.astype("int64"))
    middle = source if high.bits < low.bits and (low.min < 0 or high.min == 0) else "int64"  # holds the mask and the result
    value = value.astype(middle) & tirx.IntImm(middle, 2**high.bits - 1)
    if high.min < 0:
        sign = tirx.IntImm(middle, 2 ** (high.bits - 1))
        value = (value ^ sign) - sign
    return value.astype(to)


_SMALL = ("bool", "int8", "uint8", "int16", "uint16")
"""Types whose numbers float32 holds."""


def rounded(value: Any, dtype: str) -> Any:
    """A float32 as a number of `dtype`, where that is a narrow float."""
    return INTRINSICS[f"round_{dtype}"](dtype, value) if dtype in NARROW else value


__all__ = ["cast", "constant", "rounded", "wrapped"]
