"""Gradient descent, with and without momentum."""

from __future__ import annotations

from typing import Any

from ..expr import refuse
from .optimizer import Optimizer
from .update import Update, number


class SGD(Optimizer):
    """w - rate * g. With `momentum` (Sutskever et al., "On the importance of initialization and momentum", 2013), state `v`:
    v = momentum * v + (1 - dampening) * g, and w - rate * v; with `nesterov` w - rate * (g + momentum * v). Weight decay is added to g."""

    def __init__(
        self, learning_rate: Any = 0.01, momentum: float = 0.0, *, dampening: float = 0.0, nesterov: bool = False, **options: Any
    ) -> None:
        super().__init__(learning_rate, **options)
        self.momentum, self.dampening = number(momentum, "momentum", 0.0, 1.0), number(dampening, "dampening", 0.0)
        self.nesterov = nesterov
        if nesterov and not (self.momentum and not self.dampening):
            raise refuse("A191", "nesterov=True", "it needs a momentum, and no dampening", "momentum=0.9")

    def rule(self, u: Update) -> None:
        g, operands = u.gradient()
        if not self.momentum:
            u.finish(lambda w, rate, *e: w - rate * g(*e), *operands)
            return
        mu, part = self.momentum, 1.0 - self.dampening
        v = u.keep("v", lambda old, *e: mu * old + part * g(*e), *operands)
        if self.nesterov:
            u.finish(lambda w, rate, new, *e: w - rate * (g(*e) + mu * new), v, *operands)
        else:
            u.finish(lambda w, rate, new: w - rate * new, v)
