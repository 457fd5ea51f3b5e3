"""Tensors as control flow passes them on: parameters as what they hold, views as stages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from .expr import refuse
from .held import Parameter
from .tensor import Direct, Tensor


def labels_of(t: Tensor) -> list[str]:
    from .ops.shapes import labels

    return labels(t.axis_names)


def bound(t: Tensor) -> Tensor:
    """A parameter as the tensor that it is at this point of the trace."""
    return t.now() if isinstance(t, Parameter) else t


def settled(t: Tensor, what: str) -> Direct:
    """The tensor as a stage or a leaf: views get a stage of their own."""
    from .trace import copied

    t = bound(t)
    if isinstance(t, Direct):
        t.require_mine()
        return t
    if t.is_bounded:
        raise refuse("A402", f"{what} of {t.label}", "a boundary view is a way to read, not a tensor", "the tensor itself")
    return copied(t, "value")


def positional(fn: Callable[..., Any], given: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """The arguments of a call of fn by position, also those that were given by name. Raises AlgorithmError for what has no position."""
    if not named:
        return given
    try:
        found = inspect.signature(fn).bind(*given, **named)
    except TypeError as error:
        raise refuse("A173", f"a call of {fn.__name__}", str(error)) from None
    if found.kwargs:
        raise refuse(
            "A173", f"{fn.__name__}(..., {next(iter(found.kwargs))}=)", "arguments are given by position", "functools.partial for it"
        )
    return found.args


__all__ = ["bound", "labels_of", "positional", "settled"]
