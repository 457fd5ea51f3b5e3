"""The value that changes nothing in each reduction."""

from __future__ import annotations

import numpy as np

from .dtypes import kind, lowest
from .expr import Const


def identity(kind_: str, dtype: str) -> Const:
    """The value that changes nothing in a reduction."""
    if kind_ in ("sum", "any"):
        return Const(False if dtype == "bool" else 0.0 if kind(dtype) == "float" else 0, dtype, False)
    if kind_ in ("prod", "all"):
        return Const(True if dtype == "bool" else 1.0 if kind(dtype) == "float" else 1, dtype, False)
    largest = kind_ in ("min", "argmin")
    if dtype == "bool":
        return Const(largest, dtype, False)
    if kind(dtype) == "float":
        return Const(-lowest(dtype) if largest else lowest(dtype), dtype, False)
    info = np.iinfo(dtype)
    return Const(int(info.max if largest else info.min), dtype, False)


__all__ = ["identity"]
