"""Cholesky, QR, and eigenvalues of symmetric matrices."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..autodiff.custom import custom_vjp
from ..building import operator
from ..expr import Expr, binary, cast, refuse, where
from ..extent import minimum
from ..ops import add, concatenate, subtract
from ..ops.shapes import shown
from ..tensor import Tensor
from .matrices import by_place, diagonal_of, lapack, matrices, product, quotients_of_gaps, symmetric, transposed
from .solving import solve


@operator
def cholesky(x: Any, *, upper: bool = False) -> Tensor:
    """The lower triangular L with ``L @ L.T == x`` (with `upper` its transpose), of a symmetric x; of another, of its symmetric part.

    An x that is not positive definite is an error when it runs. Murray, "Differentiation of the Cholesky
    decomposition" (2016), 3.
    """

    def forward(a: Tensor) -> Any:
        lower = lapack(np.linalg.cholesky, a.shape, "cholesky", symmetric(a))
        return lower, lower

    def backward(lower: Tensor, g: Tensor) -> Any:
        inner = solve(transposed(lower), _half_lower(product(transposed(lower), g)))
        arrived = transposed(solve(transposed(lower), transposed(inner)))
        return (symmetric(arrived),)

    made: Tensor = custom_vjp(cholesky, forward, backward)(matrices(x, "cholesky", square=True))
    return transposed(made) if upper else made


def _half_lower(x: Tensor) -> Tensor:
    """The lower triangle, with half of the diagonal."""

    def value(*i: Expr) -> Expr:
        row, column = i[-2:]
        return where(row > column, x[i], where(binary("eq", row, column), x[i] * 0.5, cast(0, x.dtype)))

    return by_place(x, value)


class Qr(NamedTuple):
    """x == Q @ R, Q of orthonormal columns, R upper triangular."""

    Q: Tensor
    R: Tensor


@operator
def qr(x: Any) -> Qr:
    """Q of min(m, n) columns and R of as many rows, of matrices of m rows and n columns.

    Derivative where the first min(m, n) columns of x are independent: Walter, Lehmann and Lamour, "On evaluating higher-order derivatives
    of the QR decomposition of tall matrices with full column rank in forward and reverse mode" (2012); of a wide x by its first m columns.
    """
    t = matrices(x, "qr")
    m, n = t.shape[-2:]
    few = minimum(m, n)

    def forward(a: Tensor) -> Any:
        q, r = lapack(np.linalg.qr, [(*a.shape[:-1], few), (*a.shape[:-2], few, n)], "qr", a)
        return (q, r), (a, q, r)

    def backward(kept: tuple[Tensor, Tensor, Tensor], g: tuple[Tensor, Tensor]) -> Any:
        (a, q, r), (of_q, of_r) = kept, g
        if few == n:
            return (_of_tall_qr(q, r, of_q, of_r),)
        if few != m or not isinstance(m, int):
            why = "which form it has depends on the extents"
            raise refuse("A171", f"the derivative of qr of {shown(a.shape)}", why, "fixed extents of the matrices")
        of_square = _of_tall_qr(q, r[..., :m], add(of_q, product(a[..., m:], transposed(of_r[..., m:]))), of_r[..., :m])
        return (concatenate([of_square, product(q, of_r[..., m:])], axis=-1),)

    return Qr(*custom_vjp(qr, forward, backward)(t))


def _of_tall_qr(q: Tensor, r: Tensor, of_q: Tensor, of_r: Tensor) -> Tensor:
    """What arrives at a matrix that has no more columns than rows."""
    inner = _mirrored_lower(subtract(product(r, transposed(of_r)), product(transposed(of_q), q)))
    return transposed(solve(r, transposed(add(of_q, product(q, inner)))))


def _mirrored_lower(x: Tensor) -> Tensor:
    """The lower triangle, and its mirror image above the diagonal."""
    return by_place(x, lambda *i: where(i[-2] >= i[-1], x[i], x[(*i[:-2], i[-1], i[-2])]))


class Eigh(NamedTuple):
    """x @ eigenvectors == eigenvectors * eigenvalues, eigenvalues ascending."""

    eigenvalues: Tensor
    eigenvectors: Tensor


@operator
def eigh(x: Any) -> Eigh:
    """Eigenvalues and orthonormal eigenvectors (columns, of arbitrary sign) of a symmetric matrix; of another, of its symmetric part.

    The derivative, Giles (2008) 3.1, of eigenvectors is not finite where eigenvalues coincide.
    """

    def forward(a: Tensor) -> Any:
        found = lapack(np.linalg.eigh, [a.shape[:-1], a.shape], "eigh", symmetric(a))
        return found, found

    def backward(kept: tuple[Tensor, Tensor], g: tuple[Tensor, Tensor]) -> Any:
        (w, v), (of_w, of_v) = kept, g
        turned = quotients_of_gaps(product(transposed(v), of_v), w)
        arrived = product(v, add(diagonal_of(of_w), turned), transposed(v))
        return (symmetric(arrived),)

    return Eigh(*custom_vjp(eigh, forward, backward)(matrices(x, "eigh", square=True)))


@operator
def eigvalsh(x: Any) -> Tensor:
    """The eigenvalues of a symmetric matrix, ascending; of another, of its symmetric part."""
    return eigh(x).eigenvalues


__all__ = ["Eigh", "Qr", "cholesky", "eigh", "eigvalsh", "qr"]
