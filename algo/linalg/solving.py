"""Inverses and systems of equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autodiff.custom import custom_vjp
from ..building import operator
from ..expr import as_expr, refuse
from ..ops import broadcast_to, expand_dims, negative, reshape
from ..ops.shapes import broadcast, shown, tensor
from ..ops.views import made
from ..tensor import Tensor
from .matrices import lapack, matrices, product, transposed


@operator
def inv(x: Any) -> Tensor:
    """The inverse of a square matrix. A singular one is an error when it runs.

    Derivative: Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation" (2008), 2.2.3.
    """

    def forward(a: Tensor) -> Any:
        y = lapack(np.linalg.inv, a.shape, "inv", a)
        return y, y

    def backward(y: Tensor, g: Tensor) -> Any:
        return (negative(product(transposed(y), g, transposed(y))),)

    found: Tensor = custom_vjp(inv, forward, backward)(matrices(x, "inv", square=True))
    return found


@operator
def solve(a: Any, b: Any) -> Tensor:
    """The x of ``a @ x == b``: b is a vector if it has one axis, else a matrix, or a batch; batches broadcast. A singular a is an error."""
    left, given = matrices(a, "solve", square=True), tensor(b, "solve")
    vector = given.ndim == 1
    right = matrices(expand_dims(given, -1) if vector else given, "solve")
    if left.shape[-1] != right.shape[-2] or left.dtype != right.dtype:
        asked = f"solve of {left.dtype}{shown(left.shape)} and {right.dtype}{shown(right.shape)}"
        raise refuse("A301", asked, f"{left.shape[-2]} equations of one type, and as many rows, are needed")
    batch, _ = broadcast("solve", [_batch(left), _batch(right)])
    left, right = (broadcast_to(t, (*batch, *t.shape[-2:])) for t in (left, right))
    found = _solve(left, right)
    return reshape(found, found.shape[:-1]) if vector else found


def _batch(t: Tensor) -> Tensor:
    """A tensor that has the axes of the batch alone; nobody reads it."""
    return made(t, t.shape[:-2], t.axis_names[:-2], lambda i: (*i, as_expr(0), as_expr(0)))


def _solve(a: Tensor, b: Tensor) -> Tensor:
    def forward(a: Tensor, b: Tensor) -> Any:
        x = lapack(np.linalg.solve, b.shape, "solve", a, b)
        return x, (a, x)

    def backward(kept: tuple[Tensor, Tensor], g: Tensor) -> Any:
        a, x = kept
        arrived = _solve(transposed(a), g)
        return negative(product(arrived, transposed(x))), arrived

    found: Tensor = custom_vjp(_solve, forward, backward)(a, b)
    return found


__all__ = ["inv", "solve"]
