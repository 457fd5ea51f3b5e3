"""A picture under a large filter, as a product of frequencies: what is outside the picture is its other side."""

from __future__ import annotations

import fluorite as fl

SIDE = 256  # pixels


def fft_convolution(image: fl.f32[fl.Tensor, "y=256", "x=256"], filter: fl.f32[fl.Tensor, "y=256", "x=256"]) -> fl.Tensor:
    """The middle of the filter is its element (0, 0)."""
    a, b = (fl.fft(fl.rfft(t, axis=1, name=f"{name}_x"), axis=0, name=f"{name}_y") for name, t in (("image", image), ("filter", filter)))
    product = fl.multiply(a, b, name="product")
    return fl.irfft(fl.ifft(product, axis=0, name="back_y"), SIDE, axis=1, name="back_x")
