"""An image pipeline whose weights are learned: an unsharp mask that undoes a blur it has never been told about."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import fluorite as fl
import numpy as np

TAPS, TILE, BLUR = 9, 64, 1.5


@cache
def photographs() -> tuple[Any, Any]:
    """The cameraman to learn from and the astronaut to be tested with, from scikit-image: 512 x 512 grey pixels from 0 to 1."""
    from skimage import data
    from skimage.color import rgb2gray

    return (data.camera() / 255).astype(np.float32), rgb2gray(data.astronaut()).astype(np.float32)


def blurred(image: Any) -> Any:
    """What a lens that is out of focus makes of an image."""
    from scipy import ndimage

    return ndimage.gaussian_filter(image, BLUR, mode="nearest")


def tiles() -> Iterator[tuple[Any, Any]]:
    """Pairs of a blurred and a sharp tile of the cameraman."""
    sharp = photographs()[0]
    soft = blurred(sharp)
    for y in range(0, sharp.shape[0], TILE):
        for x in range(0, sharp.shape[1], TILE):
            at = np.s_[y : y + TILE, x : x + TILE]
            yield soft[at], sharp[at]


class LearnedUnsharp(fl.Program):
    """``x + amount * (x - blur(x))``, where the blur's weights and the amount are parameters; tiles to learn from."""

    def __init__(self, batch_size: int = 8) -> None:
        self.tiles = fl.data.dataset(tiles).batch(batch_size)
        self.logits = fl.param(init=fl.init.zeros, tap=TAPS)
        self.amount = fl.param(init=0.0)
        self.optimizer = fl.optim.Adam(0.05)

    def mask(self, image: fl.Tensor) -> fl.Tensor:
        weights = fl.softmax(self.logits, axis=0, name="weights")
        source = fl.edge(image)
        rows = fl.edge(fl.stage(lambda n, y, x: fl.sum(lambda k: weights[k] * source[n, y, x + k - TAPS // 2]), name="rows"))
        soft = fl.stage(lambda n, y, x: fl.sum(lambda k: weights[k] * rows[n, y + k - TAPS // 2, x]), name="soft")
        return image + self.amount * (image - soft)

    @fl.method(batch="n", training=True, reader="tiles")
    def train_step(self, blurred: fl.f32[fl.Tensor, "n", "h", "w"], sharp: fl.f32[fl.Tensor, "n", "h", "w"]) -> dict[str, fl.Tensor]:
        """One step against the squared error of the pixels."""
        loss = fl.mean(fl.square(self.mask(blurred) - sharp), name="loss")
        self.optimizer.minimize(loss)
        return {"loss": loss}

    @fl.method(batch="n")
    def sharpen(self, image: fl.f32[fl.Tensor, "n", "h", "w"]) -> fl.Tensor:
        """Images from 0 to 1, of any size."""
        return fl.clip(self.mask(image), 0.0, 1.0)
