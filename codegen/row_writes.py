"""Rows written over old ones: the kernels of state that changes in some rows only, in the place of kernels that go over all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fluorite.algo.expr import Expr, Op, as_expr, axis
from fluorite.algo.graph import Graph
from fluorite.algo.linear import simplify
from fluorite.algo.rewriting import reads, rewrite, substitute
from fluorite.algo.row_writes import RowWrite, row_writes
from fluorite.schedule.nest import SERIAL

from .lowering import logic
from .statements import For, If, Kernel, Statement, Store


def writing_rows(
    g: Graph, kernels: Sequence[Kernel], methods: Sequence[str]
) -> tuple[tuple[Kernel, ...], tuple[str, ...], Mapping[int, int]]:
    """The kernels and their methods, with those that write rows; and by each new value (a stage) that is written so, the old one (a leaf).

    It is right where no later kernel reads the old value, as in `overwriting`. What says which write a row got last is then asked by
    nobody, and no more computed.
    """
    out, found = list(kernels), dict[int, int]()
    calling = {method for k, method in zip(kernels, methods, strict=True) if k.call is not None}
    lasts: set[int] = set()
    for new, w in row_writes(g).items():
        at = next((n for n, k in enumerate(out) if [b.id for b in k.outputs] == [new]), None)
        before = next((k for k in out if [b.id for b in k.outputs] == [w.last.id]), None)
        if at is None or before is None or w.stage.method in calling:
            continue
        later = (k for k, method in zip(out[at + 1 :], methods[at + 1 :], strict=True) if method == w.stage.method)
        if any(b.id == w.old.id for k in later for b in k.inputs):
            continue
        made = _kernel(w, out[at], before)
        if made is not None:
            out[at], found[new] = made, w.old.id
            lasts.add(w.last.id)
    asked = {b.id for k in out for b in k.inputs} | set(g.outputs)
    left = [(k, m) for k, m in zip(out, methods, strict=True) if not ({b.id for b in k.outputs} <= lasts - asked)]
    return tuple(k for k, _ in left), tuple(m for _, m in left), found


def _kernel(w: RowWrite, whole: Kernel, last: Kernel) -> Kernel | None:
    """The kernel of the writes; None where it would read what these two do not."""
    each = axis("write")
    free = {a: axis(a.name) for a in w.stage.axes if a is not w.row}
    ranges = {each: w.count, **{free[a]: w.stage.ranges[a] for a in free}}
    place, n = substitute(w.position, {w.each: each}), as_expr(w.stage.ranges[w.row])
    row = Op("edge", (place, n), "int32", True)

    def numbered(e: Expr) -> Expr | None:
        return each if e is w.which else None

    value = simplify(substitute(rewrite(w.value, numbered), {w.row: row, **free}), ranges)
    body: Statement = Store(w.stage.id, tuple(row if a is w.row else free[a] for a in w.stage.axes), value)
    for a in reversed(list(free.values())):
        body = For(a, a.name, as_expr(0), as_expr(ranges[a]), SERIAL, "", body)
    body = If(logic.conjunction([as_expr(0) <= place, place < n]), body)
    body = For(each, each.name, as_expr(0), as_expr(w.count), SERIAL, "", body)
    known = {b.id: b for b in (*whole.inputs, *last.inputs)}
    used = dict.fromkeys(r.source for e in (value, place) for r in reads(e))
    if any(i not in known or i == w.old.id for i in used):
        return None
    symbols = tuple(dict.fromkeys((*whole.symbols, *last.symbols)))
    return Kernel(whole.name, tuple(known[i] for i in used), whole.outputs, symbols, body, whole.stages)


__all__ = ["writing_rows"]
