"""Scalar functions. Each is written once, as an expression of its arguments: inside a stage it is that expression, on tensors it is a
stage of its own name, with broadcasting as in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, overload

import numpy as np

from .. import expr as E
from ..dtypes import FLOATS, canonical, kind
from ..expr import Expr, Op, as_expr, refuse
from ..tensor import Tensor, in_body
from ..trace import build_stage, operator
from .shapes import broadcast, element, labels, tensor, weak_like


class Elementwise(Protocol):
    """A scalar function that also maps over tensors."""

    __name__: str

    @overload
    def __call__(self, x: Tensor, /, *more: Any, name: str | None = None, **options: Any) -> Tensor: ...
    @overload
    def __call__(self, *x: Any, name: str | None = None, **options: Any) -> Any: ...


def elementwise(fn: Callable[..., Any], label: str | None = None) -> Elementwise:
    """Positional arguments are operands, keywords are options."""

    def spread(*operands: Any, **options: Any) -> Tensor:
        made = as_operands(fn.__name__, operands)
        shape, names = broadcast(fn.__name__.rstrip("_"), [t for t in made if isinstance(t, Tensor)])
        axes = labels(names)

        def value(*index: Expr) -> Any:
            return fn(*(element(t, index, shape) if isinstance(t, Tensor) else t if t is None else as_expr(t) for t in made), **options)

        return build_stage(axes, value, extents=dict(zip(axes, shape, strict=True)))

    spread.__name__ = spread.__qualname__ = label or fn.__name__
    mapped = operator(spread)

    @wraps(fn)
    def call(*operands: Any, name: str | None = None, **options: Any) -> Any:
        if in_body():
            return fn(*(x if x is None else as_expr(x) for x in operands), **options)
        return mapped(*operands, name=name, **options)

    return call


def as_operands(what: str, given: tuple[Any, ...]) -> list[Any]:
    """Arrays become constants; lists take the type of the first tensor; numbers and extents stay what they are."""
    found: list[Any] = []
    strong = next((x.dtype for x in given if isinstance(x, Tensor)), None)
    for x in given:
        if isinstance(x, list | tuple):
            found.append(tensor(x if strong is None else weak_like(x, strong), what))
        elif isinstance(x, np.ndarray) and x.ndim:
            found.append(tensor(x, what))
        else:
            found.append(x)
    return found


def _real(x: Expr, op: str) -> Expr:
    return Op(op, (x,), "bool", False)


# ---------------------------------------------------------------- arithmetic
@elementwise
def add(x: Any, y: Any) -> Expr:
    """x + y. Integers wrap."""
    return E.binary("add", x, y)


@elementwise
def subtract(x: Any, y: Any) -> Expr:
    """x - y. Integers wrap."""
    return E.binary("sub", x, y)


@elementwise
def multiply(x: Any, y: Any) -> Expr:
    """x * y. Integers wrap."""
    return E.binary("mul", x, y)


@elementwise
def divide(x: Any, y: Any) -> Expr:
    """x / y; integers give float32."""
    return E.binary("div", x, y)


@elementwise
def floor_divide(x: Any, y: Any) -> Expr:
    """The floor of x / y; an integer divided by zero gives 0."""
    return E.binary("floordiv", x, y)


@elementwise
def mod(x: Any, y: Any) -> Expr:
    """The remainder of floor division, which has the sign of y; 0 for an integer y of zero."""
    return E.binary("mod", x, y)


@elementwise
def pow(x: Any, y: Any) -> Expr:
    """x to the power y. Whole constant powers up to 16 are products."""
    return E.power(x, y)


@elementwise
def negative(x: Any) -> Expr:
    """-x."""
    return E.unary("neg", x)


@elementwise
def abs(x: Any) -> Expr:
    """The absolute value."""
    return as_expr(x) if as_expr(x).dtype.startswith("u") else E.unary("abs", x)


@elementwise
def sign(x: Any) -> Expr:
    """-1, 0 or 1."""
    return E.unary("sign", x)


@elementwise
def square(x: Any) -> Expr:
    """x * x."""
    return E.binary("mul", x, x)


@elementwise
def reciprocal(x: Any) -> Expr:
    """1 / x."""
    return E.binary("div", 1, x)


@elementwise
def minimum(x: Any, y: Any) -> Expr:
    """The smaller of x and y; NaN if either is."""
    return E.binary("min", x, y)


@elementwise
def maximum(x: Any, y: Any) -> Expr:
    """The larger of x and y; NaN if either is."""
    return E.binary("max", x, y)


@elementwise
def clamp(x: Any, low: Any = None, high: Any = None) -> Expr:
    """x kept within [low, high]; either may be None."""
    if low is not None:
        x = E.binary("max", x, low)
    return as_expr(x) if high is None else E.binary("min", x, high)


# ---------------------------------------------------------------- rounding
def _whole(op: str, x: Any) -> Expr:
    e = as_expr(x)
    return E.unary(op, e) if kind(e.dtype) == "float" else e


@elementwise
def floor(x: Any) -> Expr:
    """The largest whole number that is not above x, in the type of x."""
    return _whole("floor", x)


@elementwise
def ceil(x: Any) -> Expr:
    """The smallest whole number that is not below x, in the type of x."""
    return _whole("ceil", x)


@elementwise
def round(x: Any) -> Expr:
    """The nearest whole number, halves to even, in the type of x."""
    return _whole("round", x)


@elementwise
def trunc(x: Any) -> Expr:
    """x without its fraction, in the type of x."""
    return _whole("trunc", x)


# ---------------------------------------------------------------- real functions
@elementwise
def exp(x: Any) -> Expr:
    """e to the power x."""
    return E.unary("exp", x)


@elementwise
def exp2(x: Any) -> Expr:
    """2 to the power x."""
    return E.unary("exp2", x)


@elementwise
def expm1(x: Any) -> Expr:
    """exp(x) - 1, accurate near 0."""
    return E.unary("expm1", x)


@elementwise
def log(x: Any) -> Expr:
    """The natural logarithm; -inf at 0, NaN below."""
    return E.unary("log", x)


@elementwise
def log2(x: Any) -> Expr:
    """The logarithm to base 2."""
    return E.unary("log2", x)


@elementwise
def log10(x: Any) -> Expr:
    """The logarithm to base 10."""
    return E.unary("log10", x)


@elementwise
def log1p(x: Any) -> Expr:
    """log(1 + x), accurate near 0."""
    return E.unary("log1p", x)


@elementwise
def sqrt(x: Any) -> Expr:
    """The square root; NaN below 0."""
    return E.unary("sqrt", x)


@elementwise
def rsqrt(x: Any) -> Expr:
    """1 / sqrt(x)."""
    return E.unary("rsqrt", x)


@elementwise
def sin(x: Any) -> Expr:
    """The sine of x radians."""
    return E.unary("sin", x)


@elementwise
def cos(x: Any) -> Expr:
    """The cosine of x radians."""
    return E.unary("cos", x)


@elementwise
def tan(x: Any) -> Expr:
    """The tangent of x radians."""
    return E.unary("tan", x)


@elementwise
def asin(x: Any) -> Expr:
    """The angle in [-pi/2, pi/2] radians whose sine is x."""
    return E.unary("asin", x)


@elementwise
def acos(x: Any) -> Expr:
    """The angle in [0, pi] radians whose cosine is x."""
    return E.unary("acos", x)


@elementwise
def atan(x: Any) -> Expr:
    """The angle in (-pi/2, pi/2) radians whose tangent is x."""
    return E.unary("atan", x)


@elementwise
def atan2(y: Any, x: Any) -> Expr:
    """The angle of the point (x, y) in radians, in [-pi, pi]."""
    return E.binary("atan2", y, x)


@elementwise
def sinh(x: Any) -> Expr:
    """The hyperbolic sine."""
    return E.unary("sinh", x)


@elementwise
def cosh(x: Any) -> Expr:
    """The hyperbolic cosine."""
    return E.unary("cosh", x)


@elementwise
def tanh(x: Any) -> Expr:
    """The hyperbolic tangent."""
    return E.unary("tanh", x)


@elementwise
def sigmoid(x: Any) -> Expr:
    """1 / (1 + exp(-x))."""
    return E.unary("sigmoid", x)


@elementwise
def erf(x: Any) -> Expr:
    """The error function."""
    return E.unary("erf", x)


# ---------------------------------------------------------------- tests and choices
@elementwise
def isnan(x: Any) -> Expr:
    """Whether x is NaN."""
    e = as_expr(x)
    return _real(e, "isnan") if kind(e.dtype) == "float" else E.cast(False, "bool")


@elementwise
def isinf(x: Any) -> Expr:
    """Whether x is infinite."""
    e = as_expr(x)
    return _real(e, "isinf") if kind(e.dtype) == "float" else E.cast(False, "bool")


@elementwise
def isfinite(x: Any) -> Expr:
    """Whether x is neither infinite nor NaN."""
    e = as_expr(x)
    return _real(e, "isfinite") if kind(e.dtype) == "float" else E.cast(True, "bool")


@elementwise
def where(condition: Any, x: Any, y: Any) -> Expr:
    """x where the condition holds, else y. The other branch is never evaluated as far as anyone can see."""
    return E.where(condition, x, y)


@elementwise
def equal(x: Any, y: Any) -> Expr:
    """x == y."""
    return E.binary("eq", x, y)


@elementwise
def not_equal(x: Any, y: Any) -> Expr:
    """x != y."""
    return E.binary("ne", x, y)


@elementwise
def less(x: Any, y: Any) -> Expr:
    """x < y."""
    return E.binary("lt", x, y)


@elementwise
def less_equal(x: Any, y: Any) -> Expr:
    """x <= y."""
    return E.binary("le", x, y)


@elementwise
def greater(x: Any, y: Any) -> Expr:
    """x > y."""
    return E.binary("lt", y, x)


@elementwise
def greater_equal(x: Any, y: Any) -> Expr:
    """x >= y."""
    return E.binary("le", y, x)


# ---------------------------------------------------------------- bits and truth
@elementwise
def bitwise_and(x: Any, y: Any) -> Expr:
    """x & y, on booleans and integers."""
    return E.binary("and", x, y)


@elementwise
def bitwise_or(x: Any, y: Any) -> Expr:
    """x | y, on booleans and integers."""
    return E.binary("or", x, y)


@elementwise
def bitwise_xor(x: Any, y: Any) -> Expr:
    """x ^ y, on booleans and integers."""
    return E.binary("xor", x, y)


@elementwise
def invert(x: Any) -> Expr:
    """~x: not on booleans, the complement on integers."""
    return E.unary("not", x)


@elementwise
def left_shift(x: Any, y: Any) -> Expr:
    """x << y; 0 when y is the width or more."""
    return E.binary("shl", x, y)


@elementwise
def right_shift(x: Any, y: Any) -> Expr:
    """x >> y, arithmetic on signed types; 0 or the sign when y is the width or more."""
    return E.binary("shr", x, y)


def _truth(x: Any) -> Expr:
    e = as_expr(x)
    return e if e.dtype == "bool" else E.binary("ne", e, 0)


@elementwise
def logical_and(x: Any, y: Any) -> Expr:
    """Whether both are nonzero."""
    return _truth(x) & _truth(y)


@elementwise
def logical_or(x: Any, y: Any) -> Expr:
    """Whether either is nonzero."""
    return _truth(x) | _truth(y)


@elementwise
def logical_xor(x: Any, y: Any) -> Expr:
    """Whether exactly one is nonzero."""
    return _truth(x) ^ _truth(y)


@elementwise
def logical_not(x: Any) -> Expr:
    """Whether x is zero."""
    return ~_truth(x)


# ---------------------------------------------------------------- types
def _cast(x: Any, *, dtype: str) -> Expr:
    return E.cast(x, dtype)


def _saturate(x: Any, *, dtype: str) -> Expr:
    e = as_expr(x)
    if dtype in FLOATS or kind(e.dtype) != "int" or dtype == "bool":
        return E.cast(e, dtype)  # a float is saturated by the cast itself
    here, there = np.iinfo(e.dtype), np.iinfo(dtype)
    if there.min > here.min:
        e = E.binary("max", e, int(there.min))
    if there.max < here.max:
        e = E.binary("min", e, int(there.max))
    return E.cast(e, dtype)


# a scope called cast belongs to the plan, whose precision section makes such stages
_mapped_cast, _mapped_saturate = elementwise(_cast, "astype"), elementwise(_saturate, "saturate")


@overload
def cast(x: Tensor, dtype: Any, *, name: str | None = None) -> Tensor: ...
@overload
def cast(x: Any, dtype: Any, *, name: str | None = None) -> Any: ...
def cast(x: Any, dtype: Any, *, name: str | None = None) -> Any:
    """x in another type. Floats truncate toward zero into integers and saturate at their ends, NaN gives 0; integers wrap."""
    return _mapped_cast(x, name=name, dtype=canonical(dtype))


@overload
def saturate(dtype: Any, x: Tensor, *, name: str | None = None) -> Tensor: ...
@overload
def saturate(dtype: Any, x: Any, *, name: str | None = None) -> Any: ...
def saturate(dtype: Any, x: Any, *, name: str | None = None) -> Any:
    """x in another type, clamped to that type's range."""
    return _mapped_saturate(x, name=name, dtype=canonical(dtype))


# ---------------------------------------------------------------- activations
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
