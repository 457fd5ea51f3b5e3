"""The way into a library of kernels, `entry.c`: what it is told of the process that it runs in, and the functions that it is.

It runs a method in one foreign call. Where a library has none, or Python is not the one that it knows, kernels are called one by one.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, POINTER, addressof, c_int64, c_void_p, pointer, py_object, sizeof
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from . import threads
from .errors import ArtifactError
from .structures import ALIGNED, C_CONTIGUOUS, WRITEABLE, ArrayHead, Entry, Form, Forms, Functions, Host, MethodDefinition

_lock = threading.Lock()
_kept: list[Any] = []
_VALUE = sizeof(c_int64) + sizeof(c_void_p)  # where the number of a Python float, and of a scalar of NumPy's, stands in it
_ENTRANCE = "fluorite_entrance_2"  # another number for other structures: a library of older ones has no entry then
_NEW_FROM_DESCR = 94  # its place in NumPy's table of functions for compiled code


class _Held(np.ndarray[Any, np.dtype[np.uint8]]):
    """Memory that compiled code reads, and what has to live as long."""

    held: Any = None


class Entrance:
    """Two functions that run a method, for the calls that it knows. `call(*inputs)` gives the results, or None of a call that it does not
    know; `write(*inputs, *outputs)` gives True, or None."""

    def __init__(self, library: Library) -> None:
        self._entry = Entry(pointer(library.host), None)
        memory = np.frombuffer(memoryview(self._entry), np.uint8).view(_Held)
        memory.held = self._entry, library
        self.know((), ())
        self.call = _function(library.functions.call, memory)
        self.write = _function(library.functions.write, memory)

    def know(self, forms: Sequence[Form], owners: Sequence[Any]) -> None:
        """From now on the calls of these forms, whose owners live as long as they are known. Calls under way end as they began."""
        pointers = (POINTER(Form) * max(len(forms), 1))(*map(pointer, forms))
        known = Forms(len(forms), pointers)
        self._entry.known = pointer(known)
        self._known = known, pointers, tuple(forms), tuple(owners)  # what was known before goes only now


def _function(method: MethodDefinition, memory: _Held) -> Callable[..., Any]:
    """A function of Python's of a PyMethodDef, whose `self` is the memory."""
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = py_object, [c_void_p, py_object, c_void_p]
    return make(addressof(method), memory, None)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Library:
    """The entry of one library of kernels. `raises` is what raises the error that a kernel left."""

    functions: Functions
    raises: Any
    host: Host

    def entrance(self) -> Entrance:
        return Entrance(self)


def of(functions: Callable[[str], Any]) -> Library | None:
    """The entry of a library, whose functions these are by name; None where it has none, or where Python is another than it knows."""
    if (host := process()) is None:
        return None
    try:
        found = Functions.from_address(functions(_ENTRANCE)()), functions("fluorite_raise")
    except (AttributeError, KeyError, RuntimeError, ArtifactError):
        return None
    with _lock:
        if not host.threads:
            _kept.append(found)  # its library keeps what all others read
            host.threads = found[0].threads
            threads.shared.append(CFUNCTYPE(POINTER(c_int64))(found[0].threads))
    return Library(*found, host)


@cache
def process() -> Host | None:
    """What the entry is told of this process; None where objects are not laid out as it knows them."""
    known = sys.implementation.name == "cpython" and sys.byteorder == "little" and sizeof(c_void_p) == 8
    if not known or "t" in getattr(sys, "abiflags", "") or not _as_expected():  # t: an interpreter without the lock
        return None
    api = ctypes.pythonapi
    names = {"take": "Py_IncRef", "drop": "Py_DecRef", "unlock": "PyEval_SaveThread", "lock": "PyEval_RestoreThread",
             "tuple": "PyTuple_New", "fill": "PyTuple_SetItem", "call": "PyObject_CallNoArgs"}  # fmt: skip
    objects = {"array_type": np.ndarray, "float_type": float, "no": None, "yes": True}
    found = {k: ctypes.cast(getattr(api, name), c_void_p).value for k, name in names.items()} | {k: id(o) for k, o in objects.items()}
    return Host(array=_numpy_function(_NEW_FROM_DESCR), **found)


def _numpy_function(number: int) -> int:
    """The address of a function of NumPy's table for compiled code."""
    core = getattr(np, "_core", None) or np.core
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c_void_p, [py_object, ctypes.c_char_p]
    table = get(core._multiarray_umath._ARRAY_API, None)
    return int(ctypes.cast(table, POINTER(c_void_p))[number])


def _as_expected() -> bool:
    """Whether an array and a float lie in memory as `entry.c` reads them."""
    array, number, narrow = np.arange(6, dtype=np.float32).reshape(2, 3)[:, :2], 2.5, np.float32(2.5)
    seen = ArrayHead.from_address(id(array))
    there = (seen.type, seen.data, seen.axes, seen.extents[:2], seen.strides[:2], seen.base, seen.element, seen.weak)
    expected = (id(np.ndarray), array.ctypes.data, 2, [2, 2], [12, 4], id(array.base), id(array.dtype), None)
    flags = seen.flags & (C_CONTIGUOUS | ALIGNED | WRITEABLE)
    value = ctypes.c_double.from_address(id(number) + _VALUE).value, ctypes.c_float.from_address(id(narrow) + _VALUE).value
    return there == expected and flags == ALIGNED | WRITEABLE and seen.references & 0xFFFFFFFF == 1 and value == (number, number)


__all__ = ["Entrance", "Library", "of"]
