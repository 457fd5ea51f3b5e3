"""The other applications in SciPy and Pillow where these have the operation, else in NumPy: what the compiled ones are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image as Picture
from scipy import ndimage, signal  # type: ignore[import-untyped]

from .settings import COARSER, COEFFICIENTS, LOBES, PYRAMID, RADIUS, REACH, SHADES, SHIFTS, SMALLER

Array = np.ndarray[Any, Any]
F32 = np.float32


def interpolate(image: Array) -> Array:
    whole = np.concatenate([image[:3] * image[3], image[3:]]).astype(np.float64)
    known = [whole]
    for _ in range(1, PYRAMID):
        known.append(_smooth_half(_smooth_half(known[-1], 2), 1))
    filled = known[-1]
    for a in reversed(known[:-1]):
        up = filled
        for axis, n in ((1, a.shape[1]), (2, a.shape[2])):
            i = np.arange(n)
            up = (np.take(up, i // 2, axis) + np.take(up, np.minimum((i + 1) // 2, up.shape[axis] - 1), axis)) / 2
        filled = a + (1 - a[3]) * up
    return (filled[:3] / filled[3]).astype(F32)


def _smooth_half(a: Array, axis: int) -> Array:
    n = a.shape[axis]
    smooth = ndimage.correlate1d(a, np.array([0.25, 0.5, 0.25]), axis=axis, mode="nearest")
    last = np.take(a, [n - 1], axis)
    even = np.take(smooth, range(0, n, 2), axis)
    if n % 2:
        return even
    beyond = 0.25 * last + 0.75 * last  # one past the end, where there is the last pixel alone
    return np.concatenate([even, beyond], axis)


def lens_blur(left: Array, right: Array, focus: Array, strength: Array) -> Array:
    _, h, w = left.shape
    x = np.arange(w)
    cost = np.stack([np.abs(left - right[:, :, np.maximum(x - z, 0)]).sum(0, dtype=np.float64) for z in range(SHIFTS)])
    sure = cost.var(0) + 1e-6
    levels = [np.concatenate([cost, np.ones((1, h, w))]) * sure]
    for _ in range(1, COARSER):
        a = np.pad(levels[-1], ((0, 0), (0, levels[-1].shape[1] % 2), (0, levels[-1].shape[2] % 2)), mode="edge")
        levels.append(a.reshape(len(a), a.shape[1] // 2, 2, a.shape[2] // 2, 2).mean((2, 4)))
    smooth = levels[-1]
    for a in reversed(levels[:-1]):
        up = smooth
        for axis, n in ((1, a.shape[1]), (2, a.shape[2])):
            i = np.arange(n)
            other = np.clip(i // 2 - 1 + 2 * (i % 2), 0, up.shape[axis] - 1)
            up = 0.25 * np.take(up, other, axis) + 0.75 * np.take(up, i // 2, axis)
        smooth = (a + up) / 2
    depth = np.argmin(smooth[:SHIFTS] / smooth[SHIFTS], 0)
    reach = np.minimum(np.abs(depth.astype(F32) - focus) * strength, F32(REACH)) ** 2
    far, colour = np.pad(reach, REACH, mode="edge"), np.pad(left, ((0, 0), (REACH, REACH), (REACH, REACH)), mode="edge")
    total, count = np.zeros(left.shape), np.zeros((h, w))
    for dy in range(2 * REACH + 1):
        for dx in range(2 * REACH + 1):
            arrives = (dy - REACH) ** 2 + (dx - REACH) ** 2 <= far[dy : dy + h, dx : dx + w]
            total += arrives * colour[:, dy : dy + h, dx : dx + w]
            count += arrives
    return (total / count).astype(F32)


def max_filter(image: Array) -> Array:
    y, x = np.mgrid[-RADIUS : RADIUS + 1, -RADIUS : RADIUS + 1]
    return ndimage.maximum_filter(image, footprint=y * y + x * x <= RADIUS * RADIUS, mode="nearest")  # type: ignore[no-any-return]


def fft_convolution(image: Array, filter: Array) -> Array:
    found = np.fft.irfft2(np.fft.rfft2(image) * np.fft.rfft2(filter), image.shape)
    return found.astype(F32)  # type: ignore[no-any-return]


def hist(image: Array) -> Array:
    colour = image.astype(F32)
    luma = (F32(0.299) * colour[0] + F32(0.587) * colour[1] + F32(0.114) * colour[2] + F32(0.5)).astype(np.uint8)
    below = np.cumsum(np.bincount(luma.ravel(), minlength=SHADES))
    spread = below.astype(F32) * (F32(SHADES - 1) / F32(below[-1]))
    return np.clip(spread[luma] + (colour - luma), 0, 255).astype(np.uint8)


def iir_blur(image: Array, alpha: Array) -> Array:
    a, out = float(alpha), image.astype(np.float64)
    for axis in (1, 2):
        for _ in range(2):  # there, and back on what was turned round
            first = np.take(out, [0], axis) * (1 - a)
            out = np.flip(signal.lfilter([a], [1, a - 1], out, axis=axis, zi=first)[0], axis)
    return out.astype(F32)


def wavelet(image: Array, threshold: Array) -> Array:
    h, w = (n // 2 * 2 for n in image.shape)
    rows, columns = _analysis(h), _analysis(w)
    bands = rows @ image[:h, :w].astype(np.float64) @ columns.T
    keep = np.zeros((h, w), bool)
    keep[: h // 2, : w // 2] = True
    quiet = np.sign(bands) * np.maximum(np.abs(bands) - float(threshold), 0)
    return (rows.T @ np.where(keep, bands, quiet) @ columns).astype(F32)  # type: ignore[no-any-return]


def _analysis(n: int) -> Array:
    """The transform of n elements as an orthogonal matrix: sums in its first half, differences in its second."""
    d0, d1, d2, d3 = COEFFICIENTS
    matrix = np.zeros((n, n))
    for i in range(n // 2):
        for k, (low, high) in enumerate(((d0, d3), (d1, -d2), (d2, d1), (d3, -d0))):
            matrix[i, (2 * i + k) % n] += low
            matrix[n // 2 + i, (2 * i + k) % n] += high
    return matrix


def resize(image: Array) -> Array:
    assert LOBES == 3  # Pillow's filter
    to, of = SMALLER
    tall, wide = (n * to // of for n in image.shape[1:])
    box = (0, 0, wide * of / to, tall * of / to)
    planes = [np.asarray(Picture.fromarray(plane).resize((wide, tall), Picture.Resampling.LANCZOS, box)) for plane in image]
    return np.stack(planes)
