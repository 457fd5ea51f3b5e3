"""What a GPU kernel may not be: refused here in our own words, because the code generator would accept it and compute something else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod

import numpy as np
from fluorite.algo.dtypes import held
from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.expr import Read
from fluorite.algo.extent import Extent
from fluorite.algo.ordering import units
from fluorite.algo.rewriting import axes_of
from fluorite.algo.stages import Stage
from fluorite.schedule.directives import (
    ComputeAt,
    Directive,
    Fetch,
    Fuse,
    GpuBlocks,
    GpuLanes,
    GpuThreads,
    GpuVthreads,
    GpuWarps,
    Reorder,
    Split,
    StoreIn,
    Tensorize,
    Tile,
    Unroll,
    Vectorize,
)
from fluorite.schedule.grouping import Placement
from fluorite.schedule.nest import BLOCK, THREAD, VECTOR, VTHREAD, Nest
from fluorite.schedule.notation.places import NOWHERE, Place

from ..statements import Buffer
from .nests import fetch_of, lanes_of, reduces_by_block

THREADS, DEPTH, SHARED_BYTES = 1024, 64, 48 << 10
Directives = Sequence[Directive]


def found(ds: Iterable[Directive], kind: type[Directive]) -> Directive | None:
    return next((d for d in ds if isinstance(d, kind)), None)


def place_of(ds: Directives, *kinds: type[Directive]) -> Place:
    """Where the first directive of these kinds is written."""
    for kind in kinds:
        if (d := found(ds, kind)) is not None:
            return d.at()
    return NOWHERE


def _problem(place: Place, code: str, s: Stage, asked: str, why: str, *try_: str) -> Problem:
    return place.problem(code, asked, why, try_, path=s.path, source=s.source)


# ---------------------------------------------------------------- one kernel
def kernel_shape(roots: Sequence[Stage], directives: Mapping[int, Directives]) -> list[Problem]:
    """Blocks of one launch cannot wait for one another, so one stage owns a kernel, and its loops are dealt to blocks."""
    if len(units(roots)) > 1:
        ds = directives.get(roots[0].id, ())
        names = ", ".join(s.name for s in roots)
        return [
            _problem(
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
            _problem(
                place,
                "P252",
                s,
                f"{s.name} has no gpu_blocks",
                "each of its loops would run on every thread of the GPU, or on none",
                f"gpu_blocks: [{outer[0]}]" if outer else "split one of its axes",
            )
        )
    return out + block_size(s, nest, ds)


def block_size(s: Stage, nest: Nest, ds: Directives) -> list[Problem]:
    """P253: the threads of a block are few, and it is not deep."""
    out: list[Problem] = []
    sizes = _constants(nest)
    if prod(sizes.values()) > THREADS:
        written = " x ".join(map(str, sizes.values()))
        out.append(
            _problem(
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
            _problem(
                place_of(ds, GpuThreads),
                "P253",
                s,
                f"gpu_threads: {sizes['z']} threads along the outermost of three loops",
                f"a block is at most {DEPTH} deep",
                "reorder or fuse them",
            )
        )
    return out


def moved_nest(s: Stage, nest: Nest, ds: Directives, memory: str, inside_threads: bool, lanes: Mapping[str, Extent]) -> list[Problem]:
    """A stage that is computed inside a kernel: where its threads come from and whether they are those of the kernel."""
    out: list[Problem] = []
    own = lanes_of(nest)
    if any(loop.kind == VTHREAD for loop in nest.loops):
        asked = f"{s.name} has gpu_vthreads and is computed inside another stage"
        why = "a kernel's virtual threads are those of the stage that owns it"
        return [_problem(place_of(ds, GpuVthreads), "P252", s, asked, why, "unroll", "gpu_threads")]
    if any(loop.kind == BLOCK for loop in nest.loops):
        asked = f"{s.name} has gpu_blocks and is computed inside another stage"
        return [
            _problem(
                place_of(ds, GpuBlocks), "P252", s, asked, "a kernel's blocks are those of the stage that owns it", "gpu_threads", "fetch"
            )
        ]
    if memory == "local" and own:
        out.append(
            _problem(
                place_of(ds, Fetch, GpuThreads),
                "P254",
                s,
                f"{s.name} is kept in registers, and dealt to threads",
                "a thread cannot read another's registers",
                "store_in: shared",
            )
        )
    elif memory == "local" and not inside_threads:
        out.append(
            _problem(
                place_of(ds, StoreIn, ComputeAt),
                "P254",
                s,
                f"{s.name} is kept in registers, and computed outside the threads of its reader",
                "a thread cannot read another's registers",
                "store_in: shared, with fetch",
                "compute_at the innermost of the reader's thread loops",
            )
        )
    elif memory == "shared" and lanes and not own:
        out.append(
            _problem(
                place_of(ds, StoreIn, ComputeAt),
                "P255",
                s,
                f"{s.name} is shared by the block, and no loop of it is dealt to threads",
                "every thread would compute all of it",
                "fetch",
                "gpu_threads",
            )
        )
    elif memory == "shared" and dict(own) != dict(lanes):
        out.append(
            _problem(
                place_of(ds, Fetch, GpuThreads),
                "P255",
                s,
                f"{s.name} runs on {_shown(own)}, and the kernel on {_shown(lanes)}",
                "all stages of a kernel run on the same threads",
                "fetch",
                "the same extents",
            )
        )
    return out


def no_sharing(
    s: Stage, placements: Mapping[int, Placement], directives: Mapping[int, Directives], stages: Mapping[int, Stage]
) -> list[Problem]:
    """P270: what is computed inside one of the stages of a recurrence or loop, in shared memory."""
    out: list[Problem] = []
    for i, at in placements.items():
        ds = directives.get(i, ())
        if at.owner == s.id:
            if found(ds, Fetch) or found(ds, GpuThreads) or any(isinstance(d, StoreIn) and d.memory == "shared" for d in ds):
                asked = f"{stages[i].name} is shared by the block inside {s.name}"
                why = "that is computed step by step or turn by turn, and such stages hand on values in global memory and registers"
                place = place_of(ds, StoreIn, Fetch, GpuThreads)
                out.append(_problem(place, "P270", stages[i], asked, why, "store_in: registers", "compute_root"))
            out += no_sharing(stages[i], placements, directives, stages)
    return out


def any_nest(s: Stage, nest: Nest, ds: Directives, lanes: Callable[[str], int]) -> list[Problem]:
    """What holds for every nest of a GPU kernel."""
    out: list[Problem] = []
    tensor = found(ds, Tensorize)
    out += _warps(s, ds, tensor)
    moves = isinstance(s.value, Read) and s.value.dtype == s.dtype
    for loop in nest.loops:
        width = lanes(s.dtype if moves else held(s.dtype))
        if loop.kind == VECTOR and isinstance(loop.extent, int) and loop.extent > width:
            out.append(
                _problem(
                    place_of(ds, Vectorize),
                    "P256",
                    s,
                    f"vectorize: {loop.name} has {loop.extent} lanes of {s.dtype}",
                    f"a GPU moves at most 16 bytes at once, {width} of them",
                    f"width: {width}",
                )
            )
    if fetch_of(tuple(ds)) is not None:
        other = next((d for d in ds if isinstance(d, Split | Tile | Reorder | Fuse | Unroll | Vectorize | GpuThreads | GpuBlocks)), None)
        if other is not None:
            out.append(
                _problem(
                    other.at(), "P257", s, f"{other.label()} beside fetch", "fetch deals all loops of the stage by itself", "one of the two"
                )
            )
        if s.reduction is not None or not s.axes:
            out.append(
                _problem(
                    place_of(ds, Fetch),
                    "P257",
                    s,
                    f"fetch of {s.name}",
                    "it is a reduction" if s.reduction else "it is one value",
                    "gpu_threads" if s.reduction else "compute_inline",
                )
            )
    if reduces_by_block(nest):
        assert s.reduction is not None
        if s.reduction.in_order and not s.reduction.kind.startswith("arg"):
            out.append(
                _problem(
                    place_of(ds, GpuThreads, GpuLanes),
                    "P258",
                    s,
                    f"gpu_threads on a reduction loop of {s.reduction.kind}",
                    "threads take turns, and it does not commute",
                    "gpu_threads on another loop",
                )
            )
        wide = next((loop for loop in nest.loops if loop.kind == VECTOR), None)
        if wide is not None:
            out.append(
                _problem(
                    place_of(ds, Vectorize),
                    "P258",
                    s,
                    f"vectorize: {wide.name} in a reduction by the block",
                    "the threads hand over one value each",
                    "leave vectorize out",
                )
            )
        if any(loop.kind == VTHREAD for loop in nest.loops):
            why = "the threads hand over one value each"
            out.append(_problem(place_of(ds, GpuVthreads), "P258", s, "gpu_vthreads in a reduction by the block", why, "leave them out"))
    return out


def _warps(s: Stage, ds: Directives, tensor: Directive | None) -> list[Problem]:
    """P283: instructions of tensor cores are computed by warps, and nothing else is."""
    warps, threads = found(ds, GpuWarps), found(ds, GpuThreads)
    if tensor is not None and warps is None:
        why = "the 32 threads of a warp compute an instruction together"
        return [_problem(tensor.at("axis"), "P283", s, f"tensorize of {s.name} without gpu_warps", why, "gpu_warps: a loop outside it")]
    if warps is not None and tensor is None:
        why = "each of its threads would compute the same"
        return [_problem(warps.at("axis"), "P283", s, f"gpu_warps of {s.name}, which is not tensorized", why, "gpu_threads")]
    if warps is not None and threads is not None:
        return [_problem(threads.at(), "P283", s, f"gpu_threads beside gpu_warps of {s.name}", "its threads are those of the warps", "one")]
    return []


def shared_bytes(root: Stage, buffers: Sequence[Buffer], directives: Mapping[int, Directives]) -> list[Problem]:
    """All shared memory of a block together."""
    sizes = {b: prod(int(str(n)) for n in b.shape) * np.dtype(b.dtype).itemsize for b in buffers}
    total = sum(sizes.values())
    if total <= SHARED_BYTES:
        return []
    largest = max(sizes, key=lambda b: sizes[b])
    text = ", ".join(f"{b.name} {' x '.join(map(str, b.shape))} {b.dtype} = {size:,}" for b, size in sizes.items())
    place = place_of(directives.get(largest.id, ()), StoreIn, ComputeAt)
    return [
        _problem(
            place, "P259", root, f"{total:,} bytes of shared memory in a block", f"there are {SHARED_BYTES:,}: {text}", "smaller tiles"
        )
    ]


def not_in_kernel(s: Stage, ds: Directives) -> PlanError:
    """store_in: global of a stage that is computed inside a block."""
    d = found(ds, StoreIn)
    place = d.at("memory") if d is not None else place_of(ds, ComputeAt)
    return PlanError(
        [
            _problem(
                place,
                "P259",
                s,
                f"{s.name} is kept in global memory, and computed inside the blocks of its reader",
                "each block would need a part of its own",
                "store_in: shared",
                "compute_root",
            )
        ]
    )


def symbolic(s: Stage, shape: Sequence[Extent], ds: Directives) -> PlanError:
    return PlanError(
        [
            _problem(
                place_of(ds, StoreIn, ComputeAt),
                "P213",
                s,
                f"{s.name} keeps {' x '.join(map(str, shape))} elements at a time",
                "shared memory and registers hold a constant number",
                "compute it at a loop further inside",
                "compute_inline",
                "extents: fixes the sizes",
            )
        ]
    )


def _constants(nest: Nest) -> dict[str, int]:
    return {lane: n for lane, n in lanes_of(nest).items() if isinstance(n, int)}


def _shown(lanes: Mapping[str, Extent]) -> str:
    return " x ".join(str(lanes[lane]) for lane in "zyx" if lane in lanes) + " threads" if lanes else "no threads"


__all__ = ["THREAD", "any_nest", "kernel_shape", "moved_nest", "not_in_kernel", "root_nest", "shared_bytes", "symbolic"]
