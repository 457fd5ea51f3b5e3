"""A picture under a large filter, as a product of frequencies: what is outside the picture is its other side."""

from __future__ import annotations

from typing import Any

import fluorite as fl

SIDE = 256  # pixels


def fft_convolution(image: fl.f32[fl.Tensor, "y=256", "x=256"], filter: fl.f32[fl.Tensor, "y=256", "x=256"]) -> fl.Tensor:
    """The middle of the filter is its element (0, 0)."""
    a, b = _frequencies(image, "image"), _frequencies(filter, "filter")

    def product(y: Any, k: Any, part: Any) -> Any:
        real, imaginary = a[y, k, 0] * b[y, k, 0] - a[y, k, 1] * b[y, k, 1], a[y, k, 0] * b[y, k, 1] + a[y, k, 1] * b[y, k, 0]
        return fl.where(part == 0, real, imaginary)

    multiplied = fl.stage(product, name="product", extents={"part": 2})
    return fl.irfft(fl.ifft(multiplied, axis=0, name="back_y"), SIDE, axis=1, name="back_x")


def _frequencies(image: fl.Tensor, name: str) -> fl.Tensor:
    return fl.fft(fl.rfft(image, axis=1, name=f"{name}_x"), axis=0, name=f"{name}_y")
