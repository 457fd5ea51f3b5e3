"""What each application is given: a photograph that scikit-image ships, as the application takes it."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image as Picture
from skimage import data  # type: ignore[import-untyped]

from .settings import SIDE

Array = np.ndarray[Any, Any]
SIZES = {"camera": (324, 472)}
"""Rows and columns of the photograph, where they are not its own."""


def cat(h: int, w: int) -> Array:
    """Three colours from 0 to 1."""
    picture = Picture.fromarray(data.chelsea()).resize((w, h))
    return np.ascontiguousarray(np.asarray(picture, np.float32).transpose(2, 0, 1) / 255)


def inputs(name: str, h: int = 300, w: int = 451) -> tuple[Array, ...]:
    """The arguments of application `name`, for an image of h x w pixels."""
    image = cat(h, w)
    match name:
        case "stencil_chain":
            return ((image[1] * 65535).astype(np.uint16),)
        case "bilateral_grid":
            return (image[1],)
        case "nl_means":
            noise = np.random.default_rng(0).normal(0, 0.05, image.shape)
            return np.clip(image + noise.astype(np.float32), 0, 1), np.array(0.12, np.float32)
        case "camera":
            raw = np.empty((h, w), np.uint16)
            for (dy, dx), c in {(0, 0): 1, (0, 1): 0, (1, 0): 2, (1, 1): 1}.items():  # green, red; blue, green
                raw[dy::2, dx::2] = image[c, dy::2, dx::2] * 1023
            return raw, *(np.eye(3, 4, dtype=np.float32) + np.float32(share) for share in (0.05, -0.05))
        case "local_laplacian":
            return (image * 65535).astype(np.uint16), np.array(1 / 7, np.float32), np.array(1, np.float32)
        case "interpolate":
            known = np.random.default_rng(0).random((h, w)) < 0.05
            known[::16, ::16] = True
            return (np.concatenate([image, known[None]]).astype(np.float32),)
        case "lens_blur":
            moved = 2 + 10 * np.arange(h)[:, None] // h + np.zeros((1, w), int)  # the lower, the nearer
            right = np.take_along_axis(image, np.minimum(np.arange(w) + moved, w - 1)[None].repeat(3, 0), 2)
            return image, right, np.array(10, np.float32), np.array(1, np.float32)
        case "max_filter":
            return (image[1],)
        case "fft_convolution":
            y, x = np.mgrid[-SIDE // 2 : SIDE // 2, -SIDE // 2 : SIDE // 2]
            disc = (y * y + x * x <= 100).astype(np.float32)
            return cat(SIDE, SIDE)[1], np.fft.ifftshift(disc / disc.sum()).astype(np.float32)
        case "hist":
            return ((image * 128 + 32).astype(np.uint8),)
        case "iir_blur":
            return image, np.array(0.2, np.float32)
        case "wavelet":
            noise = np.random.default_rng(0).normal(0, 0.05, (h, w))
            return (image[1] + noise).astype(np.float32), np.array(0.1, np.float32)
        case "resize":
            return (image,)
    raise KeyError(name)


def differs(name: str, found: Array, wanted: Array) -> str:
    """Why a result is not the reference's, as far as the order of sums allows; nothing if it is.

    A local Laplacian reads its table at whole numbers: there rounding may move a pixel by a step or two. So it may move a depth.
    """
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return f"it is {found.dtype}{list(found.shape)}, expected {wanted.dtype}{list(wanted.shape)}"
    apart = np.abs(found.astype(np.float64) - wanted)
    most, few = (1e-5 if found.dtype == np.float32 else 0), 0.0
    if name == "local_laplacian":
        most, few = 65535 / 7 / 256 * 2, float(np.mean(apart > 1))
    if name == "lens_blur":  # of two depths that fit alike, rounding decides
        most, few = 1.0, float(np.mean(apart > 1e-5))
    return f"the largest difference is {apart.max():.3g}" if apart.max() > most or few > 1e-3 else ""


def pixels(result: Array) -> Array:
    """A result as a picture of 8 bits, rows x columns, with three colours last where it has these."""
    full = 1 if result.dtype == np.float32 else np.iinfo(result.dtype).max
    picture = np.clip(result.astype(np.float64) / full * 255 + 0.5, 0, 255).astype(np.uint8)
    return picture if picture.ndim == 2 else np.ascontiguousarray(picture.transpose(1, 2, 0))
