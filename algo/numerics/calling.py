"""How far the result of an extern may be off, whose function nobody can look into: what it gives for inputs moved within their own bounds.

Nothing can be derived of a function that is not known, so it is sampled, as deep graphs are (see `sampled`): once with all inputs pushed
up, once down, and some times at random. Where the inputs are exact so is the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dtypes import FLOATS
from .rules import Enclosure

Array = np.ndarray[Any, Any]
SAFETY, _SAMPLES = 8.0, 6


def sampled_call(call: Callable[[Sequence[Array]], Array], inputs: Sequence[tuple[Enclosure, str]], working: str) -> Enclosure:
    """The value of `call` with its bound. `inputs` are what it is given, with the types in which it is given them.

    Floats get `SAFETY` times the largest deviation of all elements; other elements that any sample changed are undecided.
    """
    given = [e.value.astype(dtype) for e, dtype in inputs]
    reach = [_reach(e, g, dtype) for (e, dtype), g in zip(inputs, given, strict=True)]
    value = call(given)
    if not any(r.any() for r in reach) and not any(e.undecided is not None and e.undecided.any() for e, _ in inputs):
        return Enclosure(value.astype(working))
    rng = np.random.default_rng(0)
    moved = []
    for n in range(_SAMPLES):
        signs = [np.full(r.shape, 1.0 - 2 * n) if n < 2 else rng.uniform(-1, 1, r.shape) for r in reach]
        moved.append(call([(e.value + r * s).astype(d) for (e, d), r, s in zip(inputs, reach, signs, strict=True)]))
    if value.dtype.name not in FLOATS:
        changed = np.any([m != value for m in moved], axis=0)
        return Enclosure(value.astype(working), None, changed | any(_open(e) for e, _ in inputs))
    off = np.array([np.abs(m.astype(np.float64) - value) for m in moved])
    largest = float(np.nan_to_num(off, nan=np.inf).max(initial=0.0))
    unsure = np.full(value.shape, True) if any(_open(e) for e, _ in inputs) else None
    return Enclosure(value.astype(working), np.full(value.shape, np.inf if unsure is not None else SAFETY * largest), unsure)


def _reach(e: Enclosure, given: Array, dtype: str) -> Array:
    """How far an input may be from the one that the oracle gives. An infinite bound says nothing, and is no place to look at."""
    if dtype not in FLOATS:
        return np.zeros(e.value.shape)
    rounding = np.abs(e.value - given.astype(np.float64))
    error = rounding if e.error is None else np.broadcast_to(e.error, e.value.shape) + rounding
    return np.where(np.isfinite(error), error, 0)


def _open(e: Enclosure) -> bool:
    """Whether some of an input may be anything within reason."""
    undecided = e.undecided is not None and bool(np.any(e.undecided))
    return undecided or (e.error is not None and bool(np.isinf(e.error).any()))


__all__ = ["sampled_call"]
