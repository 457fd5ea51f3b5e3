"""Pooling: one number for every window of an image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import expr as E
from ..building import operator
from ..dtypes import NARROW
from ..expr import Expr, as_expr, cast, refuse
from ..extent import Extent
from ..reducing import reduce_axes
from ..tensor import Tensor
from ..trace import build_stage
from .reductions import mapped, reduced, rounded, summand
from .windows import SPACE, TAPS, Window, image, lowest, spatial, surrounded, windows, zero


def _prepared(
    what: str, rank: int, x: Any, window: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
) -> tuple[Tensor, tuple[Window, ...], list[str], dict[str, Extent]]:
    t = image(x, what, rank)
    taps = spatial(window, f"{what}: window", 1, rank)
    made = windows(what, t.shape[2:], taps, taps if stride is None else stride, padding, dilation, ceil)
    names = ["n", "c", *SPACE[rank]]
    return t, made, names, dict(zip(names, (*t.shape[:2], *(w.extent for w in made)), strict=True))


def _over(kind_: str, made: tuple[Window, ...], element: Callable[..., Any]) -> Callable[..., Expr]:
    """The reduction over the taps of `element` of the index of each read."""
    names = TAPS[len(made)]

    def value(n: Expr, c: Expr, *at: Expr) -> Expr:
        def tap(*taps: Expr) -> Any:
            return element((n, c, *(w.read(p, k) for w, p, k in zip(made, at, taps, strict=True))))

        return reduce_axes(kind_, list(names), tap, {k: w.taps for k, w in zip(names, made, strict=True)})

    return value


# ---------------------------------------------------------------- maximum
def _max_pool(what: str, rank: int, x: Any, window: Any, stride: Any, padding: Any, dilation: Any, ceil: bool) -> Tensor:
    t, made, names, extents = _prepared(what, rank, x, window, stride, padding, dilation, ceil)
    source = surrounded(t, made, lowest(t.dtype))
    return build_stage(names, _over("max", made, lambda i: source[i]), extents=extents)


@operator
def max_pool1d(x: Any, window: Any, *, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil: bool = False) -> Tensor:
    """The largest element of each window, as max_pool2d. Axes: n c x; kx."""
    return _max_pool("max_pool1d", 1, x, window, stride, padding, dilation, ceil)


@operator
def max_pool2d(x: Any, window: Any, *, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil: bool = False) -> Tensor:
    """The largest element of each window (y, x); the padding never wins. `stride` is the window by default. Axes: n c y x; ky kx.

    With `ceil`, a last window hangs over the end where the stride does not divide, if it begins before the end.
    """
    return _max_pool("max_pool2d", 2, x, window, stride, padding, dilation, ceil)


@operator
def max_pool3d(x: Any, window: Any, *, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil: bool = False) -> Tensor:
    """The largest element of each window (z, y, x), as max_pool2d. Axes: n c z y x; kz ky kx."""
    return _max_pool("max_pool3d", 3, x, window, stride, padding, dilation, ceil)


# ---------------------------------------------------------------- mean
def _avg_pool(what: str, rank: int, x: Any, window: Any, stride: Any, padding: Any, include: bool, ceil: bool) -> Tensor:
    t, made, names, extents = _prepared(what, rank, x, window, stride, padding, 1, ceil)
    source = surrounded(t, made, zero(t.dtype))
    total = build_stage(names, _over("sum", made, lambda i: summand(source[i])), extents=extents, name="sum")

    def divided(*i: Expr) -> Any:
        count: Expr = as_expr(1)
        for w, size, position in zip(made, t.shape[2:], i[2:], strict=True):
            count = count * _count(w, size, position, include)
        return rounded(total[i] / cast(count, total.dtype), t.dtype)

    return build_stage(names, divided, extents=extents)


def _count(w: Window, size: Extent, position: Expr, include: bool) -> Expr:
    """How many elements of a window count: those of the image, or also those of the padding, which ends where it was said to."""
    if not w.padded or (include and not w.overhangs):
        return as_expr(w.taps)
    first = position * w.stride - as_expr(w.before)
    last = E.binary("min", first + as_expr(w.taps), size + w.after if include else size)
    return last - first if include else last - E.binary("max", first, 0)


@operator
def avg_pool1d(x: Any, window: Any, *, stride: Any = None, padding: Any = 0, include_padding: bool = False, ceil: bool = False) -> Tensor:
    """The mean of each window, as avg_pool2d. Stages `sum` and the quotient, axes n c x; kx."""
    return _avg_pool("avg_pool1d", 1, x, window, stride, padding, include_padding, ceil)


@operator
def avg_pool2d(x: Any, window: Any, *, stride: Any = None, padding: Any = 0, include_padding: bool = False, ceil: bool = False) -> Tensor:
    """The mean of each window (y, x): of the elements that there are, or with `include_padding` of all, the padding being 0.

    `stride` is the window by default; `ceil` as for max_pool2d. Stages `sum` and the quotient, axes n c y x; ky kx.
    """
    return _avg_pool("avg_pool2d", 2, x, window, stride, padding, include_padding, ceil)


@operator
def avg_pool3d(x: Any, window: Any, *, stride: Any = None, padding: Any = 0, include_padding: bool = False, ceil: bool = False) -> Tensor:
    """The mean of each window (z, y, x), as avg_pool2d. Stages `sum` and the quotient, axes n c z y x; kz ky kx."""
    return _avg_pool("avg_pool3d", 3, x, window, stride, padding, include_padding, ceil)


# ---------------------------------------------------------------- power mean
def _lp_pool(what: str, rank: int, x: Any, window: Any, p: Any, stride: Any, ceil: bool) -> Tensor:
    if isinstance(p, bool) or not isinstance(p, int | float) or p <= 0:
        raise refuse("A304", f"{what}: p={p!r}", "the order of a norm is a number above 0")
    t, made, names, extents = _prepared(what, rank, x, window, stride, 0, 1, ceil)
    source = surrounded(t, made, zero(t.dtype))

    def powered(i: Any) -> Any:
        e = summand(source[i])
        return e * e if p == 2 else E.unary("abs", e) if p == 1 else E.power(E.unary("abs", e), float(p))

    total = build_stage(names, _over("sum", made, powered), extents=extents, name="sum")
    if p == 1 and t.dtype not in NARROW:
        return total
    return mapped(total, lambda e: rounded(e if p == 1 else E.unary("sqrt", e) if p == 2 else E.power(e, 1 / p), t.dtype))


@operator
def lp_pool1d(x: Any, window: Any, *, p: float = 2, stride: Any = None, ceil: bool = False) -> Tensor:
    """``sum(|x|^p)^(1/p)`` over each window. Stages `sum` and the root, axes n c x; kx."""
    return _lp_pool("lp_pool1d", 1, x, window, p, stride, ceil)


@operator
def lp_pool2d(x: Any, window: Any, *, p: float = 2, stride: Any = None, ceil: bool = False) -> Tensor:
    """``sum(|x|^p)^(1/p)`` over each window (y, x). Stages `sum` and the root (p = 1: one stage), axes n c y x; ky kx."""
    return _lp_pool("lp_pool2d", 2, x, window, p, stride, ceil)


# ---------------------------------------------------------------- the whole image
def _global_avg(what: str, rank: int, x: Any) -> Tensor:
    t = image(x, what, rank)
    over = tuple(range(2, rank + 2))
    total, _ = reduced("sum", t, over, lambda i: summand(t[i]), "sum")
    count: Extent = 1
    for n in t.shape[2:]:
        count = count * n
    names = [n or f"i{d}" for d, n in enumerate(total.axis_names)]
    return build_stage(names, lambda *i: rounded(total[i] / as_expr(count), t.dtype), extents=dict(zip(names, total.shape, strict=True)))


@operator
def global_avg_pool1d(x: Any) -> Tensor:
    """The mean over x: [n, c]. Stages `sum` and the quotient."""
    return _global_avg("global_avg_pool1d", 1, x)


@operator
def global_avg_pool2d(x: Any) -> Tensor:
    """The mean over y and x: [n, c]. Stages `sum` and the quotient."""
    return _global_avg("global_avg_pool2d", 2, x)


@operator
def global_avg_pool3d(x: Any) -> Tensor:
    """The mean over z, y and x: [n, c]. Stages `sum` and the quotient."""
    return _global_avg("global_avg_pool3d", 3, x)


@operator
def global_max_pool1d(x: Any) -> Tensor:
    """The largest element over x: [n, c]."""
    t = image(x, "global_max_pool1d", 1)
    return reduced("max", t, (2,), lambda i: t[i])[0]


@operator
def global_max_pool2d(x: Any) -> Tensor:
    """The largest element over y and x: [n, c]."""
    t = image(x, "global_max_pool2d", 2)
    return reduced("max", t, (2, 3), lambda i: t[i])[0]


@operator
def global_max_pool3d(x: Any) -> Tensor:
    """The largest element over z, y and x: [n, c]."""
    t = image(x, "global_max_pool3d", 3)
    return reduced("max", t, (2, 3, 4), lambda i: t[i])[0]
