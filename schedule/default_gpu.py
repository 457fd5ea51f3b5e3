"""The default schedule of a GPU: products in register tiles fed from shared memory, a block a row, stencil tiles, else 256 threads a block.

Legal everywhere rather than fast everywhere; what a person would write before measuring anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from fluorite.algo.dtypes import itemsize
from fluorite.algo.expr import Axis, Expr, Op, Read
from fluorite.algo.extent import volume
from fluorite.algo.graph import Graph
from fluorite.algo.linear import linear
from fluorite.algo.stages import Stage

from .default.analysis import factors, follows, is_bare, pointwise, sites
from .default.chosen import Chosen
from .default.gpu_recurrences import by_threads, gpu_recurrence
from .default.inlining import after_inlining
from .default.kernels import Directives
from .default.rules import epilogue_of, row_members, strip_members
from .directives import (
    Cache,
    ComputeAt,
    ComputeInline,
    Directive,
    Fetch,
    Fuse,
    GpuBlocks,
    GpuLanes,
    GpuThreads,
    Reorder,
    Split,
    StageIn,
    StoreIn,
    Tile,
    Unroll,
    Vectorize,
)
from .intrinsics import WARP
from .placing import between
from .rewrites import operand_axes
from .scheduled import Undecided

_THREADS = 256
_TILE, _EACH, _STEP = 64, 4, 16  # a product: tile of a block, register tile of a thread, depth of what is staged at a time
_ROW_LEAST = 64  # below that, a block a row leaves most threads without work
_STENCIL, _STENCIL_ROWS, _HALO, _STENCIL_BYTES = 32, 8, 8, 40 << 10


def default_gpu(g: Graph, undecided: Undecided) -> Mapping[str, Directives]:
    """Directives for the undecided stages, by path."""
    anchored = _anchored(g, undecided)
    if anchored:
        rest = frozenset(i for i in undecided.stages if g.path_of(i) not in anchored)
        return {**default_gpu(g, replace(undecided, stages=rest, anchors=())), **anchored}
    chosen = after_inlining(g, undecided)
    for s in reversed(chosen.graph.stages):
        if chosen.free(s):
            chosen.placed.add(s.id)
            chosen.directives |= _kernel(chosen, s)
    return chosen.directives


def _anchored(g: Graph, undecided: Undecided) -> dict[str, Directives]:
    """Undecided stages that the plan computes something in: the owner keeps the loop, and what stands between joins its kernel."""
    out: dict[str, Directives] = {}
    for i, owner, loop in undecided.anchors:
        found = between(g, i, owner)
        for s in g.stages:
            if s.id not in undecided.stages or (s.id != owner and s.id not in found):
                continue
            if s.id != owner:
                inner = (
                    (ComputeInline(),)
                    if s.reduction is None
                    else (ComputeAt(stage="/" + g.path_of(owner), axis=loop), StoreIn("shared"), *_by_block(s))
                )
                out.setdefault(s.path, inner)
                continue
            names = [a.name for a in s.of_elements.axes]
            lane = _name(s, "lane")
            threads = (
                (Split(names[-1], _THREADS, into=(f"{names[-1]}_outer", lane)), GpuThreads(lane))
                if len(names) > 1 and names[-1] != loop
                else ()
            )
            out[s.path] = (*threads, GpuBlocks(*names[: max(1, len(names) - 1)][:3]))
    return out


def _kernel(chosen: Chosen, root: Stage) -> Mapping[str, Directives]:
    g, root = chosen.graph, root.of_elements
    if (stepped := gpu_recurrence(g, root, chosen.undecided)) is not None:
        return {root.path: stepped}
    product = epilogue_of(chosen, root) or (root if factors(root) is not None else None)
    if product is not None and _is_plain_product(product, root):
        chosen.placed.add(product.id)
        return _product(g, root, product)
    depth, members = row_members(chosen, root)
    if members and chosen.undecided.reassociate and all(_fits_row(m, depth) for m in members):
        chosen.placed |= {m.id for m in members}
        return _rows(root, members, depth, chosen.machine.arch > 0)
    if _is_long_reduction(root) and chosen.undecided.reassociate:
        return {root.path: _reduction(root, chosen.machine.arch > 0)}
    members = strip_members(chosen, root)
    if members and root.reduction is None and all(_fits_tile(chosen, root, m) for m in members):
        tiles = [m for m in members if m.reduction is None]
        if sum((_STENCIL + _HALO) ** 2 * np.dtype(m.dtype).itemsize for m in tiles) <= _STENCIL_BYTES:
            chosen.placed |= {m.id for m in members}
            return _stencil(root, members)
    return {root.path: _flat(root)}


def _name(s: Stage, wanted: str) -> str:
    """The name, with underscores where an axis of the stage has it already."""
    taken = {a.name for a in s.ranges}
    while wanted in taken:
        wanted += "_"
    return wanted


def _joined(s: Stage, names: list[str], into: str) -> tuple[list[Directive], str]:
    """One loop of several."""
    if len(names) == 1:
        return [], names[0]
    into = _name(s, into)
    return [Fuse(*names, into=into)], into


# ---------------------------------------------------------------- elementwise, and whatever no other rule knows
def _flat(s: Stage) -> Directives:
    names = [a.name for a in s.axes]
    if not names:
        return ()
    fused, flat = _joined(s, names, "flat")
    block, thread = _name(s, "block"), _name(s, "thread")
    return (*fused, Split(flat, _THREADS, into=(block, thread)), GpuBlocks(block), GpuThreads(thread))


# ---------------------------------------------------------------- products
def _is_plain_product(product: Stage, root: Stage) -> bool:
    """A matrix product, perhaps of batches, that reads its operands at bare axes."""
    pair = factors(product)
    assert pair is not None
    return (
        len(product.axes) >= 2
        and len(product.axes) == len(root.axes)
        and len(product.reduce_axes) == 1
        and all(is_bare(r.index) for r in pair)
        and all(_has(r, product.reduce_axes[0]) for r in pair)
        and _has(pair[0], product.axes[-2])
        and pair[0].source != pair[1].source
    )


def _has(r: Read, a: Axis) -> bool:
    return any(i is a for i in r.index)


def _product(g: Graph, root: Stage, product: Stage) -> Mapping[str, Directives]:
    names = [a.name for a in root.axes]
    i, j = names[-2:]
    ti, ii, tj, jj = (_name(root, n) for n in ("ti", "ii", "tj", "jj"))
    own: list[Directive] = [
        Tile({i: _TILE, j: _TILE}),
        Split(f"{i}_inner", _EACH, into=(ti, ii)),
        Split(f"{j}_inner", _EACH, into=(tj, jj)),
        Reorder(f"{i}_outer", f"{j}_outer", ti, tj, ii, jj),
    ]
    fused, band = _joined(root, [*names[:-2], f"{i}_outer"], "band")
    moved = Vectorize(jj) if _EACH * itemsize(root.dtype) <= 16 else Unroll(jj)  # a thread moves 16 bytes at most
    own += [*fused, GpuBlocks(band, f"{j}_outer"), GpuThreads(ti, tj), Unroll(ii), moved]
    accumulator = f"{product.path}/acc" if product is root else product.path
    k = product.reduce_axes[0].name
    mine: list[Directive] = [ComputeAt(stage="/" + root.path, axis=tj), StoreIn("registers")]
    out: dict[str, Directives] = {}
    pair = factors(product)
    assert pair is not None
    for r in pair:
        operand = g[r.source]
        into = f"{product.name}_{operand.name}_tile"
        mine.append(StageIn(read=operand.path, into=into))
        wide = operand.shape[-1]
        vector = 4 if isinstance(wide, int) and wide % 4 == 0 and np.dtype(operand.dtype).itemsize == 4 else None
        folder = accumulator.rsplit("/", 1)[0]
        out[f"{folder}/{into}"] = (ComputeAt(stage="/" + accumulator, axis=f"{k}_outer"), StoreIn("shared"), Fetch(vector=vector))
        assert operand_axes(product, operand)
    a, b = (x.name for x in product.axes[-2:])
    mine += [Split(k, _STEP), Reorder(f"{k}_outer", f"{k}_inner", a, b), Unroll(a), Unroll(b)]
    if product is root:
        own.insert(0, Cache("acc"))
    return {root.path: tuple(own), accumulator: tuple(mine), **out}


# ---------------------------------------------------------------- rows
def _fits_row(m: Stage, depth: int) -> bool:
    """A reduction to one value a row, or something that can be computed again where it is read."""
    if m.reduction is None:
        return follows(m, m, depth)
    return len(m.axes) == depth and not m.reduction.in_order


def _rows(root: Stage, members: list[Stage], depth: int, warps: bool) -> Mapping[str, Directives]:
    names = [a.name for a in root.axes]
    fused, row = _joined(root, names[:depth], "row")
    own: list[Directive] = [*fused]
    if root.reduction is not None:
        own += _by_block(root, warps)
    else:
        inner, column = _joined(root, names[depth:], "column")
        own += [*inner, *_shared_out(root, column, warps)]
    own.append(GpuBlocks(row))
    out: dict[str, Directives] = {root.path: tuple(own)}
    at = (ComputeAt(stage="/" + root.path, axis=row), StoreIn("shared"))
    for m in members:
        out[m.path] = (ComputeInline(),) if m.reduction is None else (*at, *_by_block(m, warps))
    return out


def _by_block(s: Stage, warps: bool = False) -> list[Directive]:
    fused, k = _joined(s, [a.name for a in s.reduce_axes], "reduced")
    return [*fused, *_shared_out(s, k, warps)]


def _shared_out(s: Stage, loop: str, warps: bool) -> list[Directive]:
    """The iterations of a loop dealt to the threads of a block; with `warps` as lanes, which hand on what they reduce by shuffles."""
    lane = _name(s, "lane")
    if not warps:
        return [Split(loop, _THREADS, into=(f"{loop}_outer", lane)), GpuThreads(lane)]
    warp = _name(s, "warp")
    split = Split(loop, factors=(None, _THREADS // WARP, WARP), into=(f"{loop}_outer", warp, lane))
    return [split, GpuThreads(warp), GpuLanes(lane)]


def _is_long_reduction(s: Stage) -> bool:
    """A reduction that leaves few values or runs along memory, and is long enough for a block."""
    if s.reduction is None or not by_threads(s.reduction):
        return False
    total = volume(s.reduction.extents)
    if isinstance(total, int) and total < _ROW_LEAST:
        return False
    last = s.reduce_axes[-1]
    return not s.axes or any(r.index and r.index[-1] is last for r in s.reads)


def _reduction(s: Stage, warps: bool) -> Directives:
    names = [a.name for a in s.axes]
    if not names:
        return tuple(_by_block(s, warps))
    fused, row = _joined(s, names, "row")
    return (*fused, *_by_block(s, warps), GpuBlocks(row))


# ---------------------------------------------------------------- stencils
def _fits_tile(chosen: Chosen, root: Stage, m: Stage) -> bool:
    """Shared by the block, or a small reduction that each thread does for itself where the result is read at its own position."""
    if len(m.axes) < 2 or len(root.axes) != len(m.axes):
        return False
    if not all(_near(c, index) for c in chosen.graph.consumers[m.id] for index in sites(c, m.id)):
        return False
    if m.reduction is None:
        return True
    return all(c.id == root.id and pointwise(c, m) for c in chosen.graph.consumers[m.id]) and len(sites(root, m.id)) == 1


def _near(c: Stage, index: tuple[Expr, ...]) -> bool:
    """Whether every index is c's axis of that place, plus constants and small windows: then a tile of c needs a tile of constant size."""
    windows = set(c.reduce_axes)
    for a, e in zip(c.axes, index, strict=True):
        form = linear(e.args[0] if isinstance(e, Op) and e.op == "edge" else e)
        reach = form.constant if not isinstance(form.constant, int) else abs(form.constant)
        for atom, k in form.terms:
            if isinstance(atom, Axis) and atom in windows:
                reach = reach + c.ranges[atom] * k
            elif atom is not a:
                return False
        if form.coefficient(a) != 1 or not isinstance(reach, int) or reach > _HALO // 2:
            return False
    return True


def _stencil(root: Stage, members: list[Stage]) -> Mapping[str, Directives]:
    names = [a.name for a in root.axes]
    y, x = names[-2:]
    yy, ty = _name(root, "yy"), _name(root, "ty")
    own: list[Directive] = [
        Tile({y: _STENCIL, x: _STENCIL}),
        Split(f"{y}_inner", _STENCIL_ROWS, into=(yy, ty)),
        Reorder(f"{y}_outer", f"{x}_outer", ty, f"{x}_inner", yy),
    ]
    fused, band = _joined(root, [*names[:-2], f"{y}_outer"], "band")
    own += [*fused, GpuBlocks(band, f"{x}_outer"), GpuThreads(ty, f"{x}_inner")]
    own += [Unroll(yy)] if all(m.reduction is None for m in members) else []
    out: dict[str, Directives] = {root.path: tuple(own)}
    for m in members:
        out[m.path] = (
            (ComputeAt(stage="/" + root.path, axis=f"{x}_outer"), StoreIn("shared"), Fetch())
            if m.reduction is None
            else (ComputeAt(stage="/" + root.path, axis=yy), StoreIn("registers"))
        )
    return out
