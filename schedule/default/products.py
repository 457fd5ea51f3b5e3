"""Products (matmul and its relatives): a register tile of vectors that accumulates over the reduction, operands packed where that pays.

The tile is `tall` rows of `vectors` vectors. Each step of the reduction loads the vectors once and multiplies them by one broadcast element
a row, so registers bound tall * vectors, and loads a flop fall as both grow (Goto and van de Geijn, "Anatomy of high-performance matrix
multiplication", 2008).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from fluorite.algo.dtypes import NARROW
from fluorite.algo.expr import Axis, Op, Read
from fluorite.algo.extent import volume
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage, unwidened

from ..directives import Cache, ComputeAt, Directive, Fuse, Pack, Parallel, Reorder, Split, StageIn, StoreIn, Unroll, Vectorize
from ..machine import Machine
from ..rewrites import margin_of, operand_axes, operand_name, stage_in
from ..typical import TYPICAL, guess
from .analysis import axes_of_index, factors, known
from .kernels import PARALLEL_WORK, Directives


@dataclass(frozen=True)
class ProductShape:
    """A product seen as m x n x depth, once for every point of the other axes."""

    product: Stage
    root: Stage
    machine: Machine
    pair: tuple[Read, Read]

    @cached_property
    def j(self) -> Axis:
        return self.product.axes[-1]

    @cached_property
    def i(self) -> Axis | None:
        """The innermost axis of the factor without j that the other factor does not have."""
        left, right = (set(axes_of_index(r.index)) for r in self.pair)
        return next((a for a in reversed(self.product.axes[:-1]) if a in left and a not in right), None)

    @cached_property
    def m(self) -> int:
        return 1 if self.i is None else known(self.product.ranges[self.i], TYPICAL)

    @cached_property
    def n(self) -> int:
        return known(self.product.ranges[self.j], TYPICAL)

    @cached_property
    def depth(self) -> int:
        assert self.product.reduction is not None
        return guess(volume(self.product.reduction.extents))

    @cached_property
    def lanes(self) -> int:
        return self.machine.lanes(self.product.dtype)

    @cached_property
    def vectors(self) -> int:
        most = self._most_vectors
        if self.overlaps:
            fitting = [v for v in range(1, most + 1) if v * self.lanes <= self.n]
            return min(fitting, key=lambda v: (-(-self.n // (v * self.lanes)) * v, -v))
        wide = -(-self.n // self.lanes)
        if 4 < self.m <= 12 and self.machine.registers >= 32:  # a tile of all rows, so that the other operand is read once
            return min(range(1, 24 // self.m + 1), key=lambda v: (-(-wide // v) * v, -v))
        return min(most, wide)

    @property
    def _most_vectors(self) -> int:
        """One row or two leave registers for longer pieces of the other operand's rows, which then are fewer places in memory."""
        if self.machine.registers < 32:
            return 2
        most = {1: 16, 2: 8}.get(self.m, 4) if self.depth * self.n >= 1 << 18 else 4
        while most > 4 and self.n < 2 * self.machine.cores * most * self.lanes:
            most //= 2
        return most

    @cached_property
    def overlaps(self) -> bool:
        """Whether the last tile of j may be moved back over the one before: nothing packed has to line up with it."""
        extent = self.product.ranges[self.j]
        bare = all(isinstance(x, Axis) for x in self.pair[1].index)
        return not bare and isinstance(extent, int) and extent >= self.lanes and self.i is not None

    @cached_property
    def tall(self) -> int:
        if self.vectors > 4:
            return min(2, self.m)
        if 4 < self.m <= 12 and self.machine.registers >= 32 and self.m * self.vectors <= 24:
            return self.m
        budget = {32: {1: 12, 2: 8, 3: 6, 4: 4}, 16: {1: 8, 2: 4}}[32 if self.machine.registers >= 32 else 16]
        most = budget[self.vectors]
        if most < self.m <= 2 * most:  # two tiles, the second of which would be small
            return self.m if self.machine.registers >= 32 and self.vectors == 1 else -(-self.m // 2)
        return max(1, min(most, self.m))

    @property
    def width(self) -> int:
        return self.vectors * self.lanes

    @property
    def panels(self) -> int:
        return -(-self.n // self.width)

    def root_name(self, a: Axis) -> str:
        """What root, which reads the product at its own position, calls an axis of it."""
        return self.root.axes[[id(x) for x in self.product.axes].index(id(a))].name

    @cached_property
    def others(self) -> list[str]:
        return [self.root_name(a) for a in self.product.axes[:-1] if a is not self.i]

    @cached_property
    def other_count(self) -> int:
        return guess(volume(self.product.ranges[a] for a in self.product.axes[:-1] if a is not self.i))


def matmul(g: Graph, product: Stage, root: Stage, machine: Machine) -> Mapping[str, Directives]:
    """Directives for a product and the stage that finishes it (itself, if nothing does)."""
    pair = factors(product)
    assert pair is not None and product.reduction is not None
    s = ProductShape(product, root, machine, pair)
    head, tile, loops, splits, pack_at = _loops(s)
    parallel = s.other_count * s.m * s.n * s.depth >= PARALLEL_WORK
    own: list[Directive] = [Cache("acc")] if product is root else []
    own += splits
    inner = ["jv", "lane"] if s.vectors > 1 else ["lane"]
    rows = ["ii"] if s.i is not None and s.tall > 1 else []
    own += [Reorder(*loops, *rows, *inner)]
    if parallel and len(head) > 1:
        own += [Fuse(*head, into="task")]
        tile = "task" if tile == head[-1] else tile
        pack_at = "task" if pack_at == head[-1] else pack_at
    own += [Parallel("task" if len(head) > 1 else head[0])] if parallel else []
    own += [Unroll(x) for x in (*rows, *inner[:-1])] + [Vectorize("lane")]
    packs = _packs(g, s)
    acc_path = product.path if product is not root else f"{product.path}/acc"
    out: dict[str, Directives] = {
        root.path: tuple(own),
        acc_path: (ComputeAt(stage="/" + root.path, axis=tile), StoreIn("registers"), *packs, *_accumulation(s)),
    }
    parent = acc_path.rsplit("/", 1)[0]
    for d in packs:
        last = next(iter(d.sizes))
        fast: Directives = (Vectorize(f"{last}_inner", width=s.lanes) if d.sizes[last] > s.lanes else Vectorize(f"{last}_inner"),)
        packed = next(g[r.source] for r in pair if operand_name(g, product, g[r.source]) == d.tensor)
        inside = pack_at and packed.id == pair[1].source and not g.is_fixed(packed, root.method)
        first = f"{d.order[0]}_outer" if d.order[0] in d.sizes else d.order[0]
        where: Directives = (ComputeAt(stage="/" + root.path, axis=pack_at),) if inside else (Parallel(first),) if parallel else ()
        out[f"{parent}/{d.into}"] = (*where, *fast)
    return out


def margin_staged(g: Graph, s: Stage) -> tuple[Graph, StageIn] | None:
    """A convolution that reads its input through a zero boundary: the input with its margin becomes a stage, the rest is a product."""
    if s.reduction is None or s.reduction.kind != "sum" or not isinstance(s.value, Op) or s.value.op != "mul":
        return None
    operands = map(unwidened, s.value.args)
    read = [a.args[1] for a in operands if isinstance(a, Op) and a.op == "where" and isinstance(a.args[1], Read)]
    if len(read) != 1 or margin_of(s, g[read[0].source]) is None:
        return None
    name = operand_name(g, s, g[read[0].source])
    d = StageIn(read=name, into=f"{s.name}_{name.replace('/', '_')}_padded")
    after, new = stage_in(g, s, d)
    return (after, d) if factors(new) is not None else None


def _loops(s: ProductShape) -> tuple[list[str], str, list[str], list[Directive], str]:
    """(loops that tasks are made of, loop of the tile, loops outside the tile, splits, loop at which a panel is packed or "")."""
    jr = s.root_name(s.j)
    splits: list[Directive] = [Split(jr, s.width, into=("jo", "ji" if s.vectors > 1 else "lane"), tail="auto" if s.overlaps else "guard")]
    splits += [Split("ji", s.lanes, into=("jv", "lane"))] if s.vectors > 1 else []
    if s.i is None:
        loops = [*s.others, "jo"]
        return loops, "jo", loops, splits, ""
    ir = s.root_name(s.i)
    if s.tall > 1:
        splits += [Split(ir, s.tall, into=("io", "ii"))]
        ir = "io"
    cores = s.machine.cores
    if s.others and s.other_count >= 2 * cores:
        loops = [*s.others, "jo", ir]
        return s.others, ir, loops, splits, "jo"
    if s.panels >= 2 * cores and s.m >= 8 * s.tall:
        two = s.panels >= 4 * cores and s.depth * s.width * 8 <= s.machine.l2 // 2
        splits += [Split("jo", 2, into=("jb", "jt"))] if two else []
        block = "jb" if two else "jo"
        loops = [*s.others, block, ir, *(["jt"] if two else [])]
        return [*s.others, block], "jt" if two else ir, loops, splits, block
    blocks = -(-s.m // s.tall)
    rows = max(1, min(16, blocks // (4 * cores)))
    if rows > 1:
        splits += [Split(ir, rows, into=("ib", "it"))]
    block, row = ("ib", "it") if rows > 1 else (ir, "")
    if blocks < 8 * cores and s.panels > 4 * blocks:
        loops = [*s.others, "jo", block, *([row] if row else [])]
        return [*s.others, "jo"], row or block, loops, splits, "jo"
    loops = [*s.others, block, "jo", *([row] if row else [])]
    return [*s.others, block], row or "jo", loops, splits, ""


def _accumulation(s: ProductShape) -> list[Directive]:
    """The loops of the tile: reduction outside, rows and vectors unrolled."""
    assert s.product.reduction is not None
    *outer, last = [a.name for a in s.product.reduction.axes]
    extent = s.product.reduction.extents[-1]
    step = 4 if isinstance(extent, int) and extent % 4 == 0 and extent > 8 else 1
    out: list[Directive] = [Split(s.j.name, s.lanes, into=("jv", "lane"))] if s.vectors > 1 else []
    out += [Split(last, step)] if step > 1 else []
    inner = [f"{last}_outer", f"{last}_inner"] if step > 1 else [last]
    vectors = ["jv", "lane"] if s.vectors > 1 else [s.j.name]
    out += [Reorder(*outer, *inner, *(a.name for a in s.product.axes[:-1]), *vectors)]
    out += [Unroll(inner[1])] if step > 1 else []
    out += [Unroll(s.i.name)] if s.i is not None and s.tall > 1 else []
    out += [Unroll("jv")] if s.vectors > 1 else []
    return [*out, Vectorize(vectors[-1])]


def _packs(g: Graph, s: ProductShape) -> list[Pack]:
    """The vector side is packed where it is known at build, reused often, ragged, or does not run along memory."""
    left, right = s.pair
    b = g[right.source]
    if left.source == right.source or not all(isinstance(x, Axis) for x in right.index):
        return []
    names = operand_axes(s.product, b)
    if s.j.name not in names:
        return []
    straight = right.index[-1] is s.j
    fixed, name = g.is_fixed(b, s.product.method), operand_name(g, s.product, b)
    in_place = straight and s.product.ranges[s.j] == s.width and not _is_narrow(right, s)
    reused = s.m >= 16 and s.depth * s.n >= 1 << 12 and not in_place
    rows = _widened_rows(g, s)
    if not (reused or not straight or s.n % s.width or (fixed and s.depth * s.n >= 256)):
        return rows
    into = f"{s.product.name}_{name.replace('/', '_')}_packed"
    order = panels_first(names, s.j.name, {a.name for a in s.product.reduce_axes})
    wider: Literal["f32", "same"] = "f32" if _is_narrow(right, s) and not fixed else "same"
    return [Pack(tensor=name, sizes={s.j.name: s.width}, order=order, into=into, type=wider), *rows]


def _widened_rows(g: Graph, s: ProductShape) -> list[Pack]:
    """The factor without j in the type that it is multiplied in: converted once, not for every vector of the other."""
    left = s.pair[0]
    a = g[left.source]
    if s.i is None or not _is_narrow(left, s) or g.is_fixed(a, s.product.method) or not all(isinstance(x, Axis) for x in left.index):
        return []
    names, name = operand_axes(s.product, a), operand_name(g, s.product, a)
    into = f"{s.product.name}_{name.replace('/', '_')}_widened"
    return [Pack(tensor=name, sizes={names[-1]: s.lanes}, order=tuple(names), into=into, type="f32")]


def _is_narrow(r: Read, s: ProductShape) -> bool:
    """Whether a factor is a float in fewer bits than it is multiplied in."""
    return r.dtype in NARROW and s.product.dtype == "float32"


def panels_first(names: Sequence[str], panel: str, reduced: Container[str]) -> tuple[str, ...]:
    """The order of a packed operand's axes: batch axes, the panel, the reduction."""
    return (*(n for n in names if n not in reduced and n != panel), panel, *(n for n in names if n in reduced))
