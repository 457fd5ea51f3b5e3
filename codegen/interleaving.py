"""Results whose last axis is a few parts of one element, as those of complex numbers or pixels: a vector of each part, woven when stored.

Such a loop is an unrolled one over the parts around a vector of elements: stores would be of every second lane, or third. Instead all
vectors are made first, what several of them need in registers of its own, and their lanes are stored in turn.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from fluorite.algo.expr import Axis, Const, Expr, Op, Read, as_expr
from fluorite.algo.linear import is_index, simplify
from fluorite.algo.rewriting import axes_of, reads, rewrite, substitute, walk

from .positions import Shapes, position
from .sharing import unconditional
from .statements import Allocate, Buffer, For, Statement, Store, Weave, sequence, transform

MOST = 4
"""Parts of an element."""
FEWEST = 4
"""Lanes of a vector that is worth it."""


def interleaved(body: Statement, dtypes: Mapping[int, str], shapes: Shapes) -> Statement:
    """The kernel with its loops over parts of vectors as vectors that are woven. `dtypes` and `shapes` are those of all buffers."""
    fresh = itertools.count(min(dtypes) - 1, -1)

    def rule(s: Statement) -> Statement | None:
        match s:
            case For(
                kind="unrolled", low=Const(value=0), extent=Const(value=parts),
                body=For(kind="vectorized", low=Const(value=0), extent=Const(value=lanes), body=Store() as store) as vector,
            ) if 1 < int(parts) <= MOST and int(lanes) >= FEWEST and dtypes[store.buffer] != "bool":  # fmt: skip
                if _are_side_by_side(store, s.var, vector.var, int(parts), shapes):
                    return _woven(s.var, vector, store, int(parts), dtypes[store.buffer], fresh)
        return None

    return transform(body, rule)


def _are_side_by_side(store: Store, part: Axis, lane: Axis, parts: int, shapes: Shapes) -> bool:
    """Whether the parts of an element lie side by side, and the elements too; and nothing is read from where they go."""
    at = position(store.index, shapes[store.buffer])
    moving = {a for x in at.atoms if x is not part and x is not lane for a in axes_of(x)}
    in_turn = at.coefficient(part) == 1 and at.coefficient(lane) == parts and not moving & {part, lane}
    return in_turn and all(r.source != store.buffer for r in reads(store.value))


def _woven(part: Axis, vector: For, store: Store, parts: int, dtype: str, fresh: Iterator[int]) -> Statement:
    lane, lanes = vector.var, int(vector.extent.value)  # type: ignore[attr-defined]
    values = [simplify(substitute(store.value, {part: as_expr(p)}), {part: parts, lane: lanes}) for p in range(parts)]
    made: list[Buffer] = []
    steps: list[Statement] = []
    known: dict[Expr, Expr] = {}

    def kept(value: Expr, name: str, dtype: str) -> Buffer:
        b = Buffer(next(fresh), name, dtype, (lanes,), "local")
        made.append(b)
        steps.append(For(lane, vector.name, vector.low, vector.extent, vector.kind, vector.lane, Store(b.id, (lane,), value)))
        return b

    for e in _needed_again(values, lane):
        b = kept(rewrite(e, known.get), f"common{len(known)}", e.dtype)
        known[e] = Read(b.id, (lane,), e.dtype)
    woven = [kept(rewrite(v, known.get), f"part{p}", dtype).id for p, v in enumerate(values)]
    first = tuple(simplify(substitute(i, {part: as_expr(0), lane: as_expr(0)}), {}) for i in store.index)
    out = sequence(*steps, Weave(store.buffer, first, tuple(woven), lanes))
    for b in reversed(made):
        out = Allocate(b, out)
    return out


def _needed_again(values: Sequence[Expr], lane: Axis) -> list[Expr]:
    """What differs by lane and is used in several places, operands before what uses them. What only may be computed is left where it is."""
    always = {n for v in values for n in unconditional(v)}
    uses = Counter(values)
    for n in always:
        if not isinstance(n, Read):
            uses.update({c for c in n.operands if c in always})
    return [
        n for n in dict.fromkeys(n for v in values for n in walk(v))
        if uses[n] > 1 and n in always and n.dtype != "bool" and not is_index(n) and isinstance(n, Op | Read) and lane in set(axes_of(n))
    ]  # fmt: skip


__all__ = ["interleaved"]
