"""Scalar functions. Each is written once, as an expression of its arguments: inside a stage it is that expression, on tensors it is a
stage of its own name, with broadcasting as in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce, wraps
from inspect import Parameter, signature
from typing import Any, Protocol, overload

import numpy as np

from ..building import operator
from ..complex import ComplexTensor, complex_tensor
from ..complex.functions import rule
from ..complex.lifting import holds_complex
from ..dtypes import NARROW, promote
from ..expr import Expr, as_expr, cast
from ..tensor import Tensor, in_body
from ..trace import build_stage
from ..weak_numbers import weakly
from .shapes import broadcast, element, labels, narrow, tensor, weak_like


class Elementwise(Protocol):
    """A scalar function that also maps over tensors."""

    __name__: str

    @overload
    def __call__(self, x: Tensor, /, *more: Any, name: str | None = None, **options: Any) -> Tensor: ...
    @overload
    def __call__(self, *x: Any, name: str | None = None, **options: Any) -> Any: ...


def elementwise(fn: Callable[..., Any], label: str | None = None) -> Elementwise:
    """Parameters that may be given by position are operands, those by keyword alone are options."""
    known = label or fn.__name__

    def spread(*operands: Any, **options: Any) -> Tensor:
        made = as_operands(fn.__name__, operands)
        shape, names = broadcast(fn.__name__.rstrip("_"), [t for t in made if isinstance(t, Tensor)])
        axes = labels(names)

        def value(*index: Expr) -> Any:
            return fn(*(element(t, index, shape) if isinstance(t, Tensor) else t if t is None else as_expr(t) for t in made), **options)

        return build_stage(axes, value, extents=dict(zip(axes, shape, strict=True)))

    def spread_complex(*operands: Any, **options: Any) -> Any:
        of = rule(known)
        made = [complex_tensor(x, fn.__name__) if _is_array(x) else x for x in operands]
        made = as_operands(fn.__name__, tuple(made))
        shape, names = broadcast(fn.__name__, [t for t in made if isinstance(t, Tensor | ComplexTensor)])
        axes = labels(names)

        def value(*index: Expr) -> Any:
            return of(*(element(t, index, shape) if isinstance(t, Tensor | ComplexTensor) else t for t in made), **options)

        return build_stage(axes, value, extents=dict(zip(axes, shape, strict=True)))

    spread.__name__ = spread.__qualname__ = spread_complex.__name__ = known
    mapped, mapped_complex = operator(spread), operator(spread_complex)

    form = signature(fn)
    places = frozenset(p.name for p in form.parameters.values() if p.kind is Parameter.POSITIONAL_OR_KEYWORD)

    @wraps(fn)
    def call(*operands: Any, name: str | None = None, **options: Any) -> Any:
        if not places.isdisjoint(options):
            bound = form.bind(*operands, **options)
            bound.apply_defaults()
            operands, options = bound.args, bound.kwargs
        if any(map(holds_complex, operands)):
            return rule(known)(*operands, **options) if in_body() else mapped_complex(*operands, name=name, **options)
        if in_body():
            return fn(*(x if x is None else as_expr(x) for x in operands), **options)
        if name is None and (number := weakly(fn, operands, options)) is not None:
            return number
        return mapped(*operands, name=name, **options)

    return call


def once(fn: Callable[..., Any]) -> Callable[..., Any]:
    """For a function of several operations: narrow floats are computed in float32 all through, and rounded at the end alone."""

    @wraps(fn)
    def call(*operands: Any, **options: Any) -> Any:
        given = [x if x is None else as_expr(x) for x in operands]
        types = [e.dtype for e in given if e is not None and not e.weak]
        to = reduce(_common, types) if types and set(types) <= set(NARROW) else "float32"
        if to not in NARROW:
            return fn(*operands, **options)
        return cast(fn(*(e if e is None or e.weak else cast(e, "float32") for e in given), **options), to)

    return call


def _common(a: str, b: str) -> str:
    joined = promote(a, False, b, False)
    return joined[0] if joined is not None else "float32"


def _is_array(x: Any) -> bool:
    """Whether an operand is an array or a list of complex numbers."""
    return holds_complex(x) and (isinstance(x, list | tuple) or (isinstance(x, np.ndarray) and x.ndim > 0))


def as_operands(what: str, given: tuple[Any, ...]) -> list[Any]:
    """Arrays become constants; lists take the type of the first tensor, or among themselves of the widest kind; numbers and extents stay
    what they are."""
    found: list[Any] = []
    strong = next((x.dtype for x in given if isinstance(x, Tensor)), None)
    if strong is None and not any(isinstance(x, np.ndarray) for x in given):
        chosen = given[1:] if what == "where" else given
        lists = [(narrow(x).dtype.name, True) for x in chosen if isinstance(x, list | tuple) and not holds_complex(x)]
        strong = reduce(lambda a, b: promote(*a, *b) or a, lists)[0] if lists else None
    for k, x in enumerate(given):
        if isinstance(x, list | tuple) and what == "where" and k == 0:  # yes or no, whatever is chosen from
            found.append(tensor(x, what))
        elif isinstance(x, list | tuple):
            found.append(tensor(x if strong is None else weak_like(x, strong), what))
        elif isinstance(x, np.ndarray) and x.ndim:
            found.append(tensor(x, what))
        else:
            found.append(x)
    return found
