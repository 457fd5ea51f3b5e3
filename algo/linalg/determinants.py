"""Determinants."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..autodiff.custom import custom_vjp
from ..building import operator
from ..complex import ComplexTensor
from ..ops import add, complex, conj, imag, multiply, negative, prod, subtract
from ..tensor import Tensor
from .matrices import Matrices, adjoint, columns, diagonal_of, lapack, matrices, product, rows
from .singular import svd
from .solving import inv


@operator
def det(x: Any) -> Matrices:
    """The determinant of a square matrix. Its derivative is the matrix of cofactors, which is right for singular matrices, too."""

    def forward(a: Matrices) -> Any:
        return lapack(np.linalg.det, a.shape[:-2], "det", a), a

    def backward(a: Matrices, g: Matrices) -> Any:
        return (multiply(rows(rows(g)), _cofactors(a)),)

    made: Matrices = custom_vjp(det, forward, backward)(matrices(x, "det", square=True))
    return made


def _cofactors(a: Matrices) -> Matrices:
    """det(a) times the transposed inverse, conjugated, without a division: by the singular values, each left out once."""
    u, s, vh = svd(a)
    one = diagonal_of(add(multiply(s, 0), 1))
    others = prod(add(multiply(rows(s), subtract(1, one)), one), axis=-2)
    sign = conj(multiply(det(u), det(vh)))
    return multiply(rows(rows(sign)), product(multiply(u, columns(others)), vh))


class Slogdet(NamedTuple):
    """The sign of a determinant (-1, 0 or 1) and the logarithm of its magnitude."""

    sign: Matrices
    logabsdet: Tensor


@operator
def slogdet(x: Any) -> Slogdet:
    """Sign and logarithm of the magnitude of a determinant, which does not overflow. The derivative of a singular one is an error.

    The sign of a complex one is a number of magnitude 1, or 0.
    """

    def forward(a: Matrices) -> Any:
        sign, log = lapack(np.linalg.slogdet, [a.shape[:-2], a.shape[:-2]], "slogdet", a, real=(1,))
        return (sign, log), (a, sign)

    def backward(kept: tuple[Matrices, Matrices], g: tuple[Matrices, Tensor]) -> Any:
        (a, sign), (of_sign, of_log) = kept, g
        turned = complex(of_log, negative(imag(multiply(conj(of_sign), sign)))) if isinstance(a, ComplexTensor) else of_log
        return (multiply(rows(rows(turned)), adjoint(inv(a))),)

    return Slogdet(*custom_vjp(slogdet, forward, backward)(matrices(x, "slogdet", square=True)))


__all__ = ["Slogdet", "det", "slogdet"]
