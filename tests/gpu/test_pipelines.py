"""software_pipeline on a GPU: races and waits in lock step, real runs by PoCL, barriers in CUDA C, cp.async in PTX, and what is refused."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import pytest
from fluorite.codegen.driver import as_plan
from fluorite.codegen.gpu import cross_build, pocl
from fluorite.codegen.gpu.building import nvcc
from fluorite.codegen.statements import AsyncCopy, Barrier, walk
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.sections import Target

from .comparing import by_pocl, lowered, serially
from .gpu_algorithms import PLANS, layer, layer_fixed, layers, numbers
from .lockstep import Planted
from .test_lockstep import Lockstep

FIXED = [(numbers(100, 52), numbers(52, 72), numbers(72))]


def piped(stages: int = 2, asynchronous: bool = False) -> ExecutionPlan:
    """The plan of the layer with the tiles of its operands loaded ahead."""
    text = (PLANS / "layer.yaml").read_text()
    d = f"    - software_pipeline: {{axis: k_outer, stages: {stages}, asynchronous: {str(asynchronous).lower()}}}\n"
    return as_plan(ExecutionPlan.from_yaml(text.replace("  x_tile:\n", d + "  x_tile:\n", 1)))


def chained(x: fl.f32[fl.Tensor, "n", "m"], w: fl.f32[fl.Tensor, "m", "p"]) -> fl.Tensor:
    doubled = fl.edge(fl.stage(lambda i, k: x[i, k] * 2 + 1, name="doubled"))
    mixed = fl.stage(lambda i, k: doubled[i, k] + doubled[i, k + 1], name="mixed")
    return fl.stage(lambda i, j: fl.sum(lambda k: mixed[i, k] * w[k, j]), name="out")


LOOPS = """
version: 1
schedule:
  out:
    - split: {axis: k, factor: 4}
    - split: {axis: j, factor: 8}
    - split: {axis: i, factor: 3}
    - reorder: [i_outer, j_outer, j_inner, i_inner, k_outer, k_inner]
    - gpu_blocks: [i_outer, j_outer]
    - gpu_threads: [j_inner]
    - software_pipeline: {axis: k_outer, stages: 3}
  mixed: [{compute_at: {stage: out, axis: k_outer}}, {store_in: shared}, fetch]
"""
CHAINED = LOOPS.replace("factor: 3", "factor: 1") + "  doubled: [{compute_at: {stage: out, axis: k_outer}}, {store_in: shared}, fetch]\n"
"""Tiles of which one reads the other."""
AGAIN = LOOPS + "  doubled: [compute_inline]\n"
"""A loop that each thread comes to for every row of its block."""


CUDA = Target(kind="cuda", arch=("sm_80",))


@pytest.mark.parametrize(("stages", "asynchronous"), [(3, False), (4, True)])
def test_in_lock_step(stages: int, asynchronous: bool) -> None:
    """Depths of no iteration of the steady state, of some, and of a last tile that is not whole."""
    kernels = Lockstep(layer, piped(stages, asynchronous), CUDA)
    assert kernels.run([*layers((3, 20, 5)), *layers((2, 70, 65))]) == []


def test_copies_of_sixteen_bytes_in_lock_step() -> None:
    assert Lockstep(layer_fixed, piped(2, True), CUDA).run(FIXED) == []


def test_every_barrier_and_every_wait_is_needed() -> None:
    kernels, met = Lockstep(layer, piped(2, True), CUDA), Planted()
    cases = layers((3, 40, 5))
    assert kernels.run(cases, met) == [] and len(met.barriers) == 2, "one in the steady state, one in the epilogue"
    for n in range(2):
        assert any("without a barrier between" in f for f in kernels.run(cases, Planted(without_barrier=n))), n
    assert any("read before it is written" in f for f in kernels.run(cases, Planted(without_wait=True)))


@pytest.mark.parametrize(("text", "barriers", "spared"), [(CHAINED, 4, 1), (AGAIN, 3, None)])
def test_a_tile_that_reads_another_and_a_loop_that_comes_again(text: str, barriers: int, spared: int | None) -> None:
    """Between two tiles there is a barrier too, which here would do for the loop's own."""
    plan, case = as_plan(ExecutionPlan.from_yaml(text)), [(numbers(4, 17), numbers(17, 9))]
    kernels, met = Lockstep(chained, plan), Planted()
    assert kernels.run(case, met) == [] and len(met.barriers) == barriers
    for n in set(range(barriers)) - {spared}:
        assert kernels.run(case, Planted(without_barrier=n)) != [], n
    serially(chained, plan, [*case, (numbers(1, 1), numbers(1, 1))])


