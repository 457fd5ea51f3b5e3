"""Complex numbers at the border of a model: arrays of them and of their parts, [..., 2], are two views of one memory."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
NAMES = {"float32": "complex64", "float64": "complex128"}
"""The type of complex numbers by that of their parts."""
_WIDE = {np.dtype(part): np.dtype(whole) for part, whole in NAMES.items()}


def parts_of(array: Array) -> Array:
    """A complex array as real numbers [..., 2], without a copy where its memory allows it; any other array as it is."""
    if array.dtype.kind != "c":
        return array
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array[..., None].view(array.real.dtype)


def complex_of(pairs: Array) -> Array:
    """Real numbers [..., 2] as a complex array, without a copy where they lie side by side."""
    whole = pairs if pairs.flags.c_contiguous else np.ascontiguousarray(pairs)
    wide = _WIDE.get(whole.dtype)
    if wide is None:  # a plan stores the parts in a narrower type
        whole, wide = whole.astype(np.float32), np.dtype(np.complex64)
    return whole.view(wide).reshape(pairs.shape[:-1])


__all__ = ["NAMES", "complex_of", "parts_of"]
