"""rfactor and find_best: a reduction in two."""

from __future__ import annotations

from dataclasses import replace

from fluorite.algo.clock import place as place_of
from fluorite.algo.combiners import Combiner
from fluorite.algo.dtypes import kind
from fluorite.algo.expr import Expr, Read, as_expr, axis, binary, cast, where
from fluorite.algo.extent import Extent, ceildiv, exact_quotient
from fluorite.algo.graph import Graph
from fluorite.algo.identities import identity
from fluorite.algo.rewriting import substitute as substitute_axes
from fluorite.algo.stages import Reduction, Stage

from ..directives import FindBest, Rfactor
from ..notation.yaml_reader import nearest
from .common import condition_over, free_path, fresh_id, refused


def rfactor(g: Graph, s: Stage, d: Rfactor) -> tuple[Graph, Stage]:
    """over k: f(k)  ->  partial[.., l] = over ko: f(ko * factor + l); f = over l: partial[.., l].

    In blocks, f(l * block + ko), and where the order counts, f(l * ceil(n / factor) + ko). A scatter has l first: the parts of two threads
    share no cache lines.
    """
    reduction = s.reduction
    k = next((a for a in s.reduce_axes if a.name == d.axis), None)
    if reduction is None or k is None:
        names = [a.name for a in s.reduce_axes]
        raise refused(
            d.at("axis"),
            "P222",
            s,
            f"rfactor: {d.axis} is no reduction axis of {s.name}",
            f"it has {', '.join(names) or 'none'}",
            *nearest(d.axis, names),
        )
    if reduction.kind.startswith("arg"):
        why = "its partial results would be pairs of value and position"
        raise refused(d.at(), "P222", s, f"rfactor of {reduction.kind}", why, "find_best first: it leaves a minimum over positions")
    if reduction.in_order and k is not reduction.axes[0]:
        why = f"{reduction.label} does not commute, so that its parts are runs of its first axis"
        raise refused(d.at("axis"), "P222", s, f"rfactor of {d.axis}", why, f"axis: {reduction.axes[0].name}")
    if d.factor is None and d.block is None:
        raise refused(d.at(), "P222", s, "rfactor needs a factor", "", "factor: 16", "block: 32")
    n, fresh = s.ranges[k], {a: axis(a.name) for a in s.axes}
    outer, inner = axis(f"{k.name}_outer"), axis(f"{k.name}_inner")
    parts: Extent
    length: Extent
    if d.block is not None:
        part, rest, parts, length = outer, inner, ceildiv(n, d.block), d.block
    else:
        assert d.factor is not None
        part, rest, parts, length = inner, outer, d.factor, ceildiv(n, d.factor)
    last = axis(part.name)
    others = {a: axis(a.name) for a in s.reduce_axes if a is not k}
    if d.block is not None or reduction.in_order:  # each part a run of neighbours
        whole = binary("add", binary("mul", part, as_expr(length)), rest)
    else:
        whole = binary("add", binary("mul", rest, as_expr(parts)), part)
    value = substitute_axes(s.value, {**fresh, **others, k: whole})
    if exact_quotient(n, d.block or d.factor or 1) is None:
        value = reduction.guarded(whole < as_expr(n), value)
    extents = dict(zip(reduction.axes, reduction.extents, strict=True))
    first = s.scatter is not None
    own = tuple(fresh[a] for a in s.axes)
    partial = replace(
        s,
        id=fresh_id(g),
        path=free_path(g, s, f"{s.path}/{d.into or 'partial'}", d.at("into")),
        axes=(part, *own) if first else (*own, part),
        extents=(parts, *s.extents) if first else (*s.extents, parts),
        value=value,
        origin="derived",
        when=condition_over(s, fresh),
        reduction=replace(
            reduction,
            axes=tuple(rest if a is k else others[a] for a in s.reduce_axes),
            extents=tuple(length if a is k else extents[a] for a in s.reduce_axes),
        ),
    )
    at = (last, *s.axes) if first else (*s.axes, last)
    element = Read(partial.id, at, s.dtype) if reduction.combiner is None else _parts_of(s, reduction.combiner, partial.id, at)
    total = replace(s, value=element, reduction=replace(reduction, axes=(last,), extents=(parts,)))
    return g.spliced(s, (partial, total)), total


def _parts_of(s: Stage, c: Combiner, partial: int, at: tuple[Expr, ...]) -> Expr:
    """The element of a partial result, as the value of a stage that combines them."""
    where_ = None if s.parts_axis is None else place_of(s.parts_axis, s.axes)
    return c.value(c.element(partial, at, where_), s.parts_axis)


def find_best(g: Graph, s: Stage, d: FindBest) -> tuple[Graph, Stage]:
    """argmax over k: f(k)  ->  best = max over k: f(k); min over k: k where f(k) == best. Where best is NaN, k where f(k) is NaN."""
    reduction = s.reduction
    if reduction is None or not reduction.kind.startswith("arg"):
        found = reduction.kind if reduction is not None else "no reduction"
        raise refused(d.at(), "P222", s, f"find_best of {s.name}, which is {found}", "it splits an argmax or argmin", "rfactor")
    largest, truth = reduction.kind == "argmax", s.value.dtype == "bool"
    fresh = {a: axis(a.name) for a in (*s.axes, *s.reduce_axes)}
    best = replace(
        s,
        id=fresh_id(g),
        path=free_path(g, s, f"{s.path}/{d.into}", d.at("into")),
        dtype=s.value.dtype,
        axes=tuple(fresh[a] for a in s.axes),
        value=substitute_axes(s.value, dict(fresh)),
        reduction=Reduction(
            ("any" if largest else "all") if truth else ("max" if largest else "min"),
            tuple(fresh[a] for a in s.reduce_axes),
            reduction.extents,
        ),
        origin="derived",
        when=condition_over(s, fresh),
    )
    held = binary("eq", s.value, Read(best.id, s.axes, best.dtype))
    if kind(best.dtype) == "float":
        held = held | binary("ne", s.value, s.value)
    position: Expr = as_expr(0)
    for a, n in zip(reduction.axes, reduction.extents, strict=True):
        position = binary("add", binary("mul", position, as_expr(n)), a)
    first = where(held, cast(position, s.dtype), identity("min", s.dtype))
    at = replace(s, value=first, reduction=replace(reduction, kind="min"))
    return g.spliced(s, (best, at)), at
