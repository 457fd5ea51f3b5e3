"""Histograms: how many numbers fall between edges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import expr as E
from ..building import operator
from ..combining import reduce
from ..dtypes import kind
from ..expr import Expr, as_expr, refuse
from ..identities import identity
from ..tensor import Tensor
from ..trace import build_stage
from .segments import bincount
from .shapes import labels, shown, tensor
from .sorting import searchsorted
from .views import reshape

_MOST = 1 << 20


@operator
def histogram(x: Any, bins: Any, range: tuple[float, float] | None = None, weights: Any = None) -> tuple[Tensor, Tensor]:
    """(counts, edges): how many elements of x, or the sum of their weights, lie in each bin; of any shape, along one axis `bin`.

    `bins` is a number of equal bins over `range` (low, high), or ascending edges [bins + 1]. A bin holds its lower edge, the last one its
    upper edge too. What lies outside, and NaN, is in none. Counts are int32; edges have the type of x, or float64 where x is integer.

    Without a range it is from the smallest element to the largest, half below and half above where all are equal, and (0, 1) where there
    are none. An x that holds NaN or an infinity has no such range: edges are NaN, and all counts 0.
    """
    t = tensor(x, "histogram")
    if kind(t.dtype) == "bool":
        raise refuse("A306", "histogram of bool", "its elements are numbers", "fl.cast(x, fl.i32)")
    to = t.dtype if kind(t.dtype) == "float" else "float64"
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        count = int(bins)
        edges = _found(t, count, to) if range is None else tensor(_uniform(count, range, to), "histogram")
        which = _uniform_bins(t, edges, count, to, range)
    else:
        given = tensor(bins, "histogram")
        if range is not None or given.ndim != 1 or not (isinstance(given.shape[0], int) and given.shape[0] >= 2):
            why = "edges are two numbers at least, and say the range themselves"
            raise refuse("A304", f"histogram with edges {shown(given.shape)}", why)
        edges, count = given, given.shape[0] - 1
        which = _bins_between(t, edges, count)
    return bincount(which, count, weights), edges


def _uniform(bins: int, range: Any, dtype: str) -> np.ndarray[Any, Any]:
    ends = range if isinstance(range, tuple | list) and len(range) == 2 else (0.0, 0.0)
    if not _some(bins) or not all(isinstance(n, int | float) and math.isfinite(n) for n in ends) or not ends[0] < ends[1]:
        raise refuse("A304", f"histogram with {bins} bins over {range}", f"1 to {_MOST:,} bins over (low, high)", "range=(0.0, 1.0)")
    return np.linspace(ends[0], ends[1], bins + 1).astype(dtype)


def _some(bins: int) -> bool:
    return 1 <= bins <= _MOST


def _found(t: Tensor, bins: int, to: str) -> Tensor:
    """Edges at equal distances from the smallest element to the largest, computed in float64 and rounded once."""
    if not _some(bins):
        raise refuse("A304", f"histogram with {bins} bins", f"1 to {_MOST:,} bins")
    flat = reshape(t, (t.size,))

    def end(op: str, what: str) -> Tensor:
        most = identity(op, t.dtype).value
        return build_stage([], lambda: reduce(lambda a, b: E.binary(op, a, b), most, lambda i: flat[i], over={"i": t.size}), name=what)

    low, high = end("min", "low"), end("max", "high")

    def edge(k: Expr) -> Expr:
        first, last = (E.cast(n.as_scalar(), "float64") for n in (low, high))
        none, one = first > last, E.binary("eq", first, last)
        first = E.where(none, 0.0, E.where(one, first - 0.5, first))
        last = E.where(none, 1.0, E.where(one, last + 0.5, last))
        between = first + E.cast(k, "float64") * ((last - first) / bins)
        found = E.where(E.binary("eq", k, bins), last, between)
        return E.where(E.binary("eq", last - last, 0.0) & E.binary("eq", first - first, 0.0), found, math.nan)

    return build_stage(["edge"], edge, name="edges", extents={"edge": bins + 1}, dtype=to)


def _uniform_bins(t: Tensor, edges: Tensor, count: int, to: str, range: tuple[float, float] | None) -> Tensor:
    """The bin of every element by division, put right by the edges where rounding missed by one; -1 for none."""
    names = labels(t.axis_names)

    def value(*i: Expr) -> Expr:
        low, high = range or (edges[as_expr(0)], edges[as_expr(count)])
        x = E.cast(t[i] if i else t.as_scalar(), to)
        scaled = E.binary("mul", E.binary("sub", x, low), E.binary("div", float(count), E.binary("sub", high, low)))
        guess = E.binary("max", E.binary("min", E.cast(scaled, "int32"), count - 1), 0)
        down = E.cast(x < edges[guess], "int32")
        up = E.cast((edges[guess + 1] <= x) & (guess < count - 1), "int32")
        return E.where((edges[as_expr(0)] <= x) & (x <= edges[as_expr(count)]), guess - down + up, -1)

    return build_stage(names, value, name="bins", extents=dict(zip(names, t.shape, strict=True)))


def _bins_between(t: Tensor, edges: Tensor, count: int) -> Tensor:
    after = searchsorted(edges, t, side="right", name="after")
    names = labels(t.axis_names)

    def value(*i: Expr) -> Expr:
        x, k = (u[i] if i else u.as_scalar() for u in (t, after))
        return E.where(x == edges[as_expr(count)], as_expr(count - 1), E.binary("sub", k, 1))

    return build_stage(names, value, name="bins", extents=dict(zip(names, t.shape, strict=True)))


__all__ = ["histogram"]
