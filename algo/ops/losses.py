"""Losses between two tensors of one shape. Each is a stage of the loss of every element, then its mean or sum.

`reduction` is "mean" (over all elements), "sum" or "none". Stages: the operator's own name with "none", else `each` and those of the
mean or sum. Losses of narrow floats are float32. Names and formulas follow PyTorch's unless they say otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import expr as E
from ..building import operator
from ..expr import Expr, as_expr, refuse
from ..tensor import Tensor
from ..trace import build_stage
from .derived import real
from .elementwise import as_operands
from .reductions import along, mapped, mean_
from .shapes import AxisLike, axis_numbers, broadcast, element, labels, shown, tensor

REDUCTIONS = ("mean", "sum", "none")


def require_reduction(what: str, reduction: str) -> str | None:
    """The name of the stage of single losses. Raises AlgorithmError for a reduction that is none of the three."""
    if reduction not in REDUCTIONS:
        raise refuse("A304", f"{what}: reduction={reduction!r}", "it says what becomes of the single losses", *REDUCTIONS)
    return None if reduction == "none" else "each"


def finished(each: Tensor, reduction: str) -> Tensor:
    """The single losses, or their mean or sum."""
    if reduction == "none":
        return each
    return mean_(each) if reduction == "mean" else along("sum", each, None, name="sum")[0]


def _loss(what: str, reduction: str, fn: Callable[..., Any], *given: Any) -> Tensor:
    """fn of the elements of operands that broadcast."""
    label = require_reduction(what, reduction)
    made = [tensor(t, what) for t in as_operands(what, given)]
    shape, names = broadcast(what, made)
    axes = labels(names)
    each = build_stage(
        axes, lambda *i: fn(*(real(element(t, i, shape)) for t in made)), name=label, extents=dict(zip(axes, shape, strict=True))
    )
    return finished(each, reduction)


# ---------------------------------------------------------------- distances
@operator
def mse_loss(x: Any, target: Any, *, reduction: str = "mean") -> Tensor:
    """(x - target)^2."""
    return _loss("mse_loss", reduction, lambda a, b: (a - b) * (a - b), x, target)


@operator
def l1_loss(x: Any, target: Any, *, reduction: str = "mean") -> Tensor:
    """|x - target|."""
    return _loss("l1_loss", reduction, lambda a, b: E.unary("abs", a - b), x, target)


def _positive(what: str, name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise refuse("A304", f"{what}: {name}={value!r}", "it is a number above 0")


@operator
def huber_loss(x: Any, target: Any, *, delta: float = 1.0, reduction: str = "mean") -> Tensor:
    """d^2 / 2 up to |d| = delta, delta * (|d| - delta / 2) beyond, of d = x - target (Huber, 1964)."""
    _positive("huber_loss", "delta", delta)

    def each(a: Expr, b: Expr) -> Expr:
        d = E.unary("abs", a - b)
        return E.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta))

    return _loss("huber_loss", reduction, each, x, target)


@operator
def smooth_l1_loss(x: Any, target: Any, *, beta: float = 1.0, reduction: str = "mean") -> Tensor:
    """d^2 / (2 beta) up to |d| = beta, |d| - beta / 2 beyond: huber_loss(delta=beta) / beta."""
    _positive("smooth_l1_loss", "beta", beta)

    def each(a: Expr, b: Expr) -> Expr:
        d = E.unary("abs", a - b)
        return E.where(d < beta, d * d * (0.5 / beta), d - 0.5 * beta)

    return _loss("smooth_l1_loss", reduction, each, x, target)


# ---------------------------------------------------------------- probabilities
@operator
def binary_cross_entropy(p: Any, target: Any, *, reduction: str = "mean") -> Tensor:
    """-(t log(p) + (1 - t) log(1 - p)), each logarithm at least -100 so that p = 0 and p = 1 stay finite."""

    def each(p: Expr, t: Expr) -> Expr:
        yes, no = (E.binary("max", E.unary(f, e), -100.0) for f, e in (("log", p), ("log1p", -p)))
        return -(t * yes + (1 - t) * no)

    return _loss("binary_cross_entropy", reduction, each, p, target)


@operator
def binary_cross_entropy_with_logits(x: Any, target: Any, *, positive_weight: Any = None, reduction: str = "mean") -> Tensor:
    """binary_cross_entropy of sigmoid(x), without overflow: max(x, 0) - x t + log(1 + exp(-|x|)).

    `positive_weight`, broadcast, multiplies the term of the positives.
    """

    def each(x: Expr, t: Expr, w: Expr | None = None) -> Expr:
        tail = E.unary("log1p", E.unary("exp", -E.unary("abs", x)))
        if w is None:
            return E.binary("max", x, 0) - x * t + tail
        return (1 - t) * x + (1 + (w - 1) * t) * (tail + E.binary("max", -x, 0))

    given = (x, target) if positive_weight is None else (x, target, positive_weight)
    return _loss("binary_cross_entropy_with_logits", reduction, each, *given)


@operator
def focal_loss(x: Any, target: Any, *, alpha: float = 0.25, gamma: float = 2.0, reduction: str = "mean") -> Tensor:
    """alpha_t (1 - p_t)^gamma bce, of logits x and targets 0 or 1 (Lin et al., 2017): p_t is what sigmoid(x) gives to the target.

    A negative `alpha` leaves the factor out. torchvision's sigmoid_focal_loss.
    """

    def each(x: Expr, t: Expr) -> Expr:
        loss = E.binary("max", x, 0) - x * t + E.unary("log1p", E.unary("exp", -E.unary("abs", x)))
        p = E.unary("sigmoid", x)
        missed = p * (1 - t) + (1 - p) * t
        if gamma:
            loss = loss * (missed if gamma == 1 else E.power(missed, gamma))
        return loss if alpha < 0 else (alpha * t + (1 - alpha) * (1 - t)) * loss

    return _loss("focal_loss", reduction, each, x, target)


@operator
def kl_div(x: Any, target: Any, *, log_target: bool = False, reduction: str = "mean") -> Tensor:
    """target (log(target) - x), with x the logarithms of probabilities and `target` probabilities (logarithms, with `log_target`).

    0 log 0 is 0. `reduction="batchmean"` is the sum over the first extent: the divergence by its mathematical definition.
    """

    def each(x: Expr, t: Expr) -> Expr:
        if log_target:
            return E.unary("exp", t) * (t - x)
        return E.where(t > 0, t * (E.unary("log", t) - x), E.where(t != t, t, 0 * t))

    if reduction != "batchmean":
        return _loss("kl_div", reduction, each, x, target)
    batch = tensor(x, "kl_div").shape
    if not batch:
        raise refuse("A307", "kl_div of a number with reduction='batchmean'", "the batch is the first axis", "sum")
    return mapped(_loss("kl_div", "sum", each, x, target), lambda e: e / as_expr(batch[0]))


# ---------------------------------------------------------------- margins
@operator
def hinge_loss(x: Any, target: Any, *, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """max(margin - target * x, 0), with targets -1 and 1 (Keras' hinge)."""
    return _loss("hinge_loss", reduction, lambda a, y: E.binary("max", margin - y * a, 0), x, target)


@operator
def hinge_embedding_loss(x: Any, target: Any, *, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """The distance x itself where the target is 1, max(margin - x, 0) where it is -1."""
    return _loss("hinge_embedding_loss", reduction, lambda a, y: E.where(y == 1, a, E.binary("max", margin - a, 0)), x, target)


def similarity(a: Any, b: Any, axis: AxisLike, eps: float, what: str) -> Tensor:
    """a . b / (max(|a|, eps) max(|b|, eps)) along an axis, from the stages `dot first second`."""
    x, y = tensor(a, what), tensor(b, what)
    shape, names = broadcast(what, [x, y])
    (d,) = axis_numbers(axis, names, what)

    def total(name: str, fn: Callable[[Expr, Expr], Expr]) -> Tensor:
        return _along(shape, names, d, lambda i: fn(real(element(x, i, shape)), real(element(y, i, shape))), name)

    dot, first, second = total("dot", lambda p, q: p * q), total("first", lambda p, q: p * p), total("second", lambda p, q: q * q)
    axes = labels(dot.axis_names)

    def value(*i: Expr) -> Expr:
        lengths = [E.binary("max", E.unary("sqrt", t[i] if i else t.as_scalar()), eps) for t in (first, second)]
        return (dot[i] if i else dot.as_scalar()) / (lengths[0] * lengths[1])

    return build_stage(axes, value, name="cosine" if what != "cosine_similarity" else None, extents=dict(zip(axes, dot.shape, strict=True)))


def _along(shape: Any, names: Any, d: int, fn: Callable[[Any], Expr], label: str) -> Tensor:
    """One stage: the sum along axis d of a function of the index of a shape."""
    from ..reducing import reduce_axes

    axes = labels(names)
    kept = [n for k, n in enumerate(axes) if k != d]

    def value(*i: Expr) -> Expr:
        return reduce_axes("sum", [axes[d]], lambda k: fn((*i[:d], k, *i[d:])), {axes[d]: shape[d]})

    return build_stage(kept, value, name=label, extents={n: shape[axes.index(n)] for n in kept})


@operator
def cosine_similarity(a: Any, b: Any, axis: AxisLike = -1, *, eps: float = 1e-8) -> Tensor:
    """a . b / (|a| |b|) along `axis`, lengths counting as at least `eps`. Stages `dot first second`, and the quotient."""
    return similarity(a, b, axis, eps, "cosine_similarity")


@operator
def cosine_embedding_loss(a: Any, b: Any, target: Any, *, margin: float = 0.0, reduction: str = "mean") -> Tensor:
    """1 - cosine where the target is 1, max(cosine - margin, 0) where it is -1: a and b [n, d], target [n].

    Stages `dot first second cosine`, then those of the loss.
    """
    require_reduction("cosine_embedding_loss", reduction)
    alike = similarity(a, b, -1, 1e-8, "cosine_embedding_loss")

    def each(s: Expr, y: Expr) -> Expr:
        return E.where(y == 1, 1 - s, E.binary("max", s - margin, 0))

    return _loss("cosine_embedding_loss", reduction, each, alike, target)


@operator
def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, *, margin: float = 1.0, p: int = 2, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """max(|anchor - positive| - |anchor - negative| + margin, 0) of [n, d] (Schroff et al., 2015), with the p-norm (p = 1 or 2) of
    a - b + eps. Stages `near far`, then those of the loss.
    """
    require_reduction("triplet_margin_loss", reduction)
    if p not in (1, 2):
        raise refuse("A304", f"triplet_margin_loss: p={p!r}", "the norm is of order 1 or 2")
    one, two, three = (tensor(t, "triplet_margin_loss") for t in (anchor, positive, negative))
    if one.shape != two.shape or one.shape != three.shape or not one.ndim:
        raise refuse(
            "A301",
            f"triplet_margin_loss of {shown(one.shape)}, {shown(two.shape)} and {shown(three.shape)}",
            "anchors, positives and negatives have one shape, features last",
        )

    def distance(other: Tensor, label: str) -> Tensor:
        def off(i: Any) -> Expr:
            d = real(one[tuple(i)]) - real(other[tuple(i)]) + eps
            return E.unary("abs", d) if p == 1 else d * d

        return _along(one.shape, one.axis_names, one.ndim - 1, off, label)

    root: Callable[[Expr], Expr] = (lambda e: e) if p == 1 else (lambda e: E.unary("sqrt", e))
    near, far = distance(two, "near"), distance(three, "far")
    return _loss("triplet_margin_loss", reduction, lambda a, b: E.binary("max", root(a) - root(b) + margin, 0), near, far)
