"""Gradients compiled, several in one graph, against the interpreter's meaning within the derived bound."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.extent import symbol
from fluorite.algo.numerics import compare
from gradient_cases import OPERATORS
from gradient_checks import positional, weighted

FLOAT64 = ("recurrence of two delays",)
"""Cases that say their type."""
CASES = [n for n in OPERATORS if n not in FLOAT64]
SYMBOLIC = [
    "conv1d", "edge", "wrap", "gaussian", "softmax", "cross_entropy", "instance_norm", "scatter_add", "sort", "cumulative_max", "attention",
    "scan, every step", "resize",
]  # fmt: skip


def gradient(fn: Callable[..., Any], arrays: Sequence[np.ndarray]) -> Callable[..., Any]:
    """The value and the gradient of fn, made one number, by its float operands."""
    return fl.value_and_grad(positional(weighted(fn), len(arrays)), tuple(k for k, a in enumerate(arrays) if a.dtype.kind == "f"))


def together(names: Sequence[str], symbolic: bool) -> tuple[fl.Graph, list[np.ndarray]]:
    """All gradients of some cases as one graph in float32, and its operands."""
    inputs: dict[str, fl.Spec] = {}
    operands: list[np.ndarray] = []
    calls: list[tuple[Callable[..., Any], list[str]]] = []
    for k, name in enumerate(names):
        fn, given = OPERATORS[name]
        arrays = [a.astype(np.float32) if a.dtype == np.float64 else a for a in given]
        mine = [f"x{k}_{n}" for n in range(len(arrays))]
        for key, a in zip(mine, arrays, strict=True):
            extents = tuple(symbol(f"s{k}_{n}") if symbolic and n > 1 else n for n in a.shape)
            inputs[key] = fl.Spec(a.dtype.name, tuple("abcdef"[: a.ndim]), extents)
        operands += arrays
        calls.append((gradient(fn, arrays), mine))

    def everything(**values: Any) -> list[Any]:
        return [call(*(values[n] for n in mine)) for call, mine in calls]

    everything.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in inputs]
    )
    return fl.trace(everything, inputs=inputs), operands


@pytest.mark.parametrize("part", range(6))
def test_gradients_compiled_are_what_they_mean(part: int) -> None:
    graph, operands = together(CASES[part::6], symbolic=False)
    wrong = [r.text() for r in compare(graph, None, tuple(operands), fl.compile(graph)(*operands)) if not r.ok]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("part", range(2))
def test_gradients_of_symbolic_extents_compiled(part: int) -> None:
    graph, operands = together(SYMBOLIC[part::2], symbolic=True)
    wrong = [r.text() for r in compare(graph, None, tuple(operands), fl.compile(graph)(*operands)) if not r.ok]
    assert not wrong, "\n".join(wrong)


def test_a_sum_that_data_picks_one_element_of() -> None:
    """Vectors of partial results along the picked axis would be a scatter."""

    def pick(x: fl.f32[fl.Tensor, "n", "m"], y: fl.i32[fl.Tensor, "n"]):
        return fl.stage(lambda i: fl.sum(lambda j: fl.where(j == y[i], x[i, j] * 2, 0)))

    x, y = np.random.default_rng(0).standard_normal((3, 70)).astype(np.float32), np.array([0, 69, 5], np.int32)
    np.testing.assert_array_equal(fl.compile(pick)(x, y), 2 * x[np.arange(3), y])
