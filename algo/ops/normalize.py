"""Softmax and the normalisations. Of narrow floats they are computed in float32 and rounded at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import expr as E
from ..autodiff.custom import stop_gradient
from ..building import operator
from ..dtypes import kind, largest
from ..expr import Expr, as_expr, refuse
from ..tensor import Tensor
from ..trace import build_stage
from .reductions import Axes, along, mapped, mean_, reduced, rounded, summand, var_
from .shapes import AxisLike, axis_numbers, broadcast, element, labels, shown, tensor
from .views import expanded

Mask = Callable[[Sequence[Expr]], Expr]


def _floating(x: Any, what: str) -> Tensor:
    t = tensor(x, what)
    if kind(t.dtype) != "float":
        raise refuse("A306", f"{what} of {t.dtype}", "it is defined on floats", "fl.cast(x, fl.f32)")
    return t


def over(x: Tensor, fn: Callable[[Sequence[Expr]], Any], name: str | None = None) -> Tensor:
    """One stage of the shape of x, from its index."""
    names = labels(x.axis_names)
    return build_stage(names, lambda *i: fn(i), name=name, extents=dict(zip(names, x.shape, strict=True)))


def at(t: Tensor, index: Sequence[Expr], gone: Sequence[int]) -> Any:
    """A reduced tensor at the index of the whole."""
    kept = tuple(i for d, i in enumerate(index) if d not in gone)
    return t[kept] if kept else t.as_scalar()


@operator
def softmax(x: Any, axis: AxisLike = -1, *, where: Any = None) -> Tensor:
    """exp(x) / sum(exp(x)) along `axis`, computed from x less its maximum. Stages `max exp sum`, and the quotient.

    Elements for which `where` (bool, broadcast to x) is false count as absent: they give 0, and so does a row that has no others.
    """
    t = _floating(x, "softmax")
    gone = axis_numbers(axis, t.axis_names, "softmax")
    present = where if callable(where) else _mask(t, where)
    if present is None:
        top = _shift(along("max", t, gone, name="max")[0])
        raised = over(t, lambda i: E.unary("exp", summand(t[tuple(i)]) - at(top, i, gone)), "exp")
        total, _ = along("sum", raised, gone, name="sum")
        return over(t, lambda i: rounded(raised[tuple(i)] / at(total, i, gone), t.dtype))
    # -inf would do but for rows without any element, where it leaves inf - inf
    kept = over(t, lambda i: E.where(present(i), t[tuple(i)], -largest(t.dtype)), "masked")
    top = _shift(along("max", kept, gone, name="max")[0])
    raised = over(t, lambda i: E.where(present(i), E.unary("exp", summand(t[tuple(i)]) - at(top, i, gone)), 0.0), "exp")
    total, _ = along("sum", raised, gone, name="sum")
    return over(t, lambda i: rounded(E.where(at(total, i, gone) > 0, raised[tuple(i)] / at(total, i, gone), 0.0), t.dtype))


def _shift(top: Tensor) -> Tensor:
    """What is taken off before exp: the result is the same whatever it is, so no derivative asks how it came about."""
    shift: Tensor = stop_gradient(top)
    return shift


def _mask(t: Tensor, where: Any) -> Mask | None:
    if where is None:
        return None
    m = tensor(where, "softmax")
    if m.dtype != "bool":
        raise refuse("A306", f"softmax with where of {m.dtype}", "the mask must be bool", "mask != 0")
    shape, _ = broadcast("softmax and its mask", [t, m])
    if shape != t.shape:
        raise refuse("A301", f"softmax of {shown(t.shape)} where {shown(m.shape)}", "the mask must broadcast to the tensor")
    return lambda i: as_expr(element(m, i, t.shape))


@operator
def softmin(x: Any, axis: AxisLike = -1) -> Tensor:
    """softmax(-x). Stages `negative`, and those of `softmax`."""
    t = _floating(x, "softmin")
    result: Tensor = softmax(mapped(t, lambda e: -e, name="negative"), axis)
    return result


@operator
def log_softmax(x: Any, axis: AxisLike = -1) -> Tensor:
    """log(softmax(x)) without loss of accuracy. Stages `max sum`, and the difference."""
    t = _floating(x, "log_softmax")
    top, total, gone = _shifted(t, axis)
    return over(t, lambda i: rounded((summand(t[tuple(i)]) - at(top, i, gone)) - E.unary("log", at(total, i, gone)), t.dtype))


@operator
def logsumexp(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) over axes, without overflow. Stages `max sum`, and the logarithm."""
    t = _floating(x, "logsumexp")
    top, total, gone = _shifted(t, axis)
    names = labels(total.axis_names)
    result = build_stage(
        names,
        lambda *i: rounded(E.unary("log", at(total, i, ())) + at(top, i, ()), t.dtype),
        extents=dict(zip(names, total.shape, strict=True)),
    )
    return expanded(result, gone) if keepdims else result


