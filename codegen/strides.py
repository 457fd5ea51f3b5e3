"""Vector reads of every second, third or fourth element: whole vectors are loaded and their lanes picked out, not one element at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from fluorite.algo.expr import Axis, Const, Expr, Read, as_expr
from fluorite.algo.linear import linear, simplify
from fluorite.algo.rewriting import axes_of, reads, rewrite, substitute

from .sharing import unconditional
from .statements import Allocate, Buffer, Comb, For, Statement, Store, sequence, transform

FEWEST = 4
"""Lanes of a vector that is worth it."""
LONGEST = 4
"""Steps from one element to the next."""


def combed(body: Statement, dtypes: Mapping[int, str]) -> Statement:
    """The kernel with the strided reads of its vector loops as vectors. `dtypes` are those of all buffers."""
    fresh = itertools.count(min(dtypes) - 1, -1)

    def rule(s: Statement) -> Statement | None:
        match s:
            case For(kind="vectorized", low=Const(value=0), extent=Const(value=lanes), body=Store() as store) if int(lanes) >= FEWEST:
                return _combed(s, store, int(lanes), fresh)
        return None

    return transform(body, rule)


def _combed(loop: For, store: Store, lanes: int, fresh: Iterator[int]) -> Statement | None:
    known: dict[Expr, Expr] = {}
    steps: list[Statement] = []
    made: list[Buffer] = []
    always = unconditional(store.value)
    for r in reads(store.value):
        step = _step(r, loop.var)
        if step is None or r not in always or r.dtype == "bool":
            continue
        b = Buffer(next(fresh), f"comb{len(made)}", r.dtype, (lanes,), "local")
        first = tuple(simplify(substitute(i, {loop.var: as_expr(0)}), {}) for i in r.index)
        made.append(b)
        steps.append(Comb(b.id, r.source, first, step, lanes))
        known[r] = Read(b.id, (loop.var,), r.dtype)
    if not made:
        return None
    value = rewrite(store.value, known.get)
    inner = For(loop.var, loop.name, loop.low, loop.extent, loop.kind, loop.lane, Store(store.buffer, store.index, value))
    out = sequence(*steps, inner)
    for b in made:
        out = Allocate(b, out)
    return out


def _step(r: Read, lane: Axis) -> int | None:
    """How far apart the lanes' elements are along the last axis; None where a vector cannot be picked out."""
    if not r.index or any(lane in set(axes_of(i)) for i in r.index[:-1]):
        return None
    form = linear(r.index[-1])
    step = form.coefficient(lane)
    others = {a for x in form.atoms if x is not lane for a in axes_of(x)}
    return step if isinstance(step, int) and 2 <= step <= LONGEST and lane not in others else None
