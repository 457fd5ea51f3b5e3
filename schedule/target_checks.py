"""Directives that belong to another kind of machine than the plan's target."""

from __future__ import annotations

from collections.abc import Mapping

from fluorite.algo.errors import Problem
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage

from .directives import (
    ComputeWith,
    Directive,
    Fetch,
    Fold,
    GpuBlocks,
    GpuLanes,
    GpuThreads,
    GpuVthreads,
    GpuWarps,
    Parallel,
    Prefetch,
    SoftwarePipeline,
    StoreAt,
    StoreIn,
    Stream,
    Tensorize,
)
from .intrinsics import INTRINSICS, available
from .machine import Machine

_ASYNCHRONOUS = 80
"""The first architecture that copies from global to shared memory asynchronously."""


def wrong_target(g: Graph, chosen: Mapping[str, tuple[Directive, ...]], machine: Machine) -> list[Problem]:
    """P250 and P265, once for each directive."""
    return [p for s in g.stages for d in chosen.get(s.path, ()) if (p := _problem(s, d, machine)) is not None]


def _problem(s: Stage, d: Directive, machine: Machine) -> Problem | None:
    place, gpu, code = d.at(), machine.is_gpu, "P250"
    try_: tuple[str, ...] = ("parallel, vectorize", "target: {kind: cuda, arch: sm_90}")
    match d:
        case Parallel(axis=axis) if gpu:
            asked, why = f"parallel: {axis} on a GPU", "a GPU shares loops out among blocks and threads"
            try_ = (f"gpu_blocks: [{axis}]",)
        case Prefetch() if gpu:
            asked, why, try_ = "prefetch on a GPU", "a GPU runs other threads while one waits for memory", ("stage_in and fetch",)
        case Stream() if gpu:
            asked, why, try_ = "stream on a GPU", "its threads write whole lines together, which nothing reads before", ("leave it out",)
        case StoreAt() | Fold() if gpu:
            asked, why = f"{d.label()} on a GPU", "iterations run at the same time there, so none can use what one before it made"
            try_ = ("store_in: shared", "target: {kind: llvm}")
        case ComputeWith() if gpu:
            asked, why = "compute_with on a GPU", "two nests in one are not built there yet"
            try_ = ("fl.reduce of a tuple, which makes both in one nest", "target: {kind: llvm}")
        case GpuBlocks() | GpuThreads() | GpuVthreads() | GpuLanes() | GpuWarps() | Fetch() if not gpu:
            asked, why = f"{d.label()} on a CPU", "a CPU has no blocks of threads"
        case GpuLanes(axis=axis) if not machine.arch:
            asked, why = f"gpu_lanes: {axis} on OpenCL", "not every device there has shuffles, by which the lanes of a warp hand on values"
            try_ = (f"gpu_threads: [{axis}]", "target: {kind: cuda, arch: sm_90}")
        case StoreIn(memory="shared") if not gpu:
            place, asked, why = d.at("memory"), "store_in: shared on a CPU", "a CPU has no memory shared by a block of threads"
            try_ = ("store_in: stack",)
        case SoftwarePipeline(asynchronous=True) if machine.arch < _ASYNCHRONOUS:
            on = f"sm_{machine.arch}" if machine.arch else "OpenCL" if gpu else "a CPU"
            why = f"cp.async came with sm_{_ASYNCHRONOUS}" if gpu else "its copies pass through registers; it reads ahead by itself"
            place, code, asked = d.at("asynchronous"), "P265" if gpu else "P250", f"software_pipeline: asynchronous on {on}"
            try_ = ("asynchronous: false", f"target: {{kind: cuda, arch: sm_{_ASYNCHRONOUS}}}")
        case Tensorize(intrinsic=name) if name != "auto" and name not in INTRINSICS:
            place, code, asked = d.at("intrinsic"), "P280", f"tensorize: there is no intrinsic {name}"
            why, try_ = f"there are {', '.join(INTRINSICS)}", ("auto",)
        case Tensorize(intrinsic=name) if not _has(machine, name):
            place, code, asked = d.at("intrinsic"), "P282", f"tensorize: {name}"
            why = f"the target has no {_lacking(machine, name)}"
            there = ", ".join(i.name for i in available(machine.features, machine.arch))
            try_ = (f"it has {there}" if there else "target: {cpu: sapphirerapids}", "vectorize")
        case _:
            return None
    return place.problem(code, asked, why, try_, path=s.path, source=s.source)


def _has(machine: Machine, intrinsic: str) -> bool:
    found = available(machine.features, machine.arch)
    return bool(found) if intrinsic == "auto" else INTRINSICS[intrinsic] in found


def _lacking(machine: Machine, intrinsic: str) -> str:
    """What of the target's the intrinsic would need."""
    if intrinsic == "auto":
        return f"instruction of {', '.join(INTRINSICS)}"
    if (arch := INTRINSICS[intrinsic].arch) or machine.is_gpu:
        return f"tensor cores of sm_{arch} or later" if arch else "such instruction: it is one of processors"
    return ", ".join(f for f in INTRINSICS[intrinsic].features if f not in machine.features)


__all__ = ["wrong_target"]
