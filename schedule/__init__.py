"""HOW: the plan, its directives and selectors, and what they do to a graph."""

from __future__ import annotations

from .codes import CODES
from .diff import Difference
from .directive_help import describe, summary
from .directives import (
    DIRECTIVES,
    Align,
    Cache,
    ComputeAt,
    ComputeInline,
    ComputeRoot,
    ComputeWith,
    Directive,
    Fetch,
    FindBest,
    Fold,
    Fuse,
    GpuBlocks,
    GpuLanes,
    GpuThreads,
    GpuVthreads,
    GpuWarps,
    Layout,
    Pack,
    Pad,
    Parallel,
    Prefetch,
    Reorder,
    Rfactor,
    SoftwarePipeline,
    Split,
    StageIn,
    StoreAt,
    StoreIn,
    Stream,
    Tensorize,
    Tile,
    Unroll,
    Vectorize,
)
from .extends import presets
from .filling import OpenHole, autos_of, defaults, fill, holes_of, label, plain, satisfies
from .graph_sections import Memory, Precision, PrecisionOverride
from .json_schema import plan_schema
from .later_sections import (
    DataParallel,
    Device,
    Parallelism,
    ParameterFuse,
    Parameters,
    ParameterServer,
    Pipeline,
    Role,
    Shard,
)
from .matching import Match, assign
from .notation.holes import AUTO, Choose, Divides, Hole, Pow2, Range, Ref
from .notation.places import Place
from .notation.tables import Sizes, Table
from .plan import ExecutionPlan, entries_of
from .pool import Candidate
from .sections import (
    NUMERICS_CLASSES,
    AtMost,
    Between,
    Buckets,
    Fusion,
    Numerics,
    NumericsClass,
    Runtime,
    ScheduleEntry,
    Target,
    Tune,
    Variant,
)
from .selectors import Selector, bind, bound, parse_selector, select

__all__ = [
    "AUTO", "CODES", "DIRECTIVES", "NUMERICS_CLASSES", "Align", "AtMost", "Between", "Buckets", "Cache", "Candidate", "Choose",
    "ComputeAt", "ComputeInline", "ComputeRoot", "ComputeWith", "DataParallel", "Device", "Difference", "Directive", "Divides",
    "ExecutionPlan", "Fetch", "FindBest", "Fold", "Fuse", "Fusion", "GpuBlocks", "GpuLanes", "GpuThreads", "GpuVthreads", "GpuWarps",
    "Hole",
    "Layout", "Match", "Memory", "Numerics", "NumericsClass", "OpenHole", "Pack", "Pad", "Parallel", "Parallelism",
    "ParameterFuse", "ParameterServer", "Parameters", "Pipeline", "Place", "Pow2", "Precision", "PrecisionOverride",
    "Prefetch", "Range", "Ref",
    "Reorder", "Rfactor", "Role", "Runtime", "ScheduleEntry", "Selector", "Shard", "Sizes", "SoftwarePipeline", "Split",
    "StageIn", "StoreAt", "StoreIn", "Stream", "Table", "Target", "Tensorize", "Tile", "Tune", "Unroll", "Variant", "Vectorize", "assign",
    "autos_of", "bind", "bound", "defaults", "describe", "entries_of", "fill", "holes_of", "label", "parse_selector", "plain",
    "plan_schema", "presets", "satisfies", "select", "summary",
]  # fmt: skip
