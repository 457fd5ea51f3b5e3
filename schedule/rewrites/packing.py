"""pack: a stage reads its operand in tiles."""

from __future__ import annotations

from dataclasses import replace

from fluorite.algo.dtypes import kind
from fluorite.algo.expr import Expr, Op, Read, as_expr, axis, binary, where
from fluorite.algo.extent import Extent, ceildiv, exact_quotient
from fluorite.algo.graph import Graph
from fluorite.algo.identities import identity
from fluorite.algo.linear import simplify
from fluorite.algo.rewriting import rewrite
from fluorite.algo.stages import Leaf, Stage, widens

from ..directives import Pack
from ..notation.yaml_reader import nearest
from .common import beside, free_path, fresh_id, refused
from .operands import operand, operand_axes

_TYPES = {"f32": "float32", "i16": "int16", "i32": "int32"}


def pack(g: Graph, s: Stage, d: Pack) -> tuple[Graph, Stage]:
    """t[k, j]  ->  into[j // 32, k, j % 32] for sizes {j: 32} and order [j, k]."""
    t = operand(g, s, d.tensor, d.at("tensor"), "pack")
    names = operand_axes(s, t)
    if sorted(d.order) != sorted(names):
        raise refused(
            d.at("order"),
            "P221",
            s,
            f"pack: order: [{', '.join(d.order)}]",
            f"it must name the axes of {t.name} once each: {', '.join(names)}",
        )
    unknown = [a for a in d.sizes if a not in names]
    if unknown:
        raise refused(
            d.at("sizes", unknown[0]),
            "P221",
            s,
            f"pack: {t.name} has no axis {unknown[0]}",
            f"it has {', '.join(names)}",
            *nearest(unknown[0], names),
        )
    if d.when == "build" and not g.is_fixed(t, s.method):
        raise refused(
            d.at("when"),
            "P224",
            s,
            f"pack: when: build, but {t.name} is known only when the model is called",
            f"{s.method} changes it" if isinstance(t, Leaf) and t.kind != "input" else "only parameters and constants are there at build",
            "when: call",
        )
    to = _TYPES.get(d.type, t.dtype)
    if to != t.dtype and not widens(t.dtype, to):
        why = f"it is {t.dtype}, which {to} does not hold" if kind(to) == kind(t.dtype) else f"it is {t.dtype}"
        raise refused(d.at("type"), "P227", s, f"pack: {t.name} as {d.type}", why, "leave type out")
    size = dict(zip(names, t.shape, strict=True))
    outer = [axis(f"{n}_outer" if n in d.sizes else n) for n in d.order]
    inner = {n: axis(f"{n}_inner") for n in d.sizes}
    by_name = dict(zip(d.order, outer, strict=True))

    def position(n: str) -> Expr:
        return binary("add", binary("mul", by_name[n], as_expr(d.sizes[n])), inner[n]) if n in d.sizes else by_name[n]

    value: Expr = Read(t.id, tuple(position(n) for n in names), t.dtype)
    value = value if to == t.dtype else Op("cast", (value,), to, False)
    for n in d.sizes:
        if exact_quotient(size[n], d.sizes[n]) is None:
            value = where(position(n) < as_expr(size[n]), value, identity("sum", to))
    extents: list[Extent] = [ceildiv(size[n], d.sizes[n]) if n in d.sizes else size[n] for n in d.order]
    axes = (*outer, *(inner[n] for n in d.sizes))
    path = free_path(g, s, "/".join([*s.path.split("/")[:-1], d.into]), d.at("into"))
    packed = Stage(
        fresh_id(g),
        path,
        s.method,
        axes,
        (*extents, *d.sizes.values()),
        to,
        value,
        None,
        op="pack at call" if d.when == "call" else "pack",
        origin="derived",
        source=s.source,
        **beside(s, t),
    )

    known: dict[Expr, Read] = {}  # by what reads the copy in the operand's own type: the copy

    def read(e: Expr) -> Expr | None:
        if isinstance(e, Op) and e.op == "cast" and (wide := known.get(e.args[0])) is not None:
            return wide if e.dtype == to else Op("cast", (wide,), e.dtype, e.weak)
        if not (isinstance(e, Read) and e.source == t.id):
            return None
        at = dict(zip(names, e.index, strict=True))
        index = [binary("floordiv", at[n], as_expr(d.sizes[n])) if n in d.sizes else at[n] for n in d.order]
        index += [binary("mod", at[n], as_expr(k)) for n, k in d.sizes.items()]
        found = Read(packed.id, tuple(simplify(i, s.ranges) for i in index), to)
        if to == t.dtype:
            return found
        narrow = Op("cast", (found,), t.dtype, False)
        known[narrow] = found
        return narrow

    new = replace(s, value=rewrite(s.value, read))
    return g.spliced(s, (packed, new)), new
