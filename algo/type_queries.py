"""Questions about element types, as the array API standard names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from .complex import ComplexExpr, ComplexTensor
from .dtypes import COMPLEX, DEFAULT, FLOATS, INTEGERS, canonical, paired, part_of, promote
from .expr import Expr, refuse
from .tensor import Tensor
from .types import DType
from .weak_numbers import WeakNumber

_KINDS = {
    "bool": ("bool",),
    "signed integer": tuple(d for d in INTEGERS if not d.startswith("u")),
    "unsigned integer": tuple(d for d in INTEGERS if d.startswith("u")),
    "integral": INTEGERS,
    "real floating": FLOATS,
    "complex floating": tuple(COMPLEX),
    "numeric": (*INTEGERS, *FLOATS, *COMPLEX),
}


@dataclass(frozen=True)
class FloatInfo:
    """A float type: its bits, the gap after 1, its largest and smallest number, and the smallest one of full precision."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True)
class IntegerInfo:
    """An integer type: its bits, and its largest and smallest number."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: Any) -> FloatInfo:
    """What a float type, or that of a tensor, holds; of a complex type the parts. Raises AlgorithmError for other types."""
    name = _type_of(type)[0]
    name = COMPLEX.get(name, name)
    if name not in FLOATS:
        raise refuse("A101", f"finfo of {name}", "it is no float type", *(("fl.iinfo",) if name in INTEGERS else ()))
    found = ml_dtypes.finfo(np.dtype(name))  # type: ignore[no-untyped-call]
    eps, most, least, normal = (float(v) for v in (found.eps, found.max, found.min, found.smallest_normal))
    return FloatInfo(found.bits, eps, most, least, normal, DType(name))


def iinfo(type: Any) -> IntegerInfo:
    """What an integer type, or that of a tensor, holds. Raises AlgorithmError for other types."""
    name = _type_of(type)[0]
    if name not in INTEGERS:
        raise refuse("A101", f"iinfo of {name}", "it is no integer type", *(("fl.finfo",) if name in FLOATS else ()))
    found = np.iinfo(name)
    return IntegerInfo(found.bits, int(found.max), int(found.min), DType(name))


def result_type(*operands: Any) -> DType:
    """The common type of tensors, types and Python numbers (which are weak): what an operator of them gives.

    Raises AlgorithmError where there is none, and without operands.
    """
    if not operands:
        raise refuse("A104", "result_type of nothing", "at least one tensor or type is needed")
    common, weak = _type_of(operands[0])
    for operand in operands[1:]:
        found = promote(common, weak, *(other := _type_of(operand)))
        if found is None:
            raise refuse("A104", f"result_type of {common} and {other[0]}", "they have no common type")
        common, weak = found
    return DType(common)


def can_cast(type: Any, to: Any) -> bool:
    """Whether promotion would make the first type (or a tensor's) the second without losing anything."""
    source, target = _type_of(type)[0], _named(to)
    return promote(source, False, target, False) == (target, False)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a type is of a kind: another type, "bool", "signed integer", "unsigned integer", "integral", "real floating",
    "complex floating", "numeric", or a tuple of these. Raises AlgorithmError for a word that is no kind."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str) and " " in kind and kind not in _KINDS:
        raise refuse("A101", f"isdtype of {kind!r}", "there is no such kind", *_KINDS)
    return _named(dtype) in (_KINDS.get(kind) or (_named(kind),) if isinstance(kind, str) else (_named(kind),))


def _type_of(operand: Any) -> tuple[str, bool]:
    """The type of a tensor, an array, a number or a type, and whether it is weak."""
    if isinstance(operand, Tensor | Expr | ComplexTensor | ComplexExpr | np.ndarray | np.generic):
        return _named(operand.dtype), isinstance(operand, WeakNumber) or (
            isinstance(operand, Expr | ComplexExpr) and operand.weak
        )
    if isinstance(operand, bool | int | float):
        return DEFAULT[operand.__class__.__name__], True
    return ("complex64", True) if isinstance(operand, complex) else (_named(operand), False)


def _named(type: Any) -> str:
    """The name of a type, of complex numbers too."""
    part = part_of(type)
    return canonical(type) if part is None else paired(part)


__all__ = ["FloatInfo", "IntegerInfo", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]
