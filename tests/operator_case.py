"""What a case of an operator is: the operator beside its NumPy counterpart, and how operands and options are drawn.

A case draws its shapes and options from a `Chooser`, so that hypothesis explores them and a compiled test can take a few for good.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

Shape = tuple[int, ...]
Array = np.ndarray[Any, Any]
EXTENTS = (0, 1, 2, 3, 5, 7)
NAMES = "xyzwuv"
FLOATS = ("float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = (*FLOATS, *INTEGERS)
ALL = (*NUMBERS, "bool")


class Chooser(Protocol):
    """Where choices come from."""

    def of(self, options: Sequence[Any]) -> Any: ...
    def number(self, low: int, high: int) -> int: ...


@dataclass
class Seeded:
    """Choices of one seed."""

    generator: random.Random
    nonempty: bool = True

    def of(self, options: Sequence[Any]) -> Any:
        return self.generator.choice([o for o in options if o != 0 or not self.nonempty or isinstance(o, bool)] or options)

    def number(self, low: int, high: int) -> int:
        return self.generator.randint(low, high)


@dataclass(frozen=True)
class Case:
    """`call` in the language and `oracle` in NumPy take the same operands and options.

    The oracle computes float32 in float64 unless it is `native`; its result is rounded to the type that the language gives.
    """

    name: str
    call: Callable[..., Any]
    oracle: Callable[..., Any]
    shapes: Callable[[Chooser], tuple[Shape, ...]]
    options: Callable[[Chooser, tuple[Shape, ...]], dict[str, Any]] = lambda _, __: {}
    dtypes: tuple[str, ...] = NUMBERS
    values: str = "any"
    native: bool = False


def algorithm(case: Case, count: int, options: dict[str, Any]) -> Callable[..., Any]:
    """The case as a function of `count` inputs x, y, ..., which fl.trace takes."""

    def applied(**operands: Any) -> Any:
        return case.call(*operands.values(), **options)

    parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in NAMES[:count]]
    applied.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return applied


def wanted(case: Case, arrays: Sequence[Array], options: dict[str, Any], dtype: str) -> Array:
    """What NumPy says, in the type of the result."""
    given = arrays if case.native else [a.astype(np.float64) if a.dtype == np.float32 else a for a in arrays]
    with np.errstate(all="ignore"):
        found = np.asarray(case.oracle(*given, **options))
        return found if found.dtype == dtype else np.asarray(found).astype(dtype)


# ---------------------------------------------------------------- operands
def shape(c: Chooser, least: int = 0, most: int = 5, extents: Sequence[int] = EXTENTS) -> Shape:
    rank = c.number(least, most)
    return tuple(c.of(extents if rank < 4 else [n for n in extents if n < 4]) for _ in range(rank))


def one(c: Chooser, least: int = 0, most: int = 5) -> tuple[Shape, ...]:
    return (shape(c, least, most),)


def vector(c: Chooser) -> tuple[Shape, ...]:
    return one(c, 1, 1)


def filled(c: Chooser, least: int = 1, most: int = 5) -> tuple[Shape, ...]:
    """No extent of 0."""
    return (shape(c, least, most, EXTENTS[1:]),)


def spread(count: int, least: int = 0) -> Callable[[Chooser], tuple[Shape, ...]]:
    """Shapes that broadcast: of each some axes in front are left out, and some are 1."""

    def drawn(c: Chooser) -> tuple[Shape, ...]:
        whole = shape(c, least)
        parts = []
        for k in range(count):
            cut = c.number(0, len(whole) - least) if k else 0
            parts.append(tuple(1 if c.number(0, 3) == 0 else n for n in whole[cut:]))
        return tuple(parts)

    return drawn


def matrices(c: Chooser) -> tuple[Shape, ...]:
    return one(c, 2, 4)


def axes(c: Chooser, shapes: tuple[Shape, ...]) -> dict[str, Any]:
    """None, one axis or several, from either end."""
    rank = len(shapes[0])
    if not rank or c.number(0, 3) == 0:
        return {"axis": None, "keepdims": c.of((False, True))}
    chosen = [d for d in range(rank) if c.number(0, 1)] or [c.number(0, rank - 1)]
    signed = [d - rank if c.number(0, 1) else d for d in chosen]
    return {"axis": signed[0] if len(signed) == 1 else tuple(signed), "keepdims": c.of((False, True))}


def axis(c: Chooser, shapes: tuple[Shape, ...]) -> dict[str, Any]:
    rank = len(shapes[0])
    return {"axis": c.number(-rank, rank - 1)}


def values(dtype: str, shape: Shape, domain: str, seed: int) -> Array:
    """Operands of a type: for floats with infinities, NaN and zeros of both signs among them where the domain is "any"."""
    g = np.random.default_rng(seed)
    if dtype == "bool":
        return g.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        wide = g.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        near = g.integers(0 if dtype.startswith("u") else -5, 6, shape).astype(dtype)
        few = np.where(g.random(shape) < 0.3, wide, near)
        return {"positive": np.abs(near) + 1, "small": near, "unit": near // 5, "bits": np.abs(near)}.get(domain, few).astype(dtype)
    x = g.standard_normal(shape) * 10.0 ** g.integers(-2, 2, shape)
    special = g.choice([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 1e30, 1e-30], shape)
    match domain:
        case "any":
            x = np.where(g.random(shape) < 0.15, special, x)
        case "positive":
            x = np.abs(x) + 0.01
        case "unit":
            x = np.tanh(x)
        case "small":
            x = np.clip(x, -3, 3)
    return x.astype(dtype)
