"""Scaled dot-product attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import expr as E
from ..building import operator
from ..expr import Expr, as_expr, refuse
from ..tensor import Tensor
from ..trace import build_stage
from .normalize import softmax
from .products import contracted
from .shapes import broadcast, element, labels, shown, tensor
from .views import swapaxes


@operator
def attention(q: Any, k: Any, v: Any, *, mask: Any = None, causal: bool = False, scale: float | None = None) -> Tensor:
    """softmax(q @ k.T * scale) @ v: q [..., t, d], k [..., s, d], v [..., s, e] give [..., t, e].

    `scale` is 1 / sqrt(d) by default. `mask` (bool, broadcast to [..., t, s]) says which keys a query sees; `causal` lets it see
    no later ones, the last query seeing all. A query that sees no key gives zeros. Stages `scores scaled softmax`, and the result,
    with the axes of matmul.
    """
    query, key, value = (tensor(x, "attention") for x in (q, k, v))
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise refuse(
            "A307",
            f"attention of {shown(query.shape)}, {shown(key.shape)} and {shown(value.shape)}",
            "each has at least two axes: position and feature",
        )
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise refuse(
            "A301",
            f"attention of q {shown(query.shape)}, k {shown(key.shape)} and v {shown(value.shape)}",
            "q and k have equal features, k and v equal positions",
        )
    scores = contracted(query, swapaxes(key, -1, -2), name="scores")
    d = query.shape[-1]

    def factor() -> Expr:
        if scale is not None:
            return as_expr(float(scale))
        return as_expr(1 / math.sqrt(d)) if isinstance(d, int) else E.unary("rsqrt", E.cast(as_expr(d), query.dtype))

    names = labels(scores.axis_names)
    scaled = build_stage(names, lambda *i: scores[i] * factor(), name="scaled", extents=dict(zip(names, scores.shape, strict=True)))
    return contracted(softmax(scaled, where=_visible(scaled, mask, causal)), value)


def _visible(scaled: Tensor, mask: Any, causal: bool) -> Any:
    """Which elements of [..., t, s] count, as a condition on the index; None for all."""
    seen = None if mask is None else tensor(mask, "attention")
    if seen is not None:
        if seen.dtype != "bool":
            raise refuse(
                "A306", f"attention with a mask of {seen.dtype}", "the mask must be bool: true where a query sees a key", "mask > 0"
            )
        if broadcast("attention scores and mask", [scaled, seen])[0] != scaled.shape:
            raise refuse(
                "A301", f"attention scores {shown(scaled.shape)} with a mask {shown(seen.shape)}", "the mask must broadcast to the scores"
            )
    if seen is None and not causal:
        return None
    later = scaled.shape[-1] - scaled.shape[-2]

    def visible(i: Sequence[Expr]) -> Expr:
        before = i[-1] <= i[-2] + as_expr(later)
        if seen is None:
            return before
        given = as_expr(element(seen, i, scaled.shape))
        return before & given if causal else given

    return visible
