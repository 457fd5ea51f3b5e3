"""Every GPU kernel that may not be is refused in our own words: the code, the place in the plan, and what would do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import pytest
from fluorite.algo.errors import Problem
from fluorite.codegen.driver import lower_variants, prepared
from fluorite.codegen.target import resolve_target
from fluorite.schedule import ExecutionPlan

from .gpu_algorithms import blur, layer, scaled

CUDA = "target: {kind: cuda, arch: sm_90}\n"
BLUR = """schedule:
  blur/blur:
    - tile: {y: 32, x: 32}
    - split: {axis: y_inner, factor: 8, into: [yy, ty]}
    - reorder: [y_outer, x_outer, ty, x_inner, yy]
    - gpu_blocks: [y_outer, x_outer]
    - gpu_threads: [ty, x_inner]
  rows:
"""
SHARED = "    - compute_at: {stage: blur/blur, axis: x_outer}\n    - store_in: shared\n"
ROOT = "schedule:\n  scaled/add:\n"


def refusals(model: Callable[..., Any], text: str, target: str = CUDA) -> tuple[Problem, ...]:
    plan = ExecutionPlan.from_yaml(target + text)
    g = fl.trace(model)
    chosen, _ = prepared(plan, g)
    with pytest.raises(fl.PlanError) as caught:
        lower_variants(g, chosen, resolve_target(chosen.target))
    return caught.value.problems


def refused(model: Callable[..., Any], text: str, code: str, place: str, *parts: str, target: str = CUDA) -> None:
    """The only problem has this code, stands at the line that holds `place`, and says all of `parts`."""
    (problem,) = refusals(model, text, target)
    assert problem.code == code, problem.text()
    assert problem.line is not None and place in (target + text).splitlines()[problem.line - 1], problem.text()
    for part in (*parts, ""):
        assert part in problem.text(), problem.text()
    assert problem.try_ and problem.why and problem.path and problem.source


@pytest.mark.parametrize(
    "directive, place",
    [("gpu_blocks: [rows]", "gpu_blocks"), ("gpu_threads: [rows]", "gpu_threads"), ("store_in: shared", "store_in"), ("fetch", "fetch")],
)
def test_gpu_directives_on_a_cpu(directive: str, place: str) -> None:
    refused(scaled, f"{ROOT}    - {directive}\n", "P250", place, "on a CPU", target="target: {kind: llvm}\n")


def test_parallel_on_a_gpu() -> None:
    refused(scaled, ROOT + "    - parallel: rows\n", "P250", "parallel", "gpu_blocks: [rows]")


def test_two_stages_side_by_side_in_one_kernel() -> None:
    text = """fusion: {groups: [[rows, blur/blur]]}
schedule:
  rows: [{split: {axis: x, factor: 64}}, {gpu_blocks: [y, x_outer]}, {gpu_threads: [x_inner]}]
  blur/blur: [{split: {axis: x, factor: 64}}, {gpu_blocks: [y, x_outer]}, {gpu_threads: [x_inner]}]
