"""Gradients beside finite differences in float64, along random directions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import fluorite as fl
import numpy as np
from fluorite.algo.extent import symbol
from fluorite.algo.trace import build_stage

Array = np.ndarray[Any, Any]


def weight_at(*position: Any) -> Any:
    """The argument of the cosine that is the weight of an element."""
    return sum(((k + 1.3) * p for k, p in enumerate(position)), 0.4)


def weighted(fn: Callable[..., Any]) -> Callable[..., Any]:
    """fn's float results as one number: each element times a weight that follows from its position, summed."""

    def loss(*args: Any) -> Any:
        results = fn(*args)
        total: Any = 0.0
        for r in results if isinstance(results, list | tuple) else [results]:
            if "float" in str(r.dtype):
                names = "uvwpqr"[: r.ndim]
                extents = dict(zip(names, r.shape, strict=True))
                part = build_stage(
                    list(names),
                    lambda *i, r=r: (r[i] if i else r.as_scalar()) * fl.cast(fl.cos(_double(weight_at(*map(_double, i)))), r.dtype),
                    name="weighted",
                    extents=extents,
                )
                total = total + fl.sum(part)
        return total

    return loss


def _double(e: Any) -> Any:
    """Weights that cancel each other need all digits."""
    return fl.cast(e, "float64")


def weighed(results: Any) -> float:
    """The same number of NumPy's arrays."""
    return sum(float(np.sum(r * np.cos(weight_at(*np.indices(r.shape))))) for r in floats_of(results))


def noise(results: Any, step: float) -> float:
    """What rounding alone may make of a difference quotient."""
    return 8 * float(np.finfo(np.float64).eps) * sum(float(np.sum(np.abs(r))) for r in floats_of(results)) / step


def floats_of(results: Any) -> list[Array]:
    return [np.asarray(r) for r in (results if isinstance(results, list | tuple) else [results]) if np.asarray(r).dtype.kind == "f"]


def declared(array: Array, symbolic: bool = False) -> fl.Spec:
    """The Spec of an array; symbolic extents are called after their size, so that equal sizes agree."""
    extents = tuple(symbol(f"s{n}") if symbolic and n > 1 else n for n in array.shape)
    return fl.Spec(array.dtype.name, tuple("abcdef"[: array.ndim]), extents)


def traced(fn: Callable[..., Any], arrays: Sequence[Array], symbolic: bool = False) -> fl.Graph:
    names = "abcdefgh"[: len(arrays)]

    def model(**operands: Any) -> Any:
        return fn(*operands.values())

    model.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
    )
    return fl.trace(model, inputs={n: declared(a, symbolic) for n, a in zip(names, arrays, strict=True)})


def check_gradient(
    fn: Callable[..., Any], *arrays: Array, seed: int = 0, step: float = 1e-6, tolerance: float = 1e-5, symbolic: bool = False
) -> fl.Graph:
    """Compares the gradient of fn by its float operands with central differences; returns the gradient's graph."""
    g = np.random.default_rng(seed)
    forward = traced(fn, arrays, symbolic)
    places = tuple(k for k, a in enumerate(arrays) if a.dtype.kind == "f")
    graph = traced(fl.grad(positional(weighted(fn), len(arrays)), places), arrays, symbolic)
    found = graph.run(*arrays)
    for _ in range(2):
        directions = [g.standard_normal(arrays[k].shape) for k in places]

        def at(t: float, directions: list[Array] = directions) -> float:
            moved = list(arrays)
            for k, d in zip(places, directions, strict=True):
                moved[k] = arrays[k] + t * d
            return weighed(forward.run(*moved))

        numeric = (at(step) - at(-step)) / (2 * step)
        analytic = sum(float(np.sum(f * d)) for f, d in zip(found, directions, strict=True))
        rounding = noise(forward.run(*arrays), step)
        scale = 1 + sum(float(np.sum(np.abs(f * d))) for f, d in zip(found, directions, strict=True))
        assert abs(numeric - analytic) <= tolerance * scale + rounding, (numeric, analytic)
    return graph


def positional(fn: Callable[..., Any], count: int) -> Callable[..., Any]:
    """fn under a signature of so many arguments."""

    def call(*args: Any) -> Any:
        return fn(*args)

    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in "abcdefgh"[:count]]
    )
    return call
