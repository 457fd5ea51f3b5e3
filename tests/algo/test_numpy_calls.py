"""NumPy beside tensors: its numbers and arrays are operands, its functions are refused with the name to use."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest


@pytest.mark.parametrize(
    ("call", "asked", "hint"),
    [
        (lambda x: fl.stage(lambda i: np.sqrt(x[i])), "np.sqrt", "fl.sqrt"),
        (np.mean, "np.mean", "fl.mean"),
        (lambda x: np.concatenate([x, x]), "np.concatenate", "fl.concatenate"),
        (lambda x: np.clip(x, 0, 1), "np.clip", "fl.clamp"),
        (np.arccos, "np.arccos", "fl.acos"),
        (np.add.reduce, "np.add.reduce", None),
        (np.fft.fft, "np.fft", None),
    ],
)
def test_functions_of_numpy_are_refused(call: Callable[..., Any], asked: str, hint: str | None) -> None:
    with pytest.raises(fl.AlgorithmError) as caught:
        fl.trace(lambda x: call(x), inputs={"x": fl.f32("n")})
    (problem,) = caught.value.problems
    assert problem.code == "A103" and problem.asked.startswith(f"{asked} of")
    assert hint is None or problem.try_ == (f"{hint}(...)",)


def test_operators_take_numpys_operands_from_either_side() -> None:
    row = np.arange(3, dtype=np.float32)

    def both(x: Any) -> Any:
        inside = fl.stage(lambda i: np.float32(3) * x[i] - x[i] / np.float32(2))
        return (row + x) * (x - row), np.float32(2) ** x, inside, row < x, x < row

    x = np.array([0.5, 1.5, 1.0], np.float32)
    found = fl.trace(both, inputs={"x": fl.f32(3)}).run(x)
    for a, b in zip(found, ((row + x) * (x - row), np.float32(2) ** x, 3 * x - x / 2, row < x, x < row), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize(
    ("use", "code", "hint"),
    [
        (lambda x: float(x[0]), "A103", "the tensor itself"),
        (lambda x: [x] * int(x[0]), "A103", "the tensor itself"),
        (lambda x: [1, 2][x[0]], "A103", "the tensor itself"),
        (lambda x: fl.stage(lambda i: math.sin(x[i])), "A103", "the expression itself"),
        (np.asarray, "A103", "fl.stack"),
        (lambda x: np.float32(x[0]), "A103", "the tensor itself"),
        (lambda x: fl.asarray([x[0], x[1]]), "A103", "fl.stack"),
        (lambda x: x.__setitem__(0, 1), "A106", "fl.scatter"),
        (lambda x: min(x[0], x[1]), "A102", "@fl.function"),
    ],
)
def test_a_tensor_where_python_needs_a_value(use: Callable[..., Any], code: str, hint: str) -> None:
    with pytest.raises(fl.AlgorithmError) as caught:
        fl.trace(lambda x: use(x), inputs={"x": fl.f32(3)})
    (problem,) = caught.value.problems
    assert problem.code == code and any(hint in t for t in problem.try_)
