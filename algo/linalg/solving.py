"""Inverses and systems of equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autodiff.custom import custom_vjp
from ..building import operator
from ..complex import complex_tensor
from ..complex.lifting import holds_complex
from ..expr import as_expr, refuse
from ..ops import broadcast_to, expand_dims, negative, reshape
from ..ops.shapes import broadcast, shown, tensor
from ..ops.views import made
from ..tensor import Tensor
from .matrices import Matrices, adjoint, lapack, matrices, part_of, product


@operator
def inv(x: Any) -> Matrices:
    """The inverse of a square matrix. A singular one is an error when it runs.

    Derivative: Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation" (2008), 2.2.3.
    """

    def forward(a: Matrices) -> Any:
        y = lapack(np.linalg.inv, a.shape, "inv", a)
        return y, y

    def backward(y: Matrices, g: Matrices) -> Any:
        return (negative(product(adjoint(y), g, adjoint(y))),)

    found: Matrices = custom_vjp(inv, forward, backward)(matrices(x, "inv", square=True))
    return found


@operator
def solve(a: Any, b: Any) -> Matrices:
    """The x of ``a @ x == b``: b is a vector if it has one axis, else a matrix, or a batch; batches broadcast. A singular a is an error."""
    left, given = matrices(a, "solve", square=True), complex_tensor(b, "solve") if holds_complex(b) else tensor(b, "solve")
    vector = given.ndim == 1
    right = matrices(expand_dims(given, -1) if vector else given, "solve")
    if holds_complex(left) != holds_complex(right) and part_of(left) == part_of(right):
        left, right = complex_tensor(left, "solve"), complex_tensor(right, "solve")
    if left.shape[-1] != right.shape[-2] or left.dtype != right.dtype:
        asked = f"solve of {left.dtype}{shown(left.shape)} and {right.dtype}{shown(right.shape)}"
        raise refuse("A301", asked, f"{left.shape[-2]} equations of one type, and as many rows, are needed")
    batch, _ = broadcast("solve", [_batch(t.real if holds_complex(t) else t) for t in (left, right)])
    left, right = (broadcast_to(t, (*batch, *t.shape[-2:])) for t in (left, right))
    found = _solve(left, right)
    return reshape(found, found.shape[:-1]) if vector else found


def _batch(t: Tensor) -> Tensor:
    """A tensor that has the axes of the batch alone; nobody reads it."""
    return made(t, t.shape[:-2], t.axis_names[:-2], lambda i: (*i, as_expr(0), as_expr(0)))


def _solve(a: Matrices, b: Matrices) -> Matrices:
    def forward(a: Matrices, b: Matrices) -> Any:
        x = lapack(np.linalg.solve, b.shape, "solve", a, b)
        return x, (a, x)

    def backward(kept: tuple[Matrices, Matrices], g: Matrices) -> Any:
        a, x = kept
        arrived = _solve(adjoint(a), g)
        return negative(product(arrived, adjoint(x))), arrived

    found: Matrices = custom_vjp(_solve, forward, backward)(a, b)
    return found


__all__ = ["inv", "solve"]
