"""What the factorisations share: their operands, LAPACK through NumPy, and a few products of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..complex import ComplexTensor, complex_tensor
from ..complex.lifting import holds_complex
from ..dtypes import COMPLEX
from ..expr import Expr, binary, refuse
from ..extent import Extent
from ..externs import extern
from ..ops import add, conj, equal, expand_dims, matmul, matrix_transpose, multiply, where
from ..ops.shapes import labels, shown, tensor
from ..tensor import Tensor
from ..trace import build_stage

Shape = tuple[Extent, ...]
Matrices: TypeAlias = Any
"""A tensor or a complex tensor."""


def matrices(x: Any, what: str, *, square: bool = False) -> Matrices:
    """The operand as a matrix or a batch of them, of a type that LAPACK computes in. Raises AlgorithmError."""
    t = complex_tensor(x, what) if holds_complex(x) else tensor(x, what)
    if t.ndim < 2 or (square and t.shape[-1] != t.shape[-2]):
        raise refuse("A307", f"{what} of {shown(t.shape)}", f"a {'square ' if square else ''}matrix, or a batch of them, is needed")
    if part_of(t) not in ("float32", "float64"):
        why = "LAPACK computes in float32 and float64, and in complex numbers of them"
        raise refuse("A103", f"{what} of {t.dtype}", why, f"fl.linalg.{what}(fl.cast(x, fl.f32))")
    return t


def part_of(t: Matrices) -> str:
    """The type of real numbers of the same precision."""
    dtype: str = t.dtype
    return COMPLEX.get(dtype, dtype)


def lapack(
    function: Callable[..., Any], shape: Sequence[Extent] | list[Shape], name: str, *operands: Matrices, real: tuple[int, ...] = ()
) -> Any:
    """What a function of NumPy's gives for the operands; of a list of shapes, several results, those at the positions `real` real."""
    dtype = operands[0].dtype
    types = [part_of(operands[0]) if k in real else dtype for k in range(len(shape))] if isinstance(shape, list) else dtype
    return extern(function, shape, types, *operands, name=name)


def product(*factors: Matrices) -> Matrices:
    """The product of matrices, from the left."""
    made = factors[0]
    for f in factors[1:]:
        made = matmul(made, f)
    return made


def adjoint(x: Matrices) -> Matrices:
    """The conjugate transpose; of real matrices the transpose."""
    turned = matrix_transpose(x)
    return conj(turned) if isinstance(turned, ComplexTensor) else turned


def symmetric(x: Matrices) -> Matrices:
    """The symmetric part, of complex matrices the Hermitian one; x itself, to the bit, where x is that."""
    return multiply(add(x, adjoint(x)), 0.5)


def columns(x: Matrices) -> Matrices:
    """One number for each column, as a factor of matrices."""
    return expand_dims(x, -2)


def rows(x: Matrices) -> Matrices:
    """One number for each row, as a factor of matrices."""
    return expand_dims(x, -1)


def by_place(like: Matrices, value: Callable[..., Any]) -> Matrices:
    """Matrices of the shape of others, value(..., row, column)."""
    names = labels(like.axis_names)
    return build_stage(names, value, extents=dict(zip(names, like.shape, strict=True)))


def diagonal_of(x: Matrices) -> Matrices:
    """Vectors as the diagonals of matrices that are 0 elsewhere."""
    names = [*labels(x.axis_names, ["across"]), "across"]

    def value(*i: Expr) -> Any:
        return where(binary("eq", i[-2], i[-1]), x[i[:-1]], 0)

    return build_stage(names, value, extents=dict(zip(names, (*x.shape, x.shape[-1]), strict=True)))


def quotients_of_gaps(x: Matrices, values: Tensor) -> Matrices:
    """x[i, j] / (values[j] - values[i]); 0 on the diagonal and where x is 0, so that equal values harm nothing that does not need them."""

    def value(*i: Expr) -> Any:
        gap = values[(*i[:-2], i[-1])] - values[(*i[:-2], i[-2])]
        none = binary("eq", i[-2], i[-1]) | equal(x[i], 0)
        return where(none, 0, x[i] / where(none, 1, gap))

    return by_place(x, value)


def quotients_of_columns(x: Matrices, values: Tensor) -> Matrices:
    """x[i, j] / values[j]; 0 where x is 0."""

    def value(*i: Expr) -> Any:
        none = equal(x[i], 0)
        return where(none, 0, x[i] / where(none, 1, values[(*i[:-2], i[-1])]))

    return by_place(x, value)


__all__ = [
    "Matrices", "adjoint", "by_place", "columns", "diagonal_of", "lapack", "matrices", "part_of", "product", "quotients_of_columns",
    "quotients_of_gaps", "rows", "symmetric",
]  # fmt: skip
