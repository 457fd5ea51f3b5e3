"""Noise removed with wavelets (Daubechies 1988, four coefficients): small details are pulled towards zero, the rest stays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import fluorite as fl

_ROOT = math.sqrt(3.0)
COEFFICIENTS = tuple(c / (4 * math.sqrt(2.0)) for c in (1 + _ROOT, 3 + _ROOT, 3 - _ROOT, 1 - _ROOT))


def wavelet(image: fl.f32[fl.Tensor, "h", "w"], threshold: fl.f32[fl.Tensor]) -> fl.Tensor:
    """Beyond its ends the picture starts again. A last odd row or column is left out."""
    h, w = image.shape
    bands = _apart(lambda y, x: image[y, x], "rows", {"y": h // 2 * 2, "x": w // 2}, "x")
    low, high = (
        _apart(lambda y, x, t=t: t[y, x], name, {"y": h // 2, "x": w // 2}, "y") for t, name in zip(bands, ("low", "high"), strict=True)
    )
    quiet = [low[0], *(_pulled(t, threshold, name) for t, name in ((low[1], "down"), (high[0], "across"), (high[1], "diagonal")))]
    columns = [_together(quiet[k], quiet[k + 1], "y", name) for k, name in ((0, "back_low"), (2, "back_high"))]
    return _together(columns[0], columns[1], "x", "denoised")


def _apart(read: Callable[..., Any], name: str, extents: dict[str, Any], axis: str) -> tuple[fl.Tensor, fl.Tensor]:
    """Sums and differences of four neighbours, at every second place along an axis."""
    d0, d1, d2, d3 = COEFFICIENTS
    n = extents[axis] * 2

    def combined(taps: tuple[float, ...]) -> Callable[..., Any]:
        def value(y: Any, x: Any) -> Any:
            terms = []
            for k, tap in enumerate(taps):
                at = {"y": y, "x": x} | {axis: (2 * (y if axis == "y" else x) + k) % n}
                terms.append(tap * read(at["y"], at["x"]))
            return sum(terms[1:], terms[0])

        return value

    taps = {"sum": (d0, d1, d2, d3), "change": (d3, -d2, d1, -d0)}
    low, high = (fl.stage(combined(t), name=f"{name}_{kind}", extents=extents) for kind, t in taps.items())
    return low, high


def _pulled(band: fl.Tensor, threshold: fl.Tensor, name: str) -> fl.Tensor:
    """Towards zero by the threshold, and no further."""

    def value(y: Any, x: Any) -> Any:
        v = band[y, x]
        return v - fl.clamp(v, -threshold[()], threshold[()])

    return fl.stage(value, name=name)


def _together(low: fl.Tensor, high: fl.Tensor, axis: str, name: str) -> fl.Tensor:
    """The inverse of `_apart`."""
    d0, d1, d2, d3 = COEFFICIENTS
    before, after = fl.wrap(low), fl.wrap(high)
    h, w = low.shape
    down = axis == "y"

    def value(y: Any, x: Any) -> Any:
        i = (y if down else x) // 2

        def at(t: Any, k: Any) -> Any:
            return t[k, x] if down else t[y, k]

        even = d2 * at(before, i - 1) + d1 * at(after, i - 1) + d0 * at(before, i) + d3 * at(after, i)
        odd = d3 * at(before, i - 1) - d0 * at(after, i - 1) + d1 * at(before, i) - d2 * at(after, i)
        return fl.where((y if down else x) % 2 == 0, even, odd)

    return fl.stage(value, name=name, extents={"y": h * 2 if down else h, "x": w if down else w * 2})
