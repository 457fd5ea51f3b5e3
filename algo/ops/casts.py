"""Changes of element type."""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from .. import expr as E
from ..complex.lifting import holds_complex
from ..dtypes import FLOATS, canonical, held, kind, largest, part_of
from ..expr import Expr, as_expr, refuse
from ..tensor import Tensor
from .complex_numbers import complex, imag, real
from .elementwise import elementwise


def _cast(x: Any, *, dtype: str) -> Expr:
    return E.cast(x, dtype)


def _saturate(x: Any, *, dtype: str) -> Expr:
    e = as_expr(x)
    if dtype in FLOATS:
        return E.cast(_within(e, largest(dtype)), dtype)
    if kind(e.dtype) != "int" or dtype == "bool":
        return E.cast(e, dtype)  # a float is saturated by the cast itself
    here, there = np.iinfo(e.dtype), np.iinfo(dtype)
    if there.min > here.min:
        e = E.binary("max", e, int(there.min))
    if there.max < here.max:
        e = E.binary("min", e, int(there.max))
    return E.cast(e, dtype)


def _within(e: Expr, most: float) -> Expr:
    """e clamped to [-most, most], in a type that holds both ends."""
    if kind(e.dtype) == "bool" or most >= (np.iinfo(e.dtype).max if kind(e.dtype) == "int" else largest(e.dtype)):
        return e
    if kind(e.dtype) == "int":
        high = E.binary("min", e, int(most))
        return high if np.iinfo(e.dtype).min >= -most else E.binary("max", high, -int(most))
    return E.binary("max", E.binary("min", E.cast(e, held(e.dtype)), most), -most)


# a scope called cast belongs to the plan, whose precision section makes such stages
_mapped_cast, _mapped_saturate = elementwise(_cast, "astype"), elementwise(_saturate, "saturate")


@overload
def cast(x: Tensor, dtype: Any, *, name: str | None = None) -> Tensor: ...
@overload
def cast(x: Any, dtype: Any, *, name: str | None = None) -> Any: ...
def cast(x: Any, dtype: Any, *, name: str | None = None) -> Any:
    """x in another type. Floats truncate toward zero into integers and saturate at their ends, NaN gives 0; integers wrap.

    Real numbers become complex ones with an imaginary part of 0; complex ones do not become real (see fluorite.real, fluorite.abs).
    """
    if isinstance(dtype, Tensor | Expr):
        raise refuse("A101", "fl.cast to a tensor", "what is cast comes first, its new type after it", "fl.cast(x, fl.f32)")
    if (part := part_of(dtype)) is not None:
        return complex(cast(real(x), part, name=name), cast(imag(x), part, name=name))
    if holds_complex(x):
        raise refuse("A211", f"complex numbers as {canonical(dtype)}", "the imaginary part would be lost", "fl.real(z)", "fl.abs(z)")
    return _mapped_cast(x, name=name, dtype=canonical(dtype))


@overload
def saturate(dtype: Any, x: Tensor, *, name: str | None = None) -> Tensor: ...
@overload
def saturate(dtype: Any, x: Any, *, name: str | None = None) -> Any: ...
def saturate(dtype: Any, x: Any, *, name: str | None = None) -> Any:
    """x in another type, clamped to that type's range: to its largest number where it is a narrower float, infinity too. NaN stays NaN, and
    gives the integer 0."""
    return _mapped_saturate(x, name=name, dtype=canonical(dtype))
