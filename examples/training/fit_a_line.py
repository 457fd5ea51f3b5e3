"""Linear regression: how a disease goes on, from ten measurements of 442 patients (Efron et al., 2004)."""

from __future__ import annotations

import fluorite as fl


class FitALine(fl.Program):
    """One class that reads, trains, measures and predicts."""

    def __init__(self, batch_size: int = 32) -> None:
        self.data = fl.data.diabetes(batch_size, shuffle=0, part="train")
        self.test = fl.data.diabetes(part="test").batch(88)
        self.prediction = fl.nn.Linear(10, 1)
        self.optimizer = fl.optim.SGD(fl.optim.cosine(0.02, 480), momentum=0.9)

    @fl.method(batch="n", training=True, reader="data")
    def train_step(self, x: fl.f32[fl.Tensor, "n", 10], y: fl.f32[fl.Tensor, "n", 1]) -> dict[str, fl.Tensor]:
        """One step against the squared error, in units of 100 of the progression."""
        cost = fl.mean(fl.square(self.prediction(x) - y / 100), name="avg_cost")
        self.optimizer.minimize(cost)
        return {"avg_cost": cost}

    @fl.method(batch="n", reader="test")
    def error(self, x: fl.f32[fl.Tensor, "n", 10], y: fl.f32[fl.Tensor, "n", 1]) -> dict[str, fl.Tensor]:
        """The mean squared error, and that of the mean of the batch."""
        return {"squared": fl.mean(fl.square(self.infer(x) - y)), "of_the_mean": fl.mean(fl.square(y - fl.mean(y)))}

    @fl.method(batch="n")
    def infer(self, x: fl.f32[fl.Tensor, "n", 10]) -> fl.Tensor:
        """The progression after a year."""
        return self.prediction(x) * 100
