"""Every directive of the language, one frozen dataclass each: its fields are its YAML keys, its help, its schema and its repr."""

from __future__ import annotations

from .base import DIRECTIVES, STEPS, Directive
from .gpu import Fetch, GpuBlocks, GpuLanes, GpuThreads, GpuVthreads, GpuWarps
from .loops import ComputeAt, ComputeInline, ComputeRoot, ComputeWith, Fuse, Parallel, Reorder, Split, StoreIn, Tile, Unroll, Vectorize
from .pipelining import SoftwarePipeline
from .rewrites import Cache, FindBest, Pack, Rfactor, StageIn
from .storage import Align, Fold, Layout, Pad, Prefetch, StoreAt, Stream
from .tensorizing import Tensorize

__all__ = [
    "DIRECTIVES",
    "STEPS",
    "Align",
    "Cache",
    "ComputeAt",
    "ComputeInline",
    "ComputeRoot",
    "ComputeWith",
    "Directive",
    "Fetch",
    "FindBest",
    "Fold",
    "Fuse",
    "GpuBlocks",
    "GpuLanes",
    "GpuThreads",
    "GpuVthreads",
    "GpuWarps",
    "Layout",
    "Pack",
    "Pad",
    "Parallel",
    "Prefetch",
    "Reorder",
    "Rfactor",
    "SoftwarePipeline",
    "Split",
    "StageIn",
    "StoreAt",
    "StoreIn",
    "Stream",
    "Tensorize",
    "Tile",
    "Unroll",
    "Vectorize",
]