def _shifted(t: Tensor, axis: Axes) -> tuple[Tensor, Tensor, tuple[int, ...]]:
    """The maximum along axes (0 where it is infinite), the sum of exp(x - maximum), and the axes."""
    gone = axis_numbers(axis, t.axis_names, "logsumexp")
    top, _ = along("max", t, gone, name="max")
    top = _shift(mapped(top, lambda m: E.where(E.Op("isfinite", (m,), "bool", False), m, 0.0), name="shift"))
    total, _ = reduced("sum", t, gone, lambda i: E.unary("exp", summand(t[i]) - at(top, i, gone)), "sum")
    return top, total, gone


@operator
def layer_norm(x: Any, scale: Any = None, shift: Any = None, *, axis: Axes = -1, eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(variance + eps) over `axis`, times `scale`, plus `shift` (both broadcast to x).

    Stages of `mean` and `var`, and the result.
    """
    t = tensor(x, "layer_norm")
    gone = axis_numbers(axis, t.axis_names, "layer_norm")
    centre = mean_(t, gone, True)
    spread = var_(t, gone, centre)
    factors = _fitting(t, scale, shift, "layer_norm")

    def value(i: Sequence[Expr]) -> Any:
        y = (summand(t[tuple(i)]) - element(centre, i, t.shape)) * E.unary("rsqrt", at(spread, i, gone) + eps)
        return _affine(y, factors, i, t)

    return over(t, value)


@operator
def rms_norm(x: Any, scale: Any = None, *, axis: Axes = -1, eps: float = 1e-6) -> Tensor:
    """x / sqrt(mean(x * x) + eps) over `axis`, times `scale`. Stages `square mean`, and the result."""
    t = tensor(x, "rms_norm")
    gone = axis_numbers(axis, t.axis_names, "rms_norm")
    power = mean_(mapped(t, lambda e: summand(e) * summand(e), name="square"), gone)
    factors = _fitting(t, scale, None, "rms_norm")
    return over(t, lambda i: _affine(summand(t[tuple(i)]) * E.unary("rsqrt", at(power, i, gone) + eps), factors, i, t))


def _fitting(t: Tensor, scale: Any, shift: Any, what: str) -> tuple[Tensor | None, Tensor | None]:
    found = tuple(None if f is None else tensor(f, what) for f in (scale, shift))
    for f in found:
        if f is not None and broadcast(f"{what} and its scale or shift", [t, f])[0] != t.shape:
            raise refuse("A301", f"{what} of {shown(t.shape)} with {shown(f.shape)}", "scale and shift must broadcast to the tensor")
    return found[0], found[1]


def _affine(y: Expr, factors: tuple[Tensor | None, Tensor | None], i: Sequence[Expr], t: Tensor) -> Expr:
    scale, shift = factors
    if scale is not None:
        y = y * element(scale, i, t.shape)
    return rounded(y if shift is None else y + element(shift, i, t.shape), t.dtype)
