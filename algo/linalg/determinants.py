"""Determinants."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..autodiff.custom import custom_vjp
from ..building import operator
from ..ops import add, multiply, prod, subtract
from ..tensor import Tensor
from .matrices import columns, diagonal_of, lapack, matrices, product, rows, transposed
from .singular import svd
from .solving import inv


@operator
def det(x: Any) -> Tensor:
    """The determinant of a square matrix. Its derivative is the matrix of cofactors, which is right for singular matrices, too."""

    def forward(a: Tensor) -> Any:
        return lapack(np.linalg.det, a.shape[:-2], "det", a), a

    def backward(a: Tensor, g: Tensor) -> Any:
        return (multiply(rows(rows(g)), _cofactors(a)),)

    made: Tensor = custom_vjp(det, forward, backward)(matrices(x, "det", square=True))
    return made


def _cofactors(a: Tensor) -> Tensor:
    """det(a) times the transposed inverse, without a division: by the singular values, each left out once."""
    u, s, vh = svd(a)
    one = diagonal_of(add(multiply(s, 0), 1))
    others = prod(add(multiply(rows(s), subtract(1, one)), one), axis=-2)
    sign = multiply(det(u), det(vh))
    return multiply(rows(rows(sign)), product(multiply(u, columns(others)), vh))


class Slogdet(NamedTuple):
    """The sign of a determinant (-1, 0 or 1) and the logarithm of its magnitude."""

    sign: Tensor
    logabsdet: Tensor


@operator
def slogdet(x: Any) -> Slogdet:
    """Sign and logarithm of the magnitude of a determinant, which does not overflow. The derivative of a singular one is an error."""

    def forward(a: Tensor) -> Any:
        sign, log = lapack(np.linalg.slogdet, [a.shape[:-2], a.shape[:-2]], "slogdet", a)
        return (sign, log), a

    def backward(a: Tensor, g: tuple[Tensor, Tensor]) -> Any:
        return (multiply(rows(rows(g[1])), transposed(inv(a))),)

    return Slogdet(*custom_vjp(slogdet, forward, backward)(matrices(x, "slogdet", square=True)))


__all__ = ["Slogdet", "det", "slogdet"]
