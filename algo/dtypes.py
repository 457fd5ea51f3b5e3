"""Element types and the one promotion rule: the array API's table; Python scalars are weak and take the other operand's type."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import AlgorithmError, Problem

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
DTYPES = ("bool", *INTEGERS, *FLOATS)
DEFAULT = {"bool": "bool", "int": "int32", "float": "float32"}


def kind(dtype: str) -> str:
    """'bool', 'int' or 'float'."""
    return "bool" if dtype == "bool" else "float" if dtype in FLOATS else "int"


def canonical(dtype: Any) -> str:
    """The name of a dtype given as a name, a NumPy dtype, a Python type or a fluorite dtype object.

    Raises AlgorithmError for types that the language does not have.
    """
    if any(dtype is t for t in (bool, int, float)):  # a NumPy dtype equals the Python type that it comes from
        return DEFAULT[dtype.__name__]
    name = getattr(dtype, "dtype_name", None) or (dtype if isinstance(dtype, str) else None)
    if name is None:
        try:
            name = np.dtype(dtype).name
        except (TypeError, ValueError):
            name = str(dtype)
    if name not in DTYPES:
        raise AlgorithmError([Problem("A101", "algorithm", asked=f"dtype {name}", why="is not a type of the language", try_=DTYPES)])
    return str(name)


def promote(a: str, weak_a: bool, b: str, weak_b: bool) -> tuple[str, bool] | None:
    """The common type of two operands and whether it is weak; None where the array API leaves it undefined."""
    if a == b:
        return a, weak_a and weak_b
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
        return max(a, b, key=lambda d: np.dtype(d).itemsize), False
    if kind(a) == kind(b) == "int":
        common = np.promote_types(a, b).name
        return (common, False) if common in INTEGERS else None
    return None
