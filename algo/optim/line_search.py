"""How far to go along a direction: a loop in the step that makes the loss again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..building import current
from ..expr import cast, refuse
from ..held import Assigned, Held
from ..looping import while_loop
from ..tensor import Direct, Tensor
from .update import Again, Update, elementwise

_ENOUGH = 1e-4
_MOST = 25


def backtracked(again: Again, first: Tensor, slope: Tensor, moves: Sequence[tuple[Update, Tensor]]) -> Tensor:
    """The first of the lengths `first`, `first` / 2, `first` / 4, ... that is enough, float64; the last of 25 where none is.

    Enough is a loss that is lower by 1e-4 of what the slope along the direction says (Armijo, 1966). `moves` are the parameters, each
    with its part of the direction. Raises AlgorithmError: a loss that draws random numbers, or is no scalar.
    """

    def going(c: dict[str, Any]) -> Tensor:
        def short(f: Any, before: Any, t: Any, s: Any, n: Any) -> Any:
            return ~(cast(f, "float64") <= cast(before, "float64") + _ENOUGH * t * s) & (n < _MOST)

        return elementwise((), (), "short", "bool", short, c["loss"], again.loss, c["length"], slope, c["tries"])

    def halved(c: dict[str, Any]) -> dict[str, Any]:
        length = elementwise((), (), "half", "float64", lambda t: 0.5 * t, c["length"])
        tries = elementwise((), (), "tries", "int32", lambda n: n + 1, c["tries"])
        return {"length": length, "loss": moved_along(again, length, moves), "tries": tries}

    loss = moved_along(again, first, moves)
    start = {"length": first, "loss": loss, "tries": elementwise((), (), "tries", "int32", lambda: cast(1, "int32"))}
    found: Tensor = while_loop(going, halved, start)["length"]
    return found


def moved_along(again: Again, length: Tensor, moves: Sequence[tuple[Update, Tensor]]) -> Tensor:
    """The loss, float64, with all parameters moved by `length` along their parts of the direction. Raises AlgorithmError."""
    builder = current()
    saved = dict(builder.assigned)
    try:
        for u, direction in moves:
            made = elementwise(u.shape, u.axis_names, u.label("trial"), u.parameter.dtype,
                               lambda w, t, d, u=u: u.real(w) + u.real(t) * d, u.w, length, direction)  # fmt: skip
            assert isinstance(made, Direct)
            builder.assigned[id(u.parameter)] = Assigned(Held(u.parameter, made), "", "")
        loss = again.make()
    finally:
        builder.assigned = saved
    if not isinstance(loss, Tensor) or loss.shape != ():
        raise refuse("A193", f"minimize of a function that returns {loss!r}", "a loss is one number", "fl.mean")
    return elementwise((), (), "trial/loss", "float64", lambda e: cast(e, "float64"), loss)


__all__ = ["backtracked", "moved_along"]
