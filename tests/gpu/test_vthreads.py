"""Virtual threads: strided register tiles, alone and over tiles of shared memory."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import pytest
from fluorite.codegen.gpu import cross_build, pocl
from fluorite.schedule import ExecutionPlan

from .comparing import OPENCL, by_pocl, lowered, serially
from .gpu_algorithms import blur, numbers, row_sums
from .test_lockstep import Lockstep

STRIDED = """schedule:
  doubled:
    - split: {axis: m, factors: [~, 3, 8], into: [mb, mv, mt]}
    - gpu_blocks: [n, mb]
    - gpu_vthreads: [mv]
    - gpu_threads: [mt]
"""
PRODUCT = """schedule:
  matmul:
    - cache: {into: acc}
    - split: {axis: i, factors: [~, 2, 4, 2], into: [ib, iv, it, ii]}
    - split: {axis: j, factors: [~, 2, 8], into: [jb, jv, jt]}
    - reorder: [ib, jb, iv, jv, it, jt, ii]
    - gpu_blocks: [ib, jb]
    - gpu_vthreads: [iv, jv]
    - gpu_threads: [it, jt]
    - unroll: ii
  matmul/acc:
    - compute_at: {stage: matmul, axis: jt}
    - store_in: registers
    - stage_in: {read: a, into: a_tile}
    - stage_in: {read: b, into: b_tile}
    - split: {axis: k, factor: 4}
    - reorder: [k_outer, k_inner, i, j]
    - unroll: i
  a_tile: [{compute_at: {stage: matmul/acc, axis: k_outer}}, {store_in: shared}, fetch]
  b_tile: [{compute_at: {stage: matmul/acc, axis: k_outer}}, {store_in: shared}, fetch]
"""
STENCIL = """schedule:
  blur/blur:
    - split: {axis: y, factors: [~, 2, 4], into: [yb, yv, yt]}
    - split: {axis: x, factor: 16}
    - reorder: [yb, x_outer, yv, yt, x_inner]
    - gpu_blocks: [yb, x_outer]
    - gpu_vthreads: [yv]
    - gpu_threads: [yt, x_inner]
  rows: [{compute_at: {stage: blur/blur, axis: x_outer}}, {store_in: shared}, fetch]
"""

SUMS = """schedule:
  row_sums/sum:
    - split: {{axis: rows, factor: 2}}
    - split: {{axis: columns, factor: 8}}
    - gpu_blocks: [rows_outer]
    - {}
"""


def doubled(x: fl.f32[fl.Tensor, "n", "m"]) -> fl.Tensor:
    return fl.stage(lambda n, m: x[n, m] * 2 + m, name="doubled")


def product(a: fl.f32[fl.Tensor, "n", "k"], b: fl.f32[fl.Tensor, "k", "m"]) -> fl.Tensor:
    return fl.matmul(a, b)


CASES: dict[str, tuple[Any, str, list[tuple[Any, ...]]]] = {
    "alone": (doubled, STRIDED, [(numbers(3, 50),), (numbers(1, 1),)]),
    "tiles": (product, PRODUCT, [(numbers(17, 9), numbers(9, 20)), (numbers(16, 4), numbers(4, 16)), (numbers(1, 1), numbers(1, 1))]),
    "stencil": (blur, STENCIL, [(numbers(17, 33),), (numbers(1, 1),)]),
}


@pytest.mark.parametrize("name", CASES)
def test_in_lock_step_and_serially(name: str) -> None:
    model, text, cases = CASES[name]
    plan = ExecutionPlan.from_yaml(text, "p.yaml")
    assert Lockstep(model, plan).run(cases) == []
    serially(model, plan, cases)


@pytest.mark.skipif(not pocl.available(), reason="needs pyopencl and PoCL, which .ci/run installs")
@pytest.mark.parametrize("name", ["tiles", "stencil"])
def test_by_pocl(name: str) -> None:
    model, text, cases = CASES[name]
    by_pocl(model, ExecutionPlan.from_yaml(text, "p.yaml"), cases)


def test_a_tile_is_fetched_once_for_all_of_them() -> None:
    """As many barriers as without virtual threads, and registers for each."""
    without = PRODUCT.replace("    - gpu_vthreads: [iv, jv]\n", "")
    texts = [cross_build(fl.trace(product), ExecutionPlan.from_yaml("target: {kind: opencl}\n" + t)).source for t in (PRODUCT, without)]
    assert [t.count("barrier(CLK_LOCAL_MEM_FENCE)") for t in texts] == [2, 2]
    assert "acc_ptr[8]" in texts[0]


REFUSED = [
    (product, PRODUCT.replace("    - unroll: i\n", "    - gpu_vthreads: [i]\n"), "P252", "is computed inside another stage"),
    (product, PRODUCT.replace("factors: [~, 2, 8]", "factors: [~, 64, 8]"), "P253", "128 virtual threads for each thread"),
    (doubled, STRIDED.replace("vthreads: [mv]", "vthreads: [n]").replace("[n, mb]", "[mb]"), "P211", "known only when the kernel runs"),
    (doubled, "target: {kind: llvm}\n" + STRIDED, "P250", "a CPU has no blocks of threads"),
    (row_sums, SUMS.format("gpu_vthreads: [columns_inner]"), "P210", "is a reduction loop"),
    (row_sums, SUMS.format("gpu_threads: [columns_inner]") + "    - gpu_vthreads: [rows_inner]\n", "P258", "one value each"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "text", "code", "words"), REFUSED)
def test_refusals(model: Any, text: str, code: str, words: str) -> None:
    plan = ExecutionPlan.from_yaml(text, "p.yaml")
    with pytest.raises(fl.PlanError) as caught:
        lowered(model, plan, plan.target if text.startswith("target") else OPENCL)
    assert any(p.code == code and words in p.text() for p in caught.value.problems), caught.value
