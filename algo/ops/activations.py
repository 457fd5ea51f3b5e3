"""Activations of neural networks."""

from __future__ import annotations

import math
from typing import Any

from .. import expr as E
from ..expr import Expr, as_expr, refuse
from .elementwise import elementwise


@elementwise
def relu(x: Any) -> Expr:
    """max(x, 0)."""
    return E.binary("max", x, 0)


@elementwise
def leaky_relu(x: Any, *, slope: float = 0.01) -> Expr:
    """x above 0, slope * x below."""
    e = as_expr(x)
    return E.where(e > 0, e, e * slope)


@elementwise
def elu(x: Any, *, alpha: float = 1.0) -> Expr:
    """x above 0, alpha * (exp(x) - 1) below."""
    e = as_expr(x)
    return E.where(e > 0, e, alpha * E.unary("expm1", E.binary("min", e, 0)))


@elementwise
def gelu(x: Any, *, approximate: str = "none") -> Expr:
    """x times the normal distribution function of x; `approximate="tanh"` is the usual approximation of it."""
    e = as_expr(x)
    if approximate == "tanh":
        return 0.5 * e * (1 + E.unary("tanh", math.sqrt(2 / math.pi) * (e + 0.044715 * (e * e * e))))
    if approximate != "none":
        raise refuse("A304", f"gelu: approximate={approximate!r}", "it is one of two forms", "none", "tanh")
    return 0.5 * e * (1 + E.unary("erf", e * math.sqrt(0.5)))


@elementwise
def silu(x: Any) -> Expr:
    """x * sigmoid(x)."""
    return as_expr(x) * E.unary("sigmoid", x)


@elementwise
def softplus(x: Any) -> Expr:
    """log(1 + exp(x)), without overflow."""
    e = as_expr(x)
    return E.binary("max", e, 0) + E.unary("log1p", E.unary("exp", -E.unary("abs", e)))
