"""What the nests of a GPU kernel may not be: refused here, because the code generator would accept it and compute something else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from fluorite.algo.dtypes import held
from fluorite.algo.errors import Problem
from fluorite.algo.expr import Read
from fluorite.algo.ordering import units
from fluorite.algo.rewriting import axes_of
from fluorite.algo.stages import Stage
from fluorite.schedule.directives import (
    Fetch,
    Fuse,
    GpuBlocks,
    GpuLanes,
    GpuThreads,
    GpuVthreads,
    GpuWarps,
    Reorder,
    Split,
    Tensorize,
    Tile,
    Unroll,
    Vectorize,
)
from fluorite.schedule.nest import BLOCK, VECTOR, VTHREAD, Nest

from .nests import fetch_of, lanes_of, reduces_by_block
from .problems import Directives, found, place_of, problem

THREADS, DEPTH = 1024, 64


# ---------------------------------------------------------------- one kernel
def kernel_shape(roots: Sequence[Stage], directives: Mapping[int, Directives]) -> list[Problem]:
    """Blocks of one launch cannot wait for one another, so one stage owns a kernel, and its loops are dealt to blocks."""
    if len(units(roots)) > 1:
        ds = directives.get(roots[0].id, ())
        names = ", ".join(s.name for s in roots)
        return [
            problem(
                place_of(ds, GpuBlocks, GpuThreads),
                "P251",
                roots[0],
                f"{names} share a GPU kernel without one being computed inside the other",
                "blocks cannot wait for one another, so what one stage writes the next cannot read",
                f"compute_at: {{stage: {roots[-1].name}, axis: ...}}",
                "a kernel each",
            )
        ]
    return []


# ---------------------------------------------------------------- one nest
def root_nest(s: Stage, nest: Nest, ds: Directives) -> list[Problem]:
    """The stage that owns the kernel: its blocks and the number of its threads."""
    out: list[Problem] = []
    place = place_of(ds, GpuBlocks, GpuThreads, Tile, Split)
    blocks = any(loop.kind == BLOCK for loop in nest.loops)
    along = set() if s.clock is None else set(axes_of(nest.value(s.clock.axis)))
    outer = [loop.name for loop in nest.loops if not loop.reduction and loop.var not in along]
    if not blocks and outer:
        out.append(
            problem(
                place,
                "P252",
                s,
                f"{s.name} has no gpu_blocks",
                "each of its loops would run on every thread of the GPU, or on none",
                f"gpu_blocks: [{outer[0]}]",
            )
        )
    return out + block_size(s, nest, ds)


def block_size(s: Stage, nest: Nest, ds: Directives) -> list[Problem]:
    """P253: the threads of a block are few, and it is not deep."""
    out: list[Problem] = []
    sizes = {lane: n for lane, n in lanes_of(nest).items() if isinstance(n, int)}
    if prod(sizes.values()) > THREADS:
        written = " x ".join(map(str, sizes.values()))
        out.append(
            problem(
                place_of(ds, GpuThreads),
                "P253",
                s,
                f"gpu_threads: {written} = {prod(sizes.values())} threads in a block",
                f"a block has at most {THREADS}",
                "split the loops smaller",
            )
        )
    elif sizes.get("z", 1) > DEPTH:
        out.append(
            problem(
                place_of(ds, GpuThreads),
                "P253",
                s,
                f"gpu_threads: {sizes['z']} threads along the outermost of three loops",
                f"a block is at most {DEPTH} deep",
                "reorder or fuse them",
            )
        )
    return out


def any_nest(s: Stage, nest: Nest, ds: Directives, lanes: Callable[[str], int]) -> list[Problem]:
    """What holds for every nest of a GPU kernel."""
    out = [*_warps(s, ds), *_vectors(s, nest, ds, lanes)]
    if fetch_of(tuple(ds)) is not None:
        out += _fetched(s, ds)
    if reduces_by_block(nest):
        out += _reduced_by_block(s, nest, ds)
    return out


def _vectors(s: Stage, nest: Nest, ds: Directives, lanes: Callable[[str], int]) -> list[Problem]:
    """P256: no more lanes than are moved at once."""
    moves = isinstance(s.value, Read) and s.value.dtype == s.dtype
    width = lanes(s.dtype if moves else held(s.dtype))
    return [
        problem(
            place_of(ds, Vectorize),
            "P256",
            s,
            f"vectorize: {loop.name} has {loop.extent} lanes of {s.dtype}",
            f"a GPU moves at most 16 bytes at once, {width} of them",
            f"width: {width}",
        )
        for loop in nest.loops
        if loop.kind == VECTOR and isinstance(loop.extent, int) and loop.extent > width
    ]


def _fetched(s: Stage, ds: Directives) -> list[Problem]:
    """P257: `fetch` alone says how the elements of a stage are dealt."""
    out: list[Problem] = []
    other = next((d for d in ds if isinstance(d, Split | Tile | Reorder | Fuse | Unroll | Vectorize | GpuThreads | GpuBlocks)), None)
    if other is not None:
        why = "fetch deals all loops of the stage by itself"
        out.append(problem(other.at(), "P257", s, f"{other.label()} beside fetch", why, "one of the two"))
    if s.reduction is not None or not s.axes:
        why, instead = ("it is a reduction", "gpu_threads") if s.reduction else ("it is one value", "compute_inline")
        out.append(problem(place_of(ds, Fetch), "P257", s, f"fetch of {s.name}", why, instead))
    return out


def _reduced_by_block(s: Stage, nest: Nest, ds: Directives) -> list[Problem]:
    """P258: the threads of a block hand over one value each, in any order."""
    out: list[Problem] = []
    one = "the threads hand over one value each"
    assert s.reduction is not None
    if s.reduction.in_order and not s.reduction.kind.startswith("arg"):
        asked, why = f"gpu_threads on a reduction loop of {s.reduction.kind}", "threads take turns, and it does not commute"
        out.append(problem(place_of(ds, GpuThreads, GpuLanes), "P258", s, asked, why, "gpu_threads on another loop"))
    wide = next((loop for loop in nest.loops if loop.kind == VECTOR), None)
    if wide is not None:
        asked = f"vectorize: {wide.name} in a reduction by the block"
        out.append(problem(place_of(ds, Vectorize), "P258", s, asked, one, "leave vectorize out"))
    if any(loop.kind == VTHREAD for loop in nest.loops):
        out.append(problem(place_of(ds, GpuVthreads), "P258", s, "gpu_vthreads in a reduction by the block", one, "leave them out"))
    return out


def _warps(s: Stage, ds: Directives) -> list[Problem]:
    """P283: instructions of tensor cores are computed by warps, and nothing else is."""
    tensor, warps, threads = (found(ds, kind) for kind in (Tensorize, GpuWarps, GpuThreads))
    if tensor is not None and warps is None:
        why = "the 32 threads of a warp compute an instruction together"
        return [problem(tensor.at("axis"), "P283", s, f"tensorize of {s.name} without gpu_warps", why, "gpu_warps: a loop outside it")]
    if warps is not None and tensor is None:
        why = "each of its threads would compute the same"
        return [problem(warps.at("axis"), "P283", s, f"gpu_warps of {s.name}, which is not tensorized", why, "gpu_threads")]
    if warps is not None and threads is not None:
        return [problem(threads.at(), "P283", s, f"gpu_threads beside gpu_warps of {s.name}", "its threads are those of the warps", "one")]
    return []
