"""What a combiner must keep to for its reduction to mean one thing: tried on numbers, since no one can read it off an expression.

The numbers are elements as the reduction's own body makes them from random tensors, and what such elements combine to: what holds only
there, such as that a count is not negative, may be relied upon. Half of them are small whole numbers, so that there are ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .combiners import Combiner
from .dtypes import kind
from .expr import Const, Expr, Op
from .interpreter.combining import combined, constant
from .interpreter.elementary import convert
from .interpreter.stages import apply
from .rewriting import walk

Array = np.ndarray[Any, Any]
Element = Sequence[Array]
_TRIES = 64
_NEAR = 1e-6
"""Of the largest number on the way, in float64: rounding is far below, and what breaks a law hardly ever is."""


def working(dtype: str) -> str:
    return "float64" if dtype == "float32" else dtype


def samples(body: Sequence[Expr], seed: int) -> Element:
    """The parts of elements whose tensors hold random numbers."""
    rng = np.random.default_rng(seed)
    done: dict[Expr, Array] = {}
    for part in body:
        for n in walk(part, done):
            match n:
                case Const():
                    done[n] = constant(n, working)
                case Op(op="extent"):
                    done[n] = np.full(_TRIES, _TRIES)
                case Op():
                    done[n] = apply(n, [done[a] for a in n.args], working)
                case _:
                    done[n] = _random(rng, n)
    return [np.broadcast_to(done[e], (_TRIES,)) for e in body]


def _random(rng: np.random.Generator, e: Expr) -> Array:
    """Numbers of the type of a read, or positions."""
    if kind(e.dtype) != "float":
        low = -4 if e.dtype.startswith("int") and not e.weak else 0
        return convert(rng.integers(low, 5, _TRIES), "int64" if e.weak else e.dtype)
    whole = rng.integers(-2, 3, _TRIES).astype(float)
    return convert(np.where(np.arange(_TRIES) % 2, whole, rng.normal(size=_TRIES)), working(e.dtype))


class Laws:
    """The laws of one combiner, tried on elements that a body makes."""

    def __init__(self, c: Combiner, body: Sequence[Expr]) -> None:
        self.combiner = c
        self.largest = np.zeros(_TRIES)
        with np.errstate(all="ignore"):
            a, b, d, e = (samples(body, seed) for seed in range(4))
            self.elements = [(a, b, d), (self.of(a, b), d, e), (a, self.of(b, d), self.of(d, e))]

    def of(self, left: Element, right: Element) -> Element:
        out = combined(self.combiner, left, right, working)
        for part in out:
            size = np.abs(part.astype(np.float64))
            self.largest = np.maximum(self.largest, np.where(np.isfinite(size), size, 0))
        return [np.broadcast_to(part, (_TRIES,)) for part in out]

    def broken(self) -> str | None:
        """An example of numbers for which it is not associative, or its identity is none."""
        with np.errstate(all="ignore"):
            return self._neutral() or self._associative()

    def _neutral(self) -> str | None:
        nothing = [np.broadcast_to(constant(i, working), (_TRIES,)) for i in self.combiner.identity]
        for x in (nothing, *(x for three in self.elements for x in three)):
            for left, right in ((nothing, x), (x, nothing)):
                found = self.of(left, right)
                if (at := self._differ(found, x, strict=True)) is not None:
                    return f"combine({_shown(left, at)}, {_shown(right, at)}) is {_shown(found, at)}"
        return None

    def _associative(self) -> str | None:
        for a, b, c in self.elements:
            one, other = self.of(self.of(a, b), c), self.of(a, self.of(b, c))
            if (at := self._differ(one, other)) is not None:
                x, y, z = (_shown(t, at) for t in (a, b, c))
                return f"combine(combine({x}, {y}), {z}) is {_shown(one, at)}, and combine({x}, combine({y}, {z})) is {_shown(other, at)}"
        return None

    def commutes(self) -> bool:
        with np.errstate(all="ignore"):
            return all(self._differ(self.of(a, b), self.of(b, a)) is None for a, b, _ in self.elements)

    def _differ(self, one: Element, other: Element, strict: bool = False) -> int | None:
        """Where two elements are not the same up to rounding. What is not finite says nothing, unless it is `strict`."""
        for x, y in zip(one, other, strict=True):
            if kind(x.dtype.name) != "float":
                apart = x != y
            else:
                near = np.abs(x - y) <= _NEAR * (1 + np.maximum(self.largest, np.abs(np.where(np.isfinite(y), y, 0))))
                apart = ~(near | (x == y) | (np.isnan(x) & np.isnan(y)))
                apart &= np.isfinite(y) | (x != y) if strict else np.isfinite(x) & np.isfinite(y)
            if apart.any():
                return int(np.argmax(apart))
        return None


def _shown(e: Element, at: int) -> str:
    parts = [f"{part[at].item():.6g}" if part.dtype.kind == "f" else str(part[at].item()) for part in e]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


__all__ = ["Laws"]
