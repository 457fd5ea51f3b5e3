"""One value made into an array of the declared type and rank, or a sentence about what is wrong with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..complex.arrays import parts_of
from ..dtypes import COMPLEX, kind, paired
from ..errors import Problem
from ..stages import Leaf
from ..types import declared as in_words
from ..wellformed import LARGEST

Array = np.ndarray[Any, Any]
_RANK = {"bool": 0, "int": 1, "float": 2, "complex": 3}
_KIND = {"b": "bool", "i": "int", "u": "int", "f": "float", "c": "complex"}


def declared(leaf: Leaf) -> str:
    """float32[h, w]"""
    return in_words(paired(leaf.dtype), leaf.shape[:-1]) if leaf.complex else in_words(leaf.dtype, leaf.shape)


def seen(leaf: Leaf, array: Array) -> tuple[int, ...]:
    """The shape of an array as its owner sees it, who does not see the parts of complex numbers."""
    shape: tuple[int, ...] = array.shape
    return shape[:-1] if leaf.complex else shape


def as_array(leaf: Leaf, value: Any, label: str) -> Array | Problem:
    """The value with the leaf's dtype and rank. Python numbers and lists are weak; arrays must have the dtype.

    Complex numbers are given as such or as their parts, [..., 2].
    """
    if leaf.complex:
        return _parts(leaf, value, label)
    where = f"{label}: {leaf.name}"
    expected = f"expected {declared(leaf)}"
    if isinstance(value, bool | int | float | complex | list | tuple):
        try:
            array = np.asarray(value)
        except (ValueError, OverflowError) as error:
            return problem("R104", f"{where} is not a rectangular list of numbers ({error}), {expected}")
        found = _KIND.get(array.dtype.kind)
        if array.size and (found is None or _RANK[found] > _RANK[_kind(leaf.dtype)]):
            return problem("R104", f"{where} is {found or array.dtype.name}, {expected}")
        if _kind(leaf.dtype) == "int" and array.size and found == "int":
            info = np.iinfo(leaf.dtype)
            if int(array.min()) < info.min or int(array.max()) > info.max:
                return problem("R104", f"{where} holds a number outside {leaf.dtype}, {expected}")
        array = array.astype(leaf.dtype)
    elif isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.newbyteorder("=") != np.dtype(leaf.dtype):
            return problem("R104", f"{where} is {array.dtype.name}, {expected}", f"{leaf.name}.astype(np.{leaf.dtype})")
        array = array.astype(leaf.dtype, copy=False)
    else:
        try:
            array = np.from_dlpack(value)
        except Exception:
            return problem("R104", f"{where} is of type {type(value).__name__}, {expected}", "a NumPy array")
        if array.dtype != np.dtype(leaf.dtype):
            return problem("R104", f"{where} is {array.dtype.name}, {expected}")
    if array.ndim != len(leaf.shape):
        return problem("R105", f"{where} has shape {array.shape}, {expected}")
    return array


def as_count(leaf: Leaf, value: Any, label: str) -> Array | Problem:
    """The number that a call gives for an extent as an array of no elements that has it; such an array as it is."""
    if isinstance(value, np.ndarray) and value.shape[1:] == (0,):
        return value
    whole = isinstance(value, int | np.integer) or (isinstance(value, np.ndarray) and value.shape == () and value.dtype.kind in "iu")
    if isinstance(value, bool) or not whole or not 0 <= int(value) <= LARGEST:
        asked = f"{label}: {leaf.name} is {value!r}" if np.ndim(value) == 0 else f"{label}: {leaf.name} is of type {type(value).__name__}"
        return problem("R104", f"{asked}, expected an extent", "a whole number from 0 on")
    return np.empty((int(value), 0), bool)


def _parts(leaf: Leaf, value: Any, label: str) -> Array | Problem:
    """Complex numbers as their parts, [..., 2]; or the parts themselves."""
    if isinstance(value, np.ndarray) and value.dtype == np.dtype(leaf.dtype) and value.shape[-1:] == (2,) and value.ndim == len(leaf.shape):
        return value
    found = as_array(replace(leaf, dtype=paired(leaf.dtype), shape=leaf.shape[:-1], complex=False), value, label)
    return parts_of(found) if isinstance(found, np.ndarray) else found


def _kind(dtype: str) -> str:
    return "complex" if dtype in COMPLEX else kind(dtype)


def problem(code: str, asked: str, *try_: str) -> Problem:
    return Problem(code, "run", asked=asked, try_=try_)
