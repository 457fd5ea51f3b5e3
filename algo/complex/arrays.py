"""NumPy arrays of complex numbers and of their parts: two views of one memory."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def parts_of(array: Array) -> Array:
    """A complex array as real numbers [..., 2]; any other array as it is."""
    if array.dtype.kind != "c":
        return array
    native = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
    return native.reshape(*array.shape, 1).view(native.real.dtype)


def complex_of(pairs: Array) -> Array:
    """Real numbers [..., 2] as a complex array."""
    whole = np.ascontiguousarray(pairs)
    return whole.view(np.result_type(whole.dtype, np.complex64)).reshape(pairs.shape[:-1])


__all__ = ["complex_of", "parts_of"]
