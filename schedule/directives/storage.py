"""Directives about the memory of a stage's own result: how long it is kept, and how much of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from ..notation.fields import ListOf
from ..notation.places import UNMARKED, Marks
from ..notation.records import Complaint
from .base import BySizes, Count, Directive, Name, Selector, fill_in, loops_of, named_twice
from .loops import LOOP


@dataclass(frozen=True)
class StoreAt(Directive):
    """Keep this stage's result at loop `axis` of `stage`, further out than compute_at computes it: a sliding window.

    Each iteration then computes only what the iterations before it have not made; the first one computes all that it needs.
    Legal together with compute_at, at a loop of the same reader outside that of compute_at, or at the loop that this reader itself is
    computed at. The loops between the two are serial, so no parallel loop lies there, and they move the part that is needed forwards only.
    Gains: nothing is computed twice within one iteration of `axis`.
    Costs: memory for all that one iteration of `axis` needs, unless `fold` keeps less; what was made long ago has left the cache.
    """

    before: ClassVar[str] = (
        "rows: [{compute_at: {stage: blur, axis: y}}]\n  for s\n    for y\n      for 3 rows: rows(...)\n      for x: blur(y, x)"
    )
    after: ClassVar[str] = (
        "store_at: {stage: blur, axis: s}\n  for s\n    rows: all that s needs\n    for y\n      for the new row: rows(...)\n"
        "      for x: blur(y, x)"
    )

    stage: Selector
    axis: Name


@dataclass(frozen=True)
class Fold(Directive):
    """Keep only the last `extent` positions along `axis`, in a circular buffer.

    Legal with store_at, where one iteration needs no more than `extent` positions.
    Gains: the window stays in cache, however far it slides.
    Costs: a remainder in every address along `axis`, which is cheap for a power of two, and dear on the axis that is vectorised.
    """

    before: ClassVar[str] = "rows: float32[34, w]\n  rows[y, x] = ..."
    after: ClassVar[str] = "fold: {axis: y, extent: 4}\n  rows: float32[4, w]\n  rows[y mod 4, x] = ..."

    axis: Name
    extent: Count


@dataclass(frozen=True)
class Pad(BySizes):
    """Compute more of each axis in `sizes`, up to a multiple, and keep what was asked for. `Pad({"x": 16})`.

    Legal for axes of a stage that is no result, reductions aside. `tail: pad` of split, tile and vectorize does it for their own axes.
    Gains: every tile and vector is whole, in this stage and in those that read it at the same positions and are padded alike.
    Costs: memory and work for what nobody reads.
    """

    rewrites: ClassVar[bool] = True
    before: ClassVar[str] = "rows: float32[n]\nfor x in 0..n"
    after: ClassVar[str] = "pad: {x: 16}\n  rows: float32[(n+15)//16*16]\n  for x in 0..(n+15)//16*16"


@dataclass(frozen=True, init=False)
class Layout(Directive):
    """Store this stage's own result in this order of axes, outermost first; its loops start out in that order too. `Layout("x", "y")`.

    Legal for a stage that is no result, with each of its axes named once.
    Gains: a reader whose innermost loop runs along another axis finds it along memory.
    Costs: writing across memory, unless the loops are reordered along.
    """

    rewrites: ClassVar[bool] = True
    before: ClassVar[str] = "rows: float32[h, w]\nfor y\n  for x: rows[y, x] = ..."
    after: ClassVar[str] = "layout: [x, y]\n  rows: float32[w, h]\n  for x\n    for y: rows[x, y] = ..."

    axes: Annotated[tuple[str, ...], ListOf(LOOP, least=1)]

    def __init__(self, *axes: str | Sequence[str], note: str | None = None, marks: Marks = UNMARKED) -> None:
        fill_in(self, {"axes": loops_of(axes), "note": note, "marks": marks})

    def complaints(self) -> list[Complaint]:
        return named_twice("axes", self.axes)


@dataclass(frozen=True)
class Align(Directive):
    """Start every row along `axis`, the last one stored, at a multiple of `bytes`, a power of two up to 64.

    Legal for a stage that is computed in the kernel of its readers and is no result.
    Gains: vectors do not straddle cache lines.
    Costs: a gap after each row.
    """

    before: ClassVar[str] = "rows: float32[34, 100]"
    after: ClassVar[str] = "align: {axis: x, bytes: 64}\n  rows: float32[34, 112], of each row 100 used"

    axis: Name
    bytes: Count


@dataclass(frozen=True)
class Prefetch(Directive):
    """Ask memory for the part of `read` that loop `axis` of this stage comes to `ahead` iterations later, a cache line at a time.

    Legal for an operand from outside the kernel, at a loop outside the vectors and unrolled tiles whose iterations read different parts.
    Gains: what a processor does not foresee by itself, such as jumps from row to row, is there when it is needed.
    Costs: an instruction for each line; processors foresee plain streams, where it only costs.
    """

    before: ClassVar[str] = "for y\n  for x: rows[y, x] = image[y, x] ..."
    after: ClassVar[str] = (
        "prefetch: {read: image, axis: y, ahead: 2}\n  for y\n    for each line of image[y + 2, 0..w]: prefetch\n"
        "    for x: rows[y, x] = image[y, x] ..."
    )

    read: Selector
    axis: Name
    ahead: Count


@dataclass(frozen=True)
class Stream(Directive):
    """Write this stage's result past the caches, straight to memory, where a vector fills whole cache lines.

    Legal on a CPU for a result, or what only other kernels read, that is no reduction, recurrence, scatter, sort or new value of state.
    Gains: memory is not read before it is written, a third of what a copy moves, and what the caches hold stays there.
    Costs: whoever reads the result next reads it from memory; below some megabytes it would have been in a cache.
    """

    before: ClassVar[str] = "vectorized for x in 0..16\n  out[x] = ..."
    after: ClassVar[str] = "stream\n  vectorized for x in 0..16\n    out[x] = ... past the caches"
