"""A blur as wide as one likes at the cost of four running means: down, up, to the right and to the left."""

from __future__ import annotations

from typing import Any

import fluorite as fl

CHANNELS = 3


def iir_blur(image: fl.f32[fl.Tensor, "c=3", "h", "w"], alpha: fl.f32[fl.Tensor]) -> fl.Tensor:
    """`alpha`, from 0 to 1, is the weight of the newest pixel in each running mean."""
    for axis in (1, 2):
        for reverse in (False, True):
            image = _mean(image, alpha, axis, reverse)
    return image


def _mean(image: fl.Tensor, alpha: fl.Tensor, axis: int, reverse: bool) -> fl.Tensor:
    """The first pixel is the mean to begin with."""
    _, h, w = image.shape
    last = ((h, w)[axis - 1] - 1) if reverse else 0
    names = [n for k, n in enumerate("cyx") if k != axis]

    def begin(c: Any, i: Any) -> Any:
        return image[c, last, i] if axis == 1 else image[c, i, last]

    first = fl.stage(begin, name="first", extents={"c": CHANNELS, "i": w if axis == 1 else h})

    def step(mean: fl.Tensor, pixel: fl.Tensor) -> tuple[fl.Tensor, fl.Tensor]:
        new = fl.stage(lambda c, i: mean[c, i] + alpha[()] * (pixel[c, i] - mean[c, i]), name=f"mean_{names[1]}")
        return new, new

    return fl.scan(step, first, image, axis=axis, reverse=reverse)[1]
