"""Loops that store numbers of one or two bytes where a test holds, as loops that run no further than the test holds.

LLVM makes masked stores of such loops. Where it also narrows what it stores, and the mask has one bit, it writes 32 bits for 16.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial, reduce

from fluorite.algo.dtypes import itemsize
from fluorite.algo.expr import as_expr, binary
from fluorite.algo.linear import simplify
from fluorite.algo.rewriting import axes_of
from fluorite.algo.tensor import conjuncts

from .partition import joined, limits
from .statements import For, If, Statement, Store, transform, walk


def shortened(body: Statement, dtypes: Mapping[int, str]) -> Statement:
    """The kernel with these loops shortened. `dtypes` are those of all buffers."""

    def rule(s: Statement) -> Statement | None:
        match s:
            case For(kind="serial", body=If(otherwise=None) as test) if any(
                isinstance(n, Store) and itemsize(dtypes[n.buffer]) < 4 for n in walk(test)
            ):
                return within_test(s, test)
        return None

    return transform(body, rule)


def within_test(loop: For, test: If) -> Statement | None:
    """The loop around the test as a loop over where it holds; None where no part of the test bounds it or holds for all of it."""
    parts = conjuncts(test.condition)
    outside = [c for c in parts if loop.var not in set(axes_of(c))]
    lows, highs, rest = limits(loop, [c for c in parts if loop.var in set(axes_of(c))])
    if not outside and len(lows) == len(highs) == 1:
        return None
    first, last = reduce(partial(binary, "max"), lows), reduce(partial(binary, "min"), highs)
    extent = simplify(binary("max", binary("sub", last, first), as_expr(0)), {}) if len(lows) + len(highs) > 2 else loop.extent
    made = replace(loop, low=simplify(first, {}), extent=extent, body=If(joined(rest), test.then) if rest else test.then)
    return If(joined(outside), made) if outside else made


__all__ = ["shortened", "within_test"]
