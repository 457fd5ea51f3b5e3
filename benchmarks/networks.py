"""The networks of the benchmarks as Programs."""

from __future__ import annotations

from itertools import pairwise

import fluorite as fl
from fluorite import nn

from .training import CHANNELS, DEEP, MLP, RATES, SEQUENCE, SIZE


class Mlp(fl.Program):
    """Dense layers with relu between them."""

    WIDTHS, ACTIVATION = MLP, staticmethod(fl.relu)

    def __init__(self, optimizer: str = "SGD") -> None:
        self.layers = [nn.Linear(a, b) for a, b in pairwise(self.WIDTHS)]
        self.optimizer = getattr(fl.optim, optimizer)(learning_rate=RATES[optimizer])

    @fl.method(training=True)
    def train_step(self, x: fl.f32[fl.Tensor, 64, MLP[0]], y: fl.i32[fl.Tensor, 64]) -> dict[str, fl.Tensor]:
        return self.step(x, y)

    def step(self, x: fl.Tensor, y: fl.Tensor) -> dict[str, fl.Tensor]:
        for layer in self.layers[:-1]:
            x = self.ACTIVATION(layer(x))
        cost = fl.cross_entropy(self.layers[-1](x), y, name="cost")
        self.optimizer.minimize(cost)
        return {"cost": cost}


class DeepMlp(Mlp):
    """Thirty of them with tanh: of as many relus some are so near 0 that rounding decides."""

    WIDTHS, ACTIVATION = DEEP, staticmethod(fl.tanh)

    @fl.method(training=True)
    def train_step(self, x: fl.f32[fl.Tensor, 64, DEEP[0]], y: fl.i32[fl.Tensor, 64]) -> dict[str, fl.Tensor]:
        return self.step(x, y)


class ConvNet(fl.Program):
    """Convolutions with relu and pooling, and a dense layer."""

    def __init__(self) -> None:
        self.convs = [nn.Conv2d(a, b, 3, padding=1) for a, b in pairwise(CHANNELS)]
        self.out = nn.Linear(CHANNELS[-1] * (SIZE // 4) ** 2, 10)
        self.optimizer = fl.optim.SGD(learning_rate=RATES["SGD"])

    @fl.method(training=True)
    def train_step(self, x: fl.f32[fl.Tensor, 32, CHANNELS[0], SIZE, SIZE], y: fl.i32[fl.Tensor, 32]) -> dict[str, fl.Tensor]:
        for conv in self.convs:
            x = fl.max_pool2d(fl.relu(conv(x)), 2)
        cost = fl.cross_entropy(self.out(x.reshape(32, -1)), y, name="cost")
        self.optimizer.minimize(cost)
        return {"cost": cost}


class Lstm(fl.Program):
    """One layer over a batch of sequences."""

    def __init__(self) -> None:
        self.layer = nn.LSTM(SEQUENCE[-1], SEQUENCE[-1])

    @fl.method
    def states(self, x: fl.f32[fl.Tensor, *SEQUENCE]) -> fl.Tensor:
        """The states after every step."""
        return self.layer(x)[0]


NETWORKS = {
    "mlp_train": Mlp,
    "mlp_adam": lambda: Mlp("Adam"),
    "deep_mlp": DeepMlp,
    "deep_mlp_adam": lambda: DeepMlp("Adam"),
    "convnet_train": ConvNet,
}
"""Workload -> the Program whose train_step is timed."""
INFERENCE = {"lstm": (Lstm, "states")}
"""Workload -> a Program, and the method that is timed."""
