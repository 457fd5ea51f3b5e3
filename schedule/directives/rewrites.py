"""Directives that change the graph: they make stages with paths of their own, which can be scheduled in turn. They run first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ..notation.records import Complaint
from .base import AxisSizes, Count, Directive, Name, Selector, named_twice


@dataclass(frozen=True)
class Pack(Directive):
    """Let this stage read `into`, a copy of `tensor` in blocks, instead of `tensor`.

    Each axis of `sizes` is cut by its size; the cut parts go innermost, in the order of `sizes`, after the axes in `order`:
    j_outer, k, j_inner.
    Legal for an operand that the stage reads. A constant operand is packed at build, anything else at each call (`when`).
    The copy may be of a wider `type` than the operand, f32, i16 or i32, which holds all of its numbers.
    Gains: the inner loops read memory one after the other; what they convert is converted once.
    Costs: the copy, where it cannot be made at build.
    """

    rewrites: ClassVar[bool] = True
    before: ClassVar[str] = "matmul reads w[k, j]"
    after: ClassVar[str] = (
        "pack: {tensor: w, sizes: {j: 32}, order: [j, k], into: w_packed}\n  w_packed[j_outer, k, j_inner] = w[k, j_outer*32 + j_inner]\n"
        "  matmul reads w_packed"
    )

    tensor: Selector
    sizes: AxisSizes
    order: tuple[Name, ...]
    into: Name
    when: Literal["auto", "build", "call"] = "auto"
    type: Literal["same", "f32", "i16", "i32"] = "same"

    def complaints(self) -> list[Complaint]:
        return named_twice("order", self.order)


@dataclass(frozen=True)
class Cache(Directive):
    """Compute the value in a new stage `into`; this stage becomes its copy and owns the tile (Halide's `in`).

    `order` gives the axes of the new stage, outermost first, which is its layout: the vector axis comes last.
    Legal for any stage that is computed.
    Gains: a reduction accumulates in registers and is written once.
    Costs: one copy, of what is near.
    """

    rewrites: ClassVar[bool] = True
    before: ClassVar[str] = "for i, j: for k: c[i, j] += ..."
    after: ClassVar[str] = "cache: acc\n  for i_outer, j_outer\n    for k: acc[i, j] += ...\n    c[i, j] = acc[i, j]"

    into: Name
    order: tuple[Name, ...] = ()

    def complaints(self) -> list[Complaint]:
        return named_twice("order", self.order)


@dataclass(frozen=True)
class StageIn(Directive):
    """Read operand `read` through a new stage `into`, which copies the part that is needed and can be placed and stored like any stage.

    Legal for an operand that the stage reads.
    Gains: with compute_at, store_in: shared and fetch, the threads of a block load a tile together once.
    Costs: the memory of the tile.
    """

    rewrites: ClassVar[bool] = True
    before: ClassVar[str] = "rows reads image"
    after: ClassVar[str] = "stage_in: {read: image, into: image_tile}\n  image_tile = image\n  rows reads image_tile"

    read: Selector
    into: Name


@dataclass(frozen=True)
class Rfactor(Directive):
    """Reduce `axis` into `factor` partial results in a new stage (PATH/partial, or `into`), and sum those up here. Reassociates.

    A partial result takes every `factor`-th position; with `block` in place of `factor`, so many neighbours.
    Legal for a reduction loop of an associative operation; of one that does not commute (fl.reduce) for the first loop, whose parts are
    then runs of neighbours.
    Gains: the parts are independent, so they can be vectorised or shared among threads.
    Costs: memory for the partial results; sums in another order.
    """

    rewrites: ClassVar[bool] = True
    before: ClassVar[str] = "for k: s += a[k]"
    after: ClassVar[str] = (
        "rfactor: {axis: k, factor: 8}\n  for k_outer: for k_inner in 0..8: partial[k_inner] += a[...]\n"
        "  for k_inner in 0..8: s += partial[k_inner]"
    )

    axis: Name
    factor: Count | None = None
    into: Name | None = None
    block: Count | None = None

    def complaints(self) -> list[Complaint]:
        both = self.factor is not None and self.block is not None
        why = "factor is the number of partial results, block how many neighbours each takes"
        return [Complaint("block", "factor and block", why, ("one of the two",))] if both else []


@dataclass(frozen=True)
class FindBest(Directive):
    """Take an argmax or argmin in two stages: the best value of all in a new stage `into`, then the first position that holds it.

    Legal for argmax and argmin. Exact: ties go to the first position, and so do NaN.
    Gains: both stages are plain reductions, which rfactor can put into vector lanes; a running pair of value and position cannot be.
    Costs: the values are read, or computed, twice.
    """

    rewrites: ClassVar[bool] = True
    before: ClassVar[str] = "for k: if x[k] > best: best, at = x[k], k"
    after: ClassVar[str] = "find_best: best\n  for k: best = max(best, x[k])\n  for k: at = min(at, k where x[k] == best)"

    into: Name = "best"
