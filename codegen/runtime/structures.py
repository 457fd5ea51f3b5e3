"""The structures of `entry.c`, field by field, and the beginning of an array as NumPy lays it out."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_int, c_int32, c_int64, c_uint64, c_void_p

KEPT = 4
C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
INTEGER, TENSOR = 1, 7


class Tensor(Structure):
    """A DLTensor."""

    _fields_ = (
        ("data", c_void_p),
        ("device", c_int32),
        ("device_id", c_int32),
        ("axes", c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("offset", c_uint64),
    )


class Value(Structure):
    """A TVMFFIAny: an integer or a pointer."""

    _fields_ = (("type", c_int32), ("padding", c_int32), ("value", c_int64))


class Want(Structure):
    """An array that is asked for."""

    _fields_ = (
        ("element", c_void_p),
        ("scalar", c_void_p),
        ("axes", c_int64),
        ("extents", POINTER(c_int64)),
        ("flags", c_int64),
        ("mask", c_int64),
        ("bytes", c_int64),
        ("given", c_int64),
    )


class Step(Structure):
    """A kernel call; without a function, a copy of `count` bytes."""

    _fields_ = (("function", c_void_p), ("arguments", POINTER(Value)), ("count", c_int64))


class Frame(Structure):
    """The memory of one call in flight."""


Frame._fields_ = (("next", POINTER(Frame)), ("steps", POINTER(Step)), ("places", POINTER(POINTER(Tensor))))


class Host(Structure):
    """What is used of Python and NumPy: addresses of functions, types and objects."""

    _fields_ = tuple(
        (name, c_void_p)
        for name in ("take", "drop", "unlock", "lock", "tuple", "fill", "call", "array", "array_type", "float_type", "no", "yes", "threads")
    )


class Form(Structure):
    """Everything that is decided for inputs of some types and shapes."""

    _fields_ = (
        ("owner", c_void_p),
        ("host", POINTER(Host)),
        ("inputs", c_int64),
        ("outputs", c_int64),
        ("steps", c_int64),
        ("single", c_int64),
        ("unlocked", c_int64),
        ("wants", POINTER(Want)),
        ("kept", c_void_p),
        ("makers", POINTER(c_void_p)),
        ("oldest", POINTER(c_int64)),
        ("free", POINTER(Frame)),
        ("added", POINTER(Frame)),
        ("calls", POINTER(c_int64)),
        ("changing", c_int64),
        ("changed", POINTER(c_int64)),
        ("raises", c_void_p),
        ("threads", c_int64),
    )


class Forms(Structure):
    """What a call may be."""

    _fields_ = (("count", c_int64), ("forms", POINTER(POINTER(Form))))


class Entry(Structure):
    """What the two functions of a method begin with."""

    _fields_ = (("host", POINTER(Host)), ("known", POINTER(Forms)))


class MethodDefinition(Structure):
    """A PyMethodDef."""

    _fields_ = (("name", ctypes.c_char_p), ("function", c_void_p), ("flags", c_int), ("doc", ctypes.c_char_p))


class Functions(Structure):
    """What a library gives of its entry: its two functions, and what tells where the number of a thread's threads stands."""

    _fields_ = (("call", MethodDefinition), ("write", MethodDefinition), ("threads", c_void_p))


class ArrayHead(Structure):
    """The first fields of a NumPy array, which are part of what NumPy promises to compiled code."""

    _fields_ = (
        ("references", c_int64),
        ("type", c_void_p),
        ("data", c_void_p),
        ("axes", c_int),
        ("extents", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("base", c_void_p),
        ("element", c_void_p),
        ("flags", c_int),
        ("weak", c_void_p),
    )
