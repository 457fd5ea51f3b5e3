"""Vector reads of elements that lie near one another, but not side by side: of every second, third or fourth, or of each several times.

Whole vectors are loaded and their lanes picked out, not one element at a time. Of elements with several parts, such as complex numbers,
all parts are loaded whichever is picked, so that those who pick another one load the same vectors.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from fluorite.algo.expr import Axis, Const, Expr, Read, as_expr
from fluorite.algo.linear import linear, simplify
from fluorite.algo.rewriting import axes_of, reads, rewrite, substitute

from .positions import Shapes, position
from .sharing import unconditional
from .statements import Allocate, Buffer, Comb, For, Statement, Store, sequence, transform

FEWEST = 4
"""Lanes of a vector that is worth it."""
LONGEST = 4
"""Vectors from the first element to the last."""


def combed(body: Statement, dtypes: Mapping[int, str], shapes: Shapes) -> Statement:
    """The kernel with the strided reads of its vector loops as vectors. `dtypes` and `shapes` are those of all buffers."""
    fresh = itertools.count(min(dtypes) - 1, -1)

    def rule(s: Statement) -> Statement | None:
        match s:
            case For(kind="vectorized", low=Const(value=0), extent=Const(value=lanes), body=Store() as store) if int(lanes) >= FEWEST:
                return _combed(s, store, int(lanes), shapes, fresh)
        return None

    return transform(body, rule)


def _combed(loop: For, store: Store, lanes: int, shapes: Shapes, fresh: Iterator[int]) -> Statement | None:
    known: dict[Expr, Expr] = {}
    steps: list[Statement] = []
    made: list[Buffer] = []
    always = unconditional(store.value)
    for r in reads(store.value):
        if r not in always or r.dtype == "bool":
            continue
        offsets, part = _offsets(r, loop.var, lanes), None
        if offsets is None and (part := _part(r, loop.var, shapes)) is None:
            continue
        first = tuple(simplify(substitute(i, {loop.var: as_expr(0)}), {}) for i in r.index)
        if offsets is None:
            parts = shapes[r.source][-1]
            assert isinstance(parts, int) and part is not None
            offsets, span, first = tuple(part + parts * k for k in range(lanes)), parts * lanes, (*first[:-1], as_expr(0))
        else:
            span = max(offsets) + 1
        b = Buffer(next(fresh), f"comb{len(made)}", r.dtype, (lanes,), "local")
        made.append(b)
        steps.append(Comb(b.id, r.source, first, offsets, span))
        known[r] = Read(b.id, (loop.var,), r.dtype)
    if not made:
        return None
    value = rewrite(store.value, known.get)
    inner = For(loop.var, loop.name, loop.low, loop.extent, loop.kind, loop.lane, Store(store.buffer, store.index, value))
    out = sequence(*steps, inner)
    for b in made:
        out = Allocate(b, out)
    return out


def _offsets(r: Read, lane: Axis, lanes: int) -> tuple[int, ...] | None:
    """Where the lanes' elements are along the last axis, from the first lane's on; None where they are in a row, or far apart."""
    if not r.index or any(lane in set(axes_of(i)) for i in r.index[:-1]):
        return None
    form = linear(r.index[-1])
    own, step = [x for x in form.atoms if x is not lane and lane in set(axes_of(x))], form.coefficient(lane)
    if not isinstance(step, int) or any(reads(x) for x in own):
        return None
    found = [step * k for k in range(lanes)]
    for x in own:
        first, factor = substitute(x, {lane: as_expr(0)}), form.coefficient(x)
        if not isinstance(factor, int):
            return None
        for k in range(lanes):
            apart = simplify(substitute(x, {lane: as_expr(k)}) - first, {})
            if not isinstance(apart, Const):
                return None
            found[k] += factor * int(apart.value)
    in_a_row = found in ([0] * lanes, [*range(lanes)])
    return None if in_a_row or min(found) < 0 or max(found) >= LONGEST * lanes else tuple(found)


def _part(r: Read, lane: Axis, shapes: Shapes) -> int | None:
    """Which part of elements side by side the lanes read, where all read the same one of a few."""
    match r.index:
        case (_, *_, Const(value=part)) if isinstance(parts := shapes[r.source][-1], int) and 1 < parts <= LONGEST:
            at = position(r.index, shapes[r.source])
            others = {a for x in at.atoms if x is not lane for a in axes_of(x)}
            return int(part) if at.coefficient(lane) == parts and lane not in others else None
    return None
