"""Directives that bind loops to the blocks and threads of a GPU. Outermost first: the last is blockIdx.x or threadIdx.x."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from ..notation.fields import ListOf
from ..notation.places import UNMARKED, Marks
from ..notation.records import Complaint
from .base import Count, Directive, Name, fill_in, loops_of, named_twice
from .loops import LOOP


@dataclass(frozen=True, init=False)
class GpuBlocks(Directive):
    """Bind up to three loops to the blocks of the grid; the last is blockIdx.x (Halide names it first).

    Legal for the outermost loops of the stage that owns the kernel; for those of a recurrence along axes where its stages never meet.
    Gains: blocks run on all multiprocessors at once.
    Costs: blocks share nothing but global memory.
    """

    before: ClassVar[str] = "for y_outer\n  for x_outer"
    after: ClassVar[str] = "gpu_blocks: [y_outer, x_outer]\n  blockIdx.y = y_outer, blockIdx.x = x_outer"

    loops: Annotated[tuple[str, ...], ListOf(LOOP, least=1)]

    def __init__(self, *loops: str | Sequence[str], note: str | None = None, marks: Marks = UNMARKED) -> None:
        fill_in(self, {"loops": loops_of(loops), "note": note, "marks": marks})

    def complaints(self) -> list[Complaint]:
        return at_most_three(self.loops, "block")


@dataclass(frozen=True, init=False)
class GpuThreads(Directive):
    """Bind up to three loops to the threads of a block; the last is threadIdx.x. On a reduction loop: a reduction by the whole block.

    Legal for loops of constant extent, 1,024 threads in all; every stage of a kernel must agree on the extents.
    Gains: neighbouring threads that read neighbouring memory read it at once.
    Costs: a reduction by the block reassociates.
    """

    before: ClassVar[str] = "for y_inner\n  for x_inner"
    after: ClassVar[str] = "gpu_threads: [y_inner, x_inner]\n  threadIdx.y = y_inner, threadIdx.x = x_inner"

    loops: Annotated[tuple[str, ...], ListOf(LOOP, least=1)]

    def __init__(self, *loops: str | Sequence[str], note: str | None = None, marks: Marks = UNMARKED) -> None:
        fill_in(self, {"loops": loops_of(loops), "note": note, "marks": marks})

    def complaints(self) -> list[Complaint]:
        return at_most_three(self.loops, "thread")


@dataclass(frozen=True, init=False)
class GpuVthreads(Directive):
    """Virtual threads: each thread takes the iterations of these loops too, at a stride, with registers for each.

    Legal for loops of constant extent of the stage that owns the kernel, no reductions, 64 virtual threads for each thread at most.
    Gains: register tiles whose parts lie a block apart: neighbouring threads read neighbouring elements, and all parts read a shared tile
    once it is there.
    Costs: what they compute is written out for each, and takes registers.
    """

    before: ClassVar[str] = "for v in 0..2\n  threadIdx.x = t\n    acc = 0; for k: acc += ...[v*32 + t]"
    after: ClassVar[str] = "gpu_vthreads: [v]\n  threadIdx.x = t\n    acc[0], acc[1] = 0; for k: acc[0] += ...[t], acc[1] += ...[32 + t]"

    loops: Annotated[tuple[str, ...], ListOf(LOOP, least=1)]

    def __init__(self, *loops: str | Sequence[str], note: str | None = None, marks: Marks = UNMARKED) -> None:
        fill_in(self, {"loops": loops_of(loops), "note": note, "marks": marks})

    def complaints(self) -> list[Complaint]:
        return named_twice("loops", self.loops)


@dataclass(frozen=True)
class GpuLanes(Directive):
    """Bind a loop to the lanes of a warp, as threadIdx.x. On a reduction loop: the lanes combine what they have by shuffles.

    Legal on CUDA, for a loop of constant extent, a power of two up to 32; gpu_threads then are along threadIdx.y and threadIdx.z.
    Gains: a reduction by a warp needs no shared memory and no barrier; by a block of warps, a few values of it.
    Costs: a reduction reassociates.
    """

    before: ClassVar[str] = "for k_outer\n  for k_inner in 0..32: sum += ..."
    after: ClassVar[str] = "gpu_lanes: k_inner\n  threadIdx.x = k_inner\n    for k_outer: sum += ...\n    sum += lane ^ 16's, ^ 8's, ..."

    axis: Name


@dataclass(frozen=True)
class GpuWarps(Directive):
    """Give the iterations of a loop to warps: the 32 threads of each compute one together, by an instruction of the tensor cores.

    Legal for a stage that is tensorized, in the place of gpu_threads. The kernel then has 32 threads along threadIdx.x and the warps along
    threadIdx.y: its other stages have gpu_threads of these extents, or fetch.
    Gains: tensor cores, of which each computes 4,096 products at a time.
    Costs: what the warps read is in shared memory, its rows a multiple of 8 elements apart.
    """

    before: ClassVar[str] = "for i_outer in 0..4\n  for k_outer: product += ..."
    after: ClassVar[str] = "gpu_warps: i_outer\n  threadIdx.y = i_outer, threadIdx.x = the 32 threads of a warp"

    axis: Name


@dataclass(frozen=True)
class Fetch(Directive):
    """Deal all loops of this stage to the threads of the kernel, `vector` elements at a time; runs after every compute_at.

    Legal for a stage computed inside a kernel with gpu_threads.
    Gains: a shared tile is loaded by all threads together.
    Costs: a barrier before the tile is read.
    """

    before: ClassVar[str] = "for y: for x: tile[y, x] = image[...]"
    after: ClassVar[str] = "fetch\n  for step: tile[step*threads + thread] = image[...]"

    vector: Count | None = None


def at_most_three(loops: tuple[str, ...], what: str) -> list[Complaint]:
    """A grid has three dimensions, and so has a block."""
    many = (
        [Complaint("loops", f"{len(loops)} loops for three {what} dimensions", "", ("fuse some of them first",))]
        if _count(loops) > 3
        else []
    )
    return many + named_twice("loops", loops)


def _count(loops: object) -> int:
    return len(loops) if isinstance(loops, tuple) else 0
