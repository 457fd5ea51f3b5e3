"""What the factorisations share: their operands, LAPACK through NumPy, and a few products of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..expr import Expr, binary, cast, refuse, where
from ..extent import Extent
from ..externs import extern
from ..ops import add, expand_dims, matmul, matrix_transpose, multiply
from ..ops.shapes import labels, shown, tensor
from ..tensor import Tensor
from ..trace import build_stage

Shape = tuple[Extent, ...]


def matrices(x: Any, what: str, *, square: bool = False) -> Tensor:
    """The operand as a matrix or a batch of them, of a type that LAPACK computes in. Raises AlgorithmError."""
    t = tensor(x, what)
    if t.ndim < 2 or (square and t.shape[-1] != t.shape[-2]):
        raise refuse("A307", f"{what} of {shown(t.shape)}", f"a {'square ' if square else ''}matrix, or a batch of them, is needed")
    if t.dtype not in ("float32", "float64"):
        raise refuse("A103", f"{what} of {t.dtype}", "LAPACK computes in float32 and float64", f"fl.linalg.{what}(fl.cast(x, fl.f32))")
    return t


def lapack(function: Callable[..., Any], shape: Sequence[Extent] | list[Shape], name: str, *operands: Tensor) -> Any:
    """What a function of NumPy's gives for the operands; of a list of shapes, several results."""
    return extern(function, shape, operands[0].dtype, *operands, name=name)


def product(*factors: Tensor) -> Tensor:
    """The product of matrices, from the left."""
    made = factors[0]
    for f in factors[1:]:
        made = matmul(made, f)
    return made


def transposed(x: Tensor) -> Tensor:
    """The transpose."""
    made: Tensor = matrix_transpose(x)
    return made


def symmetric(x: Tensor) -> Tensor:
    """The symmetric part; x itself, to the bit, where x is symmetric."""
    made: Tensor = multiply(add(x, transposed(x)), 0.5)
    return made


def columns(x: Tensor) -> Tensor:
    """One number for each column, as a factor of matrices."""
    made: Tensor = expand_dims(x, -2)
    return made


def rows(x: Tensor) -> Tensor:
    """One number for each row, as a factor of matrices."""
    made: Tensor = expand_dims(x, -1)
    return made


def by_place(like: Tensor, value: Callable[..., Expr]) -> Tensor:
    """Matrices of the shape of others, value(..., row, column)."""
    names = labels(like.axis_names)
    return build_stage(names, value, extents=dict(zip(names, like.shape, strict=True)))


def diagonal_of(x: Tensor) -> Tensor:
    """Vectors as the diagonals of matrices that are 0 elsewhere."""
    names = [*labels(x.axis_names, ["across"]), "across"]

    def value(*i: Expr) -> Expr:
        return where(binary("eq", i[-2], i[-1]), x[i[:-1]], cast(0, x.dtype))

    return build_stage(names, value, extents=dict(zip(names, (*x.shape, x.shape[-1]), strict=True)))


def quotients_of_gaps(x: Tensor, values: Tensor) -> Tensor:
    """x[i, j] / (values[j] - values[i]); 0 on the diagonal and where x is 0, so that equal values harm nothing that does not need them."""

    def value(*i: Expr) -> Expr:
        gap = values[(*i[:-2], i[-1])] - values[(*i[:-2], i[-2])]
        none = binary("eq", i[-2], i[-1]) | binary("eq", x[i], 0)
        return where(none, cast(0, x.dtype), x[i] / where(none, cast(1, x.dtype), gap))

    return by_place(x, value)


def quotients_of_columns(x: Tensor, values: Tensor) -> Tensor:
    """x[i, j] / values[j]; 0 where x is 0."""

    def value(*i: Expr) -> Expr:
        none = binary("eq", x[i], 0)
        return where(none, cast(0, x.dtype), x[i] / where(none, cast(1, x.dtype), values[(*i[:-2], i[-1])]))

    return by_place(x, value)


__all__ = [
    "by_place", "columns", "diagonal_of", "lapack", "matrices", "product", "quotients_of_columns", "quotients_of_gaps", "rows",
    "transposed",
]  # fmt: skip
