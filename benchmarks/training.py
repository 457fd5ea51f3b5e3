"""Training steps: networks, data and what NumPy says of the first losses, which a step gets right only if all gradients and updates are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

Array = np.ndarray[Any, Any]
Data = Mapping[str, Array]
F32 = np.float32
RATES = {"SGD": 0.01, "Adam": 1e-5}
"""Learning rates: so small that the loss stays away from 0 while steps are timed, for arithmetic on vanishing gradients is slow."""
STEPS = 3
"""Steps whose losses are compared; what is timed are the steps after them."""
MLP = (784, 512, 512, 10)
DEEP = (*(512,) * 30, 10)
CHANNELS = (1, 32, 64)
SIZE = 28
SEQUENCE = (100, 8, 64)
"""Steps, sequences in a batch, and the width of the input and of the state."""


def mlp_data(r: np.random.Generator) -> Data:
    return dense_data(r, MLP)


def deep_mlp_data(r: np.random.Generator) -> Data:
    return dense_data(r, DEEP)


def dense_data(r: np.random.Generator, widths: Sequence[int]) -> Data:
    out = {"x": r.standard_normal((64, widths[0]), F32), "y": r.integers(0, widths[-1], 64).astype(np.int32)}
    for k, (a, b) in enumerate(pairwise(widths)):
        out |= {f"layers.{k}/w": r.standard_normal((a, b), F32) / F32(a**0.5), f"layers.{k}/b": np.zeros(b, F32)}
    return out


def convnet_data(r: np.random.Generator) -> Data:
    out = {"x": r.standard_normal((32, CHANNELS[0], SIZE, SIZE), F32), "y": r.integers(0, 10, 32).astype(np.int32)}
    for k, (a, b) in enumerate(pairwise(CHANNELS)):
        out |= {f"convs.{k}/w": r.standard_normal((b, a, 3, 3), F32) / F32((9 * a) ** 0.5), f"convs.{k}/b": np.zeros(b, F32)}
    inner = CHANNELS[-1] * (SIZE // 4) ** 2
    return out | {"out/w": r.standard_normal((inner, 10), F32) / F32(inner**0.5), "out/b": np.zeros(10, F32)}


def lstm_data(r: np.random.Generator) -> Data:
    width = SEQUENCE[-1]
    weights = {f"layer/cells.0/{w}": r.uniform(-1, 1, (width, 4 * width)).astype(F32) / F32(width**0.5) for w in ("w_ih", "w_hh")}
    biases = {f"layer/cells.0/{b}": r.uniform(-0.1, 0.1, 4 * width).astype(F32) for b in ("b_ih", "b_hh")}
    return {"x": r.standard_normal(SEQUENCE, F32), **weights, **biases}


def lstm(d: Data) -> Array:
    """The states after every step, computed in float64."""
    w_ih, w_hh, b_ih, b_hh = (d[f"layer/cells.0/{name}"].astype(np.float64) for name in ("w_ih", "w_hh", "b_ih", "b_hh"))
    h = c = np.zeros(SEQUENCE[1:])
    out = []
    for x in d["x"]:
        i, f, g, o = np.split(x @ w_ih + b_ih + h @ w_hh + b_hh, 4, axis=1)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        out.append(h)
    return np.array(out)


def parameters(d: Data) -> dict[str, Array]:
    return {k: v.copy() for k, v in d.items() if k not in ("x", "y")}


# ---------------------------------------------------------------- what NumPy says
def losses(gradients: Callable[[dict[str, Array], Data], tuple[float, dict[str, Array]]], update: str) -> Callable[[Data], Array]:
    """The losses of the first steps, computed in float64."""

    def run(d: Data) -> Array:
        p = {k: v.astype(np.float64) for k, v in parameters(d).items()}
        first, second = ({k: np.zeros_like(a) for k, a in p.items()} for _ in range(2))
        out = []
        for step in range(1, STEPS + 1):
            loss, g = gradients(p, d)
            out.append(loss)
            for k in p:
                if update == "SGD":
                    p[k] -= RATES[update] * g[k]
                    continue
                first[k] = 0.9 * first[k] + 0.1 * g[k]
                second[k] = 0.999 * second[k] + 0.001 * g[k] ** 2
                p[k] -= RATES[update] * (first[k] / (1 - 0.9**step)) / (np.sqrt(second[k] / (1 - 0.999**step)) + 1e-8)
        return np.array(out)

    return run


def _cross_entropy(z: Array, y: Array) -> tuple[float, Array]:
    """The mean loss, and its gradient by the logits."""
    e = np.exp(z - z.max(1, keepdims=True))
    p = e / e.sum(1, keepdims=True)
    rows = np.arange(len(y))
    loss = -np.log(p[rows, y]).mean()
    p[rows, y] -= 1
    return float(loss), p / len(y)


def mlp_gradients(p: dict[str, Array], d: Data) -> tuple[float, dict[str, Array]]:
    return _dense_gradients(p, d, lambda z: np.maximum(z, 0), lambda h: h > 0)


def deep_mlp_gradients(p: dict[str, Array], d: Data) -> tuple[float, dict[str, Array]]:
    return _dense_gradients(p, d, np.tanh, lambda h: 1 - h**2)


def _dense_gradients(
    p: dict[str, Array], d: Data, activation: Callable[[Array], Array], slope: Callable[[Array], Array]
) -> tuple[float, dict[str, Array]]:
    """`slope` is the derivative of the activation, from its value."""
    inputs, h = [], d["x"].astype(np.float64)
    last = len(p) // 2 - 1
    for k in range(last + 1):
        inputs.append(h)
        h = h @ p[f"layers.{k}/w"] + p[f"layers.{k}/b"]
        h = h if k == last else activation(h)
    loss, g = _cross_entropy(h, d["y"])
    out: dict[str, Array] = {}
    for k in range(last, -1, -1):
        out |= {f"layers.{k}/w": inputs[k].T @ g, f"layers.{k}/b": g.sum(0)}
        g = (g @ p[f"layers.{k}/w"].T) * slope(inputs[k])
    return loss, out


def _windows(x: Array) -> Array:
    return sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3))  # type: ignore[no-any-return,call-overload]


def _pooled(x: Array) -> tuple[Array, Array]:
    """2x2 maxima, and which of the four each is."""
    n, c, h, w = x.shape
    cells = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)
    return cells.max(-1), cells.argmax(-1)


def _unpooled(g: Array, which: Array) -> Array:
    n, c, h, w = g.shape
    cells = (np.arange(4) == which[..., None]) * g[..., None]
    return cells.reshape(n, c, h, w, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, 2 * h, 2 * w)


def convnet_gradients(p: dict[str, Array], d: Data) -> tuple[float, dict[str, Array]]:
    h, kept = d["x"].astype(np.float64), []
    for k in range(len(CHANNELS) - 1):
        seen = _windows(h)
        z = np.einsum("nchwij,ocij->nohw", seen, p[f"convs.{k}/w"], optimize=True) + p[f"convs.{k}/b"][:, None, None]
        h, which = _pooled(np.maximum(z, 0))
        kept.append((seen, z, which))
    flat = h.reshape(len(h), -1)
    loss, g = _cross_entropy(flat @ p["out/w"] + p["out/b"], d["y"])
    out: dict[str, Array] = {"out/w": flat.T @ g, "out/b": g.sum(0)}
    back = (g @ p["out/w"].T).reshape(h.shape)
    for k in range(len(CHANNELS) - 2, -1, -1):
        seen, z, which = kept[k]
        back = _unpooled(back, which) * (z > 0)
        out |= {f"convs.{k}/w": np.einsum("nohw,nchwij->ocij", back, seen, optimize=True), f"convs.{k}/b": back.sum((0, 2, 3))}
        back = np.einsum("nohwij,ocij->nchw", _windows(back), p[f"convs.{k}/w"][:, :, ::-1, ::-1], optimize=True)
    return loss, out


__all__ = [
    "Data",
    "convnet_data",
    "convnet_gradients",
    "deep_mlp_data",
    "deep_mlp_gradients",
    "losses",
    "lstm",
    "lstm_data",
    "mlp_data",
    "mlp_gradients",
    "parameters",
]
