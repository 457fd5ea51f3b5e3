"""What tells attention where a token stands: rotary embeddings, sinusoidal positions, ALiBi."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import expr as E
from ..building import operator
from ..expr import Expr, as_expr, cast, refuse
from ..extent import Extent
from ..tensor import Tensor
from ..trace import build_stage
from .gather import integers
from .normalize import over
from .shapes import shown, tensor


def _frequencies(features: Extent, base: float, what: str, dtype: str = "float32") -> np.ndarray[Any, Any]:
    """base^(-2 i / features) for each pair i of features, rounded once."""
    if not isinstance(features, int) or features % 2:
        raise refuse("A303", f"{what} of {features} features", "features are turned in pairs, so their number is even and known")
    if not base > 0:
        raise refuse("A304", f"{what}: base={base!r}", "it is a number above 0")
    return np.asarray(base ** (-np.arange(0, features, 2) / features), dtype)


@operator
def rotary(x: Any, positions: Any = None, *, offset: Any = 0, base: float = 10000.0, interleaved: bool = False) -> Tensor:
    """Rotary position embeddings (Su et al., 2021) of x [..., t, d]: pair i of the features is turned by ``p * base^(-2 i / d)`` radians.

    p is the position on axis t plus `offset` (a number or an int tensor of rank 0), or `positions` [t]. Pairs are features (i, i + d / 2)
    by default, as in GPT-NeoX and Llama's published weights for transformers, or neighbours (2 i, 2 i + 1) with `interleaved`, as in the
    paper. Stages `cos sin` with the axes t and pair, and the result.
    """
    t = tensor(x, "rotary")
    if t.ndim < 2:
        raise refuse("A307", f"rotary of {shown(t.shape)}", "it has at least two axes: position and feature")
    d = t.shape[-1]
    wide = "float64" if t.dtype == "float64" else "float32"
    rates = tensor(_frequencies(d, base, "rotary", wide), "rotary")
    assert isinstance(d, int)
    given = None if positions is None else integers(positions, "rotary")
    if given is not None and given.shape != (t.shape[-2],):
        raise refuse("A301", f"rotary of {shown(t.shape)} at positions {shown(given.shape)}", f"there is one for each of the {t.shape[-2]}")
    start = offset if isinstance(offset, int) else integers(offset, "rotary")
    half = d // 2

    def angle(p: Expr, pair: Expr) -> Any:
        at = given[p] if given is not None else cast(p, "int32")
        at = at + (start if isinstance(start, int) else start.as_scalar())
        return cast(at, wide) * rates[pair]

    extents = {"t": t.shape[-2], "pair": half}
    cos, sin = (build_stage(["t", "pair"], lambda p, k, f=f: E.unary(f, angle(p, k)), name=f, extents=extents) for f in ("cos", "sin"))

    def turned(i: Any) -> Any:
        *lead, p, f = i
        pair = f // 2 if interleaved else f % half
        second = f % 2 == 1 if interleaved else f >= half
        partner = f + 1 - f % 2 * 2 if interleaved else (f + half) % d
        own, other = t[(*lead, p, f)], t[(*lead, p, partner)]
        c, s = (cast(table[p, pair], t.dtype) for table in (cos, sin))
        return own * c + E.where(second, other, -other) * s

    return over(t, turned)


@operator
def sinusoidal_positions(length: Extent, features: int, *, base: float = 10000.0) -> Tensor:
    """[t, c]: sin(t / base^(2 i / features)) at even features c = 2 i, the cosine at odd ones (Vaswani et al., 2017). One stage."""
    rates = tensor(_frequencies(features, base, "sinusoidal_positions"), "sinusoidal_positions")

    def value(t: Expr, c: Expr) -> Any:
        angle = cast(t, "float32") * rates[c // 2]
        return E.where(c % 2 == 0, E.unary("sin", angle), E.unary("cos", angle))

    return build_stage(["t", "c"], value, extents={"t": length, "c": features})


@operator
def alibi(heads: int, queries: Extent, keys: Extent) -> Tensor:
    """The bias [h, i, j] of attention with linear biases (Press et al., 2022): -slope(h) times the distance of key j from query i.

    The last query stands at the last key. Slopes are 2^(-8 (h + 1) / heads) where `heads` is a power of two; else those of the next lower
    power, and every other one of twice as many. One stage.
    """
    if isinstance(heads, bool) or not isinstance(heads, int) or heads < 1:
        raise refuse("A304", f"alibi: heads={heads!r}", "it is a positive number of heads")
    slopes = tensor(np.asarray(_slopes(heads), np.float32), "alibi")

    def value(h: Expr, i: Expr, j: Expr) -> Any:
        distance = E.unary("abs", cast(i + as_expr(keys - queries) - j, "float32"))
        return -slopes[h] * distance

    return build_stage(["h", "i", "j"], value, extents={"h": heads, "i": queries, "j": keys})


def _slopes(heads: int) -> list[float]:
    whole = 2 ** int(math.log2(heads))
    found = [2.0 ** (-8 * (h + 1) / whole) for h in range(whole)]
    return found if whole == heads else [*found, *_slopes(2 * whole)[::2][: heads - whole]]
