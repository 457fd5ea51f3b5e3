"""Operators that take axes away or run along them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
from operator_case import ALL, FLOATS, NUMBERS, Case, Chooser, Shape, axes, axis, filled, one


def _summed(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Of nothing, and over no axes, as NumPy."""
    return lambda x, axis, keepdims: fn(x, axis=axis, keepdims=keepdims)


def _norm(x: Any, axis: Any, keepdims: bool, ord: float) -> Any:
    y = np.abs(np.asarray(x, np.float64))
    match ord:
        case np.inf:
            return y.max(axis=axis, keepdims=keepdims)
        case 0:
            return (y != 0).sum(axis=axis, keepdims=keepdims)
    return (y**ord).sum(axis=axis, keepdims=keepdims) ** (1 / ord)


def reductions() -> list[Case]:
    any_ = {n: getattr(np, n) for n in ("sum", "prod", "any", "all")}
    some = {"max": np.max, "min": np.min}
    cases = [
        Case(n, getattr(fl, n), _summed(fn), lambda c: one(c), axes, dtypes=ALL if n in ("any", "all") else NUMBERS, values="small")
        for n, fn in any_.items()
    ]
    cases += [Case(n, getattr(fl, n), _summed(fn), lambda c: filled(c, 0), axes) for n, fn in some.items()]
    cases += [
        Case(n, getattr(fl, n), getattr(np, n), lambda c: filled(c, 1), axis, dtypes=NUMBERS, native=True) for n in ("argmax", "argmin")
    ]
    cases += [
        Case("count_nonzero", fl.count_nonzero, lambda x, axis, keepdims: np.count_nonzero(x, axis, keepdims=keepdims), one, axes, ALL),
        Case(
            "mean", fl.mean, _summed(lambda x, **k: np.mean(np.asarray(x, np.float64), **k)), lambda c: filled(c, 0), axes, values="small"
        ),
    ]
    for n, fn in (("var", np.var), ("std", np.std)):

        def options(c: Chooser, s: tuple[Shape, ...]) -> dict[str, Any]:
            over = axes(c, s)
            return {**over, "correction": c.of((0, 1)) if over["axis"] is None and np.prod(s[0]) > 1 else 0}

        def oracle(x: Any, axis: Any, keepdims: bool, correction: int, fn: Callable[..., Any] = fn) -> Any:
            return fn(np.asarray(x, np.float64), axis=axis, keepdims=keepdims, ddof=correction)

        cases.append(Case(n, getattr(fl, n), oracle, lambda c: filled(c, 0), options, dtypes=NUMBERS, values="small"))
    cases.append(
        Case(
            "vector_norm",
            fl.vector_norm,
            _norm,
            lambda c: filled(c, 0),
            lambda c, s: {**axes(c, s), "ord": c.of((1, 2, 3, np.inf, 0))},
            FLOATS,
            "small",
        )
    )
    return cases
