"""Non-local means (Buades, Coll, Morel 2005): every pixel becomes the mean of its neighbourhood, weighted by how alike the patches are."""

from __future__ import annotations

from typing import Any

import fluorite as fl

PATCH = 7
SEARCH = 7


def nl_means(image: fl.f32[fl.Tensor, 3, "h", "w"], sigma: fl.f32[fl.Tensor]) -> fl.Tensor:
    """`image` has values from 0 to 1; `sigma` is the noise to remove, as a standard deviation."""
    _, h, w = image.shape
    clamped, p, s = fl.edge(image), PATCH // 2, SEARCH // 2

    def distance(sy: Any, sx: Any, y: Any, x: Any) -> Any:
        terms = [(clamped[c, y - p, x - p] - clamped[c, y - p + sy - s, x - p + sx - s]) ** 2 for c in range(3)]
        return terms[0] + terms[1] + terms[2]

    window = {"sy": SEARCH, "sx": SEARCH}
    apart = fl.stage(distance, name="apart", extents={**window, "y": h + PATCH - 1, "x": w + PATCH - 1})

    def tall(sy: Any, sx: Any, y: Any, x: Any) -> Any:
        return sum((apart[sy, sx, y + k, x] for k in range(1, PATCH)), apart[sy, sx, y, x])

    columns = fl.stage(tall, name="columns")

    def alike(sy: Any, sx: Any, y: Any, x: Any) -> Any:
        patch = sum((columns[sy, sx, y, x + k] for k in range(1, PATCH)), columns[sy, sx, y, x])
        return fl.exp(patch * (-1.0 / (sigma[()] * sigma[()] * (PATCH * PATCH))))

    weight = fl.stage(alike, name="weight")
    sums = fl.stage(
        lambda c, y, x: fl.sum(
            lambda sy, sx: weight[sy, sx, y, x] * fl.where(c < 3, clamped[fl.minimum(c, 2), y + sy - s, x + sx - s], 1.0)
        ),
        name="sums",
        extents={"c": 4},
    )
    return fl.stage(lambda c, y, x: fl.clamp(sums[c, y, x] / sums[3, y, x], 0.0, 1.0), name="denoised", extents={"c": 3})
