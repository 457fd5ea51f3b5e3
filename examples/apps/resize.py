"""A smaller picture under a Lanczos filter of three lobes, stretched by as much as the picture shrinks."""

from __future__ import annotations

import math
from typing import Any

import fluorite as fl

SMALLER = (3, 5)  # so many pixels from so many
LOBES = 3


def resize(image: fl.f32[fl.Tensor, 3, "h", "w"]) -> fl.Tensor:
    """Of the picture only what is inside counts: weights at its rim are those of fewer pixels."""
    _, h, w = image.shape
    tall, wide = h * SMALLER[0] // SMALLER[1], w * SMALLER[0] // SMALLER[1]
    rows, columns = _weights(h, tall, "y"), _weights(w, wide, "x")
    source = fl.edge(image)
    taps = _taps()
    down = fl.stage(
        lambda c, y, x: fl.sum(lambda k: rows[y, k] * source[c, _first(y) + k, x], over={"k": taps}),
        name="down",
        extents={"c": 3, "y": tall, "x": w},
    )
    across = fl.edge(down)
    return fl.stage(
        lambda c, y, x: fl.sum(lambda k: columns[x, k] * across[c, y, _first(x) + k], over={"k": taps}),
        name="small",
        extents={"c": 3, "y": tall, "x": wide},
    )


def _taps() -> int:
    return 2 * math.ceil(LOBES * SMALLER[1] / SMALLER[0]) + 1


def _first(i: Any) -> Any:
    """The first pixel that counts for pixel i: (i + 1/2) 5/3, less the reach of the filter, rounded down."""
    to, of = SMALLER
    return ((2 * i + 1) * of) // (2 * to) - _taps() // 2


def _weights(size: Any, count: Any, name: str) -> fl.Tensor:
    to, of = SMALLER

    def weight(i: Any, k: Any) -> Any:
        p = _first(i) + k
        distance = fl.cast((2 * p + 1) * to - (2 * i + 1) * of, fl.f32) * (1 / (2 * of))  # of the middles, in pixels of the result
        return fl.where((p >= 0) & (p < size), _lanczos(distance), 0.0)

    raw = fl.stage(weight, name=f"weight_{name}", extents={"i": count, "k": _taps()})
    return fl.stage(lambda i, k: raw[i, k] / fl.sum(lambda tap: raw[i, tap]), name=f"share_{name}")


def _lanczos(t: Any) -> Any:
    """sinc(t) sinc(t / 3) within three lobes."""
    turn = t * math.pi
    inside = fl.where(fl.abs(t) < 1e-6, 1.0, LOBES * fl.sin(turn) * fl.sin(turn / LOBES) / fl.where(fl.abs(t) < 1e-6, 1.0, turn * turn))
    return fl.where(fl.abs(t) < float(LOBES), inside, 0.0)
