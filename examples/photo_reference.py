"""The photo pipeline in SciPy and scikit-image, for comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import ndimage  # type: ignore[import-untyped]
from skimage.feature import corner_peaks  # type: ignore[import-untyped]

Image = np.ndarray[Any, np.dtype[np.float32]]


def unsharp(image: Image, amount: float) -> Image:
    soft = ndimage.uniform_filter(image, 3, mode="nearest")
    return np.clip(image + np.float32(amount) * (image - soft), 0, 1)


def harris(image: Image) -> Image:
    gx = ndimage.correlate1d(image, [-1, 0, 1], axis=1, mode="nearest")
    gy = ndimage.correlate1d(image, [-1, 0, 1], axis=0, mode="nearest")
    xx, yy, xy = (9 * ndimage.uniform_filter(p, 3, mode="nearest") for p in (gx * gx, gy * gy, gx * gy))
    return xx * yy - xy**2 - np.float32(0.04) * (xx + yy) ** 2  # type: ignore[no-any-return]


def peaks(corners: Image) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Row and column of the strongest corners, strongest first."""
    return corner_peaks(corners, min_distance=8, threshold_rel=0.1, num_peaks=60)  # type: ignore[no-any-return]
