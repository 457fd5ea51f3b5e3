"""The filters whose gradients are timed."""

from __future__ import annotations

from typing import Any

import fluorite as fl

from .image_gradients import REACH, TAPS

Image = fl.f32[fl.Tensor, "h", "w"]
SIDE = 2 * REACH + 1


def unsharp_gradient(
    image: Image, target: Image, weights: fl.f32[fl.Tensor, TAPS], amount: fl.f32[fl.Tensor]
) -> dict[str, fl.Tensor]:
    """Of an unsharp mask's error, by the image, the weights of its blur and its amount."""

    def error(image: Any, weights: Any, amount: Any) -> Any:
        source = fl.edge(image)
        rows = fl.edge(fl.stage(lambda y, x: fl.sum(lambda k: weights[k] * source[y, x + k - TAPS // 2]), name="rows"))
        soft = fl.stage(lambda y, x: fl.sum(lambda k: weights[k] * rows[y + k - TAPS // 2, x]), name="soft")
        return fl.mean(fl.square(image + amount * (image - soft) - target), name="error")

    return dict(zip(("image", "weights", "amount"), fl.grad(error, argnums=(0, 1, 2))(image, weights, amount), strict=True))


def bilateral_gradient(
    image: Image, target: Image, near: fl.f32[fl.Tensor, SIDE, SIDE], tone: fl.f32[fl.Tensor]
) -> dict[str, fl.Tensor]:
    """Of a bilateral filter's error, by the image, the weights of the neighbours and how much a difference in tone counts."""

    def error(image: Any, near: Any, tone: Any) -> Any:
        source = fl.edge(image)

        def weight(y: Any, x: Any, j: Any, i: Any) -> Any:
            apart = source[y + j - REACH, x + i - REACH] - image[y, x]
            return near[j, i] * fl.exp(-tone * apart * apart)

        def weighted(y: Any, x: Any, j: Any, i: Any) -> Any:
            return weight(y, x, j, i) * source[y + j - REACH, x + i - REACH]

        total = fl.stage(lambda y, x: fl.sum(lambda j, i: weight(y, x, j, i)), name="total")
        blended = fl.stage(lambda y, x: fl.sum(lambda j, i: weighted(y, x, j, i)), name="blended")
        return fl.mean(fl.square(blended / total - target), name="error")

    return dict(zip(("image", "near", "tone"), fl.grad(error, argnums=(0, 1, 2))(image, near, tone), strict=True))


__all__ = ["bilateral_gradient", "unsharp_gradient"]
