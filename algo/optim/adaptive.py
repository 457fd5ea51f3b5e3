"""Rates of their own for every element, from the squares of its gradients."""

from __future__ import annotations

from typing import Any

from ..expr import Expr, binary, unary, where
from ..tensor import Tensor
from .optimizer import Optimizer
from .update import Update, number


def moments(u: Update, betas: tuple[float, float], decayed: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Averages of the gradient and of its square, and what they are divided by since they began at 0. State `m` and `v`."""
    b1, b2 = betas
    g, operands = u.gradient(decayed=decayed)
    m = u.keep("m", lambda old, *e: b1 * old + (1.0 - b1) * g(*e), *operands)
    v = u.keep("v", lambda old, *e: b2 * old + (1.0 - b2) * (g(*e) * g(*e)), *operands)
    return m, v, u.correction("correction1", b1), u.correction("correction2", b2)


def quotient(u: Update, eps: float, m: Expr, v: Expr, first: Expr, second: Expr) -> Expr:
    """The corrected mean over the root of the corrected mean square."""
    return (m / u.real(first)) / (unary("sqrt", v / u.real(second)) + eps)


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015, algorithm 1). Weight decay is added to the gradient; AdamW keeps the two apart. State `m` and `v`."""

    def __init__(self, learning_rate: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, **options: Any) -> None:
        super().__init__(learning_rate, **options)
        self.betas = (number(betas[0], "betas[0]", 0.0, 1.0), number(betas[1], "betas[1]", 0.0, 1.0))
        self.eps = number(eps, "eps", 0.0)

    def rule(self, u: Update) -> None:
        u.finish(lambda w, rate, *e: w - rate * quotient(u, self.eps, *e), *moments(u, self.betas, True))


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019): w - rate * (quotient + weight_decay * w)."""

    def __init__(
        self,
        learning_rate: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        *,
        weight_decay: float = 0.01,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, betas, eps, weight_decay=weight_decay, **options)

    def rule(self, u: Update) -> None:
        u.finish(lambda w, rate, *e: w - rate * (quotient(u, self.eps, *e) + u.decay * w), *moments(u, self.betas, False))


class Adagrad(Optimizer):
    """w - rate * g / (sqrt(a) + eps), with a the sum of g * g so far, from `initial` on (Duchi, Hazan and Singer, 2011). State `a`."""

    def __init__(self, learning_rate: Any = 0.01, eps: float = 1e-10, *, initial: float = 0.0, **options: Any) -> None:
        super().__init__(learning_rate, **options)
        self.eps, self.initial = number(eps, "eps", 0.0), number(initial, "initial", 0.0)

    def rule(self, u: Update) -> None:
        g, operands = u.gradient()
        a = u.keep("a", lambda old, *e: old + g(*e) * g(*e), *operands, init=self.initial)
        u.finish(lambda w, rate, new, *e: w - rate * g(*e) / (unary("sqrt", new) + self.eps), a, *operands)


class RMSProp(Optimizer):
    """w - rate * g / (sqrt(a) + eps), with a the mean of g * g (Tieleman and Hinton, lecture 6.5, 2012). State `a`.

    With `centered` the square of the mean gradient (state `mean`) is taken from a (Graves, 2013); with `momentum` the quotient goes
    into a velocity `v` as in SGD.
    """

    def __init__(
        self,
        learning_rate: Any = 0.01,
        rho: float = 0.99,
        eps: float = 1e-8,
        *,
        momentum: float = 0.0,
        centered: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.rho, self.momentum = number(rho, "rho", 0.0, 1.0), number(momentum, "momentum", 0.0, 1.0)
        self.eps, self.centered = number(eps, "eps", 0.0), centered

    def rule(self, u: Update) -> None:
        g, operands = u.gradient()
        rho, eps, centered = self.rho, self.eps, self.centered
        squared = u.keep("a", lambda old, *e: rho * old + (1.0 - rho) * (g(*e) * g(*e)), *operands)
        means = [u.keep("mean", lambda old, *e: rho * old + (1.0 - rho) * g(*e), *operands)] if centered else []

        def ratio(a: Expr, *e: Expr) -> Expr:
            spread = a - e[0] * e[0] if centered else a
            rest = e[1:] if centered else e
            return g(*rest) / (unary("sqrt", binary("max", spread, u.real(0.0))) + eps)

        if not self.momentum:
            u.finish(lambda w, rate, *e: w - rate * ratio(*e), squared, *means, *operands)
            return
        v = u.keep("v", lambda old, *e: self.momentum * old + ratio(*e), squared, *means, *operands)
        u.finish(lambda w, rate, new: w - rate * new, v)


class FTRL(Optimizer):
    """Follow the regularised leader, proximal (McMahan et al., "Ad click prediction", 2013, algorithm 1 per coordinate).

    `l1` makes elements exactly 0, `l2` shrinks them, `beta` slows the first steps. State `z` and `n`.
    """

    def __init__(self, learning_rate: Any = 0.1, *, beta: float = 1.0, l1: float = 0.0, l2: float = 0.0, **options: Any) -> None:
        super().__init__(learning_rate, **options)
        self.beta, self.l1, self.l2 = (number(x, what, 0.0) for x, what in ((beta, "beta"), (l1, "l1"), (l2, "l2")))

    def rule(self, u: Update) -> None:
        g, operands = u.gradient()
        old_n = u.old("n")

        def moved(z: Expr, n: Expr, w: Expr, rate: Expr, *e: Expr) -> Expr:
            sigma = (unary("sqrt", n + g(*e) * g(*e)) - unary("sqrt", n)) / u.real(rate)
            return z + g(*e) - sigma * u.real(w)

        z = u.keep("z", moved, old_n, u.w, u.rate, *operands)
        n = u.keep("n", lambda old, *e: old + g(*e) * g(*e), *operands)

        def leader(w: Expr, rate: Expr, z: Expr, n: Expr) -> Expr:
            pull = z - unary("sign", z) * self.l1
            return where(unary("abs", z) <= self.l1, u.real(0.0), -pull / ((self.beta + unary("sqrt", n)) / rate + self.l2))

        u.finish(leader, z, n)
