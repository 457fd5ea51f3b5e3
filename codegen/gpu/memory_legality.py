"""What may not be kept in the memory of a GPU kernel that a plan asks for: each thread's registers, the memory that a block shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.extent import Extent
from fluorite.algo.stages import Stage
from fluorite.schedule.directives import ComputeAt, Fetch, GpuBlocks, GpuThreads, GpuVthreads, StoreIn
from fluorite.schedule.grouping import Placement
from fluorite.schedule.nest import BLOCK, VTHREAD, Nest

from ..statements import Buffer
from .nests import lanes_of
from .problems import Directives, found, place_of, problem

SHARED_BYTES = 48 << 10


def moved_nest(s: Stage, nest: Nest, ds: Directives, memory: str, inside_threads: bool, lanes: Mapping[str, Extent]) -> list[Problem]:
    """A stage that is computed inside a kernel: where its threads come from and whether they are those of the kernel."""
    out: list[Problem] = []
    own = lanes_of(nest)
    if any(loop.kind == VTHREAD for loop in nest.loops):
        asked = f"{s.name} has gpu_vthreads and is computed inside another stage"
        why = "a kernel's virtual threads are those of the stage that owns it"
        return [problem(place_of(ds, GpuVthreads), "P252", s, asked, why, "unroll", "gpu_threads")]
    if any(loop.kind == BLOCK for loop in nest.loops):
        asked = f"{s.name} has gpu_blocks and is computed inside another stage"
        return [
            problem(
                place_of(ds, GpuBlocks), "P252", s, asked, "a kernel's blocks are those of the stage that owns it", "gpu_threads", "fetch"
            )
        ]
    if memory == "local" and own:
        out.append(
            problem(
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
            problem(
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
            problem(
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
            problem(
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
                out.append(problem(place, "P270", stages[i], asked, why, "store_in: registers", "compute_root"))
            out += no_sharing(stages[i], placements, directives, stages)
    return out


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
        problem(
            place, "P259", root, f"{total:,} bytes of shared memory in a block", f"there are {SHARED_BYTES:,}: {text}", "smaller tiles"
        )
    ]


def not_in_kernel(s: Stage, ds: Directives) -> PlanError:
    """store_in: global of a stage that is computed inside a block."""
    d = found(ds, StoreIn)
    place = d.at("memory") if d is not None else place_of(ds, ComputeAt)
    return PlanError(
        [
            problem(
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
            problem(
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


def _shown(lanes: Mapping[str, Extent]) -> str:
    return " x ".join(str(lanes[lane]) for lane in "zyx" if lane in lanes) + " threads" if lanes else "no threads"
