"""Initial values of parameters: functions of a random generator and a shape.

The numbers are the same on every machine (see fluorite.algo.drawing). Each may stand with or without its arguments:
``init=fl.init.zeros`` and ``init=fl.init.uniform(-0.1, 0.1)``. Weights are [in, out] when they have two axes, and [out, in, ...] (kernels
over space) when they have more; a vector has as many inputs as elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from . import drawing
from .expr import refuse

Shape: TypeAlias = tuple[int, ...]
Draw: TypeAlias = Callable[[np.random.Generator, Shape], Any]


@dataclass(frozen=True)
class Initializer:
    """``f(generator, shape) -> array``. Printed as it was written.

    Of a complex parameter both parts are drawn, and divided by the square root of 2, so that magnitudes are as large as those of real
    numbers; a constant is real, and what is `linked` has no complex form.
    """

    text: str
    draw: Draw
    constant: bool = False
    linked: bool = False

    def __call__(self, generator: np.random.Generator | None = None, shape: Shape | None = None) -> Any:
        """The values; without arguments the initialiser itself, so that ``zeros()`` and ``zeros`` are the same."""
        if generator is None and shape is None:
            return self
        if generator is None or shape is None:
            raise refuse("A141", self.text, "an initialiser takes a generator and a shape")
        return np.asarray(self.draw(generator, shape), dtype=np.float64)

    def complex(self, generator: np.random.Generator, shape: Shape) -> Any:
        """The values of a complex parameter."""
        if self.linked:
            raise refuse("A141", f"{self.text} of complex numbers", "it is for real ones", "an array", "a function of (generator, shape)")
        real = self(generator, shape)
        return real if self.constant else (real + 1j * self(generator, shape)) / math.sqrt(2)

    def __repr__(self) -> str:
        return f"fl.init.{self.text}"


def fans(shape: Shape) -> tuple[int, int]:
    """How many inputs and outputs each element of a weight connects."""
    if len(shape) < 2:
        n = math.prod(shape)
        return n, n
    if len(shape) == 2:
        return shape[0], shape[1]
    space = math.prod(shape[2:])
    return shape[1] * space, shape[0] * space


def constant(value: float) -> Initializer:
    """`value` everywhere."""
    return Initializer(f"constant({value})", lambda _, shape: np.full(shape, value), constant=True)


zeros = Initializer("zeros", lambda _, shape: np.zeros(shape), constant=True)
ones = Initializer("ones", lambda _, shape: np.ones(shape), constant=True)


def normal(scale: float = 0.02, mean: float = 0.0) -> Initializer:
    """Normal with standard deviation `scale`."""
    return Initializer(f"normal({scale}, {mean})", lambda g, shape: mean + scale * drawing.normal(g, shape))


def truncated_normal(scale: float = 0.02, mean: float = 0.0) -> Initializer:
    """Normal with deviation `scale` given that it lies within 2 `scale` of the mean: its own deviation is 0.88 `scale`."""
    return Initializer(f"truncated_normal({scale}, {mean})", lambda g, shape: mean + scale * drawing.truncated_normal(g, shape))


def uniform(low: float = -0.05, high: float = 0.05) -> Initializer:
    """Uniform in [low, high)."""
    if not low < high:
        raise refuse("A141", f"uniform({low}, {high})", "low must be below high")
    return Initializer(f"uniform({low}, {high})", lambda g, shape: drawing.uniform(g, shape, low, high))


def _scaled(text: str, variance: Callable[[int, int], float], flat: bool) -> Initializer:
    def draw(g: np.random.Generator, shape: Shape) -> Any:
        inputs, outputs = fans(shape)
        deviation = math.sqrt(variance(max(inputs, 1), max(outputs, 1)))
        ends = deviation * math.sqrt(3)
        return drawing.uniform(g, shape, -ends, ends) if flat else deviation * drawing.normal(g, shape)

    return Initializer(text, draw)


def glorot_uniform(gain: float = 1.0) -> Initializer:
    """Uniform of variance gain² · 2 / (in + out) (Glorot and Bengio, 2010)."""
    return _scaled(f"glorot_uniform({gain})", lambda i, o: gain**2 * 2 / (i + o), True)


def glorot_normal(gain: float = 1.0) -> Initializer:
    """Normal of variance gain² · 2 / (in + out)."""
    return _scaled(f"glorot_normal({gain})", lambda i, o: gain**2 * 2 / (i + o), False)


def kaiming_uniform(gain: float = math.sqrt(2)) -> Initializer:
    """Uniform of variance gain² / in (He et al., 2015); the default gain suits relu."""
    return _scaled(f"kaiming_uniform({gain})", lambda i, _: gain**2 / i, True)


def kaiming_normal(gain: float = math.sqrt(2)) -> Initializer:
    """Normal of variance gain² / in."""
    return _scaled(f"kaiming_normal({gain})", lambda i, _: gain**2 / i, False)


def lecun_normal() -> Initializer:
    """Normal of variance 1 / in (LeCun et al., 1998), as selu wants it."""
    return _scaled("lecun_normal()", lambda i, _: 1 / i, False)


def lecun_uniform() -> Initializer:
    """Uniform of variance 1 / in."""
    return _scaled("lecun_uniform()", lambda i, _: 1 / i, True)


def orthogonal(gain: float = 1.0) -> Initializer:
    """Orthonormal rows or columns (Saxe et al., 2013); all axes but the last are rows."""

    def draw(g: np.random.Generator, shape: Shape) -> Any:
        rows, columns = math.prod(shape[:-1]), shape[-1] if shape else 1
        q = drawing.orthonormal(drawing.normal(g, (max(rows, columns), min(rows, columns))))
        return gain * (q if rows >= columns else q.T).reshape(shape)

    return Initializer(f"orthogonal({gain})", draw, linked=True)


xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
he_uniform, he_normal = kaiming_uniform, kaiming_normal
