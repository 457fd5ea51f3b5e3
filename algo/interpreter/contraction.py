"""Sums of products as matrix multiplications."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import kind
from ..expr import Axis, Expr, Op
from ..rewriting import walk
from ..stages import Stage

Array = np.ndarray[Any, Any]


def splits(s: Stage, working: Callable[[str], str]) -> tuple[Expr, Expr] | None:
    """The two factors of a float sum of products in which every reduction axis occurs in both and each has an axis of its own."""
    if s.reduction is None or s.reduction.kind != "sum" or kind(s.dtype) != "float":
        return None
    if not isinstance(s.value, Op) or s.value.op != "mul" or working(s.value.dtype) != working(s.dtype):
        return None
    a, b = s.value.args
    first, second = ({n for n in walk(f) if isinstance(n, Axis)} for f in (a, b))
    summed = set(s.reduction.axes)
    if not summed <= first & second or (first == second):
        return None
    return a, b


def multiply(a: Array, b: Array, rank: int, extents: tuple[int, ...]) -> Array:
    """sum over the axes from `rank` on, of these extents, of a * b: batch, row, column and summed axes by where each factor varies."""
    ndim = a.ndim
    both = [k for k in range(rank) if (a.shape[k] > 1) == (b.shape[k] > 1)]
    rows = [k for k in range(rank) if k not in both and a.shape[k] > 1]
    columns = [k for k in range(rank) if k not in both and b.shape[k] > 1]
    summed = list(range(rank, ndim))
    a, b = (t if t.shape[rank:] == extents else np.broadcast_to(t, (*t.shape[:rank], *extents)) for t in (a, b))

    def count(t: Array, axes: list[int]) -> int:
        return math.prod(t.shape[k] for k in axes)

    left = _flat(a.transpose(*both, *rows, *columns, *summed), (count(a, both), count(a, rows), count(a, summed)))
    right = _flat(b.transpose(*both, *columns, *rows, *summed), (count(b, both), count(b, columns), count(b, summed)))
    out = np.matmul(left, right.transpose(0, 2, 1))
    shape = [a.shape[k] for k in both] + [a.shape[k] for k in rows] + [b.shape[k] for k in columns]
    order = [*both, *rows, *columns]
    result: Array = out.reshape(shape).transpose([order.index(k) for k in range(rank)])
    return result


def _flat(t: Array, shape: tuple[int, int, int]) -> Array:
    """Three axes of which one of the last two is contiguous, as a fast multiplication needs."""
    flat = t.reshape(shape)
    width = flat.itemsize
    return flat if width in flat.strides[1:] and 0 not in flat.strides[1:] else np.ascontiguousarray(flat)
