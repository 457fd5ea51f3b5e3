"""Vector loops whose lanes differ in kind: pixels of a mosaic, or pixels between those of a smaller image.

Where an index has lane // 2 or lane % 2, say, every second lane does the same. The lanes are dealt into two vectors, each an ordinary one,
and their results are woven together. Where lanes read from places of their own all the same, as at the rim of an image, code for each of
them would grow without bound: past a limit they are left to a loop.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fluorite.algo.expr import Axis, Const, Expr, Op, Read, as_expr, axis, binary
from fluorite.algo.linear import Ranges, is_index, linear, simplify
from fluorite.algo.rewriting import axes_of, reads, rewrite, substitute, walk

from .sharing import unconditional
from .statements import Allocate, Buffer, Deal, For, Statement, Store, Weave, sequence, transform

MOST = 4
"""Phases of a vector. With more its parts would be short."""
SHORTEST = 4
"""Lanes of a part."""
SCATTERED = 512
"""Elements that one vector may read from places of their own."""


def dealt(body: Statement, ranges: Ranges, dtypes: Mapping[int, str]) -> Statement:
    """The kernel with its vector loops of several phases taken apart. `dtypes` are those of all buffers."""
    fresh = itertools.count(min(dtypes) - 1, -1)

    def rule(s: Statement) -> Statement | None:
        match s:
            case For(kind="vectorized", low=Const(value=0), extent=Const(value=lanes), body=Store() as store):
                return _taken_apart(s, store, int(lanes), ranges, dtypes, fresh) or _as_a_loop(s, store, int(lanes))
        return None

    return transform(body, rule)


def _taken_apart(
    loop: For, store: Store, lanes: int, ranges: Ranges, dtypes: Mapping[int, str], fresh: Iterator[int]
) -> Statement | None:
    phases = _period(store.value, loop.var)
    n = lanes // phases
    if phases < 2 or phases > MOST or lanes % phases or n < SHORTEST or not _is_row(store.index, loop.var):
        return None
    always = unconditional(store.value)  # a branch that is not taken may not be read for
    whole = [r for r in reads(store.value) if r in always and _is_row(r.index, loop.var) and dtypes[r.source] != "bool"]
    if dtypes[store.buffer] == "bool" or any(r.source == store.buffer for r in reads(store.value)):
        return None
    cell = axis(f"{loop.name}_cell")
    inside = {**ranges, cell: n}
    rows: dict[Read, tuple[Buffer, tuple[Buffer, ...]]] = {}
    for r in whole:
        parts = tuple(Buffer(next(fresh), f"part{p}", r.dtype, (n,), "local") for p in range(phases))
        rows[r] = Buffer(next(fresh), "row", r.dtype, (lanes,), "local"), parts
    made = tuple(Buffer(next(fresh), f"phase{p}", dtypes[store.buffer], (n,), "local") for p in range(phases))
    steps: list[Statement] = []
    for r, (row, parts) in rows.items():
        steps += [_vector(loop, loop.var, lanes, Store(row.id, (loop.var,), r)), Deal(row.id, tuple(b.id for b in parts), n)]
    for p, part in enumerate(made):
        mine: dict[Expr, Expr] = {r: Read(parts[p].id, (cell,), parts[p].dtype) for r, (_, parts) in rows.items()}
        value = rewrite(store.value, lambda e, mine=mine: mine.get(e))  # type: ignore[misc]
        value = _folded(substitute(value, {loop.var: binary("add", binary("mul", cell, as_expr(phases)), as_expr(p))}), inside)
        if _period(value, cell) != 1:
            return None  # where the loop starts is not known to be the first of a cell
        steps.append(_vector(loop, cell, n, Store(part.id, (cell,), value)))
    first = tuple(simplify(substitute(i, {loop.var: as_expr(0)}), ranges) for i in store.index)
    out = sequence(*steps, Weave(store.buffer, first, tuple(b.id for b in made), n))
    for b in (*(b for row, parts in rows.values() for b in (row, *parts)), *made):
        out = Allocate(b, out)
    return out


def _as_a_loop(loop: For, store: Store, lanes: int) -> Statement | None:
    scattered = sum(_is_scattered(r, loop.var) for r in set(reads(store.value)))
    return replace(loop, kind="serial") if lanes * scattered > SCATTERED else None


def _is_scattered(r: Read, lane: Axis) -> bool:
    """Whether the lane is in the index other than as a term of a sum."""
    return any(lane in set(axes_of(a)) for i in r.index for a in linear(i).atoms if a is not lane)


def _vector(loop: For, var: Axis, lanes: int, body: Statement) -> For:
    return For(var, var.name, as_expr(0), as_expr(lanes), loop.kind, loop.lane, body)


def _period(value: Expr, lane: Axis) -> int:
    """After how many lanes everything that is divided in an index repeats."""
    divisors = [1]
    for e in walk(value):
        match e:
            case Op(op="floordiv" | "mod", args=(a, Const(value=by))) if is_index(e) and lane in set(axes_of(a)):
                divisors.append(int(by))
    return math.lcm(*(abs(d) or 1 for d in divisors))


def _is_row(index: Sequence[Expr], lane: Axis) -> bool:
    """Whether lanes lie side by side in memory."""
    if not index or any(lane in set(axes_of(i)) for i in index[:-1]):
        return False
    form = linear(index[-1])
    return form.coefficient(lane) == 1 and not any(lane in set(axes_of(a)) for a in form.atoms if a is not lane)


def _folded(value: Expr, ranges: Ranges) -> Expr:
    """Simplified, without the branches that are now known not to be taken."""

    def rule(e: Expr) -> Expr | None:
        match e:
            case Op(op="eq", args=(Const(value=a), Const(value=b))):
                return Const(a == b, "bool", False)
            case Op(op="where" | "select", args=(Const(value=taken), a, b)):
                return a if taken else b
        return None

    return rewrite(simplify(value, ranges), rule)
