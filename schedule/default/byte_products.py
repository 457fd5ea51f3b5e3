"""Products of unsigned and signed bytes: dot products of four by vpdpbusd, both operands packed in the order that it reads.

Of AMX, which multiplies bytes of any sign still faster, nothing is used by default: the system may refuse its registers to a process.
"""

from __future__ import annotations

from collections.abc import Mapping

from fluorite.algo.expr import Axis
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage

from ..directives import Cache, ComputeAt, Directive, Fuse, Pack, Parallel, Reorder, Split, StoreIn, Tensorize, Vectorize
from ..intrinsics import INTRINSICS, Intrinsic, available
from ..machine import Machine
from ..rewrites import operand_axes, operand_name
from .analysis import factors
from .kernels import PARALLEL_WORK, Directives
from .products import ProductShape, panels_first

_DOTS = INTRINSICS["avx512_vnni"]
_TALL, _BROAD, _BLOCK = 8, 2, 16
"""Rows and vectors of a tile, whose sums are in registers, and tiles of rows that a task takes before it goes on to other columns."""


def suits(g: Graph, product: Stage, machine: Machine) -> Intrinsic | None:
    """The instruction for a product, if there is one that pays: of operands read at their own axes, along one axis, and columns that are
    packed at build or used for several rows."""
    pair, reduction = factors(product), product.reduction
    if pair is None or reduction is None or product.dtype != _DOTS.result or _DOTS not in available(machine.features, machine.arch):
        return None
    bare = all(isinstance(i, Axis) for r in pair for i in r.index) and pair[0].source != pair[1].source
    large = len(reduction.axes) == 1 and not _is_less(product.extents[-1], _DOTS.columns) and not _is_less(reduction.extents[0], 16)
    i = ProductShape(product, product, machine, pair).i
    reused = (i is not None and not _is_less(product.ranges[i], 4)) or g.is_fixed(g[pair[1].source], product.method)
    return _DOTS if bare and large and reused and (pair[0].dtype, pair[1].dtype) in _DOTS.operands else None


def _is_less(n: object, than: int) -> bool:
    return isinstance(n, int) and n < than


def matmul(g: Graph, product: Stage, root: Stage, machine: Machine) -> Mapping[str, Directives]:
    """Directives for a product that `suits` and the stage that finishes it (itself, if nothing does)."""
    pair = factors(product)
    assert pair is not None
    s = ProductShape(product, root, machine, pair)
    k, n, group = product.reduce_axes[0].name, _DOTS.columns, _DOTS.group
    splits: list[Directive] = [Split(s.root_name(s.j), n * _BROAD, into=("jo", "ji"), tail="guard")]
    rows, inner = [*s.others], ["ji"]
    if s.i is not None:
        tall = min(_TALL, s.m)
        tiles = max(1, min(_BLOCK, -(-s.m // tall) // (4 * machine.cores)))
        splits.append(Split(s.root_name(s.i), factors=(None, tiles, tall), into=("ib", "it", "ii"), tail="guard"))
        rows, inner = [*rows, "ib"], ["ii", "ji"]
    at = ["jo", "it"] if s.i is not None else ["jo"]
    wide = s.i is None or -(-s.m // _TALL) < 2 * machine.cores  # few rows: tasks are panels of columns
    tasks = [*rows, "jo"] if wide else rows
    own: list[Directive] = [*([Cache("acc")] if product is root else []), *splits, Reorder(*rows, *at, *inner)]
    parallel = s.other_count * s.m * s.n * s.depth >= PARALLEL_WORK
    if parallel:
        own += [Fuse(*tasks, into="task")] if len(tasks) > 1 else []
        own += [Parallel("task" if len(tasks) > 1 else tasks[0])]
    loop = "task" if parallel and len(tasks) > 1 and at[-1] == tasks[-1] else at[-1]
    path = f"{product.path}/acc" if product is root else product.path
    around, tile = [a.name for a in product.axes[:-1] if a is not s.i], [s.i.name] if s.i is not None else []
    packs = [_pack(g, s, side, k) for side in (0, 1)]
    sums: list[Directive] = [Split(k, group, into=("ko", "ki")), Split(s.j.name, n, into=("jv", "lane"))]
    sums += [Reorder(*around, "ko", *tile, "jv", "lane", "ki")]
    out: dict[str, Directives] = {
        root.path: (*own, Vectorize("ji", width=machine.lanes(root.dtype))),
        path: (ComputeAt(stage="/" + root.path, axis=loop), StoreIn("stack"), *packs, *sums, Tensorize("lane", _DOTS.name)),
    }
    parent = path.rsplit("/", 1)[0]
    for d in packs:
        first = d.order[0]
        out[f"{parent}/{d.into}"] = (Parallel(f"{first}_outer" if first in d.sizes else first),) if parallel else ()
    return out


def _pack(g: Graph, s: ProductShape, side: int, k: str) -> Pack:
    """The rows with four of k side by side, filled up with zeros, or the columns with these for each of 16 columns."""
    operand = g[s.pair[side].source]
    names, name = operand_axes(s.product, operand), operand_name(g, s.product, operand)
    panel = s.j.name if side else next((a for a in names if a != k), k)
    order = panels_first(names, panel, {k}) if panel != k else tuple(names)
    sizes = {s.j.name: _DOTS.columns, k: _DOTS.group} if side else {k: _DOTS.group}
    return Pack(tensor=name, sizes=sizes, order=order, into=f"{s.product.name}_{name.replace('/', '_')}_packed")


__all__ = ["matmul", "suits"]
