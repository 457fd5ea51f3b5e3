"""Sums of products: matmul and what is written with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..building import operator
from ..complex import ComplexTensor
from ..complex.lifting import multilinear
from ..expr import Expr, as_expr, cast, common, refuse
from ..reducing import ACCUMULATOR, reduce_axes, unrounded
from ..tensor import Tensor
from ..trace import build_stage
from .arithmetic import add
from .shapes import broadcast, operand, shown, tensor

BATCH = ("n", "n1", "n2", "n3", "n4", "n5", "n6", "n7")


def product(a: Expr, b: Expr) -> Expr:
    """a * b for a sum: narrow integers are widened first, so that the product does not wrap."""
    joined, _ = common("*", a, b)
    wide = ACCUMULATOR.get(joined)
    return cast(a, wide) * cast(b, wide) if wide else a * b


@multilinear("a", "b")
@operator
def matmul(a: Any, b: Any) -> Tensor:
    """The matrix product, by NumPy's rule: leading axes are a batch and broadcast, a vector is one row or column.

    Axes of the result: n (n1, n2, ...) i j; of the reduction: k. bool, 8-bit and 16-bit integers are summed in 32 bits.
    """
    return contracted(tensor(a, "matmul"), tensor(b, "matmul"))


def contracted(x: Tensor, y: Tensor, name: str | None = None, *, rounds: bool = True) -> Tensor:
    """x @ y; of narrow floats in float32 still, unless it `rounds`."""
    if x.ndim == 0 or y.ndim == 0:
        raise refuse("A307", f"matmul of {shown(x.shape)} and {shown(y.shape)}", "each needs at least one axis", "a * b")
    row, column = x.ndim > 1, y.ndim > 1
    k, k2 = x.shape[-1], y.shape[-2 if column else -1]
    if k != k2:
        raise refuse(
            "A301",
            f"matmul of {shown(x.shape)} and {shown(y.shape)}",
            f"the rows of the first have {k} elements, the columns of the second {k2}",
            *(["b.T"] if column and k == y.shape[-1] else []),
        )
    outer = [_Batch(x, 2 if row else 1), _Batch(y, 2 if column else 1)]
    shape, _ = broadcast("matmul batches", outer)
    batch = [*BATCH[: len(shape)]]
    names = [*batch, *(["i"] if row else []), *(["j"] if column else [])]
    extents = dict(zip(names, (*shape, *([x.shape[-2]] if row else []), *([y.shape[-1]] if column else [])), strict=True))

    def value(*index: Expr) -> Any:
        at = dict(zip(names, index, strict=True))
        lead = [at[n] for n in batch]

        def inner(k: Expr) -> Expr:
            left = outer[0].index(lead, shape) + ([at["i"]] if row else []) + [k]
            right = outer[1].index(lead, shape) + [k] + ([at["j"]] if column else [])
            return product(x[tuple(left)], y[tuple(right)])

        total = reduce_axes("sum", ["k"], inner, {"k": k})
        return total if rounds else unrounded(total)

    return build_stage(names, value, name=name, extents=extents)


class _Batch(Tensor):
    """The leading axes of an operand, for the broadcasting rule alone."""

    def __init__(self, t: Tensor, inner: int) -> None:
        super().__init__(t.shape[: t.ndim - inner], t.dtype, t.axis_names[: t.ndim - inner], t.label)

    def index(self, lead: Sequence[Expr], shape: Sequence[Any]) -> list[Expr]:
        skip = len(shape) - self.ndim
        return [as_expr(0) if n == 1 and shape[skip + d] != 1 else lead[skip + d] for d, n in enumerate(self.shape)]


@operator
def dot(a: Any, b: Any) -> Any:
    """The inner product of two vectors, summed over k; of complex ones, nothing conjugated, each part goes over the operands once."""
    x, y = operand(a, "dot"), operand(b, "dot")
    if x.ndim != 1 or y.ndim != 1:
        raise refuse("A307", f"dot of {shown(x.shape)} and {shown(y.shape)}", "both are vectors", "a @ b")
    if x.shape != y.shape or not (isinstance(x, ComplexTensor) or isinstance(y, ComplexTensor)):
        p, q = (t.real if isinstance(t, ComplexTensor) else t for t in (x, y))
        return contracted(p, q)  # which refuses vectors of two lengths

    def summed(part: str) -> Tensor:
        def product_of(k: Expr) -> Any:
            return getattr(x[k] * y[k], part)

        return build_stage([], lambda: reduce_axes("sum", ["k"], product_of, {"k": x.shape[0]}), name=part)

    return ComplexTensor(summed("real"), summed("imag"))


@multilinear("a", "b")
@operator
def outer(a: Any, b: Any) -> Tensor:
    """``result[i, j] == a[i] * b[j]``."""
    x, y = tensor(a, "outer"), tensor(b, "outer")
    if x.ndim != 1 or y.ndim != 1:
        raise refuse("A307", f"outer of {shown(x.shape)} and {shown(y.shape)}", "both are vectors")
    return build_stage(["i", "j"], lambda i, j: x[i] * y[j], extents={"i": x.shape[0], "j": y.shape[0]})


@operator
def linear(x: Any, w: Any, b: Any = None) -> Tensor:
    """``x @ w + b``: x [..., in], w [in, out], b [out]. Stages `matmul` and, with b, `bias`."""
    result: Tensor = matmul(x, w)
    return result if b is None else add(result, operand(b, "linear"), name="bias")
