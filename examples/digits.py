"""Handwritten digits: a small network that scikit-learn trained. `python -m examples.digits` trains, builds, imports and compares."""

from __future__ import annotations

import fluorite as fl


class Digits(fl.Program):
    """64 pixels from 0 to 16 in, one of ten digits out."""

    def __init__(self, hidden: int = 64) -> None:
        self.hidden_w = fl.param(init=fl.init.glorot_uniform(), pixel=64, unit=hidden)
        self.hidden_b = fl.param(init=fl.init.zeros, unit=hidden)
        self.digit_w = fl.param(init=fl.init.glorot_uniform(), unit=hidden, digit=10)
        self.digit_b = fl.param(init=fl.init.zeros, digit=10)

    def scores(self, pixels: fl.Tensor) -> fl.Tensor:
        with fl.scope("hidden"):
            hidden = fl.relu(pixels / 16 @ self.hidden_w + self.hidden_b)
        with fl.scope("digit"):
            return hidden @ self.digit_w + self.digit_b

    @fl.method(batch="n")
    def predict(self, pixels: fl.f32[fl.Tensor, "n", "pixel=64"]) -> fl.Tensor:
        """The digit in each row of pixels."""
        return fl.argmax(self.scores(pixels), axis=1)

    @fl.method(batch="n")
    def probabilities(self, pixels: fl.f32[fl.Tensor, "n", "pixel=64"]) -> fl.Tensor:
        """How likely each row of pixels is each digit."""
        return fl.softmax(self.scores(pixels), axis=1)


if __name__ == "__main__":
    from examples.digits_run import main

    main()
