"""Products in narrow types by the instructions that multiply small matrices: AMX where there are rows for a tile, else dot products.

Both operands are packed in the order that the instruction reads, filled up with zeros. bfloat16 is left to them only where the plan
allows the class precision: they take subnormal numbers for 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fluorite.algo.dtypes import itemsize, kind
from fluorite.algo.expr import Axis, Read
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage

from ..directives import Cache, ComputeAt, ComputeInline, Directive, Fuse, Pack, Parallel, Reorder, Split, StoreIn, Tensorize, Vectorize
from ..intrinsics import Intrinsic, available
from ..machine import Machine
from ..rewrites import operand_axes, operand_name
from .analysis import factors
from .kernels import PARALLEL_WORK, Directives
from .products import ProductShape, panels_first

_FEWEST_ROWS = {"tile": 3, "vector": 4}
"""Rows from which on packing the columns pays, where it is not done at build."""
_LINE = 64  # bytes of a line of the cache


def suits(g: Graph, product: Stage, machine: Machine, flushes: bool) -> Intrinsic | None:
    """The instruction for a product, if there is one that pays: of operands read at their own axes, and columns that are packed at build or
    used for several rows. `flushes`: whether subnormal numbers may be taken for 0."""
    pair, reduction = factors(product), product.reduction
    if pair is None or reduction is None or pair[0].source == pair[1].source:
        return None
    if not all(isinstance(i, Axis) for r in pair for i in r.index):
        return None
    i, fixed = ProductShape(product, product, machine, pair).i, g.is_fixed(g[pair[1].source], product.method)
    for x in available(machine.features, machine.arch):
        if product.dtype != x.result or _taken(x, pair) is None or (kind(x.result) == "float" and not flushes):
            continue
        if _is_less(product.extents[-1], x.columns) or _is_less(reduction.extents[-1], 16):
            continue
        if (x.rows == 1 or i is not None) and (fixed or (i is not None and not _is_less(product.ranges[i], _FEWEST_ROWS[x.fragment]))):
            return x
    return None


def _taken(by: Intrinsic, pair: tuple[Read, Read]) -> Literal["same", "i16"] | None:
    """What operands are packed as for an instruction, if it can multiply them."""
    types = (pair[0].dtype, pair[1].dtype)
    if types in by.operands:
        return "same"
    return "i16" if ("int16", "int16") in by.operands and {*types} <= {"int8", "uint8", "int16"} else None


def _is_less(n: object, than: int) -> bool:
    return isinstance(n, int) and n < than


def matmul(g: Graph, product: Stage, root: Stage, machine: Machine, by: Intrinsic) -> Mapping[str, Directives]:
    """Directives for a product that `suits` and the stage that finishes it (itself, if nothing does)."""
    pair = factors(product)
    assert pair is not None
    s = ProductShape(product, root, machine, pair)
    nest = _nest(s, by)
    path = f"{product.path}/acc" if product is root else product.path
    own: list[Directive] = [*([Cache("acc")] if product is root else []), *nest.splits, Reorder(*nest.loops, *nest.inner)]
    loop = {x: x for x in nest.loops}
    parallel = s.other_count * s.m * s.n * s.depth >= PARALLEL_WORK
    if parallel:
        tasks = nest.loops[: nest.tasks]
        own += [Fuse(*tasks, into="task")] if len(tasks) > 1 else []
        own += [Parallel("task" if len(tasks) > 1 else tasks[0])]
        loop |= dict.fromkeys(tasks, "task") if len(tasks) > 1 else {}
    packs = [_packs(g, s, by, side) for side in (0, 1)]
    out: dict[str, Directives] = {root.path: (*own, Vectorize("ji", width=machine.lanes(root.dtype)))}
    parent = path.rsplit("/", 1)[0]
    for side, (operand, made, at) in enumerate(zip(pair, packs, nest.packed_at, strict=True)):
        out |= {f"{parent}/{d.into}": (ComputeInline(),) for d in made[:-1]}
        for d in made[-1:]:
            of_task = at not in s.others or bool(set(operand.index) & {a for a in product.axes[:-1] if a is not s.i})
            within = at if of_task and _is_whole(s, by, side) and not g.is_fixed(g[operand.source], product.method) else ""
            first, loops = _copying(s, d, operand.dtype, side)
            where = [ComputeAt(stage="/" + root.path, axis=loop[within])] if within else [Parallel(first)] if parallel else []
            out[f"{parent}/{d.into}"] = (*where, *loops)
    out[path] = (ComputeAt(stage="/" + root.path, axis=loop[nest.loops[-1]]), StoreIn("stack"), *packs[0], *packs[1], *_sums(s, by))
    return out


def _is_whole(s: ProductShape, by: Intrinsic, side: int) -> bool:
    """Whether an operand fills an instruction: of a smaller one only that part would be made inside a loop."""
    a, n = (s.j, by.columns) if side else (s.i, by.rows)
    least = [(s.product.reduce_axes[-1], by.depth), *([(a, n)] if a is not None else [])]
    return not any(_is_less(s.product.ranges[a], n) for a, n in least)


@dataclass(frozen=True)
class _Nest:
    """The loops of root: those outside the tile, of which the first `tasks` make tasks, and those of the tile. `packed_at`: the loop in
    which the rows, and the columns, are packed, "" where that is done before."""

    splits: list[Directive]
    loops: list[str]
    tasks: int
    inner: list[str]
    packed_at: tuple[str, str]


def _nest(s: ProductShape, by: Intrinsic) -> _Nest:
    """Columns in blocks that stay in the second cache, passed by one tile of rows after the other."""
    tall, broad = min(8, s.m), 2
    if by.rows > 1:
        tall, broad = (1, by.most) if s.m <= by.rows else (2, by.most // 2)
        tall *= by.rows
    broad *= by.columns
    across, down, cores = -(-s.n // broad), -(-s.m // tall), s.machine.cores
    fitting = max(1, s.machine.l2 // 4 // max(1, broad * s.depth * itemsize(s.pair[1].dtype)))
    many = s.other_count >= 2 * cores and bool(s.others)
    few = not many and down < 2 * cores
    block = min(fitting, max(1, across // (4 * cores))) if few else min(fitting, across)
    splits: list[Directive] = [Split(s.root_name(s.j), factors=(None, block, broad), into=("jb", "jt", "ji"), tail="guard")]
    if s.i is None:
        return _Nest(splits, [*s.others, "jb", "jt"], len(s.others) + 1, ["ji"], ("", ""))
    rows = max(1, min(16, down // (4 * cores))) if not (many or few) else down
    splits.append(Split(s.root_name(s.i), factors=(None, rows, tall), into=("ib", "it", "ii"), tail="guard"))
    order = ["jb", "ib", "it", "jt"] if few else ["ib", "jb", "it", "jt"]
    tasks = len(s.others) + (not many)
    whole = s.others[-1] if many else ""
    return _Nest(splits, [*s.others, *order], tasks, ["ii", "ji"], (whole, whole) if many else ("", "jb") if few else ("ib", ""))


def _sums(s: ProductShape, by: Intrinsic) -> list[Directive]:
    """The loops of the tile, the innermost of which are the instruction's."""
    *outer, k = [a.name for a in s.product.reduce_axes]
    around = [a.name for a in s.product.axes[:-1] if a is not s.i]
    splits: list[Directive] = [Split(k, by.depth, into=("ko", "ki")), Split(s.j.name, by.columns, into=("jv", "lane"))]
    written, of_instruction = ["jv"], ["lane", "ki"]
    if s.i is not None and by.rows > 1:
        splits.append(Split(s.i.name, by.rows, into=("iv", "row")))
        written, of_instruction = ["iv", "jv"], ["row", "lane", "ki"]
    elif s.i is not None:
        written = [s.i.name, "jv"]
    return [*splits, Reorder(*around, *outer, "ko", *written, *of_instruction), Tensorize(of_instruction[0], by.name)]


