"""Reductions, in both forms: over the axes of a lambda inside a stage, and over axes of a tensor."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, overload

from .. import expr as E
from ..building import operator, scope
from ..complex import ComplexExpr, ComplexTensor, from_pair
from ..complex.lifting import by_parts, holds_complex
from ..complex.tensors import is_interleaved
from ..dtypes import NARROW, canonical, part_of
from ..expr import Expr, Op, Reduce, as_expr, refuse
from ..extent import Extent, volume
from ..reducing import ACCUMULATOR, reduce, reduce_axes, unrounded, wide
from ..tensor import Index, Tensor
from ..trace import build_stage
from .arithmetic import add, not_equal
from .casts import cast
from .derived import real
from .functions import sqrt
from .shapes import axis_numbers, broadcast, labels, operand, shown, tensor
from .views import broadcast_view, expand_dims, expanded, moveaxis, reshape


def not_zero(x: Any) -> Any:
    """Of complex numbers whether they are not 0; others as they are, which are asked themselves."""
    return not_equal(x, 0) if holds_complex(x) else x


Axes: TypeAlias = "int | str | Sequence[int | str] | None"
Over: TypeAlias = "Mapping[str, int | tuple[int, int] | Extent] | None"
Body: TypeAlias = Callable[..., Any]


def reduced(
    kind: str, like: Tensor, axis: Axes, element: Callable[[Index], Any], name: str | None = None, dtype: str | None = None
) -> tuple[Tensor, tuple[int, ...]]:
    """One stage: `kind` over axes of the shape of `like` of the element at each index, as `dtype`. Also the positions of those axes."""
    over = axis_numbers(axis, like.axis_names, kind)
    names = labels(like.axis_names)
    size = dict(zip(names, like.shape, strict=True))
    kept = [n for d, n in enumerate(names) if d not in over]
    gone = [n for d, n in enumerate(names) if d in over]

    def value(*index: Expr) -> Any:
        outer = dict(zip(kept, index, strict=True))

        def inner(*ks: Expr) -> Any:
            at = {**outer, **dict(zip(gone, ks, strict=True))}
            return element(tuple(at[n] for n in names))

        return reduce_axes(kind, gone, inner, {n: size[n] for n in gone}) if gone else _alone(kind, as_expr(inner()))

    return build_stage(kept, value, name=name, extents={n: size[n] for n in kept}, dtype=dtype), over


def _alone(kind: str, e: Expr) -> Expr:
    """A reduction over no axes: the element itself, in the type that the reduction has."""
    if kind.startswith("arg"):
        return E.cast(0, "int32")
    if kind in ("any", "all"):
        return e if e.dtype == "bool" else E.binary("ne", e, 0)
    return E.cast(e, ACCUMULATOR.get(e.dtype, e.dtype)) if kind in ("sum", "prod") else e


def along(kind: str, x: Tensor, axis: Axes, name: str | None = None) -> tuple[Tensor, tuple[int, ...]]:
    """One stage that reduces x over axes, and their positions."""
    return reduced(kind, x, axis, lambda i: x[i], name)


def _make(kind: str) -> Callable[..., Tensor]:
    def made(x: Any, axis: Axes = None, keepdims: bool = False, dtype: Any = None) -> Tensor:
        t = tensor(x, kind)
        to = None if dtype is None else canonical(dtype)
        result, over = reduced(kind, t, axis, lambda i: t[i] if to is None else E.cast(t[i], to), dtype=to)
        return expanded(result, over) if keepdims else result

    made.__name__ = made.__qualname__ = kind
    return operator(made)


_sum, _prod, _max, _min, _any, _all, _argmax, _argmin = map(_make, ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin"))


_sum_of_parts: Callable[..., Any] = by_parts()(_sum)


@overload
def sum(x: Body, /, *, over: Over = None) -> Any: ...
@overload
def sum(x: Any, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None, name: str | None = None) -> Tensor: ...
def sum(x: Any, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None, over: Over = None, name: str | None = None) -> Any:
    """The sum over `axis` (numbers or names; None is all), or over the axes of a lambda. Narrow integers and bool are summed in 32 bits,
    narrow floats in float32, rounded at the end; with `dtype` elements are cast to it first, and the sum has it. Complex numbers that lie
    in pairs are summed as such over axes before the last."""
    if callable(x):
        return _of_lambda("sum", x, over, dtype)
    part = part_of(dtype)
    if part is not None:
        x, dtype = x if holds_complex(x) else cast(x, dtype), part
    if isinstance(x, ComplexTensor) and x.joined is not None and is_interleaved(x.real):
        gone = axis_numbers(axis, x.axis_names, "sum")
        if gone and x.ndim - 1 not in gone:
            row = reshape(x.joined, (*x.shape[:-1], x.shape[-1] * 2))
            total = _sum(row, gone, keepdims, dtype, name=name)
            return from_pair(reshape(total, (*total.shape[:-1], x.shape[-1], 2)))
    return _sum_of_parts(x, axis, keepdims, dtype, name=name)


def _of_lambda(kind: str, fn: Body, over: Over, dtype: Any) -> Any:
    if dtype is not None:
        raise refuse("A302", f"{kind} of a lambda, dtype=", "a lambda says so itself", f"fl.{kind}(lambda k: fl.cast(x[k], fl.f64))")
    return reduce(kind, fn, over)


@overload
def prod(x: Body, /, *, over: Over = None) -> Any: ...
@overload
def prod(x: Any, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None, name: str | None = None) -> Tensor: ...
def prod(x: Any, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None, over: Over = None, name: str | None = None) -> Any:
    """The product over axes, as `sum`; complex numbers are multiplied one after the other, in a scan."""
    if callable(x):
        return _of_lambda("prod", x, over, dtype)
    if holds_complex(x) or part_of(dtype) is not None:
        return _complex_prod(x if dtype is None else cast(x, dtype), axis, keepdims, name or "prod")
    return _prod(x, axis, keepdims, dtype, name=name)


def _complex_prod(x: Any, axis: Axes, keepdims: bool, name: str) -> Any:
    """The carry of a scan over the axes, made one."""
    from ..scanning import scan
    from .creation import ones

    z = operand(x, "prod")
    over = axis_numbers(axis, z.axis_names, "prod")
    kept = [n for d, n in enumerate(z.shape) if d not in over]
    with scope(name):
        factors = reshape(moveaxis(z, over, tuple(builtins.range(len(over)))), [count(z.shape, over), *kept])
        product, _ = scan(lambda carry, factor: (carry * factor, None), ones(kept, dtype=z.dtype), factors)
    return expand_dims(product, over) if keepdims else product


@overload
def max(x: Body, /, *, over: Over = None) -> Any: ...
@overload
def max(x: Any, axis: Axes = None, keepdims: bool = False, *, name: str | None = None) -> Tensor: ...
def max(x: Any, axis: Axes = None, keepdims: bool = False, *, over: Over = None, name: str | None = None) -> Any:
    """The largest element over axes; NaN if any is. An empty axis is refused when run."""
    return reduce("max", x, over) if callable(x) else _max(x, axis, keepdims, name=name)


@overload
def min(x: Body, /, *, over: Over = None) -> Any: ...
@overload
def min(x: Any, axis: Axes = None, keepdims: bool = False, *, name: str | None = None) -> Tensor: ...
def min(x: Any, axis: Axes = None, keepdims: bool = False, *, over: Over = None, name: str | None = None) -> Any:
    """The smallest element over axes, as `max`."""
    return reduce("min", x, over) if callable(x) else _min(x, axis, keepdims, name=name)


@overload
def any(x: Body, /, *, over: Over = None) -> Any: ...
@overload
def any(x: Any, axis: Axes = None, keepdims: bool = False, *, name: str | None = None) -> Tensor: ...
def any(x: Any, axis: Axes = None, keepdims: bool = False, *, over: Over = None, name: str | None = None) -> Any:
    """Whether any element is nonzero."""
    return reduce("any", x, over) if callable(x) else _any(not_zero(x), axis, keepdims, name=name)


@overload
def all(x: Body, /, *, over: Over = None) -> Any: ...
@overload
def all(x: Any, axis: Axes = None, keepdims: bool = False, *, name: str | None = None) -> Tensor: ...
def all(x: Any, axis: Axes = None, keepdims: bool = False, *, over: Over = None, name: str | None = None) -> Any:
    """Whether all elements are nonzero."""
    return reduce("all", x, over) if callable(x) else _all(not_zero(x), axis, keepdims, name=name)


@overload
def argmax(x: Body, /, *, over: Over = None) -> Any: ...
@overload
def argmax(x: Any, axis: Axes = None, keepdims: bool = False, *, name: str | None = None) -> Tensor: ...
def argmax(x: Any, axis: Axes = None, keepdims: bool = False, *, over: Over = None, name: str | None = None) -> Any:
    """The int32 position of the first largest element (the first NaN, if there is one); flat over several axes."""
    return reduce("argmax", x, over) if callable(x) else _argmax(x, axis, keepdims, name=name)


@overload
def argmin(x: Body, /, *, over: Over = None) -> Any: ...
@overload
def argmin(x: Any, axis: Axes = None, keepdims: bool = False, *, name: str | None = None) -> Tensor: ...
def argmin(x: Any, axis: Axes = None, keepdims: bool = False, *, over: Over = None, name: str | None = None) -> Any:
    """The int32 position of the first smallest element, as `argmax`."""
    return reduce("argmin", x, over) if callable(x) else _argmin(x, axis, keepdims, name=name)


# ---------------------------------------------------------------- averages
PARTS = ("real", "imag")


def count(shape: Sequence[Extent], over: Sequence[int]) -> Extent:
    """How many elements a reduction combines."""
    return volume(shape[d] for d in over)


def summand(e: Any) -> Expr:
    """As `real`, and narrow floats as float32, so that only the end result of an operator is rounded."""
    return wide(real(e))


def rounded(e: Any, like: str) -> Expr:
    """The end result of an operator on elements of type `like`."""
    return E.cast(e, like) if like in NARROW else as_expr(e)


def mapped(x: Tensor, fn: Callable[[Expr], Any], name: str | None = None) -> Tensor:
    """One stage that maps every element."""
    names = labels(x.axis_names)
    return build_stage(names, lambda *i: fn(x[i]), name=name, extents=dict(zip(names, x.shape, strict=True)))


@operator
def count_nonzero(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """How many elements are not 0, as int32."""
    t = tensor(not_zero(x), "count_nonzero")
    result, over = reduced("sum", t, axis, lambda i: E.binary("ne", t[i], 0))
    return expanded(result, over) if keepdims else result


@operator
def mean_(x: Any, axis: Axes = None, keepdims: bool = False, *, where: Any = None, rounds: bool = False) -> Tensor:
    """The mean over axes; that of narrow floats in float32 still, unless it `rounds`."""
    t = tensor(x, "mean")
    if where is not None:
        return _mean_where(t, axis, keepdims, tensor(where, "mean"), rounds)
    total, over = reduced("sum", t, axis, lambda i: summand(t[i]), name="sum")
    n = as_expr(count(t.shape, over))
    result = mapped(total, lambda e: rounded(e / n, t.dtype if rounds else "float32"))
    return expanded(result, over) if keepdims else result


def _mean_where(t: Tensor, axis: Axes, keepdims: bool, where: Tensor, rounds: bool) -> Tensor:
    if where.dtype != "bool":
        raise refuse("A302", f"mean of {t.label} where {where.label}, {where.dtype}", "it says yes or no of each element", "where=x > 0")
    to, _ = broadcast("mean", [t, where])
    if to != t.shape:
        why = f"it has an extent where {t.label} has 1, or more axes"
        instead = ("fl.broadcast_to",) if t.ndim else ("the losses of the elements: reduction='none'", "fl.broadcast_to")
        raise refuse("A301", f"mean of {shown(t.shape)} where {shown(where.shape)}", why, *instead)
    chosen = broadcast_view(where, to, t.axis_names)
    total, over = reduced("sum", t, axis, lambda i: E.where(chosen[i], summand(t[i]), E.cast(0, summand(t[i]).dtype)), name="sum")
    n, _ = reduced("sum", t, axis, lambda i: E.cast(chosen[i], "int32"), name="count")
    names = labels(total.axis_names)
    sizes = dict(zip(names, total.shape, strict=True))
    like = t.dtype if rounds else "float32"
    result = build_stage(names, lambda *i: rounded(total[i] / E.cast(n[i], total.dtype), like), extents=sizes)
    return expanded(result, over) if keepdims else result


@overload
def mean(x: Body, /, *, over: Over = None) -> Any: ...
@overload
def mean(x: Any, axis: Axes = None, keepdims: bool = False, *, where: Any = None, name: str | None = None) -> Tensor: ...
@by_parts()
def mean(x: Any, axis: Axes = None, keepdims: bool = False, *, where: Any = None, over: Over = None, name: str | None = None) -> Any:
    """The arithmetic mean over axes, or over the axes of a lambda; integers give float32.

    `where` [bool, broadcast to x] says which elements count: others are as if they were not there, and the mean of none is NaN.
    """
    if not callable(x):
        return mean_(x, axis, keepdims, where=where, rounds=True, name=name)
    if where is not None:
        raise refuse("A302", "mean of a lambda, where=", "a lambda says so itself", "fl.sum(lambda i: fl.where(c[i], x[i], 0.0))")
    summed = reduce("sum", x, over)
    if isinstance(summed, ComplexExpr):
        return ComplexExpr(_averaged(summed.real), _averaged(summed.imag))
    return _averaged(summed)


def _averaged(summed: Expr) -> Expr:
    """The sum of elements divided by how many there are."""
    total = unrounded(summed)
    assert isinstance(total, Reduce)
    n: Expr = as_expr(1)
    for a in total.axes:
        n = n * Op("extent", (a,), "int32", True)  # known once the reads have been seen
    return rounded(Reduce("sum", total.axes, total.extents, real(total.body), real(total.body).dtype) / n, summed.dtype)


@operator
def var(x: Any, axis: Axes = None, keepdims: bool = False, *, correction: int | float = 0) -> Tensor:
    """The mean squared distance from the mean; `correction` is taken off the number of elements. Of complex numbers real."""
    if holds_complex(x):
        real, imag = (var(p, axis, keepdims, correction=correction, name=n) for p, n in zip(operand(x, "var").parts(), PARTS, strict=True))
        return add(real, imag)
    t = tensor(x, "var")
    total, n, over = _squares(t, axis, correction)
    result = mapped(total, lambda e: rounded(e / n, t.dtype))
    return expanded(result, over) if keepdims else result


@operator
def std(x: Any, axis: Axes = None, keepdims: bool = False, *, correction: int | float = 0) -> Tensor:
    """The square root of the variance."""
    if holds_complex(x):
        return sqrt(var(x, axis, keepdims, correction=correction))
    t = tensor(x, "std")
    total, n, over = _squares(t, axis, correction)
    result = mapped(total, lambda e: rounded(E.unary("sqrt", e / n), t.dtype))
    return expanded(result, over) if keepdims else result


@operator
def var_(x: Tensor, axis: Axes, centre: Tensor) -> Tensor:
    """The variance about a mean that is known (with axes of extent 1); that of narrow floats in float32 still."""
    total, n, _ = _squares(x, axis, 0, centre)
    return mapped(total, lambda e: e / n)


def _squares(x: Tensor, axis: Axes, correction: int | float, known: Tensor | None = None) -> tuple[Tensor, Expr, tuple[int, ...]]:
    """The stage `sum` of squared distances from the stage `mean`, its divisor, and the axes."""
    over = axis_numbers(axis, x.axis_names, "var")
    centre = mean_(x, over, True) if known is None else known

    def distance(i: Index) -> Expr:
        off = E.binary("sub", summand(x[i]), centre[tuple(as_expr(0) if d in over else e for d, e in enumerate(i))])
        return off * off

    total, _ = reduced("sum", x, over, distance, name="sum")
    n = as_expr(count(x.shape, over))
    return total, (n if isinstance(correction, int) else E.cast(n, total.dtype)) - correction, over
