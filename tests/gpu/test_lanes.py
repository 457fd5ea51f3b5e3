"""Reductions by the lanes of a warp and by blocks: shuffles, pairs, argmax. Run in lock step, and serially; read in CUDA C."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.codegen.gpu import cross_build, pocl, serial
from fluorite.codegen.gpu.building import nvcc
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.sections import Target

from .comparing import OPENCL, by_pocl, lowered, same
from .gpu_algorithms import DEFAULTS, any_above, matrices, reduction_plan, row_sums, total
from .lockstep import Planted
from .test_lockstep import Lockstep

CUDA = Target(kind="cuda", arch=("sm_90",))


def best(x: fl.f32[fl.Tensor, "rows", "columns"]) -> Any:
    return {"most": fl.argmax(x, 1, name="most"), "least": fl.argmin(x, 1, name="least")}


def spread(x: fl.f32[fl.Tensor, "rows", "columns"]) -> fl.Tensor:
    """Means and sums of squared distances by Welford's formula, of parts that are combined together."""

    def combine(a: Any, b: Any) -> Any:
        n = a[0] + b[0]
        d, share = b[1] - a[1], b[0] / fl.maximum(n, 1.0)
        return n, a[1] + d * share, a[2] + b[2] + d * d * a[0] * share

    parts = lambda i: fl.reduce(combine, (0.0, 0.0, 0.0), lambda k: (1.0, x[i, k], 0.0))  # noqa: E731
    return fl.stage(lambda i: parts(i)[2] / fl.maximum(parts(i)[0], 1.0), name="spread")


def composed(x: fl.f32[fl.Tensor, "rows", "columns"]) -> fl.Tensor:
    return fl.stage(lambda i: fl.reduce(lambda a, b: a + b - a * b, 0.0, lambda k: x[i, k] / 4), name="composed")


LANES = "{split: {axis: columns, factor: 32}}, {gpu_blocks: [rows]}, {gpu_lanes: columns_inner}"
WARPS = (
    "{split: {axis: columns, factors: [~, 4, 32], into: [co, cw, cl]}}, {gpu_blocks: [rows]}, {gpu_threads: [cw]}, {gpu_lanes: cl}"
)
ROWS = (
    "{split: {axis: rows, factor: 4}}, {split: {axis: columns, factor: 8}}, {gpu_blocks: [rows_outer]}, {gpu_threads: [rows_inner]}, "
    "{gpu_lanes: columns_inner}"
)
ALL = (
    "{split: {axis: rows, factors: [~, 4], into: [rows_o, rows_t]}}, {split: {axis: columns, factor: 16}}, {gpu_threads: [rows_t]}, "
    "{gpu_lanes: columns_inner}"
)
SHUFFLED: dict[str, tuple[Callable[..., Any], ExecutionPlan, Sequence[tuple[Any, ...]]]] = {
    "a warp": (row_sums, reduction_plan("row_sums/sum", LANES), matrices((3, 77), (1, 1))),
    "warps": (row_sums, reduction_plan("row_sums/sum", WARPS), matrices((2, 300), (1, 1))),
    "rows and lanes": (row_sums, reduction_plan("row_sums/sum", ROWS), matrices((9, 21), (1, 1), (4, 8))),
    "everything": (total, reduction_plan("total/sum", ALL), matrices((9, 77))),
    "truth values": (any_above, reduction_plan("any_above/any", LANES), matrices((3, 5), (2, 70))),
}  # fmt: skip


@pytest.mark.parametrize("name", SHUFFLED)
def test_shuffles(name: str) -> None:
    model, plan, cases = SHUFFLED[name]
    assert Lockstep(model, plan, CUDA).run(cases) == []
    g, kernels, _ = lowered(model, plan, CUDA)
    same(g, kernels, serial.serial_functions(kernels), cases)


def test_the_code_of_shuffles() -> None:
    def source(name: str) -> str:
        return cross_build(fl.trace(SHUFFLED[name][0]), SHUFFLED[name][1].replace(target=CUDA), cubins=False).source

    alone, several = source("a warp"), source("warps")
    assert alone.count("fluorite_shuffle(") == 6 and "__syncthreads" not in alone and "__shared__" not in alone
    assert several.count("fluorite_shuffle(") == 6 and several.count("__syncthreads()") == 2
    assert re.search(r"__shared__.* float sum_partial_ptr\[4\]", several)


@pytest.mark.skipif(nvcc() is None, reason="needs nvcc")
@pytest.mark.slow
def test_ptx_of_shuffles() -> None:
    built = cross_build(fl.trace(row_sums), SHUFFLED["warps"][1].replace(target=CUDA))
    assert built.ptx["sm_90"].count("shfl.sync.bfly.b32") == 5
    assert all(f.spill_stores == 0 and f.shared <= 64 for f in built.stats)


BY_DEFAULT = {"softmax": 8, "row_sums": 3, "total": 3, "any_above": 3, "norm": 8, "best": 4}
"""The barriers of each: three a reduction, of what eight warps have, and those of what stages share. 256 threads alone need eight."""


