"""Operators that go element by element, under PyTorch's names and with its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
from fluorite.algo.ops import ALIASES

from .left_out import unless, without


def add(x: Any, y: Any, *, alpha: Any = 1) -> Any:
    return x + y if alpha == 1 else x + y * alpha


def sub(x: Any, y: Any, *, alpha: Any = 1) -> Any:
    return x - y if alpha == 1 else x - y * alpha


def rsub(x: Any, y: Any, *, alpha: Any = 1) -> Any:
    return sub(y, x, alpha=alpha)


def div(x: Any, y: Any, *, rounding_mode: str | None = None) -> Any:
    quotient = {None: fl.divide, "floor": fl.floor_divide, "trunc": lambda x, y: fl.trunc(x / y)}
    return quotient[rounding_mode](x, y)


def round_(x: Any, *, decimals: int = 0) -> Any:
    without(decimals=decimals or None)
    return fl.round(x)


def clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    unless(all(getattr(t, "dtype", x.dtype) == x.dtype for t in (min, max)), "limits of another type")
    return fl.clamp(x, min, max)


def where(x: Any, condition: Any, y: Any) -> Any:
    return fl.where(condition, x, y)


def masked_fill(x: Any, mask: Any, value: Any) -> Any:
    return fl.where(mask, value, x)


def swapped(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: fn(y, x)


# ---------------------------------------------------------------- activations
def celu(x: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    return fl.celu(x, alpha=alpha)


def elu(x: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    return fl.elu(x, alpha=alpha)


def gelu(x: Any, *, approximate: str = "none") -> Any:
    return fl.gelu(x, approximate=approximate)


def glu(x: Any, dim: int = -1) -> Any:
    return fl.glu(x, dim)


def hardshrink(x: Any, lambd: float = 0.5) -> Any:
    return fl.hardshrink(x, threshold=lambd)


def softshrink(x: Any, lambd: float = 0.5) -> Any:
    return fl.softshrink(x, threshold=lambd)


def hardtanh(x: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    unless(min_val < max_val, "a range of nothing")
    return fl.hardtanh(x, low=min_val, high=max_val)


def leaky_relu(x: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    return fl.leaky_relu(x, negative_slope)


def prelu(x: Any, weight: Any) -> Any:
    unless(x.ndim > 0, "a slope for each channel of what has no channels")
    if weight.ndim and x.ndim > 1 and weight.shape != (1,):
        weight = fl.reshape(weight, (weight.shape[0], *[1] * (x.ndim - 2)))
    return fl.prelu(x, weight)


def softplus(x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    unless(beta == 1 and threshold == 20, "beta= and threshold=")
    return fl.softplus(x)


def threshold(x: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    return fl.threshold(x, above=threshold, value=value)


def in_place(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, inplace=False: fn(x)


def dropout(x: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Random numbers differ, so only what does not depend on them is compared."""
    unless(not training or p in (0.0, 1.0), "random numbers of another generator")
    return fl.dropout(x, p, key=fl.random.key(0)) if training else x


SAME = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp", "exp2", "expm1", "floor",
    "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "positive", "reciprocal", "rsqrt", "sigmoid", "sign", "signbit",
    "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc", "logical_not", "logical_and", "logical_or", "logical_xor", "bitwise_and",
    "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "maximum", "minimum", "atan2", "hypot", "logaddexp",
    "copysign", "nextafter", "pow", "floor_divide", "remainder",
]  # fmt: skip

ELEMENTWISE: dict[str, tuple[str, Callable[..., Any]]] = {
    **{n: (ALIASES.get(n, n), getattr(fl, n)) for n in SAME},
    **{
        torch: (own, getattr(fl, own))
        for torch, own in {
            "neg": "negative", "bitwise_not": "invert", "mul": "multiply", "true_divide": "divide", "eq": "equal", "ne": "not_equal",
            "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "angle": "angle", "conj": "conj", "real": "real",
            "imag": "imag", "complex": "complex",
        }.items()
    },
    **{
        f"__{name}__": (own, swapped(getattr(fl, own)))
        for name, own in {
            "radd": "add", "rmul": "multiply", "rsub": "subtract", "rdiv": "divide", "rpow": "pow", "rmod": "mod", "rand": "bitwise_and",
            "ror": "bitwise_or", "rxor": "bitwise_xor",
        }.items()
    },
    "add": ("add", add), "sub": ("subtract", sub), "rsub": ("subtract", rsub), "div": ("divide", div), "round": ("round", round_),
    "clamp": ("clamp", clamp), "clamp_min": ("clamp", lambda x, low: fl.clamp(x, low)),
    "clamp_max": ("clamp", lambda x, high: fl.clamp(x, None, high)), "where": ("where", where), "masked_fill": ("where", masked_fill),
    **{f"nn.functional.{n}": (n, in_place(getattr(fl, n))) for n in ["hardsigmoid", "hardswish", "mish", "relu", "relu6", "selu", "silu"]},
    **{f"nn.functional.{n}": (n, getattr(fl, n)) for n in ["logsigmoid", "softsign", "tanhshrink"]},
    **{
        f"nn.functional.{fn.__name__}": (fn.__name__, fn)
        for fn in (celu, elu, gelu, glu, hardshrink, softshrink, hardtanh, leaky_relu, prelu, softplus, threshold, dropout)
    },
}  # fmt: skip
