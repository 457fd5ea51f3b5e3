"""Products by tensor cores: in lock step by the meaning of the instruction, serially, in PTX; what is refused."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import ml_dtypes
import numpy as np
import pytest
from fluorite.codegen.driver import as_plan
from fluorite.codegen.gpu import cross_build, serial
from fluorite.codegen.gpu.building import nvcc
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.sections import Target

from .comparing import lowered, same
from .lockstep import Planted
from .test_lockstep import Lockstep

CUDA = Target(kind="cuda", arch=("sm_80",))


def halves(a: fl.f16[fl.Tensor, "n", 64], b: fl.f16[fl.Tensor, 64, "m"]) -> fl.Tensor:
    return fl.stage(lambda i, j: fl.sum(lambda k: fl.cast(a[i, k], "float32") * fl.cast(b[k, j], "float32")), name="out")


def brains(a: fl.bf16[fl.Tensor, 32, 64], b: fl.bf16[fl.Tensor, 64, 32]) -> fl.Tensor:
    return fl.stage(lambda i, j: fl.sum(lambda k: fl.cast(a[i, k], "float32") * fl.cast(b[k, j], "float32")), name="out")


def rows(a: fl.f16[fl.Tensor, "n", 64], b: fl.f16[fl.Tensor, 64, 32]) -> fl.Tensor:
    return halves(a, b)


CACHED = """
version: 1
numerics: {allow: precision}
schedule:
  out:
    - cache: acc
    - tile: {i: 32, j: 32}
    - split: {axis: i_inner, factors: [2, ~], into: [ti, ii]}
    - reorder: [i_outer, j_outer, ti, j_inner, ii]
    - gpu_blocks: [i_outer, j_outer]
    - gpu_threads: [ti, j_inner]
  out/acc:
    - compute_at: {stage: out, axis: j_outer}
    - store_in: shared
    - stage_in: {read: a, into: a_tile}
    - stage_in: {read: b, into: b_tile}
    - split: {axis: i, factor: 16}
    - split: {axis: j, factor: 16}
    - split: {axis: k, factor: 16}
    - reorder: [i_outer, k_outer, j_outer, i_inner, j_inner, k_inner]
    - gpu_warps: i_outer
    - tensorize: {axis: i_inner, intrinsic: wmma_f16}
  a_tile: [{compute_at: {stage: out/acc, axis: k_outer}}, {store_in: shared}, fetch]
  b_tile: [{compute_at: {stage: out/acc, axis: k_outer}}, {store_in: shared}, fetch]
"""
"""Tiles of 32 x 32 by two warps; the result is finished in shared memory, where it may stick out."""
PIPED = CACHED.replace("    - gpu_warps", "    - software_pipeline: {axis: k_outer, stages: 3}\n    - gpu_warps")
STRAIGHT = """
version: 1
numerics: {allow: precision}
schedule:
  out:
    - split: {axis: i, factor: 16}
    - split: {axis: j, factor: 16}
    - split: {axis: k, factor: 16}
    - reorder: [i_outer, j_outer, k_outer, i_inner, j_inner, k_inner]
    - gpu_blocks: [i_outer]
    - gpu_warps: j_outer
    - tensorize: {axis: i_inner, intrinsic: auto}
"""
"""From global memory to global memory, where all extents are whole."""


def numbers(dtype: Any, *shape: int) -> Any:
    return np.random.default_rng(len(shape) + shape[0]).standard_normal(shape).astype(dtype)


RAGGED = [(numbers(np.float16, 33, 64), numbers(np.float16, 64, 17))]
WHOLE = [(numbers(ml_dtypes.bfloat16, 32, 64), numbers(ml_dtypes.bfloat16, 64, 32))]
CASES: dict[str, tuple[Any, str, Any]] = {
    "through shared memory": (halves, CACHED, RAGGED),
    "loaded ahead": (halves, PIPED, RAGGED),
    "global memory": (brains, STRAIGHT, WHOLE),
}


@pytest.mark.parametrize("name", CASES)
def test_in_lock_step_and_serially(name: str) -> None:
    model, text, cases = CASES[name]
    plan = as_plan(ExecutionPlan.from_yaml(text))
    assert Lockstep(model, plan, CUDA).run(cases) == []
    graph, kernels, _ = lowered(model, plan, CUDA)
    same(graph, kernels, serial.serial_functions(kernels), cases)
    assert kernels.numerics == "precision"


def test_barriers_stand_around_what_warps_share() -> None:
    kernels, met = Lockstep(halves, as_plan(ExecutionPlan.from_yaml(CACHED)), CUDA), Planted()
    assert kernels.run(RAGGED, met) == []
    found = [kernels.run(RAGGED, Planted(without_barrier=n)) for n in range(len(met.barriers))]
    assert sum(bool(f) for f in found) >= 3, "before and after each product, and before the result is read"


@pytest.mark.skipif(nvcc() is None, reason="needs nvcc")
@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_ptx(name: str) -> None:
    model, text, _ = CASES[name]
    built = cross_build(fl.trace(model), as_plan(ExecutionPlan.from_yaml(text)).replace(target=CUDA))
    kind = "bf16" if model is brains else "f32.f32"
    assert "wmma.mma.sync.aligned.row.row.m16n16k16" in built.ptx["sm_80"] and kind in built.ptx["sm_80"]
    assert all(f.spill_loads == 0 for f in built.stats)


REFUSED = [
    (CACHED, "    - gpu_warps: i_outer\n", "", CUDA, "P283", "tensorize of acc without gpu_warps"),
    (CACHED, "    - tensorize: {axis: i_inner, intrinsic: wmma_f16}\n", "", CUDA, "P283", "gpu_warps of acc, which is not tensorized"),
    (CACHED, "cache: acc", "cache: acc", Target(kind="cuda", arch=("sm_60",)), "P282", "the target has no tensor cores of sm_70 or later"),
    (CACHED, "intrinsic: wmma_f16", "intrinsic: amx_bf16", CUDA, "P282", "it is one of processors"),
    (CACHED, "intrinsic: wmma_f16", "intrinsic: wmma_bf16", CUDA, "P280", "acc computes float16 x float16 in float32"),
    (STRAIGHT, "cache: acc", "cache: acc", CUDA, "P280", "a warp computes all of its result"),
]


@pytest.mark.parametrize(("text", "old", "new", "target", "code", "words"), REFUSED)
def test_refusals(text: str, old: str, new: str, target: Target, code: str, words: str) -> None:
    with pytest.raises(fl.PlanError) as refused:
        lowered(rows if text == STRAIGHT else halves, ExecutionPlan.from_yaml(text.replace(old, new)), target)
    assert code in {p.code for p in refused.value.problems} and words in str(refused.value), str(refused.value)
