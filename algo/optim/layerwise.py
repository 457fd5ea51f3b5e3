"""Rates of their own for every parameter, from its norm and that of its step: for large batches. Norms are of the parameter as the
algorithm names it, however a plan lays it out."""

from __future__ import annotations

from typing import Any

from ..expr import Expr, cast, unary, where
from .adaptive import AdamW, moments, quotient
from .optimizer import Optimizer
from .update import Update, number


class LAMB(AdamW):
    """Adam's quotient plus weight decay, as long a step as the parameter itself times the rate (You et al., "Large batch optimization",
    2020, algorithm 2): w - rate * |w| / |d| * d, with |w| / |d| = 1 where one of them is 0. State `m` and `v`."""

    by_rows = False

    def __init__(self, learning_rate: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-6, **options: Any) -> None:
        super().__init__(learning_rate, betas, eps, **options)

    def rule(self, u: Update) -> None:
        parts = moments(u, self.betas, False)
        d = u.stage("direction", lambda w, *e: quotient(u, self.eps, *e) + u.decay * u.real(w), u.w, *parts)
        trust = u.scalar("trust", _quotient_of_norms, u.norm2("norm_of_value", u.w), u.norm2("norm_of_direction", d))
        u.finish(lambda w, rate, ratio, step: w - rate * u.real(ratio) * step, trust, d)


def _quotient_of_norms(w2: Expr, d2: Expr) -> Expr:
    w, d = (unary("sqrt", cast(x, "float64")) for x in (w2, d2))
    return where((w > 0.0) & (d > 0.0), w / where(d > 0.0, d, 1.0), 1.0)


class LARS(Optimizer):
    """Momentum whose rate is `trust` * |w| / (|g| + weight_decay * |w|) for each parameter (You, Gitman and Ginsburg, 2017, algorithm 1):
    v = momentum * v + rate * local * (g + weight_decay * w), and w - v. The local rate is 1 where a norm is 0. State `v`."""

    by_rows = False

    def __init__(self, learning_rate: Any = 0.1, momentum: float = 0.9, *, trust: float = 1e-3, **options: Any) -> None:
        super().__init__(learning_rate, **options)
        self.momentum, self.trust = number(momentum, "momentum", 0.0, 1.0), number(trust, "trust", 0.0)

    def rule(self, u: Update) -> None:
        g, operands = u.gradient(decayed=False)
        decay, trust, mu = u.decay, self.trust, self.momentum

        def rate(w2: Expr, g2: Expr) -> Expr:
            w, size = (unary("sqrt", cast(x, "float64")) for x in (w2, g2))
            below = size + decay * w
            return where((w > 0.0) & (size > 0.0), trust * w / where(below > 0.0, below, 1.0), 1.0)

        local = u.scalar("local_rate", rate, u.norm2("norm_of_value", u.w), u.norm2("norm_of_gradient", u.g(decayed=False)))

        def velocity(old: Expr, w: Expr, global_rate: Expr, own: Expr, *e: Expr) -> Expr:
            return mu * old + u.real(global_rate) * u.real(own) * (g(*e) + decay * u.real(w))

        v = u.keep("v", velocity, u.w, u.rate, local, *operands)
        u.finish(lambda w, _, new: w - new, v)
