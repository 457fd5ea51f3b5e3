"""Directives that shape one loop nest. Loops are always named outermost first (Halide names them innermost first)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

from ..notation.fields import Integer, ListOf, Text
from ..notation.holes import Hole
from ..notation.places import UNMARKED, Marks
from ..notation.records import Complaint
from ..notation.tables import Table
from .base import AxisSizes, BySizes, Count, Directive, Name, Selector, Tail, fill_in, loops_of, named_twice

LOOP = Text(form="a name")
Width: TypeAlias = Annotated[int, Integer(least=1, most=1024, auto=("native", 4, 8, 16))]


@dataclass(frozen=True)
class Split(Directive):
    """Cut one loop into an outer and an inner one of `factor` iterations, or into several by `factors`.

    Legal for every loop that is still there. `factors` go outermost first, one of them may be null (what is left); three or more
    parts need names, `into`; two are called AXIS_outer and AXIS_inner.
    Gains: makes loops to parallelise, vectorise, unroll and compute at.
    Costs: an extent that `factor` does not divide needs a `tail`: guard tests inside; shift computes the last part again, overlapping the
    one before, where there is room for it, and guards where there is not (no reductions); pad makes the axis longer, as the directive
    of that name does; auto chooses.
    """

    before: ClassVar[str] = "for x in 0..n"
    after: ClassVar[str] = "split: {axis: x, factor: 8}\n  for x_outer in 0..n/8\n    for x_inner in 0..8"

    axis: Name
    factor: Count | None = None
    factors: tuple[Count | None, ...] = ()
    into: tuple[Name, ...] = ()
    tail: Tail = "auto"

    @property
    def parts(self) -> tuple[int | None, ...]:
        """The extents of the new loops, outermost first; None is what is left."""
        return self.factors or (None, self.factor)

    def names(self) -> tuple[str, ...]:
        """The names of the new loops, outermost first."""
        return self.into or (f"{self.axis}_outer", f"{self.axis}_inner")

    def complaints(self) -> list[Complaint]:
        found: list[Complaint] = []
        if self.factor is None and not self.factors:
            found.append(Complaint("", "it needs a factor", "", ("factor: 8", "factors: [~, 4, 16]")))
        if self.factor is not None and self.factors:
            found.append(Complaint("factors", "factor and factors exclude each other", "", ("keep one of them",)))
        if isinstance(self.factors, Hole) or isinstance(self.into, Hole):
            return found
        parts = len(self.factors) or 2
        if len(self.factors) == 1 or self.factors.count(None) > 1:
            found.append(Complaint("factors", "factors are two or more, of which one may be null", "null is what is left of the extent"))
        elif parts > 2 and not self.into:
            found.append(Complaint("factors", f"{parts} parts need names", "", ("into: [ko, km, ki]",)))
        elif self.into and len(self.into) != parts:
            found.append(Complaint("into", f"into gives {len(self.into)} names to {parts} parts", "each part has one"))
        if len(set(self.into)) != len(self.into):
            found.append(Complaint("into", "into gives one name twice", "directives tell the parts apart by their names"))
        return found


@dataclass(frozen=True, init=False)
class Tile(BySizes):
    """Split several loops and bring all outer parts outside all inner ones, in the order written; reductions go innermost.

    Legal for loops that are still there and whose nest has nothing else in between that must stay. `Tile(y=32, x=64)`.
    Gains: what a tile reads is read again while it is still in cache.
    Costs: as `split`, for every axis.
    """

    before: ClassVar[str] = "for y\n  for x"
    after: ClassVar[str] = "tile: {y: 32, x: 64}\n  for y_outer\n    for x_outer\n      for y_inner in 0..32\n        for x_inner in 0..64"

    sizes: AxisSizes
    tail: Tail = "auto"

    def __init__(
        self,
        sizes: Mapping[str, int] | None = None,
        /,
        *,
        tail: Tail = "auto",
        note: str | None = None,
        marks: Marks = UNMARKED,
        **axes: int,
    ) -> None:
        chosen: object = {**(sizes or {}), **axes} if not isinstance(sizes, (Table, Hole)) or axes else sizes
        fill_in(self, {"sizes": chosen, "tail": tail, "note": note, "marks": marks})


@dataclass(frozen=True, init=False)
class Reorder(Directive):
    """Put loops into this order, outermost first; loops that are not named keep their places. `Reorder("i", "k", "j")`.

    Legal for loops of one nest. Exact even when a reduction loop moves outside others, since each sum keeps its own order.
    Gains: the innermost loop should run along memory; loops that reuse data go inside.
    Costs: nothing by itself.
    """

    before: ClassVar[str] = "for i\n  for j\n    for k"
    after: ClassVar[str] = "reorder: [i, k, j]\n  for i\n    for k\n      for j"

    loops: Annotated[tuple[str, ...], ListOf(LOOP, least=1)]

    def __init__(self, *loops: str | Sequence[str], note: str | None = None, marks: Marks = UNMARKED) -> None:
        fill_in(self, {"loops": loops_of(loops), "note": note, "marks": marks})

    def complaints(self) -> list[Complaint]:
        return named_twice("loops", self.loops)


@dataclass(frozen=True, init=False)
class Fuse(Directive):
    """Make one loop of several adjacent ones, called a_b unless `into` says otherwise. `Fuse("y", "x", into="t")`.

    Legal for loops directly inside one another, given outermost first, of one sort (all reductions, or none).
    Gains: one long loop shares out evenly among threads.
    Costs: a division to get the old positions back, unless the loop is split again at the same place.
    """

    before: ClassVar[str] = "for y in 0..h\n  for x in 0..w"
    after: ClassVar[str] = "fuse: [y, x]\n  for y_x in 0..h*w"

    axes: Annotated[tuple[str, ...], ListOf(LOOP, least=2)]
    into: Name | None = None

    def __init__(self, *axes: str | Sequence[str], into: str | None = None, note: str | None = None, marks: Marks = UNMARKED) -> None:
        fill_in(self, {"axes": loops_of(axes), "into": into, "note": note, "marks": marks})

    def name(self) -> str:
        """The name of the new loop."""
        return self.into or "_".join(self.axes)

    def complaints(self) -> list[Complaint]:
        return named_twice("axes", self.axes)


@dataclass(frozen=True)
class Parallel(Directive):
    """Share the iterations of one loop out among the threads.

    Legal for a loop that no other parallel loop encloses and that is no reduction.
    Gains: all cores.
    Costs: starting the threads, some microseconds; below about that much work it does not pay.
    """

    before: ClassVar[str] = "for y_outer"
    after: ClassVar[str] = "parallel: y_outer\n  parallel for y_outer"

    axis: Name


@dataclass(frozen=True)
class Vectorize(Directive):
    """Compute several iterations of a loop in one vector. With a `width` the loop is split first: AXIS_outer, AXIS_inner.

    Legal for the innermost loop, of constant extent or with a `width`; `native` is the widest vector of the target. A vectorised
    reduction loop reassociates.
    Gains: as many times as a vector has lanes, where memory keeps up.
    Costs: a `tail` where the width does not divide the extent, as for `split`.
    """

    before: ClassVar[str] = "for x in 0..n"
    after: ClassVar[str] = "vectorize: {axis: x, width: 8}\n  for x_outer in 0..n/8\n    vectorized for x_inner in 0..8"

    axis: Name
    width: Width | Literal["native"] | None = None
    tail: Tail = "auto"

    def complaints(self) -> list[Complaint]:
        if self.width is None and self.tail != "auto":
            return [Complaint("tail", "tail without a width means nothing", "without a width the loop is not split", ("width: native",))]
        return []


@dataclass(frozen=True)
class Unroll(Directive):
    """Write the iterations of a loop out one after the other. With a `factor` the loop is split first: AXIS_outer, AXIS_inner.

    Legal for a loop of constant extent, or with a `factor`.
    Gains: registers are reused across iterations, and the loop test goes.
    Costs: code size; past some hundred statements it is slower, and slow to compile.
    """

    before: ClassVar[str] = "for dy in 0..3\n  f(dy)"
    after: ClassVar[str] = "unroll: dy\n  f(0); f(1); f(2)"

    axis: Name
    factor: Count | None = None


@dataclass(frozen=True)
class ComputeAt(Directive):
    """Compute this stage inside loop `axis` of `stage`: what one iteration needs, or has made if `stage` is the producer.

    Legal if all uses of this stage lie inside that loop and the loop encloses nothing that must be whole before. Puts both stages into one
    kernel. Afterwards the loops of this stage start again at its own axis names. Several stages may follow one producer in a loop, sums of
    blocks of its rows (rfactor) among them, and share what is computed there.
    Gains: the values are used while they are still in cache or registers.
    Costs: what neighbouring iterations share is computed again by each of them.
    """

    before: ClassVar[str] = "for y: rows(y)\nfor y_outer\n  for y_inner: blur"
    after: ClassVar[str] = "rows: [{compute_at: {stage: blur, axis: y_outer}}]\n  for y_outer\n    for y: rows(y)\n    for y_inner: blur"

    stage: Selector
    axis: Name


@dataclass(frozen=True)
class ComputeWith(Directive):
    """Run the loops of this stage together with those of `stage` down to loop `axis` of that one: one loop, in it the work of both.

    Legal for stages neither of which needs the other, computed at the same place: both by themselves, or both at one loop, which may be
    one that two stages share. Their loops agree down to `axis`, one by one, in extent and kind, and that one is outside vectors; a loop may
    belong to a reduction of the one stage and not of the other. Puts both into one kernel. Exact: each sum keeps its order.
    Gains: what both compute in an iteration is computed once, and what both read is read once.
    Costs: registers and cache hold what is under way of both.
    """

    before: ClassVar[str] = "for y, x: for k: a[y, x] += f(k)\nfor y, x: for k: b[y, x] += f(k) * g(k)"
    after: ClassVar[str] = (
        "b: [{compute_with: {stage: a, axis: k}}]\n  for y, x: for k\n    f = f(k)\n    a[y, x] += f\n    b[y, x] += f * g(k)"
    )

    stage: Selector
    axis: Name


@dataclass(frozen=True)
class ComputeInline(Directive):
    """Write this stage's expression into every place that reads it; it has no loops and no memory of its own.

    Legal for a stage that is no reduction and no output of the program.
    Gains: no memory traffic at all.
    Costs: it is computed again at every read.
    """

    before: ClassVar[str] = "a(x) = 2 * b(x)\nc(x) = a(x - 1) + a(x + 1)"
    after: ClassVar[str] = "a: [compute_inline]\n  c(x) = 2 * b(x - 1) + 2 * b(x + 1)"


@dataclass(frozen=True)
class ComputeRoot(Directive):
    """Compute the whole stage before its readers, in loops of its own.

    Always legal.
    Gains: everything is computed once.
    Costs: everything is written to memory and read back.
    """

    before: ClassVar[str] = "for y\n  rows(y)\n  blur(y)"
    after: ClassVar[str] = "rows: [compute_root]\n  for y: rows(y)\n  for y: blur(y)"


@dataclass(frozen=True)
class StoreIn(Directive):
    """Where this stage's own result is kept: registers, stack, shared (of a GPU block) or global memory.

    Legal where the part that is kept at a time has constant size and fits; shared needs a GPU target.
    Gains: the nearer the memory, the faster.
    Costs: registers and stack are small.
    """

    before: ClassVar[str] = "acc: global float32[8, 32]"
    after: ClassVar[str] = "store_in: registers\n  acc: registers float32[8, 32]"

    memory: Literal["registers", "stack", "shared", "global"]
