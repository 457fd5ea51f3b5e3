"""Singular values, and what follows from them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..autodiff.custom import custom_vjp
from ..building import operator
from ..complex import ComplexTensor
from ..expr import as_expr, binary, cast, refuse
from ..extent import maximum, minimum
from ..ops import add, complex, count_nonzero, diagonal, divide, equal, greater, imag, max, multiply, negative, subtract, where, zeros
from ..ops.shapes import shown, tensor
from ..tensor import Tensor
from ..trace import build_stage
from .matrices import (
    Matrices,
    adjoint,
    columns,
    diagonal_of,
    lapack,
    matrices,
    part_of,
    product,
    quotients_of_columns,
    quotients_of_gaps,
    rows,
)


class Svd(NamedTuple):
    """x == U * S @ Vh, U and Vh.T of orthonormal columns (of arbitrary sign, or phase), S real and descending."""

    U: Matrices
    S: Tensor
    Vh: Matrices


@operator
def svd(x: Any, *, full_matrices: bool = True) -> Svd:
    """The singular value decomposition of matrices of m rows and n columns: U and Vh are square, or without `full_matrices` as S needs.

    The derivative, Giles (2008) 3.2, is not finite for U and Vh where singular values coincide. Square U and Vh have none if m != n.
    """
    t = matrices(x, "svd")
    m, n = t.shape[-2:]
    few = minimum(m, n)
    of_u, of_v = (m, n) if full_matrices else (few, few)

    def forward(a: Matrices) -> Any:
        *batch, _, _ = a.shape
        shapes = [(*batch, m, of_u), (*batch, few), (*batch, of_v, n)]
        found = lapack(np.linalg.svd, shapes, "svd", a, tensor(np.bool_(full_matrices), "svd"), real=(1,))
        return found, found

    def backward(kept: tuple[Any, ...], g: tuple[Any, ...]) -> Any:
        if full_matrices and m != n:
            why = "the columns beyond the singular values are not determined by x"
            raise refuse("A171", f"the derivative of svd of {shown(t.shape)} with full matrices", why, "full_matrices=False")
        return (_pulled(*kept, *g),)

    return Svd(*custom_vjp(svd, forward, backward)(t))


def _pulled(u: Matrices, s: Tensor, vh: Matrices, of_u: Matrices, of_s: Tensor, of_vh: Matrices) -> Matrices:
    """What arrives at the matrix."""
    v, of_v, squares = adjoint(vh), adjoint(of_vh), multiply(s, s)
    turned = product(adjoint(u), of_u)
    left = quotients_of_gaps(turned, squares)
    right = quotients_of_gaps(product(vh, of_v), squares)
    inner = add(multiply(add(left, adjoint(left)), columns(s)), multiply(rows(s), add(right, adjoint(right))))
    along: Any = of_s
    if isinstance(turned, ComplexTensor):  # both vectors of a singular value may turn together
        along = complex(of_s, _quotients(imag(diagonal(turned)), s))
    within = product(u, add(inner, diagonal_of(along)), vh)
    beside_u = quotients_of_columns(subtract(of_u, product(u, adjoint(u), of_u)), s)
    beside_v = quotients_of_columns(subtract(of_v, product(v, vh, of_v)), s)
    return add(add(within, product(beside_u, vh)), product(u, adjoint(beside_v)))


def _quotients(x: Tensor, values: Tensor) -> Tensor:
    """x / values; 0 where x is 0."""
    none = equal(x, 0)
    return where(none, 0, divide(x, where(none, 1, values)))


@operator
def svdvals(x: Any) -> Tensor:
    """The singular values of a matrix, descending."""
    return svd(matrices(x, "svdvals"), full_matrices=False).S


@operator
def matrix_rank(x: Any, *, rtol: float | None = None) -> Tensor:
    """How many singular values are greater than `rtol` times the largest: max(m, n) times the type's epsilon by default."""
    t = matrices(x, "matrix_rank")
    if 0 in t.shape[-2:]:
        return zeros(t.shape[:-2], dtype="int32")
    values = svdvals(t)
    made: Tensor = count_nonzero(greater(values, multiply(max(values, axis=-1, keepdims=True), _cut(t, rtol))), axis=-1)
    return made


@operator
def pinv(x: Any, *, rtol: float | None = None) -> Matrices:
    """The Moore-Penrose inverse, by the singular values greater than `rtol` times the largest (max(m, n) times epsilon by default).

    Derivative, while the rank stays: Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose
    variables separate" (1973), 4.12.
    """

    def forward(a: Matrices) -> Any:
        *batch, m, n = a.shape
        p = lapack(np.linalg.pinv, (*batch, n, m), "pinv", a, _cut(a, rtol))
        return p, (a, p)

    def backward(kept: tuple[Matrices, Matrices], g: Matrices) -> Any:
        a, p = kept
        turned = adjoint(g)
        across = product(turned, p, adjoint(p))
        along = product(adjoint(p), p, turned)
        within = negative(product(adjoint(p), g, adjoint(p)))
        return (add(add(within, subtract(across, product(a, p, across))), subtract(along, product(along, p, a))),)

    made: Matrices = custom_vjp(pinv, forward, backward)(matrices(x, "pinv"))
    return made


def _cut(t: Matrices, rtol: float | None) -> Tensor:
    """The relative size below which a singular value counts as 0."""
    if rtol is not None and (isinstance(rtol, bool) or not isinstance(rtol, int | float) or not rtol >= 0):
        raise refuse("A304", f"rtol={rtol!r}", "it is a number, 0 or more")
    if rtol is not None:
        return tensor(np.asarray(rtol, part_of(t)), "rtol")
    epsilon = float(np.finfo(part_of(t)).eps)
    return build_stage([], lambda: binary("mul", cast(as_expr(maximum(*t.shape[-2:])), part_of(t)), epsilon), name="rtol")


__all__ = ["Svd", "matrix_rank", "pinv", "svd", "svdvals"]
