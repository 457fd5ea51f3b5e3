"""Cholesky, QR, and eigenvalues of symmetric matrices."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..autodiff.custom import custom_vjp
from ..building import operator
from ..complex import ComplexTensor
from ..expr import Expr, binary, refuse
from ..extent import minimum
from ..ops import add, concatenate, conj, real, subtract, where
from ..ops.shapes import shown
from ..tensor import Tensor
from .matrices import Matrices, adjoint, by_place, diagonal_of, lapack, matrices, product, quotients_of_gaps, symmetric
from .solving import solve


@operator
def cholesky(x: Any, *, upper: bool = False) -> Matrices:
    """The lower triangular L with ``L @ L.T == x`` (with `upper` its transpose), of a symmetric x; of another, of its symmetric part.

    Of complex numbers the conjugate transpose is meant, and Hermitian matrices.

    An x that is not positive definite is an error when it runs. Murray, "Differentiation of the Cholesky
    decomposition" (2016), 3.
    """

    def forward(a: Matrices) -> Any:
        lower = lapack(np.linalg.cholesky, a.shape, "cholesky", symmetric(a))
        return lower, lower

    def backward(lower: Matrices, g: Matrices) -> Any:
        inner = solve(adjoint(lower), _half_lower(product(adjoint(lower), g)))
        arrived = adjoint(solve(adjoint(lower), adjoint(inner)))
        return (symmetric(arrived),)

    made: Matrices = custom_vjp(cholesky, forward, backward)(matrices(x, "cholesky", square=True))
    return adjoint(made) if upper else made


def _half_lower(x: Matrices) -> Matrices:
    """The lower triangle, with half of the diagonal."""

    def value(*i: Expr) -> Any:
        row, column = i[-2:]
        return where(row > column, x[i], where(binary("eq", row, column), x[i] * 0.5, 0))

    return by_place(x, value)


class Qr(NamedTuple):
    """x == Q @ R, Q of orthonormal columns, R upper triangular."""

    Q: Matrices
    R: Matrices


@operator
def qr(x: Any, *, mode: str = "reduced") -> Qr:
    """Q of min(m, n) columns and R of as many rows, of matrices of m rows and n columns; with mode "complete" Q is square, of m columns.
    R has a real diagonal.

    Derivative where the first min(m, n) columns of x are independent: Walter, Lehmann and Lamour, "On evaluating higher-order derivatives
    of the QR decomposition of tall matrices with full column rank in forward and reverse mode" (2012); of a wide x by its first m columns.
    """
    if mode not in ("reduced", "complete"):
        raise refuse("A304", f"qr with mode={mode!r}", "it is the array API standard's", '"reduced"', '"complete"')
    t = matrices(x, "qr")
    m, n = t.shape[-2:]
    few = minimum(m, n)
    columns = few if mode == "reduced" else m

    def forward(a: Matrices) -> Any:
        q, r = lapack(partial(np.linalg.qr, mode=mode), [(*a.shape[:-1], columns), (*a.shape[:-2], columns, n)], "qr", a)
        return (q, r), (a, q, r)

    def backward(kept: tuple[Matrices, Matrices, Matrices], g: tuple[Matrices, Matrices]) -> Any:
        (a, q, r), (of_q, of_r) = kept, g
        if few != q.shape[-1]:
            why = "what is beyond the first columns of Q is arbitrary"
            raise refuse("A171", f"the derivative of a complete qr of {shown(a.shape)}", why, 'mode="reduced"')
        if few == n:
            return (_of_tall_qr(q, r, of_q, of_r),)
        if few != m or not isinstance(m, int):
            why = "which form it has depends on the extents"
            raise refuse("A171", f"the derivative of qr of {shown(a.shape)}", why, "fixed extents of the matrices")
        of_square = _of_tall_qr(q, r[..., :m], add(of_q, product(a[..., m:], adjoint(of_r[..., m:]))), of_r[..., :m])
        return (concatenate([of_square, product(q, of_r[..., m:])], axis=-1),)

    return Qr(*custom_vjp(qr, forward, backward)(t))


def _of_tall_qr(q: Matrices, r: Matrices, of_q: Matrices, of_r: Matrices) -> Matrices:
    """What arrives at a matrix that has no more columns than rows."""
    inner = _mirrored_lower(subtract(product(r, adjoint(of_r)), product(adjoint(of_q), q)))
    return adjoint(solve(r, adjoint(add(of_q, product(q, inner)))))


def _mirrored_lower(x: Matrices) -> Matrices:
    """The lower triangle, and its (conjugate) mirror image above the diagonal, which is real."""

    def value(*i: Expr) -> Any:
        row, column = i[-2:]
        mirrored = conj(x[(*i[:-2], column, row)])
        diagonal = real(x[i]) if isinstance(x, ComplexTensor) else x[i]
        return where(row > column, x[i], where(row < column, mirrored, diagonal))

    return by_place(x, value)


class Eigh(NamedTuple):
    """x @ eigenvectors == eigenvectors * eigenvalues, eigenvalues ascending."""

    eigenvalues: Tensor
    eigenvectors: Matrices


@operator
def eigh(x: Any) -> Eigh:
    """Eigenvalues and orthonormal eigenvectors (columns, of arbitrary sign) of a symmetric matrix; of another, of its symmetric part.

    Of a complex matrix the Hermitian part is taken; eigenvalues are real, eigenvectors of arbitrary phase.

    The derivative, Giles (2008) 3.1, of eigenvectors is not finite where eigenvalues coincide.
    """

    def forward(a: Matrices) -> Any:
        found = lapack(np.linalg.eigh, [a.shape[:-1], a.shape], "eigh", symmetric(a), real=(0,))
        return found, found

    def backward(kept: tuple[Matrices, Matrices], g: tuple[Matrices, Matrices]) -> Any:
        (w, v), (of_w, of_v) = kept, g
        turned = quotients_of_gaps(product(adjoint(v), of_v), w)
        arrived = product(v, add(diagonal_of(of_w), turned), adjoint(v))
        return (symmetric(arrived),)

    return Eigh(*custom_vjp(eigh, forward, backward)(matrices(x, "eigh", square=True)))


@operator
def eigvalsh(x: Any) -> Tensor:
    """The eigenvalues of a symmetric or Hermitian matrix, ascending; of another, of its symmetric or Hermitian part."""
    return eigh(x).eigenvalues


__all__ = ["Eigh", "Qr", "cholesky", "eigh", "eigvalsh", "qr"]
