"""Colours known at some pixels spread to all others, over a pyramid whose coarse levels fill the holes of the fine ones (a pull-push)."""

from __future__ import annotations

from typing import Any

import fluorite as fl

PYRAMID = 8  # levels, the finest included: a hole may be some 2 ** PYRAMID pixels wide


def interpolate(image: fl.f32[fl.Tensor, 4, "h", "w"]) -> fl.Tensor:
    """`image` has three colours and how far each pixel is known, from 0 to 1. The result [3, h, w] is known everywhere."""
    known = [fl.stage(lambda c, y, x: fl.where(c == 3, 1.0, image[c, y, x]) * image[3, y, x], name="known0", extents={"c": 4})]
    for n in range(1, PYRAMID):
        known.append(_halved(known[-1], n))
    filled = known[-1]
    for n in reversed(range(PYRAMID - 1)):
        filled = _filled(known[n], filled, n)
    return fl.stage(lambda c, y, x: filled[c, y, x] / filled[3, y, x], name="spread", extents={"c": 3})


def _halved(image: fl.Tensor, n: int) -> fl.Tensor:
    """Every second pixel under a 1 2 1 filter, along both axes."""
    _, h, w = image.shape
    source = fl.edge(image)
    narrow = fl.stage(
        lambda c, y, x: (source[c, y, 2 * x - 1] + 2 * source[c, y, 2 * x] + source[c, y, 2 * x + 1]) / 4,
        name=f"narrow{n}",
        extents={"c": 4, "y": h, "x": w // 2 + 1},
    )
    rows = fl.edge(narrow)
    return fl.stage(
        lambda c, y, x: (rows[c, 2 * y - 1, x] + 2 * rows[c, 2 * y, x] + rows[c, 2 * y + 1, x]) / 4,
        name=f"known{n}",
        extents={"y": h // 2 + 1},
    )


def _filled(image: fl.Tensor, coarse: fl.Tensor, n: int) -> fl.Tensor:
    """What is not known comes from the level above."""
    above = fl.edge(coarse)

    def doubled(c: Any, y: Any, x: Any) -> Any:
        return (above[c, y, x // 2] + above[c, y, (x + 1) // 2]) / 2

    def pixel(c: Any, y: Any, x: Any) -> Any:
        return image[c, y, x] + (1 - image[3, y, x]) * (doubled(c, y // 2, x) + doubled(c, (y + 1) // 2, x)) / 2

    return fl.stage(pixel, name=f"filled{n}")
