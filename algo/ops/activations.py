"""Activations of neural networks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import expr as E
from ..building import operator
from ..expr import Expr, as_expr, refuse
from ..tensor import Tensor
from ..trace import build_stage
from .elementwise import elementwise, once
from .shapes import AxisLike, axis_number, labels, shown, tensor


# ---------------------------------------------------------------- of a piece
@elementwise
def relu(x: Any) -> Expr:
    """max(x, 0)."""
    return E.binary("max", x, 0)


@elementwise
def relu6(x: Any) -> Expr:
    """x between 0 and 6."""
    return E.binary("min", E.binary("max", x, 0), 6)


@elementwise
def leaky_relu(x: Any, slope: Any = 0.01) -> Expr:
    """x above 0, slope * x below."""
    e = as_expr(x)
    return E.where(e > 0, e, e * slope)


@elementwise
def prelu(x: Any, slope: Any) -> Expr:
    """x above 0, slope * x below, the slope a tensor that broadcasts to x: one per channel is ``fl.reshape(slope, (c, 1, 1))``."""
    e = as_expr(x)
    return E.where(e > 0, e, e * as_expr(slope))


@elementwise
def hardtanh(x: Any, *, low: float = -1.0, high: float = 1.0) -> Expr:
    """x between `low` and `high`."""
    if not low < high:
        raise refuse("A304", f"hardtanh: low={low!r}, high={high!r}", "low is below high")
    return E.binary("min", E.binary("max", x, low), high)


@elementwise
@once
def hardsigmoid(x: Any) -> Expr:
    """x / 6 + 1/2 between 0 and 1 (PyTorch's; Keras had x / 5 + 1/2 once)."""
    return E.binary("min", E.binary("max", as_expr(x) + 3, 0), 6) / 6


@elementwise
@once
def hardswish(x: Any) -> Expr:
    """x * hardsigmoid(x) (Howard et al., 2019)."""
    e = as_expr(x)
    return e * (E.binary("min", E.binary("max", e + 3, 0), 6) / 6)


@elementwise
def hardshrink(x: Any, *, threshold: float = 0.5) -> Expr:
    """x where |x| is above the threshold, else 0."""
    e = as_expr(x)
    return E.where(E.unary("abs", e) <= threshold, 0, e)


@elementwise
@once
def softshrink(x: Any, *, threshold: float = 0.5) -> Expr:
    """x moved toward 0 by the threshold, and 0 where it would cross."""
    e = as_expr(x)
    return E.where(e > threshold, e - threshold, E.where(e < -threshold, e + threshold, 0 * e))


@elementwise
def threshold(x: Any, *, above: float, value: float) -> Expr:
    """x where it is above `above`, else `value`."""
    e = as_expr(x)
    return E.where(e > above, e, value)


# ---------------------------------------------------------------- smooth
@elementwise
@once
def elu(x: Any, *, alpha: float = 1.0) -> Expr:
    """x above 0, alpha * (exp(x) - 1) below."""
    e = as_expr(x)
    return E.where(e > 0, e, alpha * E.unary("expm1", E.binary("min", e, 0)))


@elementwise
@once
def celu(x: Any, *, alpha: float = 1.0) -> Expr:
    """x above 0, alpha * (exp(x / alpha) - 1) below (Barron, 2017)."""
    e = as_expr(x)
    return E.where(e > 0, e, alpha * E.unary("expm1", E.binary("min", e, 0) / alpha))


SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


@elementwise
@once
def selu(x: Any) -> Expr:
    """scale * elu(x, alpha), with the fixed point at mean 0 and variance 1 (Klambauer et al., 2017)."""
    e = as_expr(x)
    return SELU_SCALE * E.where(e > 0, e, SELU_ALPHA * E.unary("expm1", E.binary("min", e, 0)))


@elementwise
@once
def gelu(x: Any, *, approximate: str = "none") -> Expr:
    """x times the normal distribution function of x; `approximate="tanh"` is the usual approximation of it."""
    e = as_expr(x)
    if approximate == "tanh":
        return 0.5 * e * (1 + E.unary("tanh", math.sqrt(2 / math.pi) * (e + 0.044715 * (e * e * e))))
    if approximate != "none":
        raise refuse("A304", f"gelu: approximate={approximate!r}", "it is one of two forms", "none", "tanh")
    return 0.5 * e * (1 + E.unary("erf", e * math.sqrt(0.5)))


@elementwise
@once
def quick_gelu(x: Any) -> Expr:
    """x * sigmoid(1.702 * x), a rougher approximation of gelu (Hendrycks and Gimpel, 2016)."""
    e = as_expr(x)
    return e * E.unary("sigmoid", 1.702 * e)


@elementwise
@once
def silu(x: Any) -> Expr:
    """x * sigmoid(x)."""
    return as_expr(x) * E.unary("sigmoid", x)


@elementwise
@once
def mish(x: Any) -> Expr:
    """x * tanh(softplus(x)) (Misra, 2019)."""
    e = as_expr(x)
    return e * E.unary("tanh", _softplus(e))


def _softplus(e: Expr) -> Expr:
    return E.binary("max", e, 0) + E.unary("log1p", E.unary("exp", -E.unary("abs", e)))


@elementwise
@once
def softplus(x: Any) -> Expr:
    """log(1 + exp(x)), without overflow."""
    return _softplus(as_expr(x))


@elementwise
@once
def logsigmoid(x: Any) -> Expr:
    """log(sigmoid(x)), without overflow."""
    e = as_expr(x)
    return E.binary("min", e, 0) - E.unary("log1p", E.unary("exp", -E.unary("abs", e)))


@elementwise
@once
def softsign(x: Any) -> Expr:
    """x / (1 + |x|)."""
    e = as_expr(x)
    return e / (1 + E.unary("abs", e))


@elementwise
@once
def tanhshrink(x: Any) -> Expr:
    """x - tanh(x)."""
    e = as_expr(x)
    return e - E.unary("tanh", e)


# ---------------------------------------------------------------- gates
def _gated(what: str, x: Any, axis: AxisLike, fn: Callable[[Expr, Expr], Expr]) -> Tensor:
    """One stage of fn(first half, second half) of x along `axis`."""
    t = tensor(x, what)
    d = axis_number(axis, t.axis_names, what)
    n = t.shape[d]
    half = n // 2
    if bool(half * 2 != n):
        raise refuse("A303", f"{what} of {shown(t.shape)} along dimension {d}", f"its extent {n} is not even")
    names = labels(t.axis_names)

    def value(*i: Expr) -> Expr:
        second = tuple(e + as_expr(half) if k == d else e for k, e in enumerate(i))
        return fn(t[i], t[second])

    return build_stage(names, value, extents=dict(zip(names, [half if k == d else m for k, m in enumerate(t.shape)], strict=True)))


@operator
def glu(x: Any, axis: AxisLike = -1) -> Tensor:
    """a * sigmoid(b), with a and b the halves of x along `axis` (Dauphin et al., 2017)."""
    return _gated("glu", x, axis, lambda a, b: a * E.unary("sigmoid", b))


@operator
def swiglu(x: Any, axis: AxisLike = -1) -> Tensor:
    """silu(a) * b, with a and b the halves of x along `axis` (Shazeer, 2020)."""
    return _gated("swiglu", x, axis, lambda a, b: a * E.unary("sigmoid", a) * b)


@operator
def geglu(x: Any, axis: AxisLike = -1) -> Tensor:
    """gelu(a) * b, with a and b the halves of x along `axis` (Shazeer, 2020)."""
    return _gated("geglu", x, axis, lambda a, b: 0.5 * a * (1 + E.unary("erf", a * math.sqrt(0.5))) * b)
