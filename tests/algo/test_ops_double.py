"""In float64 nothing on the way is float32, whether an extent is known or symbolic."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from gradient_checks import traced

X = np.linspace(-1.3, 2.1, 30).reshape(5, 6)
CLASSES = np.array([0, 5, 2, 3, 3], np.int32)


def smoothed(x: Any, p: Any) -> Any:
    logs = x - np.log(np.sum(np.exp(x), -1, keepdims=True))
    return np.mean(-np.sum((p * 0.9 + 0.1 / x.shape[-1]) * logs, -1))


def turned(x: Any) -> Any:
    angle = np.arange(x.shape[0])[:, None] * 10000.0 ** (-np.arange(0, x.shape[1], 2) / x.shape[1])
    first, second = np.split(x, 2, 1)
    return np.concatenate([first * np.cos(angle) - second * np.sin(angle), second * np.cos(angle) + first * np.sin(angle)], 1)


CASES: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
    "var": (lambda x: fl.var(x, correction=1.3), lambda x: x.var() * x.size / (x.size - 1.3), ()),
    "std": (lambda x: fl.std(x, axis=1, correction=0.7), lambda x: np.sqrt(x.var(1) * 6 / (6 - 0.7)), ()),
    "classes": (lambda x, y: fl.cross_entropy(x, y, label_smoothing=0.1), lambda x, y: smoothed(x, np.eye(6)[y]), (CLASSES,)),
    "probabilities": (lambda x, y: fl.cross_entropy(x, y, label_smoothing=0.1), smoothed, (np.full(X.shape, 1 / 6),)),
    "arange": (
        lambda x: x + fl.expand_dims(fl.arange(0.1, 0.69, 0.1, "float64"), 0),
        lambda x: x + (0.1 + np.arange(6) * 0.1),
        (),
    ),
    "rotary": (fl.rotary, turned, ()),
}


@pytest.mark.parametrize("name,symbolic", [(n, s) for n in CASES for s in (False, True) if not s or n not in ("arange", "rotary")])
def test_every_digit(name: str, symbolic: bool) -> None:
    fn, wanted, more = CASES[name]
    found = traced(fn, (X, *more), symbolic).run(X, *more)
    np.testing.assert_allclose(found, wanted(X, *more), rtol=2e-15, atol=1e-15)
