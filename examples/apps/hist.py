"""Histogram equalisation: brightnesses are spread so that each is as frequent as the others, colours stay."""

from __future__ import annotations

from typing import Any

import fluorite as fl

SHADES = 256


def hist(image: fl.u8[fl.Tensor, 3, "h", "w"]) -> fl.Tensor:
    _, h, w = image.shape

    def red_green_blue(y: Any, x: Any) -> list[Any]:
        return [fl.cast(image[c, y, x], fl.f32) for c in range(3)]

    def brightness(y: Any, x: Any) -> Any:
        r, g, b = red_green_blue(y, x)
        return fl.cast(0.299 * r + 0.587 * g + 0.114 * b + 0.5, fl.u8)

    luma = fl.stage(brightness, name="luma")
    count = fl.bincount(fl.reshape(luma, (h * w,)), SHADES, name="count")
    below = fl.cumulative_sum(count, name="below")
    scale = (SHADES - 1) / fl.cast(below[SHADES - 1], fl.f32)
    spread = fl.stage(lambda i: fl.cast(below[i], fl.f32) * scale[()], name="spread")

    def coloured(c: Any, y: Any, x: Any) -> Any:
        """The colour's distance from grey, around the new brightness."""
        new = spread[fl.cast(luma[y, x], fl.i32)] + (fl.cast(image[c, y, x], fl.f32) - fl.cast(luma[y, x], fl.f32))
        return fl.cast(fl.clamp(new, 0.0, 255.0), fl.u8)

    return fl.stage(coloured, name="equalised", extents={"c": 3})
