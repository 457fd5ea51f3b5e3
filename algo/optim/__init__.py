"""Optimisers: modules of a Program that write the update of its parameters as stages, with state of their own beside them.

    self.optimizer = fl.optim.Adam(learning_rate=fl.optim.cosine(1e-3, steps=10_000), clip_norm=1.0)

    @fl.method(training=True)
    def train_step(self, x, y):
        loss = fl.mean(fl.square(self.net(x) - y), name="loss")
        self.optimizer.minimize(loss)
        return loss

The new value of a parameter is METHOD/update/OPTIMIZER/PATH, state is OPTIMIZER/NAME/PATH, such as optimizer/m/net/w.
"""

from __future__ import annotations

from .adaptive import FTRL, Adagrad, Adam, AdamW, RMSProp
from .layerwise import LAMB, LARS
from .momentum import SGD
from .optimizer import Optimizer
from .quasi_newton import LBFGS
from .schedules import constant, cosine, exponential, piecewise, polynomial, step, warmup

__all__ = [
    "FTRL", "LAMB", "LARS", "LBFGS", "SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSProp", "constant", "cosine", "exponential",
    "piecewise", "polynomial", "step", "warmup",
]  # fmt: skip
