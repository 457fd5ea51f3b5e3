"""The clock of a recurrence: the axis along which a stage reads earlier positions of itself, or of stages that read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .expr import Axis, Expr
from .linear import linear


@dataclass(frozen=True)
class Clock:
    """Positions of `axis` are computed one after the other, from the first or, with `reverse`, from the last.

    Stages with the same `group` (the smallest id among them) read one another: they are one recurrence and share every step.
    """

    axis: Axis
    group: int
    reverse: bool = False


def delay(index: Expr, clock: Axis, reverse: bool) -> int | None:
    """How many steps before the current one an index lies; None where it is not the clock plus a constant."""
    form = linear(index)
    if len(form.terms) != 1 or form.coefficient(clock) != 1 or not isinstance(form.constant, int):
        return None
    return form.constant if reverse else -form.constant


def place(a: Axis, axes: Sequence[Axis]) -> int:
    """The position of an axis among others. (== of axes builds a comparison, so index() will not do.)"""
    return next(n for n, other in enumerate(axes) if other is a)


__all__ = ["Clock", "delay", "place"]
