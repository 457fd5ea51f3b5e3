"""The largest value within a disc around each pixel: columns of every height that the disc has, each from two windows of 2 ** k rows."""

from __future__ import annotations

import math
from typing import Any

import fluorite as fl

RADIUS = 13


def max_filter(image: fl.f32[fl.Tensor, "h", "w"]) -> fl.Tensor:
    """What is outside the picture is like its nearest pixel."""
    h, w = image.shape
    source = fl.edge(image)
    tall = [fl.stage(lambda y, x: source[y - RADIUS, x], name="tall0", extents={"y": h + 2 * RADIUS, "x": w})]
    while 2 ** len(tall) <= 2 * RADIUS + 1:
        tall.append(_doubled(tall[-1], len(tall)))
    heights = {d: _column(tall, d, h) for d in sorted({half(dx) for dx in range(RADIUS + 1)})}
    columns = {d: fl.edge(column) for d, column in heights.items()}

    def largest(y: Any, x: Any) -> Any:
        found = [columns[half(dx)][y, x + dx] for dx in range(-RADIUS, RADIUS + 1)]
        while len(found) > 1:
            found = [fl.maximum(*found[k : k + 2]) if k + 1 < len(found) else found[k] for k in range(0, len(found), 2)]
        return found[0]

    return fl.stage(largest, name="largest", extents={"y": h, "x": w})


def half(dx: int) -> int:
    """Rows of the disc above its middle, `dx` columns beside it."""
    return math.isqrt(RADIUS * RADIUS - dx * dx)


def _doubled(below: fl.Tensor, k: int) -> fl.Tensor:
    """The largest of 2 ** k rows, of twice half as many."""
    return fl.stage(lambda y, x: fl.maximum(below[y, x], below[y + 2 ** (k - 1), x]), name=f"tall{k}")


def _column(tall: list[fl.Tensor], d: int, h: Any) -> fl.Tensor:
    """The largest of d rows above and below, from two windows that overlap."""
    k = (2 * d + 1).bit_length() - 1
    first, last = RADIUS - d, RADIUS + d + 1 - 2**k
    return fl.stage(lambda y, x: fl.maximum(tall[k][y + first, x], tall[k][y + last, x]), name=f"column{d}", extents={"y": h})
