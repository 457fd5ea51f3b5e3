"""The published formulas in NumPy, float64, written for one parameter: a step is (w, g, state, t, rate) -> w, with t from 1 on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np

Array = np.ndarray[Any, Any]
Formula = Callable[[Array, Array, dict[str, Array], int, float], Array]


def sgd(momentum: float = 0.0, nesterov: bool = False, dampening: float = 0.0, decay: float = 0.0) -> Formula:
    def step(w: Array, g: Array, s: dict[str, Array], t: int, rate: float) -> Array:
        g = g + decay * w
        if not momentum:
            return w - rate * g
        s["v"] = momentum * s.get("v", np.zeros_like(w)) + (1 - dampening) * g
        return w - rate * (g + momentum * s["v"] if nesterov else s["v"])

    return step


def _adam_direction(g: Array, s: dict[str, Array], t: int, b1: float, b2: float, eps: float) -> Array:
    s["m"] = b1 * s.get("m", np.zeros_like(g)) + (1 - b1) * g
    s["v"] = b2 * s.get("v", np.zeros_like(g)) + (1 - b2) * g**2
    return (s["m"] / (1 - b1**t)) / (np.sqrt(s["v"] / (1 - b2**t)) + eps)


def adam(b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, decay: float = 0.0) -> Formula:
    return lambda w, g, s, t, rate: w - rate * _adam_direction(g + decay * w, s, t, b1, b2, eps)


def adamw(decay: float, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Formula:
    return lambda w, g, s, t, rate: w * (1 - rate * decay) - rate * _adam_direction(g, s, t, b1, b2, eps)


def adagrad(eps: float = 1e-10, initial: float = 0.0) -> Formula:
    def step(w: Array, g: Array, s: dict[str, Array], t: int, rate: float) -> Array:
        s["a"] = s.get("a", np.full_like(w, initial)) + g**2
        return w - rate * g / (np.sqrt(s["a"]) + eps)

    return step


def rmsprop(rho: float = 0.99, eps: float = 1e-8, momentum: float = 0.0, centered: bool = False) -> Formula:
    def step(w: Array, g: Array, s: dict[str, Array], t: int, rate: float) -> Array:
        s["a"] = rho * s.get("a", np.zeros_like(w)) + (1 - rho) * g**2
        s["mean"] = rho * s.get("mean", np.zeros_like(w)) + (1 - rho) * g
        spread = s["a"] - s["mean"] ** 2 if centered else s["a"]
        s["v"] = momentum * s.get("v", np.zeros_like(w)) + g / (np.sqrt(np.maximum(spread, 0)) + eps)
        return w - rate * s["v"]

    return step


def ftrl(beta: float = 1.0, l1: float = 0.0, l2: float = 0.0) -> Formula:
    def step(w: Array, g: Array, s: dict[str, Array], t: int, rate: float) -> Array:
        n = s.get("n", np.zeros_like(w))
        sigma = (np.sqrt(n + g**2) - np.sqrt(n)) / rate
        s["z"] = s.get("z", np.zeros_like(w)) + g - sigma * w
        s["n"] = n + g**2
        away = -(s["z"] - np.sign(s["z"]) * l1) / ((beta + np.sqrt(s["n"])) / rate + l2)
        return np.where(np.abs(s["z"]) <= l1, 0.0, away)

    return step


def lamb(decay: float = 0.01, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-6) -> Formula:
    def step(w: Array, g: Array, s: dict[str, Array], t: int, rate: float) -> Array:
        d = _adam_direction(g, s, t, b1, b2, eps) + decay * w
        a, b = np.linalg.norm(w), np.linalg.norm(d)
        return w - rate * (a / b if a > 0 and b > 0 else 1.0) * d

    return step


def lars(momentum: float = 0.9, trust: float = 1e-3, decay: float = 0.0) -> Formula:
    def step(w: Array, g: Array, s: dict[str, Array], t: int, rate: float) -> Array:
        a, b = np.linalg.norm(w), np.linalg.norm(g)
        local = trust * a / (b + decay * a) if a > 0 and b > 0 else 1.0
        s["v"] = momentum * s.get("v", np.zeros_like(w)) + rate * local * (g + decay * w)
        return w - s["v"]

    return step


OPTIMIZERS: dict[str, tuple[Callable[..., Any], Formula, float]] = {
    "sgd": (lambda **o: fl.optim.SGD(0.1, **o), sgd(), 0.1),
    "momentum": (lambda **o: fl.optim.SGD(0.1, 0.9, weight_decay=0.01, **o), sgd(0.9, decay=0.01), 0.1),
    "dampened": (lambda **o: fl.optim.SGD(0.1, 0.8, dampening=0.3, **o), sgd(0.8, dampening=0.3), 0.1),
    "nesterov": (lambda **o: fl.optim.SGD(0.1, 0.9, nesterov=True, weight_decay=0.01, **o), sgd(0.9, True, decay=0.01), 0.1),
    "adam": (lambda **o: fl.optim.Adam(0.02, **o), adam(), 0.02),
    "adam_decayed": (lambda **o: fl.optim.Adam(0.02, (0.5, 0.9), 1e-3, weight_decay=0.1, **o), adam(0.5, 0.9, 1e-3, 0.1), 0.02),
    "adamw": (lambda **o: fl.optim.AdamW(0.02, weight_decay=0.1, **o), adamw(0.1), 0.02),
    "adagrad": (lambda **o: fl.optim.Adagrad(0.1, **o), adagrad(), 0.1),
    "adagrad_begun": (lambda **o: fl.optim.Adagrad(0.1, initial=0.3, **o), adagrad(initial=0.3), 0.1),
    "rmsprop": (lambda **o: fl.optim.RMSProp(0.01, **o), rmsprop(), 0.01),
    "rmsprop_centered": (
        lambda **o: fl.optim.RMSProp(0.01, 0.9, 1e-3, momentum=0.8, centered=True, **o), rmsprop(0.9, 1e-3, 0.8, True), 0.01,
    ),
    "ftrl": (lambda **o: fl.optim.FTRL(0.1, **o), ftrl(), 0.1),
    "ftrl_sparse": (lambda **o: fl.optim.FTRL(0.5, beta=0.5, l1=0.7, l2=0.2, **o), ftrl(0.5, 0.7, 0.2), 0.5),
    "lamb": (lambda **o: fl.optim.LAMB(0.02, **o), lamb(), 0.02),
    "lars": (lambda **o: fl.optim.LARS(0.5, trust=0.1, weight_decay=0.05, **o), lars(0.9, 0.1, 0.05), 0.5),
}  # fmt: skip
"""name -> (optimiser with further options, its formula, its learning rate)"""
