"""The median of 3 x 3 and 5 x 5 pixels by minima and maxima: columns are sorted, then rows, which leaves few candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import expr as E
from ..building import operator
from ..expr import Expr, refuse
from ..tensor import Tensor
from .filters import Boundary, plane, stage_of, surrounded


@operator
def median_filter(x: Any, size: int = 3, *, boundary: Boundary = "edge") -> Tensor:
    """The median of the `size` x `size` pixels around each, size 3 or 5; NaN spreads.

    The columns of a window are those of its neighbours, and are sorted once: stages `column_0` (the smallest of a column) and on. Then rows
    of equal rank are sorted. With 3 the median of the largest small, the middle of the middles and the smallest large ones is the result;
    with 5 there are stages `cell_RC` (rank C in row R) for the 13 cells that can be the median, and `before_3`, `middle_2` and so on for
    the order among the diagonals.
    """
    t = plane("median_filter", x)
    if size not in (3, 5):
        raise refuse("A304", f"median_filter: size={size!r}", "networks are made for windows of 3 and 5", "3", "5")
    source, r = surrounded("median_filter", t, boundary), size // 2

    def column(k: int) -> Callable[..., Any]:
        return lambda *i: ranked([source[(*i[:-2], i[-2] + d, i[-1])] for d in range(-r, r + 1)])[k]

    columns = [surrounded("median_filter", stage_of(t, column(k), f"column_{k}"), boundary) for k in range(size)]

    def row(k: int, i: Sequence[Expr]) -> list[Expr]:
        return [columns[k][(*i[:-1], i[-1] + d)] for d in range(-r, r + 1)]

    if size == 3:
        return stage_of(t, lambda *i: ranked([ranked(row(k, i))[2 - k] for k in range(3)])[1])
    cells = {(a, b): stage_of(t, lambda *i, a=a, b=b: ranked(row(a, i))[b], f"cell_{a}{b}") for a, b in CANDIDATES}

    def diagonal(name: str, total: int, k: int) -> Tensor:
        """The k-th smallest, from 1, of the cells whose ranks add up to `total`."""
        mine = [c for (a, b), c in cells.items() if a + b == total]
        return stage_of(t, lambda *i: ranked([c[i] for c in mine])[k - 1], f"{name}_{k}")

    b3, b4 = (diagonal("before", 3, k) for k in (3, 4))
    a2, a3, a4 = (diagonal("middle", 4, k) for k in (2, 3, 4))
    c1, c2 = (diagonal("after", 5, k) for k in (1, 2))

    def thirteenth(*i: Expr) -> Expr:
        """Of monotone rows and columns of 0 and 1, at least 13 are 0 exactly where this is 0."""
        third = least(b4[i], most(b3[i], c1[i]), c2[i])
        return least(a4[i], most(a3[i], third), most(a2[i], b4[i], c1[i]))

    return stage_of(t, thirteenth)


CANDIDATES = [(a, b) for a in range(5) for b in range(5) if (a + 1) * (b + 1) <= 13 and (5 - a) * (5 - b) <= 13]
"""Where the 13th of 5 x 5 sorted rows and columns may stand: at most 12 are surely below, and at most 12 above."""


def least(*values: Expr) -> Expr:
    return values[0] if len(values) == 1 else E.binary("min", values[0], least(*values[1:]))


def most(*values: Expr) -> Expr:
    return values[0] if len(values) == 1 else E.binary("max", values[0], most(*values[1:]))


def ranked(values: list[Expr]) -> list[Expr]:
    """The values in order, each as an expression of all."""
    line = list(values)
    for a, b in exchanges(len(line)):
        line[a], line[b] = E.binary("min", line[a], line[b]), E.binary("max", line[a], line[b])
    return line


def exchanges(n: int) -> Iterator[tuple[int, int]]:
    """Batcher's odd-even merge sort (1968) of n numbers as exchanges (low place, high place)."""
    p = 1
    while p < n:
        k = p
        while k >= 1:
            for j in range(k % p, n - k, 2 * k):
                for i in range(min(k, n - j - k)):
                    if (i + j) // (2 * p) == (i + j + k) // (2 * p):
                        yield i + j, i + j + k
            k //= 2
        p *= 2
