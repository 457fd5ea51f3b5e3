"""stage_in: a stage reads a copy of its operand."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fluorite.algo.expr import Const, Expr, Op, Read, as_expr, axis, binary, where
from fluorite.algo.extent import Extent, maximum
from fluorite.algo.graph import Graph
from fluorite.algo.linear import bounds, is_index, linear, simplify
from fluorite.algo.rewriting import rewrite, walk
from fluorite.algo.stages import Leaf, Stage, redirect
from fluorite.algo.tensor import conjuncts

from ..directives import StageIn
from .common import beside, free_path, fresh_id
from .operands import operand, operand_axes


def stage_in(g: Graph, s: Stage, d: StageIn) -> tuple[Graph, Stage]:
    """s reads `into`, an identity stage of the operand, or of the operand with its margin if s reads it through a constant boundary."""
    t = operand(g, s, d.read, d.at("read"), "stage_in")
    path = free_path(g, s, "/".join([*s.path.split("/")[:-1], d.into]), d.at("into"))
    margin = margin_of(s, t)
    if margin is not None:
        return _stage_in_margin(g, s, t, margin, path)
    axes = tuple(axis(n if not n.isdigit() else f"i{n}") for n in operand_axes(s, t))
    value, home = Read(t.id, axes, t.dtype), beside(s, t)
    copy = Stage(fresh_id(g), path, s.method, axes, t.shape, t.dtype, value, None, op=s.op, origin="derived", source=s.source, **home)
    new = redirect(s, {t.id: copy.id})
    return g.spliced(s, (copy, new)), new


@dataclass(frozen=True, eq=False)
class Margin:
    """How a stage reads an operand through a constant boundary: the guarded read, and how far it may lie outside in each dimension."""

    guarded: Expr
    read: Read
    outside: Const
    before: tuple[int, ...]
    extents: tuple[Extent, ...]


def margin_of(s: Stage, t: Leaf | Stage) -> Margin | None:
    """The one guarded read where(inside, t[index], constant) by which s reads t, if that is how it reads it."""
    guarded = [
        n for n in walk(s.value) if isinstance(n, Op) and n.op == "where" and isinstance(n.args[1], Read) and n.args[1].source == t.id
    ]
    if len(guarded) != 1 or sum(r.source == t.id for r in s.reads) != 1:
        return None
    condition, read, outside = guarded[0].args
    if not isinstance(read, Read) or not isinstance(outside, Const):
        return None
    allowed = {_normal(c) for i, n in zip(read.index, t.shape, strict=True) for c in (as_expr(0) <= i, i < as_expr(n))}
    if any(_normal(part) not in allowed for part in conjuncts(condition)):
        return None
    before, extents = [], []
    for i, n in zip(read.index, t.shape, strict=True):
        low, high = bounds(i, s.ranges)
        if not isinstance(low, int) or high is None:
            return None
        before.append(max(0, -low))
        extents.append(maximum(n, high + 1) + before[-1])
    return Margin(guarded[0], read, outside, tuple(before), tuple(extents))


def _normal(condition: Expr) -> object:
    """The same for comparisons of positions that say the same, as 0 <= t - 1 and 1 <= t."""
    match condition:
        case Op(op="lt" | "le" as op, args=(a, b)) if is_index(a) and is_index(b):
            room = linear(b) + linear(a).scaled(-1)
            return frozenset(room.terms), room.constant - (op == "lt")
    return condition


def _stage_in_margin(g: Graph, s: Stage, t: Leaf | Stage, margin: Margin, path: str) -> tuple[Graph, Stage]:
    names = [n if n and not n.isdigit() else f"i{k}" for k, n in enumerate(operand_axes(s, t))]
    axes = tuple(axis(n) for n in names)
    at = tuple(binary("sub", a, as_expr(k)) for a, k in zip(axes, margin.before, strict=True))
    ranges = dict(zip(axes, margin.extents, strict=True))
    value: Expr = Read(t.id, at, t.dtype)
    inside = [
        c
        for i, n in zip(at, t.shape, strict=True)
        for c in (simplify(as_expr(0) <= i, ranges), simplify(i < as_expr(n), ranges))
        if not isinstance(c, Const)
    ]
    if inside:
        condition = inside[0]
        for c in inside[1:]:
            condition = condition & c
        value = where(condition, value, margin.outside)
    copy = Stage(
        fresh_id(g),
        path,
        s.method,
        axes,
        margin.extents,
        t.dtype,
        value,
        None,
        op=s.op,
        origin="derived",
        source=s.source,
        **beside(s, t),
    )
    moved = Read(
        copy.id,
        tuple(simplify(binary("add", i, as_expr(k)), s.ranges) for i, k in zip(margin.read.index, margin.before, strict=True)),
        t.dtype,
    )
    new = replace(s, value=rewrite(s.value, lambda e: moved if e is margin.guarded else None))
    return g.spliced(s, (copy, new)), new
