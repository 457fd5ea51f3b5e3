"""What the comparisons of derivatives have in common: where they are made, and what they find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fluorite.algo.autodiff.pullbacks import Derivative, derivative
from fluorite.algo.graph import Graph
from fluorite.algo.program import Program

from .check_report import Case, Unjudged
from .sampling import Array

Derivatives = Mapping[str, Derivative | str]


def derivatives_of(model: Any, methods: Sequence[str]) -> Derivatives:
    """The derivative of each method, or the reason why it has none. Raises AlgorithmError."""
    if isinstance(model, Graph):
        return dict.fromkeys(methods, "a Graph does not say how its stages are derived; the function or Program that it is of does")
    if isinstance(model, type) and issubclass(model, Program):
        model = model()
    return {name: derivative(model, name) for name in methods}


@dataclass(frozen=True)
class Place:
    """Where derivatives are compared: the method, the extents asked for, the inputs given, parameters and the seed."""

    method: str
    extents: Mapping[str, int]
    given: tuple[Array, ...] | None
    parameters: Mapping[str, Array]
    seed: int


@dataclass(frozen=True)
class Found:
    """Comparisons, what could not be compared, and notes."""

    cases: tuple[Case, ...] = ()
    unjudged: tuple[Unjudged, ...] = ()
    notes: tuple[str, ...] = ()


__all__ = ["Derivatives", "Found", "Place", "derivatives_of"]
