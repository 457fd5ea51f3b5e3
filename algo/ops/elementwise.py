"""Scalar functions. Each is written once, as an expression of its arguments: inside a stage it is that expression, on tensors it is a
stage of its own name, with broadcasting as in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, overload

import numpy as np

from ..building import operator
from ..expr import Expr, as_expr
from ..tensor import Tensor, in_body
from ..trace import build_stage
from .shapes import broadcast, element, labels, tensor, weak_like


class Elementwise(Protocol):
    """A scalar function that also maps over tensors."""

    __name__: str

    @overload
    def __call__(self, x: Tensor, /, *more: Any, name: str | None = None, **options: Any) -> Tensor: ...
    @overload
    def __call__(self, *x: Any, name: str | None = None, **options: Any) -> Any: ...


def elementwise(fn: Callable[..., Any], label: str | None = None) -> Elementwise:
    """Positional arguments are operands, keywords are options."""

    def spread(*operands: Any, **options: Any) -> Tensor:
        made = as_operands(fn.__name__, operands)
        shape, names = broadcast(fn.__name__.rstrip("_"), [t for t in made if isinstance(t, Tensor)])
        axes = labels(names)

        def value(*index: Expr) -> Any:
            return fn(*(element(t, index, shape) if isinstance(t, Tensor) else t if t is None else as_expr(t) for t in made), **options)

        return build_stage(axes, value, extents=dict(zip(axes, shape, strict=True)))

    spread.__name__ = spread.__qualname__ = label or fn.__name__
    mapped = operator(spread)

    @wraps(fn)
    def call(*operands: Any, name: str | None = None, **options: Any) -> Any:
        if in_body():
            return fn(*(x if x is None else as_expr(x) for x in operands), **options)
        return mapped(*operands, name=name, **options)

    return call


def as_operands(what: str, given: tuple[Any, ...]) -> list[Any]:
    """Arrays become constants; lists take the type of the first tensor; numbers and extents stay what they are."""
    found: list[Any] = []
    strong = next((x.dtype for x in given if isinstance(x, Tensor)), None)
    for x in given:
        if isinstance(x, list | tuple):
            found.append(tensor(x if strong is None else weak_like(x, strong), what))
        elif isinstance(x, np.ndarray) and x.ndim:
            found.append(tensor(x, what))
        else:
            found.append(x)
    return found
