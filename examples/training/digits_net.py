"""A convolutional network on scikit-learn's handwritten digits, trained and measured by one class."""

from __future__ import annotations

import fluorite as fl
from fluorite import nn


class DigitsNet(fl.Program):
    """8 x 8 pixels in, one of ten digits out: two convolutions, a pooling, dropout, a linear layer."""

    def __init__(self, batch_size: int = 64) -> None:
        self.data = fl.data.digits(batch_size, shuffle=0, part="train", labels=True)
        self.test = fl.data.digits(359, part="test", labels=True)
        self.first, self.second = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
        self.dropout, self.last = nn.Dropout(0.2), nn.Linear(512, 10)
        self.optimizer = fl.optim.Adam(fl.optim.cosine(3e-3, 276))

    def scores(self, pixels: fl.Tensor) -> fl.Tensor:
        image = fl.reshape(pixels, (pixels.shape[0], 1, 8, 8))
        hidden = fl.relu(self.second(fl.relu(self.first(image))))
        pooled = fl.max_pool2d(hidden, 2)
        return self.last(self.dropout(fl.reshape(pooled, (pixels.shape[0], 512))))

    @fl.method(batch="n", training=True, reader="data")
    def train_step(self, pixels: fl.f32[fl.Tensor, "n", 64], digits: fl.i32[fl.Tensor, "n"]) -> dict[str, fl.Tensor]:
        """One step against the cross entropy."""
        loss = fl.cross_entropy(self.scores(pixels), digits, name="loss")
        self.optimizer.minimize(loss)
        return {"loss": loss}

    @fl.method(batch="n", reader="test")
    def accuracy(self, pixels: fl.f32[fl.Tensor, "n", 64], digits: fl.i32[fl.Tensor, "n"]) -> fl.Tensor:
        """The part of the digits that are recognised."""
        right = fl.argmax(self.scores(pixels), axis=1) == digits
        return fl.mean(fl.where(right, 1.0, 0.0))

    @fl.method(batch="n")
    def predict(self, pixels: fl.f32[fl.Tensor, "n", 64]) -> fl.Tensor:
        """The digit of each row of pixels."""
        return fl.argmax(self.scores(pixels), axis=1)
