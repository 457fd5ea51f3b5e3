"""Arrays as kernels take them: without a copy where their memory allows it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from .ffi import Shape, Tensor, ffi_dtype, from_dlpack, get_global_func

ALIGNMENT = 64
_REGISTERED = 2  # `dtype.isbuiltin` of dtypes that a package adds to NumPy
_HALF = np.dtype(np.float16)
_BITS: dict[int, np.dtype[Any]] = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16)}


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy dtype of a manifest's dtype name. TypeError if there is none."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        if not hasattr(ml_dtypes, name):
            raise
        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return found


def bits_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array itself, or the bits of narrow floats (float16, bfloat16, float8) as integers, which is how kernels take them."""
    narrow = array.dtype.isbuiltin == _REGISTERED or array.dtype == _HALF
    return array.view(_BITS[array.dtype.itemsize]) if narrow else array


def borrow(array: np.ndarray[Any, Any], alignment: int = ALIGNMENT) -> Tensor | None:
    """The array as a tensor that shares its memory; None if it is strided, unaligned or of foreign byte order."""
    if not array.flags.c_contiguous or not array.dtype.isnative:
        return None
    if not array.size:
        return _retyped(_nothing(), array.shape, bits_of(array).dtype.name)  # NumPy gives no strides that kernels would accept
    bits = bits_of(array)
    if not bits.flags.writeable:
        bits = np.asarray(_Writable(bits))
    tensor = from_dlpack(bits)
    if tensor.data_ptr() % alignment:  # `require_alignment=` would raise, which takes 30 us
        return None
    return tensor


class _Writable:
    """A read-only array's memory under a handle that DLPack can export; kernels never write to inputs."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        interface = array.__array_interface__
        self.array = array
        self.__array_interface__ = interface | {"data": (interface["data"][0], False)}


def _retyped(tensor: Tensor, shape: tuple[int, ...], dtype: str) -> Tensor:
    view: Tensor = _view()(tensor, Shape(shape), ffi_dtype(dtype), 0)
    return view


@cache
def _nothing() -> Tensor:
    """An aligned place that empty tensors point to."""
    raw = np.zeros(2 * ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return from_dlpack(raw[start : start + ALIGNMENT])


@cache
def _view() -> Any:
    return get_global_func("runtime.TVMTensorCreateView")


def adopt(producer: Any) -> np.ndarray[Any, Any]:
    """An array over the memory of another library's CPU tensor.

    Raises what the producer raises (BufferError, ValueError, RuntimeError) if it cannot share.
    """
    try:
        return np.from_dlpack(producer)
    except (BufferError, RuntimeError, TypeError) as error:
        reason = error
    try:
        tensor = from_dlpack(producer)
        dtype = numpy_dtype(str(tensor.dtype))
        return np.from_dlpack(_retyped(tensor, tuple(tensor.shape), _BITS[dtype.itemsize].name)).view(dtype)
    except Exception:
        raise reason from None
