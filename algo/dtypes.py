"""Element types, what arithmetic in each of them is, and the one promotion rule.

Promotion is the array API's table, and Python scalars are weak: they take the other operand's type. Where the table says nothing:
float16 with bfloat16 gives float32; a float8 with a wider float gives the wider; the two float8 give float16, which holds both.
What is made of Python scalars, positions and extents alone, such as `i * 0.1`, is weak too, and so is the variable of a loop over
``range(x.shape[0])`` or ``enumerate(x)``: it is computed in the type that it meets, in float32 where that is narrower, and alone in
float32, int32 or bool.

Integers wrap around. // and % are floor division, by zero 0; / of integers gives float32. A shift by the width or more gives 0, or the
sign; `fl.saturate` clamps where `fl.cast` wraps. A cast from a float truncates toward zero, saturates, and takes NaN to 0.

float32 and float64 are IEEE 754's, operation by operation: 1 / 0 is infinity, 0 / 0 is NaN, NaN passes through every operation, max and
min included, and compares unequal to itself; round is half to even; subnormal numbers and -0 are kept.

The narrow floats (float16, bfloat16, float8_e4m3fn, float8_e5m2) are storage: each operation takes its operands as float32, which holds
them all, computes there, and rounds the result to the type, half to even. For + - * / and sqrt that is the correctly rounded result, and
for all but the real functions (exp, sin, ...) a kernel has the very bits of the interpreter, on every target. Past the largest number
comes infinity; float8_e4m3fn has none and gives NaN, as it also does for an infinity given to it (`fl.saturate` clamps instead). sum,
prod, mean and what is made of them accumulate in float32 and round once, at the end; a product right under a sum enters it unrounded.
So do the operators of several operations on an element (gelu, softplus, asinh, ...): in float32 all through, rounded once.
A cast from float64 rounds once; one from an integer goes by way of float64. Sign and payload of a NaN are not kept.

complex64 and complex128 are pairs of float32 and float64, real and imaginary part, and no type of an element: each part is a tensor of its
own. They join other types as their parts do: with a float the parts take the common float type, which is float32 at least; a Python
complex number is weak. What arithmetic of them is, infinities included, is written in fluorite.algo.complex.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes  # its types are NumPy's by name from here on
import numpy as np

from .errors import AlgorithmError, Problem

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NARROW = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
FLOATS = (*NARROW, "float32", "float64")
DTYPES = ("bool", *INTEGERS, *FLOATS)
COMPLEX = {"complex64": "float32", "complex128": "float64"}
"""The types of complex numbers, with that of their parts."""
_SHORT = frozenset({"bf16", "f8e4m3", "f8e5m2", "f16", "f32", "f64", *(f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64))})
DEFAULT = {"bool": "bool", "int": "int32", "float": "float32"}


def kind(dtype: str) -> str:
    """'bool', 'int' or 'float'."""
    return "bool" if dtype == "bool" else "float" if dtype in FLOATS else "int"


def array_kind(array: np.ndarray[Any, Any]) -> str | None:
    """The kind of an array's elements; None for what no type of the language holds. NumPy itself does not tell the narrow floats."""
    return {"b": "bool", "i": "int", "u": "int", "f": "float"}.get(array.dtype.kind, "float" if array.dtype.name in NARROW else None)


def held(dtype: str) -> str:
    """The type in which values of `dtype` are computed."""
    return "float32" if dtype in NARROW else dtype


def itemsize(dtype: str) -> int:
    """Bytes of one element."""
    return np.dtype(dtype).itemsize


def infinite(dtype: str) -> bool:
    """Whether the float type has infinities."""
    return dtype != "float8_e4m3fn"


def lowest(dtype: str) -> float:
    """What no number of the float type is below."""
    return float("-inf") if infinite(dtype) else -largest(dtype)


def largest(dtype: str) -> float:
    """The largest number of a float type."""
    return float(ml_dtypes.finfo(np.dtype(dtype)).max)  # type: ignore[no-untyped-call]


def canonical(dtype: Any) -> str:
    """The name of a dtype given as a name, a NumPy dtype, a Python type or a fluorite dtype object.

    Raises AlgorithmError for types that the language does not have, or not for elements: those of complex numbers.
    """
    name = _name(dtype)
    if name in COMPLEX:
        why, instead = "complex numbers are pairs of tensors, and this takes one", ("fl.complex(real, imag)", COMPLEX[name])
        raise AlgorithmError([Problem("A101", "algorithm", asked=f"dtype {name} here", why=why, try_=instead)])
    if name not in DTYPES:
        short = name in _SHORT  # no names of types: NumPy's "i8" is int64
        why, tries = ("a short name is no string", (f"fl.{name}",)) if short else ("is not a type of the language", DTYPES)
        raise AlgorithmError([Problem("A101", "algorithm", asked=f"dtype {name}", why=why, try_=tries)])
    return name


def part_of(dtype: Any) -> str | None:
    """The type of the parts of a type of complex numbers, however it is given; None for all others."""
    return None if dtype is None else COMPLEX.get(_name(dtype))


def paired(part: str) -> str:
    """The type of complex numbers whose parts are of this one."""
    return "complex128" if part == "float64" else "complex64"


def _name(dtype: Any) -> str:
    if any(dtype is t for t in (bool, int, float)):  # a NumPy dtype equals the Python type that it comes from
        return DEFAULT[dtype.__name__]
    if dtype is complex:
        return "complex64"
    name = getattr(dtype, "dtype_name", None) or (dtype if isinstance(dtype, str) else None)
    if name is None:
        try:
            name = np.dtype(dtype).name
        except (TypeError, ValueError):
            name = str(dtype)
    return str(name)


def promote(a: str, weak_a: bool, b: str, weak_b: bool) -> tuple[str, bool] | None:
    """The common type of two operands and whether it is weak; None where the array API leaves it undefined."""
    if a == b:
        return a, weak_a and weak_b
    if a in COMPLEX or b in COMPLEX:
        joined = promote(COMPLEX.get(a, a), weak_a, COMPLEX.get(b, b), weak_b)
        return None if joined is None else (paired(held(joined[0])), joined[1])
    rank = ("bool", "int", "float")
    if weak_a != weak_b:
        strong, weak = (b, a) if weak_a else (a, b)
        if rank.index(kind(weak)) <= rank.index(kind(strong)):
            return strong, False
        if kind(strong) == "bool":
            return DEFAULT[kind(weak)], False
        return None if kind(strong) == "int" and kind(weak) == "float" else (strong, False)
    if weak_a and weak_b:
        return max(a, b, key=lambda d: (rank.index(kind(d)), np.dtype(d).itemsize)), True
    if kind(a) == kind(b) == "float":
        return _wider(a, b), False
    if kind(a) == kind(b) == "int":
        common = np.promote_types(a, b).name
        return (common, False) if common in INTEGERS else None
    return None


def _wider(a: str, b: str) -> str:
    """The smallest float type that holds all numbers of two different ones."""
    if itemsize(a) == itemsize(b):
        return "float16" if itemsize(a) == 1 else "float32"
    return max(a, b, key=itemsize)
