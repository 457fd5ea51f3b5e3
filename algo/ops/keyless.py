"""Operators that draw random numbers, called without a key."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..tensor import Tensor
from .next_key import next_key

Draw = Callable[..., Tensor]


def keyless(fn: Draw) -> Draw:
    """The operator, whose first argument is a key that may be left out: then it is a new one, `next_key()`."""

    @functools.wraps(fn)
    def call(*given: Any, **named: Any) -> Tensor:
        has_key = "key" in named or (bool(given) and isinstance(given[0], Tensor | np.ndarray))
        return fn(*given, **named) if has_key else fn(next_key(), *given, **named)

    return call


def keyless_of_tensor(fn: Draw) -> Draw:
    """The same for an operator that goes on with a tensor. What stands alone, or before something that is none, is that tensor, unless it
    has the form of a key."""

    @functools.wraps(fn)
    def call(*given: Any, **named: Any) -> Tensor:
        has_key = "key" in named or (len(given) > 1 and (_is_key(given[0]) or isinstance(given[1], Tensor | np.ndarray)))
        return fn(*given, **named) if has_key else fn(next_key(), *given, **named)

    return call


def _is_key(value: Any) -> bool:
    return isinstance(value, Tensor | np.ndarray) and value.dtype == "uint32" and tuple(value.shape) == (2,)


__all__ = ["keyless", "keyless_of_tensor"]
