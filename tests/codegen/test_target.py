"""From a plan's target to the code generator's: processors, vectors, features, and names that nobody knows."""

from __future__ import annotations

import itertools
import platform

import pytest
from fluorite.algo.errors import PlanError
from fluorite.codegen import target as module
from fluorite.codegen.target import CodeTarget, cores, resolve_target
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.sections import Target

X86 = platform.machine() in ("x86_64", "AMD64")
pytestmark = pytest.mark.skipif(not X86, reason="names of x86 processors")


def resolved(text: str, **more: object) -> CodeTarget:
    return resolve_target(ExecutionPlan.from_yaml(text, "p.yaml").target, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cpu", "vector", "registers", "feature"),
    [("skylake-avx512", 64, 32, "avx512f"), ("haswell", 32, 16, "avx2"), ("nehalem", 16, 16, "sse4_2"), ("x86-64", 16, 16, None)],
)
def test_what_a_processor_has(cpu: str, vector: int, registers: int, feature: str | None) -> None:
    made = resolved(f"target: {{cpu: {cpu}}}")
    assert (made.kind, made.cpu, made.machine.vector_bytes, made.machine.registers) == ("llvm", cpu, vector, registers)
    assert feature is None or feature in made.features
    assert made.dict()["mcpu"] == cpu and made.machine.lanes("float64") == vector // 8


def test_a_newer_processor_has_what_older_ones_had() -> None:
    names = ["x86-64", "nehalem", "haswell", "skylake-avx512", "icelake-server", "sapphirerapids"]
    features = [set(resolved(f"target: {{cpu: {n}}}").features) for n in names]
    assert all(a <= b for a, b in itertools.pairwise(features)) and len(features[-1]) > len(features[0])


@pytest.mark.parametrize(
    ("flags", "cpu"),
    [
        ({"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma", "bmi2"}, "skylake-avx512"),
        ({"avx2", "fma", "bmi2", "sse4_2", "popcnt"}, "haswell"),
        ({"sse4_2", "popcnt"}, "nehalem"),
        (set(), "x86-64"),
        (None, "x86-64"),
    ],
)
def test_native_goes_by_features(monkeypatch: pytest.MonkeyPatch, flags: set[str] | None, cpu: str) -> None:
    monkeypatch.setattr(module, "cpu_features", lambda: flags)
    assert resolved("").cpu == cpu


def test_features_of_the_plan_are_asked_for_and_needed() -> None:
    made = resolved("target: {cpu: haswell, features: [avx512_vnni]}")
    assert "avx512_vnni" in made.features and made.dict()["mattr"] == ["+avx512vnni"]


def test_features_have_the_names_of_the_system_or_of_the_code_generator() -> None:
    made = resolved("target: {cpu: nehalem, features: [sse4_2, pclmulqdq, avx_vnni, gfni]}")
    assert made.dict()["mattr"] == ["+sse4.2", "+pclmul", "+avxvnni", "+gfni"]
    other = resolved("target: {cpu: nehalem, features: [sse4.2, pclmul, avxvnni, gfni]}")
    assert other.dict() == made.dict() and other.features == made.features
    with pytest.raises(PlanError, match=r"p.yaml:1:34: error\[P240\]: target: features: zork, avx512_vnnni\n(.|\n)*avx512_vnni"):
        resolved("target: {cpu: haswell, features: [gfni, zork, avx512_vnnni]}")


def test_contraction_is_switched_off_by_taking_its_instructions_away() -> None:
    assert "-fma" in resolved("target: {cpu: haswell}", contract=False).dict()["mattr"]
    assert "mattr" not in resolved("target: {cpu: haswell}").dict()


def test_threads() -> None:
    assert resolved("", threads=3).machine.cores == 3
    assert resolved("").machine.cores == cores() >= 1


def test_processors_that_nobody_knows() -> None:
    with pytest.raises(PlanError) as caught:
        resolved("target:\n  cpu: haswel\n")
    (problem,) = caught.value.problems
    assert (problem.code, problem.line) == ("P240", 2) and "native" in problem.try_
    assert resolved("target: {cpu: znver3}").cpu == "znver3", "the code generator knows more than the levels"


def test_gpus() -> None:
    made = resolved("target: {kind: cuda, arch: sm_90}")
    assert made.machine.is_gpu and made.cpu == "sm_90" and made.dict()["arch"] == "sm_90"
    assert resolved("target: {kind: opencl}").machine.is_gpu
    with pytest.raises(PlanError) as caught:
        resolved("target: {kind: cuda, arch: ampere}")
    assert caught.value.problems[0].code == "P240"


def test_the_same_target_twice_is_the_same() -> None:
    assert resolve_target(Target(cpu="haswell")) == resolve_target(Target(cpu="haswell"))
