"""Recurrences along one axis: running sums, products and extremes, linear recurrences, recursive filters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import expr as E
from ..building import operator
from ..complex import ComplexTensor, complex_tensor
from ..complex.lifting import by_parts, holds_complex
from ..dtypes import FLOATS, canonical, kind
from ..expr import Const, Expr, as_expr, refuse
from ..extent import Extent
from ..recurring import build_recurrence
from ..reducing import ACCUMULATOR
from ..tensor import Index, Tensor
from ..trace import build_stage
from .derived import real
from .shapes import AxisLike, axis_number, labels, tensor


class Walk:
    """Where a walk along one axis of a tensor is: reads of the result and of operands some steps before."""

    def __init__(self, itself: Tensor, index: Index, axis: int, length: Extent, reverse: bool) -> None:
        self.itself, self.index, self.axis, self.reverse = itself, index, axis, reverse
        self.step = index[axis]
        self.length = as_expr(length)

    def back(self, steps: int) -> Index:
        """The index this many steps before."""
        t = self.step + steps if self.reverse else self.step - steps
        return (*self.index[: self.axis], t, *self.index[self.axis + 1 :])

    def has(self, steps: int) -> Expr:
        """Whether there is an element that many steps before."""
        return self.step + steps < self.length if self.reverse else as_expr(steps) <= self.step

    def earlier(self, steps: int, otherwise: Any) -> Expr:
        """The result this many steps before, or what is taken for it before the first."""
        return E.where(self.has(steps), self.itself[self.back(steps)], otherwise)


def walked(x: Tensor, axis: int, reverse: bool, dtype: str, step: Callable[[Walk], Any], name: str | None = None) -> Tensor:
    """One stage of the shape of x whose elements follow from earlier ones along an axis."""
    names = labels(x.axis_names)
    return build_recurrence(
        names,
        lambda h, *i: step(Walk(h, i, axis, x.shape[axis], reverse)),
        name=name,
        extents=dict(zip(names, x.shape, strict=True)),
        dtype=dtype,
    )


def _only_axis(x: Tensor, axis: AxisLike | None, what: str) -> int:
    """The axis asked for, which may be left out where there is one."""
    if axis is None and x.ndim != 1:
        raise refuse("A302", f"{what} of {x!r} without axis=", "only with one axis is it clear which is meant", "axis=-1")
    return axis_number(0 if axis is None else axis, x.axis_names, what)


def _result_type(x: Tensor, dtype: Any) -> str:
    return canonical(dtype) if dtype is not None else ACCUMULATOR.get(x.dtype, x.dtype)


def _cumulative(
    what: str, combine: Callable[[Expr, Expr], Expr], identity: Any, x: Any, axis: AxisLike | None, to: str, initial: bool, reverse: bool
) -> Tensor:
    t = tensor(x, what)
    d = _only_axis(t, axis, what)

    def value(i: Index) -> Expr:
        return E.cast(t[i], to)

    if not initial:
        return walked(t, d, reverse, to, lambda w: E.where(w.has(1), combine(w.itself[w.back(1)], value(w.index)), value(w.index)))
    names = labels(t.axis_names)
    shape = {n: e + (k == d) for k, (n, e) in enumerate(zip(names, t.shape, strict=True))}
    start = E.cast(as_expr(identity), to)

    def step(h: Tensor, *i: Expr) -> Expr:
        w = Walk(h, i, d, t.shape[d] + 1, reverse)
        return E.where(w.has(1), combine(h[w.back(1)], value(w.index if reverse else w.back(1))), start)

    return build_recurrence(names, step, extents=shape, dtype=to)


@by_parts()
@operator
def cumulative_sum(
    x: Any, axis: AxisLike | None = None, *, dtype: Any = None, include_initial: bool = False, reverse: bool = False
) -> Tensor:
    """Running sums along an axis, which may be left out where there is one. As NumPy's; narrow integers and bool are summed in 32 bits.

    `include_initial` puts the 0 before the first element too; `reverse` sums from the last element to the first.
    """
    t = tensor(x, "cumulative_sum")
    return _cumulative("cumulative_sum", E.Expr.__add__, 0, t, axis, _result_type(t, dtype), include_initial, reverse)


def _products(z: ComplexTensor, axis: AxisLike | None, dtype: Any, initial: bool, reverse: bool) -> Any:
    """Running products of complex numbers, both of whose parts follow from both."""
    from ..scanning import scan
    from .casts import cast
    from .creation import ones
    from .joining import concatenate

    d = _only_axis(z.real, axis, "cumulative_prod")
    z = z if dtype is None else cast(z, dtype)
    kept = [n for k, n in enumerate(z.shape) if k != d]

    def step(carry: Any, factor: Any) -> tuple[Any, Any]:
        made = carry * factor
        return made, made

    _, every = scan(step, ones(kept, dtype=z.dtype), z, axis=d, reverse=reverse)
    if not initial:
        return every
    first = ones([*z.shape[:d], 1, *z.shape[d + 1 :]], dtype=z.dtype)
    return concatenate([every, first] if reverse else [first, every], axis=d)


@operator
def cumulative_prod(
    x: Any, axis: AxisLike | None = None, *, dtype: Any = None, include_initial: bool = False, reverse: bool = False
) -> Tensor:
    """Running products along an axis, as `cumulative_sum`; `include_initial` puts a 1 before the first."""
    if holds_complex(x):
        return _products(complex_tensor(x, "cumulative_prod"), axis, dtype, include_initial, reverse)  # type: ignore[no-any-return]
    t = tensor(x, "cumulative_prod")
    return _cumulative("cumulative_prod", E.Expr.__mul__, 1, t, axis, _result_type(t, dtype), include_initial, reverse)


@operator
def cumulative_max(x: Any, axis: AxisLike | None = None, *, reverse: bool = False) -> Tensor:
    """The largest element so far along an axis; NaN from the first NaN on."""
    t = tensor(x, "cumulative_max")
    return _cumulative("cumulative_max", lambda a, b: E.binary("max", a, b), 0, t, axis, t.dtype, False, reverse)


@operator
def cumulative_min(x: Any, axis: AxisLike | None = None, *, reverse: bool = False) -> Tensor:
    """The smallest element so far along an axis; NaN from the first NaN on."""
    t = tensor(x, "cumulative_min")
    return _cumulative("cumulative_min", lambda a, b: E.binary("min", a, b), 0, t, axis, t.dtype, False, reverse)


@operator
def logcumsumexp(x: Any, axis: AxisLike | None = None, *, reverse: bool = False) -> Tensor:
    """log(cumulative_sum(exp(x))) without overflow: the larger of two plus log(1 + exp(-their distance)) at each step."""
    t = tensor(x, "logcumsumexp")

    def joined(a: Expr, b: Expr) -> Expr:
        apart = E.where(a.__eq__(b), Const(0.0, a.dtype, False), a - b)  # equal infinities are at no distance
        return E.binary("max", a, b) + E.unary("log1p", E.unary("exp", -abs(apart)))

    d = _only_axis(t, axis, "logcumsumexp")
    to = t.dtype if kind(t.dtype) == "float" else "float32"
    return walked(t, d, reverse, to, lambda w: E.where(w.has(1), joined(w.itself[w.back(1)], real(t[w.index])), real(t[w.index])))


@operator
def linear_recurrence(a: Any, x: Any, axis: AxisLike = -1, *, initial: Any = 0, reverse: bool = False) -> Tensor:
    """h[t] = a[t] * h[t - 1] + x[t] along an axis; a has the shape of x or is a number. Before the first step h is `initial`, a number."""
    t = tensor(x, "linear_recurrence")
    d = axis_number(axis, t.axis_names, "linear_recurrence")
    factor = a if isinstance(a, int | float) else tensor(a, "linear_recurrence")
    if isinstance(factor, Tensor) and tuple(factor.shape) != tuple(t.shape):
        raise refuse("A301", f"linear_recurrence of {factor!r} and {t!r}", "they have one shape", "fl.broadcast_to(a, x.shape)")

    def step(w: Walk) -> Expr:
        by: Expr = factor[w.index] if isinstance(factor, Tensor) else as_expr(factor)
        return E.binary("add", by * w.earlier(1, initial), t[w.index])

    return walked(t, d, reverse, _float(t, "linear_recurrence"), step)


@operator
def lfilter(b: Sequence[float], a: Sequence[float], x: Any, axis: AxisLike = -1, *, reverse: bool = False) -> Tensor:
    """A recursive (IIR) filter along an axis: a[0] y[t] = sum_k b[k] x[t - k] - sum_{k >= 1} a[k] y[t - k], zeros before the first step.

    b and a are lists of numbers, as for scipy.signal.lfilter; `reverse` filters from the last element to the first.
    """
    forward, back = (_coefficients(c, what) for c, what in ((b, "b"), (a, "a")))
    if back[0] == 0:
        raise refuse("A304", "lfilter with a[0] = 0", "y[t] would not be in the equation", "a whose first coefficient is not 0")
    t = tensor(x, "lfilter")
    d, to = axis_number(axis, t.axis_names, "lfilter"), _float(t, "lfilter")
    names = labels(t.axis_names)

    def feed(*i: Expr) -> Expr:
        w = Walk(t, i, d, t.shape[d], reverse)
        taps = [E.cast(c / back[0], to) * (w.earlier(k, 0) if k else t[i]) for k, c in enumerate(forward)]
        return _total(taps)

    fed = build_stage(names, feed, name="feed", extents=dict(zip(names, t.shape, strict=True)))

    def step(w: Walk) -> Expr:
        return _total([fed[w.index], *(E.cast(-c / back[0], to) * w.earlier(k, 0) for k, c in enumerate(back) if k and c)])

    return walked(t, d, reverse, to, step)


@operator
def exponential_moving_average(x: Any, alpha: float, axis: AxisLike = -1) -> Tensor:
    """y[0] = x[0], then y[t] = y[t - 1] + alpha * (x[t] - y[t - 1]); alpha from 0 to 1 is the weight of the newest element."""
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 <= alpha <= 1:
        raise refuse("A304", f"exponential_moving_average with alpha={alpha!r}", "it is a number from 0 to 1")
    t = tensor(x, "exponential_moving_average")
    d, to = axis_number(axis, t.axis_names, "exponential_moving_average"), _float(t, "exponential_moving_average")

    def step(w: Walk) -> Expr:
        last, new = w.itself[w.back(1)], t[w.index]
        return E.where(w.has(1), last + E.cast(alpha, to) * (new - last), new)

    return walked(t, d, False, to, step)


def _float(x: Tensor, what: str) -> str:
    if x.dtype not in FLOATS:
        raise refuse("A306", f"{what} of {x!r}", "it is defined on floats", "fl.cast(x, fl.f32)")
    return x.dtype


def _coefficients(given: Any, what: str) -> list[float]:
    numbers = given.tolist() if isinstance(given, np.ndarray) and given.ndim == 1 else given
    if not isinstance(numbers, list | tuple) or not numbers or any(isinstance(c, bool) or not isinstance(c, int | float) for c in numbers):
        raise refuse("A304", f"lfilter with {what}={given!r}", "it is a list of numbers, one for each delay", f"{what}=[1.0, -0.5]")
    return [float(c) for c in numbers]


def _total(parts: Sequence[Expr]) -> Expr:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    return whole
