"""Tensors as sets of values."""

from __future__ import annotations

from typing import Any

from .. import expr as E
from ..building import operator
from ..complex import ComplexTensor
from ..expr import Expr
from ..reducing import reduce_axes
from ..tensor import Tensor
from ..trace import build_stage
from .arithmetic import equal
from .shapes import labels, operand
from .views import flatten


@operator
def isin(x: Any, values: Any, *, invert: bool = False) -> Tensor:
    """Of each element of x whether it equals one of `values`, or with `invert` none of them. NaN equals nothing.

    Compares each with each: n * m comparisons.
    """
    t, among = operand(x, "isin"), flatten(operand(values, "isin"))
    names = labels(t.axis_names, ["k"])

    def value(*i: Expr) -> Any:
        own = t[i] if t.ndim or isinstance(t, ComplexTensor) else t.as_scalar()
        found = reduce_axes("any", ["k"], lambda k: equal(own, among[k]), {"k": among.shape[0]})
        return E.unary("not", found) if invert else found

    return build_stage(names, value, extents=dict(zip(names, t.shape, strict=True)))


__all__ = ["isin"]
