"""Running an expression on tensors through the interpreter, with fixed or symbolic extents."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.extent import symbol


def declared(array: np.ndarray, symbolic: bool = False) -> fl.Spec:
    """The Spec of an array; symbolic extents are called after their size, so that equal sizes agree."""
    extents = tuple(symbol(f"s{n}") if symbolic and n > 1 else n for n in array.shape)
    return fl.Spec(array.dtype.name, tuple("abcdef"[: array.ndim]), extents)


def graph_of(fn: Callable[..., Any], *arrays: Any, symbolic: bool = False) -> fl.Graph:
    given = [np.asarray(a) for a in arrays]
    operands = [n for n, p in inspect.signature(fn).parameters.items() if p.default is inspect.Parameter.empty]
    specs = {n: declared(a, symbolic) for n, a in zip(operands, given, strict=True)}
    return fl.trace(fn, inputs=specs)


def run(fn: Callable[..., Any], *arrays: Any, symbolic: bool = False) -> Any:
    return graph_of(fn, *arrays, symbolic=symbolic).run(*map(np.asarray, arrays))


def both(fn: Callable[..., Any], *arrays: Any) -> Any:
    """The result, which is the same with fixed and with symbolic extents, up to the order of sums."""
    fixed, free = run(fn, *arrays), run(fn, *arrays, symbolic=True)
    assert fixed.dtype == free.dtype
    np.testing.assert_allclose(fixed, free, *((1e-6, 1e-6) if fixed.dtype.kind == "f" else (0, 0)))
    return fixed


def near(got: Any, want: Any, tolerance: float = 2e-6) -> None:
    want = np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def same(got: Any, want: Any) -> None:
    want = np.asarray(want)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def refusal(fn: Callable[..., Any], *arrays: Any, symbolic: bool = False) -> fl.Problem:
    with pytest.raises(fl.AlgorithmError) as caught:
        graph_of(fn, *arrays, symbolic=symbolic)
    (problem,) = caught.value.problems
    return problem


def numbers(*shape: int, seed: int = 0, dtype: str = "float32") -> np.ndarray:
    generator = np.random.default_rng(seed)
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if "int" in dtype:
        return generator.integers(0 if dtype.startswith("u") else -9, 10, shape).astype(dtype)
    if dtype.startswith("complex"):
        return (generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(dtype)
    return generator.standard_normal(shape).astype(dtype)


def complex_numbers(*shape: int, seed: int = 0, dtype: str = "complex64") -> np.ndarray:
    return numbers(*shape, seed=seed, dtype=dtype)
