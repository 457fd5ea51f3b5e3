"""CUDA C and cubins without a GPU, and what ptxas says of them."""

from __future__ import annotations

import re
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.codegen.driver import as_plan
from fluorite.codegen.gpu import cross_build
from fluorite.codegen.gpu.building import facts_of, kernels_of, nvcc
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.sections import Target

from .gpu_algorithms import HAND_MADE, blur, scaled, softmax

needs_nvcc = pytest.mark.skipif(nvcc() is None, reason="needs nvcc")
CUDA = Target(kind="cuda", arch=("sm_90",))


def source_of(model: Any, plan: Any = None) -> str:
    return cross_build(fl.trace(model), as_plan(plan).replace(target=CUDA), cubins=False).source


@pytest.mark.parametrize("name", HAND_MADE)
def test_barriers_stand_between_writing_and_reading_shared_memory(name: str) -> None:
    model, plan, _ = HAND_MADE[name]
    text = source_of(model, plan)
    least = {"photo": 3, "softmax": 2 * 9, "layer": 2, "layer_fixed": 2}[name]
    assert text.count("__syncthreads()") >= least
    assert "__shared__" in text


def test_a_kernel_without_shared_memory_has_no_barrier() -> None:
    text = source_of(scaled)
    assert "__syncthreads" not in text and "__launch_bounds__(256)" in text


def test_the_source_of_each_kernel() -> None:
    built = cross_build(fl.trace(blur), as_plan(None).replace(target=CUDA), cubins=False)
    assert list(built.sources) == [k.name for v in built.variants for k in v.kernels]
    assert all(text.startswith('extern "C" __global__') and text.endswith("}") for text in built.sources.values())
    assert built.cubins == {} and built.stats == ()


def test_contraction_can_be_turned_off() -> None:
    for allowed in (True, False):
        plan = as_plan(ExecutionPlan.from_yaml(f"target: {{kind: opencl}}\nnumerics: {{contract: {str(allowed).lower()}}}"))
        source = cross_build(fl.trace(scaled), plan).source
        assert ("FP_CONTRACT OFF" in source) is not allowed


def test_constants_keep_all_their_digits_and_names_are_c() -> None:
    """OpenCL's source had seven digits of them; constants, whose names are numbers, were no identifiers."""

    def shades(x: fl.f32[fl.Tensor, "n"]) -> Any:
        table = fl.asarray(np.arange(3, dtype=np.float32))
        return fl.stage(lambda i: x[i] * 0.1234567891 + table[i % 3] * 0.5, name="2nd"), fl.cast(x, fl.f64) * (1 / 3)

    exact = {"opencl": ["as_float(1039980266)", "as_double("], "cuda": ["0x1.f9add4p-4f", "__longlong_as_double("]}
    for target in (Target(kind="opencl"), CUDA):
        source, found = cross_build(fl.trace(shades), as_plan(None).replace(target=target), cubins=False).source, exact[target.kind]
        assert all(text in source for text in found) and "5.000000e-01" in source, source
        assert not re.search(r"[ *]\d\w*_ptr", source)


@needs_nvcc
@pytest.mark.slow
def test_contraction_can_be_turned_off_on_cuda() -> None:
    def fused(x: fl.f32[fl.Tensor, "n"], y: fl.f32[fl.Tensor, "n"]) -> fl.Tensor:
        return x * y + x

    for allowed in (True, False):
        plan = ExecutionPlan.from_yaml(f"target: {{kind: cuda, arch: sm_90}}\nnumerics: {{contract: {str(allowed).lower()}}}")
        assert ("fma.rn.f32" in cross_build(fl.trace(fused), plan).ptx["sm_90"]) is allowed


def test_the_preset() -> None:
    plan = as_plan("fluorite:gpu")
    assert plan.target.arches == ("sm_80", "sm_90")
    assert "__global__" in cross_build(fl.trace(softmax), plan, cubins=False).source


def test_opencl_has_source_only() -> None:
    built = cross_build(fl.trace(softmax), as_plan(None).replace(target=Target(kind="opencl")))
    assert "__kernel void" in built.source and "barrier(CLK_LOCAL_MEM_FENCE)" in built.source
    assert list(built.sources) == [k.name for k in built.variants[0].kernels]
    assert built.cubins == {}


def test_declarations_are_not_kernels() -> None:
    text = 'extern "C" __global__ void f_kernel(float* a);\nextern "C" __global__ void f_kernel(float* a) {\n  if (1) {\n  }\n}\n'
    assert list(kernels_of(text)) == ["f"]


def test_a_cpu_target_is_refused() -> None:
    with pytest.raises(fl.BuildError) as caught:
        cross_build(fl.trace(blur), None)
    assert caught.value.problems[0].code == "B030"


def test_a_missing_nvcc_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluorite.codegen.gpu.building.nvcc", lambda: None)
    with pytest.raises(fl.BuildError, match="needs nvcc"):
        cross_build(fl.trace(scaled), as_plan(None).replace(target=CUDA))


def test_what_ptxas_says() -> None:
    log = """ptxas info    : Compiling entry function 'f_kernel' for 'sm_90'
ptxas info    : Function properties for f_kernel
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 8192 bytes smem
"""
    (found,) = facts_of(log, "sm_90")
    assert (found.kernel, found.registers, found.stack, found.spill_stores, found.spill_loads, found.shared) == ("f", 40, 16, 4, 8, 8192)


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize("name", ["photo", "softmax", "layer"])
def test_cubins(name: str) -> None:
    model, plan, _ = HAND_MADE[name]
    built = cross_build(fl.trace(model), plan)
    assert list(built.cubins) == ["sm_80", "sm_90"]
    assert all(c.startswith(b"\x7fELF") for c in built.cubins.values())
    assert len(built.stats) == 2 * sum(len(v.kernels) for v in built.variants)
    for facts in built.stats:
        assert facts.spill_stores == facts.spill_loads == 0, facts
        assert 0 < facts.registers <= 128, facts
        assert 0 < facts.shared <= 48 << 10, facts


@needs_nvcc
@pytest.mark.slow
def test_ptx() -> None:
    built = cross_build(fl.trace(scaled), as_plan(None).replace(target=CUDA))
    assert ".target sm_90" in built.ptx["sm_90"] and "_kernel" in built.ptx["sm_90"]


def test_an_architecture_that_is_none() -> None:
    with pytest.raises(fl.PlanError) as caught:
        cross_build(fl.trace(scaled), as_plan(None).replace(target=Target(kind="cuda", arch=("hopper",))))
    assert caught.value.problems[0].code == "P240"


@needs_nvcc
@pytest.mark.slow
def test_an_unknown_architecture_is_a_sentence() -> None:
    with pytest.raises(fl.BuildError) as caught:
        cross_build(fl.trace(scaled), as_plan(None).replace(target=Target(kind="cuda", arch=("sm_79",))))
    assert caught.value.problems[0].code == "B032" and "sm_79" in caught.value.problems[0].text()
    assert "Traceback" not in str(caught.value)
