"""Complex numbers made of parts, and the parts of complex numbers. What arithmetic of them is: fluorite.algo.complex."""

from __future__ import annotations

from typing import Any

from .. import expr as E
from ..complex import ComplexExpr, ComplexTensor, complex_element, complex_tensor
from ..complex.lifting import holds_complex
from ..expr import Expr, as_expr
from ..tensor import Tensor, in_body
from .arithmetic import negative
from .elementwise import elementwise
from .shapes import tensor


def _complex(real: Any, imag: Any) -> Any:
    return ComplexExpr(real, imag)


_made = elementwise(_complex, "complex")


def complex(real: Any, imag: Any = 0.0, *, name: str | None = None) -> Any:
    """real + i imag: complex64, or complex128 where a part is float64. Of two tensors of one shape and float type no stage, but a view."""
    alike = isinstance(real, Tensor) and isinstance(imag, Tensor) and real.shape == imag.shape and real.dtype == imag.dtype
    if alike and real.dtype in ("float32", "float64") and not (in_body() or real.is_bounded or imag.is_bounded):
        return ComplexTensor(real, imag)
    return _made(real, imag, name=name)


def _part(z: Any, of: str) -> Any:
    """A part of something complex, None of something real."""
    if not holds_complex(z):
        return None
    if isinstance(z, list | tuple):
        z = complex_tensor(z, of)
    return getattr(complex_element(z) if in_body() else complex_tensor(z, of), of)


def real(z: Any) -> Any:
    """The real part: a view of a complex tensor; real numbers are their own."""
    found = _part(z, "real")
    return found if found is not None else as_expr(z) if in_body() else tensor(z, "real")


def imag(z: Any, *, name: str | None = None) -> Any:
    """The imaginary part: a view of a complex tensor; 0 of real numbers, in their type."""
    found = _part(z, "imag")
    return found if found is not None else _nothing(z, name=name)


def _zero(x: Any) -> Expr:
    return E.cast(0, as_expr(x).dtype)


_nothing = elementwise(_zero, "imag")


def _itself(z: Any) -> Expr:
    return as_expr(z)


_conjugate = elementwise(_itself, "conj")


def conj(z: Any, *, name: str | None = None) -> Any:
    """The conjugate: the imaginary part negated; real numbers are their own."""
    if isinstance(z, ComplexTensor) and not in_body():
        return ComplexTensor(z.real, negative(z.imag, name=name or "conj"))
    return _conjugate(z, name=name)


@elementwise
def angle(z: Any) -> Expr:
    """The angle of complex numbers in radians, in [-pi, pi]; that of a real number is 0 or pi."""
    e = as_expr(z)
    return E.binary("atan2", E.cast(0, e.dtype), e)


__all__ = ["angle", "complex", "conj", "imag", "real"]
