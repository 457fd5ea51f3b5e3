"""Normalisations that speak of channels: batch, group, instance and local response, and weight standardisation.

The channels are axis 1: [n, c], [n, c, x], [n, c, y, x] or [n, c, z, y, x]. `scale` and `shift` are [c].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import expr as E
from ..building import operator
from ..expr import Expr, as_expr, refuse
from ..reducing import reduce_axes
from ..tensor import Bounded, Tensor
from ..trace import build_stage
from .convolution import divides
from .normalize import at, over
from .reductions import mean_, rounded, summand, var_
from .shapes import shown, tensor
from .views import made


def _image(x: Any, what: str, least: int = 2) -> Tensor:
    t = tensor(x, what)
    if t.ndim < least:
        axes = "n, c" if least == 2 else "n, c, and axes of space"
        raise refuse("A307", f"{what} of {shown(t.shape)}", f"it has at least {least} axes: {axes}", "fl.expand_dims(x, 0)")
    return t


def _per_channel(t: Tensor, value: Any, what: str) -> Tensor | None:
    if value is None:
        return None
    found = tensor(value, what)
    if found.shape != (t.shape[1],):
        raise refuse(
            "A301", f"{what} of {shown(t.shape)} with {shown(found.shape)}", f"one number for each of the {t.shape[1]} channels is needed"
        )
    return found


def _normal(
    t: Tensor,
    centre: Callable[[Sequence[Expr]], Any],
    spread: Callable[[Sequence[Expr]], Any],
    factors: tuple[Tensor | None, Tensor | None],
    eps: float,
) -> Tensor:
    """(x - centre) / sqrt(spread + eps) * scale + shift, as one stage."""
    scale, shift = factors

    def value(i: Sequence[Expr]) -> Any:
        y = (summand(t[tuple(i)]) - centre(i)) * E.unary("rsqrt", spread(i) + eps)
        y = y if scale is None else y * scale[i[1]]
        return rounded(y if shift is None else y + shift[i[1]], t.dtype)

    return over(t, value)


@operator
def batch_norm(x: Any, scale: Any = None, shift: Any = None, *, mean: Any = None, var: Any = None, eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(var + eps) * scale + shift in each channel (Ioffe and Szegedy, 2015).

    `mean` and `var` [c] are running statistics, and the result is one stage; without them they are those of the batch, over all axes
    but the channels (var by the number of elements), as stages of `mean` and `var`.
    """
    t = _image(x, "batch_norm")
    factors = _per_channel(t, scale, "batch_norm"), _per_channel(t, shift, "batch_norm")
    if (mean is None) != (var is None):
        raise refuse("A304", "batch_norm with one of mean and var", "running statistics are both", "mean=..., var=...")
    if mean is not None:
        centre, spread = _per_channel(t, mean, "batch_norm"), _per_channel(t, var, "batch_norm")
        assert centre is not None and spread is not None
        return _normal(t, lambda i: centre[i[1]], lambda i: spread[i[1]], factors, eps)
    gone = tuple(d for d in range(t.ndim) if d != 1)
    middle = mean_(t, gone, True)
    around = var_(t, gone, middle)
    return _normal(t, lambda i: middle[tuple(e if d == 1 else as_expr(0) for d, e in enumerate(i))], lambda i: around[i[1]], factors, eps)


@operator
def group_norm(x: Any, groups: int, scale: Any = None, shift: Any = None, *, eps: float = 1e-5) -> Tensor:
    """Mean 0 and variance 1 over each of `groups` runs of channels and all of space, then scale and shift (Wu and He, 2018).

    Stages of `mean` and `var` with axes n g, and the result.
    """
    t = _image(x, "group_norm")
    if not divides(groups, t.shape[1]):
        raise refuse(
            "A304", f"group_norm of {shown(t.shape)}: groups={groups!r}", f"it is a positive integer that divides {t.shape[1]} channels"
        )
    factors = _per_channel(t, scale, "group_norm"), _per_channel(t, shift, "group_norm")
    per = t.shape[1] // groups
    grouped = made(
        t,
        (t.shape[0], groups, per, *t.shape[2:]),
        (t.axis_names[0] or "n", "g", t.axis_names[1] or "c", *t.axis_names[2:]),
        lambda i: (i[0], i[1] * as_expr(per) + i[2], *i[3:]),
    )
    gone = tuple(range(2, grouped.ndim))
    middle = mean_(grouped, gone, True)
    around = var_(grouped, gone, middle)

    def group(i: Sequence[Expr]) -> tuple[Expr, Expr]:
        return i[0], i[1] // as_expr(per)

    ones = (as_expr(0),) * len(gone)
    return _normal(t, lambda i: middle[(*group(i), *ones)], lambda i: around[group(i)], factors, eps)


@operator
def instance_norm(x: Any, scale: Any = None, shift: Any = None, *, eps: float = 1e-5) -> Tensor:
    """Mean 0 and variance 1 over the space of each image and channel, then scale and shift (Ulyanov et al., 2016).

    Stages of `mean` and `var`, and the result.
    """
    t = _image(x, "instance_norm", 3)
    factors = _per_channel(t, scale, "instance_norm"), _per_channel(t, shift, "instance_norm")
    gone = tuple(range(2, t.ndim))
    middle = mean_(t, gone, True)
    around = var_(t, gone, middle)
    ones = (as_expr(0),) * len(gone)
    return _normal(t, lambda i: middle[(*i[:2], *ones)], lambda i: at(around, i, gone), factors, eps)


@operator
def local_response_norm(x: Any, size: int, *, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """``x / (k + alpha / size * sum(x^2 over `size` channels around it))^beta`` (Krizhevsky et al., 2012), channels outside being 0.

    Channels c - size // 2 to c + (size - 1) // 2 count. Stages `sum` with the reduction axis k, and the quotient.
    """
    t = _image(x, "local_response_norm")
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise refuse("A304", f"local_response_norm: size={size!r}", "it is a positive number of channels")
    source = Bounded(t, "constant", 0.0 if "float" in t.dtype else 0)
    names = [n or f"i{d}" for d, n in enumerate(t.axis_names)]

    def value(*i: Expr) -> Expr:
        def tap(near: Expr) -> Expr:
            e = summand(source[(i[0], i[1] + near - size // 2, *i[2:])])
            return e * e

        return reduce_axes("sum", ["k"], tap, {"k": size})

    power = build_stage(names, value, name="sum", extents=dict(zip(names, t.shape, strict=True)))
    return over(t, lambda i: rounded(summand(t[tuple(i)]) / E.power(k + alpha / size * power[tuple(i)], beta), t.dtype))


@operator
def weight_standardization(w: Any, *, eps: float = 1e-5) -> Tensor:
    """Kernels w [o, ...] with mean 0 and variance 1 in each of o (Qiao et al., 2019): (w - mean) / sqrt(var + eps).

    Stages of `mean` and `var`, and the result.
    """
    t = _image(w, "weight_standardization")
    gone = tuple(range(1, t.ndim))
    middle = mean_(t, gone, True)
    around = var_(t, gone, middle)
    ones = (as_expr(0),) * len(gone)
    return _normal(t, lambda i: middle[(i[0], *ones)], lambda i: around[i[0]], (None, None), eps)
