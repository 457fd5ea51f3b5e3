"""Learning rates as functions of the number of updates made so far, a float64 number of the algorithm that is 0 at the first update.

Each may be given as `learning_rate`, and so may any function of one's own: ``lambda t: 0.1 / fl.sqrt(1.0 + t)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..expr import Expr, binary, cast, refuse, unary, where

Schedule: TypeAlias = Callable[[Expr], Any]


def _number(value: Any, what: str, positive: bool = False) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or (positive and value <= 0):
        raise refuse("A191", f"{what}={value!r}", f"it is a{' positive' if positive else ''} number")
    return float(value)


def rate_of(given: Any) -> Schedule:
    """A learning rate as a function of time."""
    return given if callable(given) else constant(given)


def constant(rate: float) -> Schedule:
    """Always `rate`."""
    value = _number(rate, "learning_rate")
    return lambda t: cast(value, "float64")


def step(rate: float, every: int, factor: float = 0.1) -> Schedule:
    """`rate`, multiplied by `factor` after every `every` updates."""
    r, n, f = _number(rate, "rate"), _number(every, "every", True), _number(factor, "factor", True)
    return lambda t: r * binary("pow", cast(f, "float64"), unary("floor", t / n))


def exponential(rate: float, steps: int, factor: float = 0.5) -> Schedule:
    """``rate * factor ** (t / steps)``: `factor` times as much after `steps` updates, and in between."""
    r, n, f = _number(rate, "rate"), _number(steps, "steps", True), _number(factor, "factor", True)
    return lambda t: r * binary("pow", cast(f, "float64"), t / n)


def cosine(rate: float, steps: int, final: float = 0.0, *, warmup: int = 0) -> Schedule:
    """From `rate` to `final` along half a cosine, and `final` from `steps` on (Loshchilov and Hutter, "SGDR", 2017, without restarts).
    With `warmup` that many of the steps, the first ones, are those of fl.optim.warmup."""
    r, n, last = _number(rate, "rate"), _number(steps, "steps", True), _number(final, "final")

    def along(t: Expr) -> Expr:
        return last + (r - last) * 0.5 * (1.0 + unary("cos", math.pi * _until(t, n)))

    return _warmed(along, warmup) if warmup != 0 else along


def polynomial(rate: float, steps: int, final: float = 0.0, power: float = 1.0) -> Schedule:
    """``final + (rate - final) * (1 - t / steps) ** power``, and `final` from `steps` on."""
    r, n, last, p = _number(rate, "rate"), _number(steps, "steps", True), _number(final, "final"), _number(power, "power", True)
    return lambda t: last + (r - last) * binary("pow", 1.0 - _until(t, n), cast(p, "float64"))


def _until(t: Expr, steps: float) -> Expr:
    return binary("min", t / steps, cast(1.0, "float64"))


def warmup(schedule: Any, steps: int) -> Schedule:
    """`schedule` (a number or a schedule) times (t + 1) / steps for the first `steps` updates; its own time runs on meanwhile."""
    return _warmed(rate_of(schedule), steps)


def _warmed(inner: Schedule, steps: int) -> Schedule:
    n = _number(steps, "warmup", True)
    return lambda t: inner(t) * binary("min", (t + 1.0) / n, cast(1.0, "float64"))


def piecewise(boundaries: Sequence[int], rates: Sequence[Any]) -> Schedule:
    """``rates[k]`` (numbers or schedules) for the updates before ``boundaries[k]``; the last from the last boundary on."""
    times = [_number(b, "boundaries") for b in boundaries]
    if len(rates) != len(times) + 1 or times != sorted(set(times)):
        raise refuse(
            "A191", f"piecewise({list(boundaries)}, {len(rates)} rates)", "boundaries ascend, and there is one more rate than boundaries"
        )
    inner = [rate_of(r) for r in rates]

    def rate(t: Expr) -> Any:
        value = inner[-1](t)
        for b, r in zip(reversed(times), reversed(inner[:-1]), strict=True):
            value = where(t < b, r(t), value)
        return value

    return rate


__all__ = ["Schedule", "constant", "cosine", "exponential", "piecewise", "polynomial", "rate_of", "step", "warmup"]