@pytest.mark.parametrize("name", BY_DEFAULT)
def test_the_default_schedule_of_cuda(name: str) -> None:
    model, cases = DEFAULTS[name]
    met, kernels = Planted(), Lockstep(model, None, CUDA)
    assert kernels.run(cases[:2], met) == []
    assert len(met.barriers) == BY_DEFAULT[name]
    g, lowered_, _ = lowered(model, None, CUDA)
    same(g, lowered_, serial.serial_functions(lowered_), cases[:2])


# ---------------------------------------------------------------- reductions of pairs, by blocks and by warps
BY_BLOCK = "{split: {axis: k, factor: 24}}, {gpu_blocks: [i]}, {gpu_threads: [k_inner]}"
BY_LANES = "{split: {axis: k, factors: [~, 3, 8], into: [ko, kw, kl]}}, {gpu_blocks: [i]}, {gpu_threads: [kw]}, {gpu_lanes: kl}"
OF_BLOCKS = "{split: {axis: columns, factor: 24}}, {gpu_blocks: [rows]}, {gpu_threads: [columns_inner]}"
OF_LANES = "{split: {axis: columns, factor: 32}}, {gpu_blocks: [rows]}, {gpu_lanes: columns_inner}"


def ties(*shape: int) -> Any:
    """Numbers of which many are equal, and some are NaN."""
    numbers = np.random.default_rng(sum(shape)).integers(-2, 3, shape).astype("float32")
    numbers[0, ::7] = np.nan
    return numbers


PAIRS: dict[str, tuple[Callable[..., Any], list[str], dict[Target, str], Sequence[tuple[Any, ...]]]] = {
    "welford": (spread, ["spread/reduce"], {OPENCL: BY_BLOCK, CUDA: BY_LANES}, matrices((3, 77), (1, 1), (2, 24))),
    "probabilities": (composed, ["composed/composed"], {OPENCL: BY_BLOCK, CUDA: BY_LANES}, matrices((3, 77), (1, 1))),
    "argmax": (best, ["most", "least"], {OPENCL: OF_BLOCKS, CUDA: OF_LANES}, [(ties(3, 77),), (ties(2, 5),), *matrices((3, 100), (1, 1))]),
}  # fmt: skip


@pytest.mark.parametrize("target", [OPENCL, CUDA], ids=["blocks", "warps"])
@pytest.mark.parametrize("name", PAIRS)
def test_states_of_several_parts(name: str, target: Target) -> None:
    model, stages, directives, cases = PAIRS[name]
    plan = ExecutionPlan.from_yaml("schedule: {" + ", ".join(f"{s}: [{directives[target]}]" for s in stages) + "}")
    assert Lockstep(model, plan, target).run(cases[:3]) == []
    g, kernels, _ = lowered(model, plan, target)
    same(g, kernels, serial.serial_functions(kernels), cases)


@pytest.mark.skipif(not pocl.available(), reason="needs pyopencl and PoCL, which .ci/run installs")
@pytest.mark.parametrize("name", ["welford", "argmax"])
def test_pairs_by_pocl(name: str) -> None:
    model, stages, directives, cases = PAIRS[name]
    by_pocl(model, ExecutionPlan.from_yaml("schedule: {" + ", ".join(f"{s}: [{directives[OPENCL]}]" for s in stages) + "}"), cases)


CROWDED = "{split: {axis: columns, factors: [~, 2, 2, 2, 4], into: [a, b, c, d, e]}}, {gpu_threads: [b, c, d]}, {gpu_lanes: e}"
REFUSED = [
    ("{split: {axis: columns, factor: 24}}, {gpu_blocks: [rows]}, {gpu_lanes: columns_inner}", CUDA, "P284", "24 iterations"),
    ("{split: {axis: columns, factor: 64}}, {gpu_blocks: [rows]}, {gpu_lanes: columns_inner}", CUDA, "P284", "64 iterations"),
    ("{gpu_blocks: [rows]}, {gpu_lanes: columns}", CUDA, "P211", "constant"),
    (LANES, OPENCL, "P250", "OpenCL"),
    (LANES, Target(kind="llvm"), "P250", "a CPU has no blocks"),
    (CROWDED, CUDA, "P284", "3 loops beside gpu_lanes"),
]


@pytest.mark.parametrize(("directives", "target", "code", "words"), REFUSED)
def test_refusals(directives: str, target: Target, code: str, words: str) -> None:
    with pytest.raises(fl.PlanError) as caught:
        lowered(row_sums, reduction_plan("row_sums/sum", directives), target)
    assert any(p.code == code and words in p.text() for p in caught.value.problems), caught.value


def test_what_does_not_commute_is_refused() -> None:
    def last(x: fl.f32[fl.Tensor, "rows", "columns"]) -> fl.Tensor:
        def compose(a: Any, b: Any) -> Any:
            return b[0] * a[0], b[0] * a[1] + b[1]

        return fl.stage(lambda i: fl.reduce(compose, (1.0, 0.0), lambda k: (x[i, k], 1.0))[1], name="last")

    with pytest.raises(fl.PlanError, match="does not commute"):
        lowered(last, reduction_plan("last/reduce", BY_BLOCK))
