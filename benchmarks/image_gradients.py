"""Gradients of image filters by their pixels and weights: data, and what NumPy says of them in float64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

Array = np.ndarray[Any, Any]
Data = Mapping[str, Array]
F32 = np.float32
TAPS = 9
"""Weights of the learned blur along one axis."""
REACH = 2
"""Pixels that the bilateral filter looks at on each side."""
SAMPLE = np.s_[::37, ::41]
"""Pixels whose gradient is compared."""


def flat(gradients: Mapping[str, Any]) -> Array:
    """The gradients in one row, with some of the pixels, of which each has its share of the mean: times their number."""
    return np.concatenate([np.ravel(g[SAMPLE] * F32(g.size) if name == "image" else g) for name, g in gradients.items()])


# ---------------------------------------------------------------- unsharp mask
def unsharp_data(r: np.random.Generator) -> Data:
    image = r.random((1024, 1024), F32)
    weights = r.random(TAPS, F32) + F32(0.5)
    return {"image": image, "target": r.random(image.shape, F32), "weights": weights / weights.sum(), "amount": np.array(0.7, F32)}


def unsharp(d: Data) -> Array:
    """Of the mean squared error of an unsharp mask, by the image, the weights of its blur and its amount."""
    x, target, w, amount = (d[k].astype(np.float64) for k in ("image", "target", "weights", "amount"))
    across, rows = _correlated(x, w, 1)
    down, soft = _correlated(rows, w, 0)
    g = 2 * (x + amount * (x - soft) - target) / x.size
    by_rows, by_w = _uncorrelated(-amount * g, down, w, 0)
    by_x, more = _uncorrelated(by_rows, across, w, 1)
    return flat({"image": (1 + amount) * g + by_x, "weights": by_w + more, "amount": (g * (x - soft)).sum()})


def _correlated(x: Array, w: Array, axis: int) -> tuple[Array, Array]:
    """(windows of x along the axis, the last pixels repeated beyond it; their products with w)."""
    margin = [(TAPS // 2, TAPS // 2) if d == axis else (0, 0) for d in range(2)]
    windows = sliding_window_view(np.pad(x, margin, mode="edge"), TAPS, axis)  # type: ignore[call-overload]
    return windows, windows @ w


def _uncorrelated(g: Array, windows: Array, w: Array, axis: int) -> tuple[Array, Array]:
    """The gradients by x and by w."""
    n = g.shape[axis]
    by_x = np.zeros_like(g)
    for k in range(TAPS):
        np.add.at(by_x, (slice(None),) * axis + (np.clip(np.arange(n) + k - TAPS // 2, 0, n - 1),), w[k] * g)
    return by_x, np.einsum("yxk,yx->k", windows, g)


# ---------------------------------------------------------------- bilateral filter
def bilateral_data(r: np.random.Generator) -> Data:
    image, side = r.random((512, 512), F32), 2 * REACH + 1
    return {"image": image, "target": r.random(image.shape, F32), "near": r.random((side, side), F32) + F32(0.5), "tone": np.array(3, F32)}


def bilateral(d: Data) -> Array:
    """Of the mean squared error of a bilateral filter, by the image, the weights of neighbours and how much tone counts."""
    x, target, near, tone = (d[k].astype(np.float64) for k in ("image", "target", "near", "tone"))
    at = [np.clip(np.arange(n)[:, None] + np.arange(-REACH, REACH + 1), 0, n - 1) for n in x.shape]
    places = [(j, i, np.ix_(at[0][:, j], at[1][:, i])) for j in range(near.shape[0]) for i in range(near.shape[1])]
    like = {(j, i): np.exp(-tone * (x[p] - x) ** 2) for j, i, p in places}
    total = sum(near[j, i] * like[j, i] for j, i, _ in places)
    found = sum(near[j, i] * like[j, i] * x[p] for j, i, p in places) / total
    g = 2 * (found - target) / x.size / total
    by_x, by_near, by_tone = np.zeros_like(x), np.zeros_like(near), 0.0
    for j, i, p in places:
        weight = near[j, i] * like[j, i]
        apart, by_weight = x[p] - x, g * (x[p] - found)
        by_near[j, i] = (by_weight * like[j, i]).sum()
        by_tone -= (by_weight * weight * apart**2).sum()
        by_apart = -2 * tone * by_weight * weight * apart
        by_x -= by_apart
        np.add.at(by_x, p, by_apart + g * weight)
    return flat({"image": by_x, "near": by_near, "tone": by_tone})


__all__ = ["REACH", "SAMPLE", "TAPS", "bilateral", "bilateral_data", "flat", "unsharp", "unsharp_data"]
