"""Depth from two pictures taken side by side, and the blur of a large lens in focus at one depth."""

from __future__ import annotations

from typing import Any

import fluorite as fl

SHIFTS = 16  # how far, in pixels, something near may have moved between the pictures
COARSER = 5  # levels of the pyramid over which depths are smoothed
REACH = 5  # pixels that the blur reaches at most


def lens_blur(
    left: fl.f32[fl.Tensor, 3, "h", "w"], right: fl.f32[fl.Tensor, 3, "h", "w"], focus: fl.f32[fl.Tensor], strength: fl.f32[fl.Tensor]
) -> fl.Tensor:
    """Sharp where things moved by `focus` pixels; the blur grows by `strength` pixels with every pixel that they moved more or less."""
    depth = _depth(left, right)

    def reach(y: Any, x: Any) -> Any:
        r = fl.minimum(fl.abs(fl.cast(depth[y, x], fl.f32) - focus[()]) * strength[()], float(REACH))
        return r * r

    squared = fl.stage(reach, name="reach")
    far, colour = fl.edge(squared), fl.edge(left)
    window = {"dy": (-REACH, REACH + 1), "dx": (-REACH, REACH + 1)}

    def gathered(c: Any, y: Any, x: Any) -> Any:
        """The pixels around whose own blur reaches this one; the last channel counts them."""

        def one(dy: Any, dx: Any) -> Any:
            arrives = fl.cast(dy * dy + dx * dx, fl.f32) <= far[y + dy, x + dx]
            return fl.where(arrives, fl.where(c < 3, colour[fl.minimum(c, 2), y + dy, x + dx], 1.0), 0.0)

        return fl.sum(one, over=window)

    sums = fl.stage(gathered, name="sums", extents={"c": 4, "y": left.shape[1], "x": left.shape[2]})
    return fl.stage(lambda c, y, x: sums[c, y, x] / sums[3, y, x], name="blurred", extents={"c": 3})


def _depth(left: fl.Tensor, right: fl.Tensor) -> fl.Tensor:
    """By how many pixels the right picture fits best, smoothed where it would fit anyhow."""
    moved, (_, h, w) = fl.edge(right), left.shape

    def unlike(z: Any, y: Any, x: Any) -> Any:
        terms = [fl.abs(left[c, y, x] - moved[c, y, x - z]) for c in range(3)]
        return terms[0] + terms[1] + terms[2]

    cost = fl.stage(unlike, name="cost", extents={"z": SHIFTS, "y": h, "x": w})
    mean = fl.stage(lambda y, x: fl.sum(lambda z: cost[z, y, x]) / SHIFTS, name="mean")
    sure = fl.stage(lambda y, x: fl.sum(lambda z: (cost[z, y, x] - mean[y, x]) ** 2) / SHIFTS + 1e-6, name="sure")
    weighed = fl.stage(lambda z, y, x: fl.where(z < SHIFTS, cost[fl.minimum(z, SHIFTS - 1), y, x], 1.0) * sure[y, x], name="weighed0",
                       extents={"z": SHIFTS + 1})  # fmt: skip
    levels = [weighed]
    for n in range(1, COARSER):
        levels.append(_quartered(levels[-1], n))
    smooth = levels[-1]
    for n in reversed(range(COARSER - 1)):
        smooth = _blended(levels[n], smooth, n)
    return fl.stage(lambda y, x: fl.argmin(lambda z: smooth[z, y, x] / smooth[SHIFTS, y, x], over={"z": SHIFTS}), name="depth")


def _quartered(image: fl.Tensor, n: int) -> fl.Tensor:
    source, (z, h, w) = fl.edge(image), image.shape

    def mean(z: Any, y: Any, x: Any) -> Any:
        return (source[z, 2 * y, 2 * x] + source[z, 2 * y, 2 * x + 1] + source[z, 2 * y + 1, 2 * x] + source[z, 2 * y + 1, 2 * x + 1]) / 4

    return fl.stage(mean, name=f"weighed{n}", extents={"z": z, "y": (h + 1) // 2, "x": (w + 1) // 2})


def _blended(fine: fl.Tensor, coarse: fl.Tensor, n: int) -> fl.Tensor:
    above = fl.edge(coarse)

    def near(z: Any, y: Any, x: Any) -> Any:
        """Bilinear."""
        y0, x0 = y // 2, x // 2
        y1, x1 = y0 - 1 + 2 * (y % 2), x0 - 1 + 2 * (x % 2)
        rows = [0.25 * above[z, r, x1] + 0.75 * above[z, r, x0] for r in (y1, y0)]
        return 0.25 * rows[0] + 0.75 * rows[1]

    return fl.stage(lambda z, y, x: (fine[z, y, x] + near(z, y, x)) / 2, name=f"smooth{n}")
