"""Losses of a classifier: cross-entropy with class indices or probabilities, and negative log-likelihood.

The classes lie along `axis`, the last by default (PyTorch's are axis 1: say ``axis=1`` for images [n, c, y, x]); a target of class
indices has the other axes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import expr as E
from ..building import operator
from ..dtypes import kind
from ..expr import Expr, as_expr, cast, refuse
from ..extent import Extent
from ..reducing import ACCUMULATOR, reduce_axes
from ..tensor import Tensor
from ..trace import build_stage
from .derived import real
from .gather import integers
from .losses import finished, require_reduction
from .normalize import log_softmax
from .reductions import along
from .shapes import AxisLike, axis_number, labels, shown, tensor


@operator
def cross_entropy(
    x: Any,
    target: Any,
    *,
    weight: Any = None,
    ignore_index: int | None = -100,
    label_smoothing: float = 0.0,
    axis: AxisLike = -1,
    reduction: str = "mean",
) -> Tensor:
    """-log(softmax(x))[target] of logits x, from log_softmax and so without overflow.

    `target` is class indices (integers, of the shape of x without `axis`) or probabilities (of the shape of x). `weight` [c] multiplies
    the loss of each class; the mean is then by the sum of the weights of the targets (of indices). A target of `ignore_index` counts
    for nothing. `label_smoothing` e moves e of each target to the uniform distribution (Szegedy et al., 2016).
    Stages of `log_softmax`, `each`, and of the mean or sum.
    """
    t = tensor(x, "cross_entropy")
    d = axis_number(axis, t.axis_names, "cross_entropy")
    if not 0 <= label_smoothing <= 1:
        raise refuse("A304", f"cross_entropy: label_smoothing={label_smoothing!r}", "it is a part, from 0 to 1")
    label = require_reduction("cross_entropy", reduction)
    logs = log_softmax(t, d)
    given = tensor(target, "cross_entropy")
    if kind(given.dtype) == "float":
        return _of_probabilities(logs, given, weight, d, label_smoothing, label, reduction)
    return _of_classes("cross_entropy", logs, given, weight, d, ignore_index, label_smoothing, label, reduction)


@operator
def nll_loss(
    x: Any, target: Any, *, weight: Any = None, ignore_index: int | None = -100, axis: AxisLike = -1, reduction: str = "mean"
) -> Tensor:
    """-x[target] of logarithms of probabilities x and class indices; the options are those of cross_entropy. Stage `each`, mean or sum."""
    t = tensor(x, "nll_loss")
    d = axis_number(axis, t.axis_names, "nll_loss")
    label = require_reduction("nll_loss", reduction)
    return _of_classes("nll_loss", t, tensor(target, "nll_loss"), weight, d, ignore_index, 0.0, label, reduction)


def _weights(what: str, weight: Any, classes: Any) -> Tensor | None:
    found = None if weight is None else tensor(weight, what)
    if found is not None and found.shape != (classes,):
        raise refuse("A301", f"{what} with weights {shown(found.shape)}", f"there is one weight for each of the {classes} classes")
    return found


def _of_classes(
    what: str,
    logs: Tensor,
    target: Tensor,
    weight: Any,
    d: int,
    ignore_index: int | None,
    smoothing: float,
    label: str | None,
    reduction: str,
) -> Tensor:
    classes, rest = logs.shape[d], (*logs.shape[:d], *logs.shape[d + 1 :])
    at, factors = integers(target, what), _weights(what, weight, classes)
    if at.shape != rest:
        raise refuse(
            "A301", f"{what} of {shown(logs.shape)} with targets {shown(at.shape)}", f"the targets have the other axes: {shown(rest)}"
        )
    names = labels(logs.axis_names)
    kept = names[:d] + names[d + 1 :]

    def class_of(i: tuple[Expr, ...]) -> Any:
        return at[i] if i else at.as_scalar()

    def counted(i: tuple[Expr, ...], value: Callable[[Expr], Any], absent: float) -> Expr:
        """The value for a class, where it counts."""
        c = class_of(i)
        found = as_expr(value(c))
        return found if ignore_index is None else E.where(c != _held(ignore_index, at.dtype), found, absent)

    def weigh(c: Expr) -> Any:
        return cast(1.0, logs.dtype) if factors is None else factors[c]

    def loss(*i: Expr) -> Expr:
        def of(c: Expr) -> Any:
            hit = -logs[(*i[:d], c, *i[d:])]
            hit = hit if factors is None else factors[c] * hit
            if not smoothing:
                return hit
            return (1 - smoothing) * hit + _share(smoothing, classes, logs.dtype) * (spread[i] if i else spread.as_scalar())

        return counted(i, of, 0.0)

    if smoothing:
        spread = _summed(logs, d, kept, "spread", lambda i, c: -logs[i] if factors is None else -logs[i] * factors[c])
    extents = dict(zip(kept, rest, strict=True))
    each = build_stage(kept, loss, name=label, extents=extents)
    if reduction != "mean" or (factors is None and ignore_index is None):
        return finished(each, reduction)
    mass = build_stage(kept, lambda *i: counted(i, weigh, 0.0), name="weight", extents=extents)
    total, whole = along("sum", each, None, name="sum")[0], along("sum", mass, None, name="mass")[0]
    return build_stage([], lambda: total.as_scalar() / whole.as_scalar())


def _held(value: int, dtype: str) -> Any:
    """A number to compare class indices of a type with: one that the type does not hold is never met."""
    info = np.iinfo(dtype)
    return cast(value, dtype) if info.min <= value <= info.max else cast(value, "int64")


def _share(smoothing: float, classes: Extent, dtype: str) -> Expr:
    """What smoothing gives to each class, in this type."""
    return cast(smoothing / cast(as_expr(classes), ACCUMULATOR.get(dtype, dtype)), dtype)


def _of_probabilities(logs: Tensor, target: Tensor, weight: Any, d: int, smoothing: float, label: str | None, reduction: str) -> Tensor:
    classes = logs.shape[d]
    if target.shape != logs.shape:
        raise refuse(
            "A301", f"cross_entropy of {shown(logs.shape)} with probabilities {shown(target.shape)}", "they have the shape of the logits"
        )
    factors = _weights("cross_entropy", weight, classes)
    names = labels(logs.axis_names)
    kept = names[:d] + names[d + 1 :]

    def element(i: tuple[Expr, ...], c: Expr) -> Any:
        p = real(target[i])
        p = p if not smoothing else p * (1 - smoothing) + _share(smoothing, classes, p.dtype)
        p = p if factors is None else p * factors[c]
        return p * -logs[i]

    each = _summed(logs, d, kept, label, element)
    if reduction != "mean":
        return finished(each, reduction)
    total, count = along("sum", each, None, name="sum")[0], each.size
    return build_stage([], lambda: total.as_scalar() / as_expr(count))


def _summed(t: Tensor, d: int, kept: list[str], label: str | None, fn: Callable[[tuple[Expr, ...], Expr], Expr]) -> Tensor:
    """One stage: the sum over the classes of fn(index, class)."""
    name = (
        next(n for n in ("c", "classes", "c_") if n not in kept) if t.axis_names[d] in kept or t.axis_names[d] is None else t.axis_names[d]
    )
    assert name is not None

    def value(*i: Expr) -> Expr:
        return reduce_axes("sum", [name], lambda c: fn((*i[:d], c, *i[d:]), c), {name: t.shape[d]})

    shape = (*t.shape[:d], *t.shape[d + 1 :])
    return build_stage(kept, value, name=label, extents=dict(zip(kept, shape, strict=True)))