@pytest.mark.slow
@pytest.mark.skipif(not pocl.available(), reason="needs pyopencl and PoCL, which .ci/run installs")
def test_by_pocl() -> None:
    source = by_pocl(layer, piped(3), layers((65, 17, 9), (3, 1, 70), (70, 100, 65)))
    assert "__local float x_tile_ptr[3072]" in source


def test_serially_on_this_processor() -> None:
    serially(layer, piped(2), layers((65, 17, 9), (3, 70, 5)))


def source_of(plan: Any, *, cubins: bool = False) -> Any:
    return cross_build(fl.trace(layer_fixed), as_plan(plan).replace(target=CUDA), cubins=cubins)


def test_one_barrier_an_iteration() -> None:
    plain, ahead = source_of(PLANS / "layer.yaml").source, source_of(piped()).source
    assert plain.count("__syncthreads()") == 2 and ahead.count("__syncthreads()") == 2, "those of the steady state and the epilogue"
    steady, epilogue = ahead.split("__syncthreads()")[1:]
    assert "x_tile_ptr[" in steady.split("matmul_ptr[")[0] and "= ((float4*)" not in epilogue.split("matmul_ptr[")[0]
    assert "__shared__ alignas(64) float x_tile_ptr[2048]" in ahead


def test_asynchronous_copies_are_of_16_bytes_where_rows_allow_it() -> None:
    _, kernels, _ = lowered(layer_fixed, piped(2, True), CUDA)
    sizes = {n.elements for n in walk(kernels.kernels[0].body) if isinstance(n, AsyncCopy)}
    assert 4 in sizes
    _, kernels, _ = lowered(layer, piped(2, True), CUDA)
    assert {n.elements for n in walk(kernels.kernels[0].body) if isinstance(n, AsyncCopy)} == {1}
    assert sum(isinstance(n, Barrier) for n in walk(kernels.kernels[0].body)) == 2
    assert "asynchronously" in kernels.text() and "wait for all groups of copies" in kernels.text()


@pytest.mark.skipif(nvcc() is None, reason="needs nvcc")
@pytest.mark.slow
def test_ptx_of_asynchronous_copies() -> None:
    built = source_of(piped(3, True), cubins=True)
    assert "cp.async" in built.ptx["sm_80"] and "cp.async.wait_group" in built.ptx["sm_80"]
    assert all(f.spill_loads == 0 for f in built.stats)


REFUSED = [
    ("software_pipeline: k_middle", 'P203]: software_pipeline: matmul has no loop "k_middle"'),
    (
        "software_pipeline: k_inner",
        "software_pipeline of matmul along k_inner\n  layer/matmul   (gpu_algorithms.py:35)\n  no stage is computed at that loop",
    ),
    ("software_pipeline: {axis: k_outer, stages: 5}", "81,920 bytes of shared memory"),
    ("software_pipeline: {axis: k_outer, stages: 1}", "P008"),
]


@pytest.mark.parametrize(("directive", "words"), REFUSED)
def test_refusals(directive: str, words: str) -> None:
    text = (PLANS / "layer.yaml").read_text().replace("  x_tile:\n", f"    - {directive}\n  x_tile:\n", 1)
    if "5" in directive:
        text = text.replace("factor: 16", "factor: 32")
    with pytest.raises(fl.PlanError) as refused:
        lowered(layer, ExecutionPlan.from_yaml(text))
    assert words in str(refused.value)


def test_asynchronous_needs_the_hardware_and_a_plain_copy() -> None:
    for target, words in [
        (Target(kind="opencl"), "P265]: software_pipeline: asynchronous on OpenCL"),
        (Target(kind="cuda", arch=("sm_90", "sm_75")), "P265]: software_pipeline: asynchronous on sm_75"),
        (Target(), "P250]: software_pipeline: asynchronous on a CPU"),
    ]:
        with pytest.raises(fl.PlanError) as refused:
            lowered(layer, piped(2, True), target)
        assert words in str(refused.value)
    text = CHAINED.replace("stages: 3", "stages: 3, asynchronous: true")
    with pytest.raises(fl.PlanError, match="an asynchronous copy of doubled"):
        lowered(chained, ExecutionPlan.from_yaml(text), CUDA)
