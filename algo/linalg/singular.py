"""Singular values, and what follows from them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..autodiff.custom import custom_vjp
from ..building import operator
from ..expr import as_expr, binary, cast, refuse
from ..extent import maximum, minimum
from ..ops import add, count_nonzero, greater, max, multiply, negative, subtract, zeros
from ..ops.shapes import shown, tensor
from ..tensor import Tensor
from ..trace import build_stage
from .matrices import columns, diagonal_of, lapack, matrices, product, quotients_of_columns, quotients_of_gaps, rows, transposed


class Svd(NamedTuple):
    """x == U * S @ Vh, U and Vh.T of orthonormal columns (of arbitrary sign), S descending."""

    U: Tensor
    S: Tensor
    Vh: Tensor


@operator
def svd(x: Any, *, full_matrices: bool = True) -> Svd:
    """The singular value decomposition of matrices of m rows and n columns: U and Vh are square, or without `full_matrices` as S needs.

    The derivative, Giles (2008) 3.2, is not finite for U and Vh where singular values coincide. Square U and Vh have none if m != n.
    """
    t = matrices(x, "svd")
    m, n = t.shape[-2:]
    few = minimum(m, n)
    of_u, of_v = (m, n) if full_matrices else (few, few)

    def forward(a: Tensor) -> Any:
        *batch, _, _ = a.shape
        shapes = [(*batch, m, of_u), (*batch, few), (*batch, of_v, n)]
        found = lapack(np.linalg.svd, shapes, "svd", a, tensor(np.bool_(full_matrices), "svd"))
        return found, found

    def backward(kept: tuple[Tensor, ...], g: tuple[Tensor, ...]) -> Any:
        if full_matrices and m != n:
            why = "the columns beyond the singular values are not determined by x"
            raise refuse("A171", f"the derivative of svd of {shown(t.shape)} with full matrices", why, "full_matrices=False")
        return (_pulled(*kept, *g),)

    return Svd(*custom_vjp(svd, forward, backward)(t))


def _pulled(u: Tensor, s: Tensor, vh: Tensor, of_u: Tensor, of_s: Tensor, of_vh: Tensor) -> Tensor:
    """What arrives at the matrix."""
    v, of_v, squares = transposed(vh), transposed(of_vh), multiply(s, s)
    left = quotients_of_gaps(product(transposed(u), of_u), squares)
    right = quotients_of_gaps(product(vh, of_v), squares)
    inner = add(multiply(add(left, transposed(left)), columns(s)), multiply(rows(s), add(right, transposed(right))))
    within = product(u, add(inner, diagonal_of(of_s)), vh)
    beside_u = quotients_of_columns(subtract(of_u, product(u, transposed(u), of_u)), s)
    beside_v = quotients_of_columns(subtract(of_v, product(v, vh, of_v)), s)
    return add(add(within, product(beside_u, vh)), product(u, transposed(beside_v)))


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
def pinv(x: Any, *, rtol: float | None = None) -> Tensor:
    """The Moore-Penrose inverse, by the singular values greater than `rtol` times the largest (max(m, n) times epsilon by default).

    Derivative, while the rank stays: Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose
    variables separate" (1973), 4.12.
    """

    def forward(a: Tensor) -> Any:
        *batch, m, n = a.shape
        p = lapack(np.linalg.pinv, (*batch, n, m), "pinv", a, _cut(a, rtol))
        return p, (a, p)

    def backward(kept: tuple[Tensor, Tensor], g: Tensor) -> Any:
        a, p = kept
        turned = transposed(g)
        across = product(turned, p, transposed(p))
        along = product(transposed(p), p, turned)
        within = negative(product(transposed(p), g, transposed(p)))
        return (add(add(within, subtract(across, product(a, p, across))), subtract(along, product(along, p, a))),)

    made: Tensor = custom_vjp(pinv, forward, backward)(matrices(x, "pinv"))
    return made


def _cut(t: Tensor, rtol: float | None) -> Tensor:
    """The relative size below which a singular value counts as 0."""
    if rtol is not None and (isinstance(rtol, bool) or not isinstance(rtol, int | float) or not rtol >= 0):
        raise refuse("A304", f"rtol={rtol!r}", "it is a number, 0 or more")
    if rtol is not None:
        return tensor(np.asarray(rtol, t.dtype), "rtol")
    epsilon = float(np.finfo(t.dtype).eps)
    return build_stage([], lambda: binary("mul", cast(as_expr(maximum(*t.shape[-2:])), t.dtype), epsilon), name="rtol")


__all__ = ["Svd", "matrix_rank", "pinv", "svd", "svdvals"]