def _copying(s: ProductShape, d: Pack, dtype: str, side: int) -> tuple[str, list[Directive]]:
    """The first loop of a copy in blocks, and its loops: where columns lie side by side in memory, a line of the cache at a time."""
    outer = [f"{n}_outer" if n in d.sizes else n for n in d.order]
    if not side or s.pair[1].index[-1] is not s.j:
        return outer[0], []
    panel, inner = f"{s.j.name}_outer", [f"{n}_inner" for n in d.sizes]
    wide = max(1, _LINE // (d.sizes[s.j.name] * itemsize(dtype)))
    splits: list[Directive] = [Split(panel, wide, into=("panels", "panel"))]
    around = [n for n in outer if n != panel]
    if len(inner) == 2:  # columns and a group of k
        splits.append(Split(around[-1], 16, into=("kb", "kt")))
        around[-1:], inner = ["kb"], ["kt", *inner]
    return around[0], [*splits, Reorder(*around, "panels", inner[0], "panel", *inner[1:])]


def _packs(g: Graph, s: ProductShape, by: Intrinsic, side: int) -> list[Pack]:
    """The rows with `depth` of k side by side, or the columns with `group` of k side by side for each of them; filled up with zeros."""
    operand, k = g[s.pair[side].source], s.product.reduce_axes[-1]
    names, name = operand_axes(s.product, operand), operand_name(g, s.product, operand)
    into = f"{s.product.name}_{name.replace('/', '_')}_packed"
    reduced = {a.name for a in s.product.reduce_axes}
    to = _taken(by, s.pair) or "same"
    if side == 0:
        n = s.product.ranges[k]
        if to == "same" and by.rows == 1 and s.pair[0].index[-1] is k and isinstance(n, int) and n % by.depth == 0:
            return []
        i = s.i.name if s.i is not None else None
        sizes = {i: by.rows, k.name: by.depth} if i is not None and by.rows > 1 else {k.name: by.depth}
        order = panels_first(names, i, reduced) if i is not None else tuple(names)
        return [Pack(tensor=name, sizes=sizes, order=order, into=into, type=to)]
    order = panels_first([n for n in names if n != k.name], s.j.name, reduced)
    if by.depth == by.group:
        return [Pack(tensor=name, sizes={s.j.name: by.columns, k.name: by.group}, order=(*order, k.name), into=into, type=to)]
    groups, few = into.replace("_packed", "_groups"), (f"{k.name}_outer", f"{k.name}_inner")
    return [
        Pack(tensor=name, sizes={k.name: by.group}, order=(*order, k.name), into=groups),
        Pack(
            tensor=groups,
            sizes={few[0]: by.depth // by.group, s.j.name: by.columns, few[1]: by.group},
            order=(*order, *few),
            into=into,
        ),
    ]


__all__ = ["matmul", "suits"]