"""
    refused(blur, text, "P251", "rows:", "rows, blur", "cannot wait", "compute_at")


def test_a_stage_without_blocks() -> None:
    refused(
        scaled,
        ROOT + "    - split: {axis: columns, factor: 64}\n    - gpu_threads: [columns_inner]\n",
        "P252",
        "gpu_threads",
        "has no gpu_blocks",
    )
    refused(scaled, ROOT + "    - split: {axis: columns, factor: 64}\n", "P252", "split", "gpu_blocks: [rows]")


def test_too_many_threads() -> None:
    text = (
        ROOT
        + "    - tile: {rows: 32, columns: 64}\n    - gpu_blocks: [rows_outer, columns_outer]\n"
        + "    - gpu_threads: [rows_inner, columns_inner]\n"
    )
    refused(scaled, text, "P253", "gpu_threads", "32 x 64 = 2048 threads", "at most 1024")


def test_a_block_that_is_too_deep() -> None:
    text = (
        ROOT + "    - split: {axis: rows, factors: [~, 128, 2], into: [a, b, c]}\n    - split: {axis: columns, factor: 2}\n"
        "    - gpu_blocks: [a, columns_outer]\n    - gpu_threads: [b, c, columns_inner]\n"
    )
    refused(scaled, text, "P253", "gpu_threads", "128 threads along the outermost of three")


def test_threads_need_a_constant_number() -> None:
    refused(
        scaled, ROOT + "    - gpu_blocks: [rows]\n    - gpu_threads: [columns]\n", "P211", "gpu_threads", "known only when the kernel runs"
    )


def test_blocks_on_a_reduction_loop() -> None:
    text = "schedule:\n  matmul:\n    - gpu_blocks: [k]\n"
    found = refusals(layer, text)
    assert [p.code for p in found] == ["P210"] and "rfactor" in found[0].text()


@pytest.mark.parametrize("extents", ["{axis: y, factor: 16}", "{axis: y, factor: 4}"])
def test_threads_that_differ_between_stages(extents: str) -> None:
    threads = extents[-3:-1].strip()
    refused(
        blur,
        f"{BLUR}{SHARED}    - split: {extents}\n    - split: {{axis: x, factor: 32, into: [xo, xi]}}\n    - gpu_threads: [y_inner, xi]\n",
        "P255",
        "gpu_threads",
        f"{threads} x 32 threads",
        "8 x 32 threads",
    )


def test_threads_of_fewer_dimensions() -> None:
    refused(blur, f"{BLUR}{SHARED}    - gpu_threads: [x]\n", "P255", "gpu_threads", "32 threads, and the kernel on 8 x 32")


def test_shared_memory_without_threads() -> None:
    refused(blur, BLUR + SHARED, "P255", "store_in", "no loop of it is dealt to threads", "fetch")


def test_registers_outside_the_threads_of_their_reader() -> None:
    text = BLUR + SHARED.replace("shared", "registers")
    refused(blur, text, "P254", "store_in", "another's registers", "store_in: shared, with fetch")
    refused(blur, text + "    - fetch\n", "P254", "fetch", "kept in registers, and dealt to threads")
    refused(blur, text.replace("axis: x_outer", "axis: ty"), "P254", "store_in", "innermost of the reader's thread loops")


def test_registers_inside_the_threads_of_their_reader_are_fine() -> None:
    text = BLUR + SHARED.replace("shared", "registers").replace("axis: x_outer", "axis: yy")
    chosen, _ = prepared(ExecutionPlan.from_yaml(CUDA + text), g := fl.trace(blur))
    (found,) = lower_variants(g, chosen, resolve_target(chosen.target))
    assert "rows: float32[3, 1] in local" in found.text()


def test_global_memory_inside_a_block() -> None:
    refused(blur, BLUR + SHARED.replace("shared", "global") + "    - fetch\n", "P259", "store_in", "a part of its own", "compute_root")


def test_blocks_of_a_stage_inside_a_kernel() -> None:
    refused(blur, f"{BLUR}{SHARED}    - gpu_blocks: [y]\n    - gpu_threads: [x]\n", "P252", "gpu_blocks", "computed inside another stage")


def test_too_much_shared_memory() -> None:
    text = (BLUR + SHARED + "    - fetch\n").replace("y: 32, x: 32", "y: 256, x: 64").replace("[ty, x_inner]", "[ty, x_inner]")
    refused(blur, text, "P259", "store_in", "bytes of shared memory in a block", "258 x 64 float32 = 66,048")


def test_wide_vectors() -> None:
    text = (
        ROOT
        + "    - split: {axis: columns, factors: [~, 32, 8], into: [a, b, c]}\n    - gpu_blocks: [rows, a]\n    - gpu_threads: [b]\n"
        + "    - vectorize: c\n"
    )
    refused(scaled, text, "P256", "vectorize", "8 lanes of float32", "width: 4")


def test_fetch_beside_other_loop_directives() -> None:
    refused(blur, BLUR + SHARED + "    - fetch\n    - unroll: y\n", "P257", "unroll", "deals all loops")


def test_fetch_of_a_reduction() -> None:
    text = """schedule:
  add: [compute_inline]
  relu:
    - tile: {i: 16, j: 16}
    - gpu_blocks: [i_outer, j_outer]
    - gpu_threads: [i_inner, j_inner]
  matmul:
    - compute_at: {stage: relu, axis: j_outer}
    - store_in: shared
    - fetch
"""
    refused(layer, text, "P257", "fetch", "it is a reduction", "gpu_threads")


def test_a_whole_symbolic_axis_fits_no_shared_memory() -> None:
    text = """schedule:
  rows: [{compute_at: {stage: blur/blur, axis: y}}, {store_in: shared}, fetch]
  blur/blur: [{split: {axis: x, factor: 64}}, {gpu_blocks: [y]}, {gpu_threads: [x_inner]}]
"""
    refused(blur, text, "P213", "store_in", "3 x w elements", "constant number")


def test_all_problems_of_different_kernels_at_once() -> None:
    text = """schedule:
  rows: [{split: {axis: x, factor: 64}}, {gpu_threads: [x_inner]}]
  blur/blur: [{split: {axis: x, factor: 2048}}, {gpu_blocks: [y]}, {gpu_threads: [x_inner]}]
"""
    assert sorted(p.code for p in refusals(blur, text)) == ["P252", "P253"]
