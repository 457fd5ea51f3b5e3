"""The filters in PyTorch's quickest form: shifted slices of an image with margins, which its compiler fuses; beside it the convolutions
that a person would write first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch  # type: ignore[import-not-found,unused-ignore]
import torch.nn.functional as F  # type: ignore[import-not-found,unused-ignore]

from .image_gradients import REACH, TAPS, Data, flat

M = TAPS // 2


def _margin(x: Any, m: int, axis: int) -> Any:
    """x with its first and last pixels repeated along the axis."""
    first, last = x.narrow(axis, 0, 1), x.narrow(axis, x.shape[axis] - 1, 1)
    shape = [m if d == axis else n for d, n in enumerate(x.shape)]
    return torch.cat([first.expand(shape), x, last.expand(shape)], axis)


def _unsharp_slices(image: Any, weights: Any, amount: Any, target: Any) -> Any:
    def blurred(x: Any, axis: int) -> Any:
        wide = _margin(x, M, axis)
        return sum(w * wide.narrow(axis, k, x.shape[axis]) for k, w in enumerate(weights.unbind()))

    soft = blurred(blurred(image, 1), 0)
    return (image + amount * (image - soft) - target).square().mean()


def _unsharp_convolutions(image: Any, weights: Any, amount: Any, target: Any) -> Any:
    rows = F.conv2d(F.pad(image[None, None], (M, M, 0, 0), mode="replicate"), weights[None, None, None, :])
    soft = F.conv2d(F.pad(rows, (0, 0, M, M), mode="replicate"), weights[None, None, :, None])[0, 0]
    return (image + amount * (image - soft) - target).square().mean()


def _bilateral_slices(image: Any, near: Any, tone: Any, target: Any) -> Any:
    (h, w), wide = image.shape, _margin(_margin(image, REACH, 1), REACH, 0)
    total = blended = 0
    for j, row in enumerate(near.unbind()):
        for i, share in enumerate(row.unbind()):
            shifted = wide[j : j + h, i : i + w]
            apart = shifted - image
            weight = share * torch.exp(-tone * apart * apart)
            total, blended = total + weight, blended + weight * shifted
    return (blended / total - target).square().mean()


FORMS: dict[str, dict[str, tuple[Callable[..., Any], tuple[str, ...]]]] = {
    "unsharp_gradient": {
        "slices": (_unsharp_slices, ("image", "weights", "amount")),
        "convolutions": (_unsharp_convolutions, ("image", "weights", "amount")),
    },
    "bilateral_gradient": {"slices": (_bilateral_slices, ("image", "near", "tone"))},
}


def gradient(name: str, form: str, compiled: bool, d: Data) -> Callable[[], Any] | None:
    """The gradient of a filter's error, if there is such a form of the filter."""
    if form not in FORMS[name]:
        return None
    error, by = FORMS[name][form]
    target, leaves = torch.from_numpy(d["target"]), [torch.from_numpy(d[k]).requires_grad_() for k in by]
    value = torch.compile(error, dynamic=False) if compiled else error

    def call() -> Any:
        found = torch.autograd.grad(value(*leaves, target), leaves)
        return flat({k: g.numpy() for k, g in zip(by, found, strict=True)})

    return call


__all__ = ["FORMS", "gradient"]
