"""Scaled dot-product attention: masks, grouped queries, windows, biases, and steps on a cache of keys and values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import expr as E
from ..building import operator
from ..dtypes import NARROW, held, kind
from ..expr import Expr, as_expr, refuse
from ..extent import Extent
from ..tensor import Tensor
from ..trace import build_stage
from .gather import integers
from .normalize import softmax
from .order import repeat
from .products import contracted
from .reductions import mapped, rounded
from .shapes import broadcast, element, labels, shown, tensor
from .views import swapaxes

Seen = Callable[[Sequence[Expr]], Expr]


@dataclass(frozen=True)
class Sight:
    """Which keys a query sees: `first` is the position of the first query among the keys, as a function of the index of a score."""

    causal: bool
    window: int | None
    first: Callable[[Sequence[Expr]], Expr]

    def conditions(self, i: Sequence[Expr]) -> list[Expr]:
        found = []
        own = i[-2] + self.first(i)
        if self.causal:
            found.append(i[-1] <= own)
        if self.window is not None:
            found.append(own - i[-1] < self.window)
            if not self.causal:
                found.append(i[-1] - own < self.window)
        return found


@operator
def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    mask: Any = None,
    bias: Any = None,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
) -> Tensor:
    """softmax(q @ k.T * scale) @ v: q [..., t, d], k [..., s, d], v [..., s, e] give [..., t, e] (Vaswani et al., 2017).

    `scale` is 1 / sqrt(d) by default. `mask`, broadcast to [..., t, s], is bool and says which keys a query sees, or float and is
    added to the scores, -inf hiding a key; `bias`, of that shape too, is added as well. `causal` lets a query see no later keys, the last
    query seeing all; with `window` it sees keys at a distance below it only. A query that sees no key gives zeros.

    Where k and v have fewer heads (axis -3) than q, each serves a group of as many queries in a row (grouped queries, Ainslie et al.,
    2023). Stages `scores scaled softmax`, and the result, with the axes of matmul; of narrow
    floats they are float32, and the result is rounded once.
    """
    query, key, value = _operands("attention", q, k, v)
    _require_window(window)
    later = key.shape[-2] - query.shape[-2]
    return _attended("attention", query, key, value, mask, bias, Sight(causal, window, lambda i: as_expr(later)), scale)


@operator
def cached_attention(
    q: Any, k: Any, v: Any, k_cache: Any, v_cache: Any, position: Any, *, window: int | None = None, scale: float | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """One step of decoding: (attention of q over all keys so far, the new cache of keys, the new cache of values).

    The step's keys k [..., t, d] and values v [..., t, e] take the places from `position` (an int32 number, or one per element of the
    first axis) in the caches [..., s, d] and [..., s, e]; places outside them are dropped. Query i sees places up to position + i; what
    lies beyond in the cache counts for nothing. Other options, and grouped queries, as for attention. Stages `keys values scores scaled
    softmax attended`.
    """
    query, key, value = _operands("cached_attention", q, k, v)
    _require_window(window)
    at = integers(position, "cached_attention")
    if at.ndim > 1 or (at.ndim == 1 and (key.ndim < 3 or at.shape[0] != key.shape[0])):
        raise refuse(
            "A307",
            f"cached_attention with positions {shown(at.shape)}",
            "the position is one number, or one for each element of the first axis",
        )

    def first(i: Sequence[Expr]) -> Any:
        return E.cast(at.as_scalar() if at.ndim == 0 else at[i[0]], "int32")

    keys = _placed("keys", tensor(k_cache, "cached_attention"), key, first)
    values = _placed("values", tensor(v_cache, "cached_attention"), value, first)
    return _attended("cached_attention", query, keys, values, None, None, Sight(True, window, first), scale), keys, values


def _placed(label: str, cache: Tensor, new: Tensor, first: Callable[[Sequence[Expr]], Any]) -> Tensor:
    """The cache with the new rows in their places."""
    if cache.ndim != new.ndim or cache.dtype != new.dtype or (*cache.shape[:-2], cache.shape[-1]) != (*new.shape[:-2], new.shape[-1]):
        raise refuse(
            "A301",
            f"cached_attention of {label} {new.dtype}{shown(new.shape)} in a cache {cache.dtype}{shown(cache.shape)}",
            "they differ only in the number of positions",
        )
    names = labels(cache.axis_names)

    def value(*i: Expr) -> Any:
        row = i[-2] - first(i)
        return E.where((row >= 0) & (row < as_expr(new.shape[-2])), new[(*i[:-2], row, i[-1])], cache[i])

    return build_stage(names, value, name=label, extents=dict(zip(names, cache.shape, strict=True)))


# ---------------------------------------------------------------- the common part
def _operands(what: str, q: Any, k: Any, v: Any) -> tuple[Tensor, Tensor, Tensor]:
    query, key, value = (tensor(x, what) for x in (q, k, v))
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise refuse(
            "A307",
            f"{what} of {shown(query.shape)}, {shown(key.shape)} and {shown(value.shape)}",
            "each has at least two axes: position and feature",
        )
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise refuse(
            "A301",
            f"{what} of q {shown(query.shape)}, k {shown(key.shape)} and v {shown(value.shape)}",
            "q and k have equal features, k and v equal positions",
        )
    return query, key, value


def _require_window(window: int | None) -> None:
    if window is not None and (isinstance(window, bool) or not isinstance(window, int) or window < 1):
        raise refuse("A304", f"attention: window={window!r}", "it is a number of keys, at least 1, or None for all")


def _shared(what: str, query: Tensor, other: Tensor) -> Tensor:
    """k or v with each head repeated for the queries that share it."""
    if min(query.ndim, other.ndim) < 3:
        return other
    heads, fewer = query.shape[-3], other.shape[-3]
    if heads == fewer or 1 in (heads, fewer):
        return other
    if not isinstance(heads, int) or not isinstance(fewer, int) or heads % fewer:
        raise refuse(
            "A301",
            f"{what} of q {shown(query.shape)} and k or v {shown(other.shape)}",
            f"the {heads} heads of q are no multiple of the {fewer} that keys and values have",
        )
    found: Tensor = repeat(other, heads // fewer, -3)
    return found


def _attended(what: str, query: Tensor, key: Tensor, value: Tensor, mask: Any, bias: Any, sight: Sight, scale: float | None) -> Tensor:
    scores = contracted(query, swapaxes(_shared(what, query, key), -1, -2), name="scores", rounds=False)
    seen, added = _given(what, scores, mask, bias)
    d = query.shape[-1]

    def factor() -> Expr:
        if scale is not None:
            return as_expr(float(scale))
        return as_expr(1 / math.sqrt(d)) if isinstance(d, int) else E.unary("rsqrt", E.cast(as_expr(d), scores.dtype))

    def scored(*i: Expr) -> Any:
        e = scores[i] * factor()
        for term in added:
            e = e + element(term, i, scores.shape)
        return e

    names = labels(scores.axis_names)
    scaled = build_stage(names, scored, name="scaled", extents=dict(zip(names, scores.shape, strict=True)))
    weights = softmax(scaled, where=_visible(scores.shape, seen, added, sight))
    name = "attended" if what == "cached_attention" else None
    if value.dtype not in NARROW:
        return contracted(weights, _shared(what, query, value), name=name)
    return mapped(contracted(weights, _shared(what, query, value), name="sum"), lambda e: rounded(e, value.dtype), name=name)


def _given(what: str, scores: Tensor, mask: Any, bias: Any) -> tuple[Tensor | None, list[Tensor]]:
    """The bool mask if there is one, and what is added to the scores."""
    seen, added = None, []
    for name, value in (("mask", mask), ("bias", bias)):
        if value is None:
            continue
        t = tensor(value, what)
        if name == "mask" and t.dtype == "bool":
            seen = t
        elif held(t.dtype) == scores.dtype:
            added.append(t)
        else:
            said = (
                "the mask is bool, true where a query sees a key, or is added to the scores and has their type"
                if name == "mask"
                else "it is added to the scores and has their type"
            )
            raise refuse(
                "A306", f"{what} with a {name} of {t.dtype}", said, "mask > 0" if name == "mask" else f"fl.cast(bias, '{scores.dtype}')"
            )
        if broadcast(f"attention scores and {name}", [scores, t])[0] != scores.shape:
            raise refuse(
                "A301", f"attention scores {shown(scores.shape)} with a {name} {shown(t.shape)}", f"the {name} must broadcast to the scores"
            )
    return seen, added


def _visible(shape: Sequence[Extent], seen: Tensor | None, added: Sequence[Tensor], sight: Sight) -> Seen | None:
    """Which elements of [..., t, s] count, as a condition on the index; None for all. An added -inf hides a key."""
    if seen is None and not added and not sight.causal and sight.window is None:
        return None

    def visible(i: Sequence[Expr]) -> Expr:
        conditions = sight.conditions(i)
        conditions += [as_expr(element(t, i, shape)) != float("-inf") for t in added if kind(t.dtype) == "float"]
        if seen is not None:
            conditions.append(as_expr(element(seen, i, shape)))
        met = conditions[0]
        for c in conditions[1:]:
            met = met & c
        return met

    return visible
