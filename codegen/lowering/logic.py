"""Conditions over index expressions: joining them, bounding them over a tile, and what an expression becomes where they hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fluorite.algo.expr import Axis, Const, Expr, Op, Read, as_expr, binary
from fluorite.algo.extent import Extent, nonnegative
from fluorite.algo.linear import is_index, linear, simplify, within
from fluorite.algo.rewriting import axes_of, rewrite, walk

from .context import TRUE


def same(a: Expr, b: Expr) -> bool:
    d = linear(binary("sub", a, b))
    return not d.terms and d.constant == 0


def conjunction(conditions: Sequence[Expr]) -> Expr:
    out: Expr = TRUE
    for c in dict.fromkeys(conditions):
        if isinstance(c, Const):
            if not c.value:
                return c
            continue
        out = c if out is TRUE else out & c
    return out


def extreme(e: Expr, tile: Mapping[Axis, Extent], largest: bool) -> Expr | None:
    """A bound of e over the tile's variables, exact for linear forms; None where there is no simple one."""
    form = linear(e)
    total: Expr = as_expr(form.constant)
    for atom, c in form.terms:
        upper = nonnegative(c) == largest
        part: Expr | None = atom
        if isinstance(atom, Axis) and atom in tile:
            part = as_expr(tile[atom] - 1) if upper else as_expr(0)
        elif set(axes_of(atom)) & set(tile):
            part = extreme_atom(atom, tile, upper)
        if part is None or not (nonnegative(c) or nonnegative(c * -1)):
            return None
        total = binary("add", total, binary("mul", part, as_expr(c)))
    return total


def extreme_atom(atom: Expr, tile: Mapping[Axis, Extent], upper: bool) -> Expr | None:
    match atom:
        case Op(op="floordiv" | "edge" as op, args=(a, b)) if not axes_of(b) and (op == "edge" or _positive(b)):
            inner = extreme(a, tile, upper)
            return None if inner is None else Op(op, (inner, b), atom.dtype, atom.weak)
        case Op(op="min" | "max" as op, args=(a, b)) if is_index(atom):
            x, y = extreme(a, tile, upper), extreme(b, tile, upper)
            return None if x is None or y is None else binary(op, x, y)
        case Op(op="mod" | "wrap" | "reflect" as op, args=(_, n)) if not axes_of(n) and (op != "mod" or _positive(n)):
            return binary("sub", n, as_expr(1)) if upper else as_expr(0)
    return None


def _positive(e: Expr) -> bool:
    form = linear(e)
    return not form.terms and nonnegative(form.constant - 1)


def throughout(test: Expr, tile: Mapping[Axis, Extent]) -> Expr | None:
    """A condition under which a comparison holds for the whole tile."""
    assert isinstance(test, Op)
    a, b = test.args
    worst = extreme(binary("sub", a, b), tile, True)
    return None if worst is None else worst < 0 if test.op == "lt" else worst <= 0


def assume(e: Expr, known: Sequence[Expr], ranges: Mapping[Axis, Extent]) -> Expr:
    """e where the known conditions hold: clamps and choices that they decide are gone."""
    facts = set(known)

    def rule(n: Expr) -> Expr | None:
        if n in facts:
            return TRUE
        match n:
            case Op(op="edge" | "reflect" | "wrap", args=(a, size)) if (as_expr(0) <= a) in facts and (a < size) in facts:
                return a
        return None

    return simplify(rewrite(e, rule), ranges)


def eager(e: Expr, ranges: Mapping[Axis, Extent], shape_of: Callable[[int], tuple[Extent, ...]]) -> Expr:
    """e with every choice whose branches may both be computed, because all that they read is there, as a select: that vectorises.

    A choice that is the same everywhere stays one: all lanes take one branch, and the other costs nothing.
    """

    found: dict[Expr, bool] = {}

    def readable(x: Expr) -> bool:
        for n in walk(x, found):
            there = not isinstance(n, Read) or all(within(i, k, ranges) for i, k in zip(n.index, shape_of(n.source), strict=True))
            found[n] = there and all(found[c] for c in n.operands)
        return found[x]

    def rule(n: Expr) -> Expr | None:
        match n:
            case Op(op="where", args=(c, a, b)) if (axes_of(c) or a.depth + b.depth == 2) and readable(a) and readable(b):
                return Op("select", n.args, n.dtype, n.weak)
        return None

    return rewrite(e, rule)
