"""GPU code without a GPU: CUDA C (or OpenCL C) from the kernels, cubins and PTX from nvcc, and what ptxas says about registers."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fluorite.algo.errors import BuildError, Problem
from fluorite.algo.graph import Graph

from ..diagnosis import every_problem
from ..driver import Plan, as_plan, decided, lower_variants
from ..lowered import Lowered
from ..target import CodeTarget, resolve_target

_SECONDS = 600


@dataclass(frozen=True)
class KernelFacts:
    """What the assembler reports of one kernel: 32-bit registers a thread; bytes of stack, spills and shared memory."""

    kernel: str
    arch: str
    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    shared: int


@dataclass(frozen=True, eq=False)
class CrossBuilt:
    """`source` is CUDA C or OpenCL C with every kernel as NAME_kernel; `cubins` by architecture; `stats` by kernel and architecture."""

    variants: tuple[Lowered, ...]
    target: CodeTarget
    arches: tuple[str, ...]
    source: str
    cubins: Mapping[str, bytes]
    stats: tuple[KernelFacts, ...]

    @property
    def sources(self) -> Mapping[str, str]:
        """The source of each kernel by its name, without what all have in common."""
        return kernels_of(self.source)

    @cached_property
    def ptx(self) -> Mapping[str, str]:
        """PTX by architecture. Raises BuildError."""
        return {arch: _nvcc(self.source, arch, "ptx", self.contract)[0].decode() for arch in self.arches}

    @property
    def contract(self) -> bool:
        return self.variants[0].scheduled.plan.numerics.contract if self.variants else True

    def text(self) -> str:
        """One line a kernel and architecture."""
        return "\n".join(
            f"{f.kernel} {f.arch}: {f.registers} registers, {f.spill_stores + f.spill_loads} bytes spilled, {f.shared} bytes shared"
            for f in self.stats
        )


def cross_build(graph: Graph, plan: Plan, cubins: bool = True, strict: bool = False) -> CrossBuilt:
    """GPU code for every architecture of the plan's target. OpenCL has source only; `cubins` False leaves nvcc out, `strict`
    refuses open holes.

    Raises PlanError, and BuildError where nvcc is missing, or refuses the architecture.
    """
    resolved = as_plan(plan, graph)
    with every_problem(graph, resolved):
        chosen, _ = decided(resolved, graph, strict)
    target = resolve_target(chosen.target, chosen.numerics.contract, chosen.runtime.threads)
    if not target.machine.is_gpu:
        raise BuildError(
            [
                Problem(
                    "B030",
                    "build",
                    asked=f"GPU code for {target.kind}",
                    why="the plan's target is a CPU",
                    try_=("target: {kind: cuda, arch: sm_90}",),
                )
            ]
        )
    with every_problem(graph, resolved):
        variants = lower_variants(graph, chosen, target)
    source = device_source(variants, target)
    arches = chosen.target.arches if target.kind == "cuda" and cubins else ()
    built: dict[str, bytes] = {}
    stats: list[KernelFacts] = []
    for arch in arches:
        built[arch], log = _nvcc(source, arch, "cubin", chosen.numerics.contract)
        stats += facts_of(log, arch)
    return CrossBuilt(variants, target, arches, source, built, tuple(stats))


def device_source(variants: Sequence[Lowered], target: CodeTarget) -> str:
    """CUDA C or OpenCL C of all kernels."""
    from ..emit import emit
    from ..synchronising import prelude
    from ..tvm_adapter import generate, split_for_device
    from ..warps import MULTIPLY, SOURCE

    kernels = [k for v in variants for k in v.kernels]
    if not kernels:
        return ""
    _, devices = split_for_device({k.name: emit(k) for k in kernels}, target.dict())
    source = "\n".join(str(generate(module, t).inspect_source()) for module, t in devices)
    source = prelude(source, target.kind) + (SOURCE if MULTIPLY in source else "") + source
    contract = variants[0].scheduled.plan.numerics.contract
    return source if contract or target.kind != "opencl" else f"#pragma OPENCL FP_CONTRACT OFF\n{source}"


def kernels_of(source: str) -> dict[str, str]:
    """Each kernel's text by name. A declaration without a body is not one."""
    out: dict[str, str] = {}
    for found in re.finditer(
        r"^(?:extern \"C\" __global__|__kernel)[^;{]*?\b(\w+)_kernel\([^;{]*\) *\{.*?^\}", source, re.MULTILINE | re.DOTALL
    ):
        out[found[1]] = found[0]
    return out


def nvcc() -> str | None:
    """Where nvcc is; None if it is not installed."""
    found = shutil.which("nvcc")
    usual = Path("/usr/local/cuda/bin/nvcc")
    return found or (str(usual) if usual.exists() else None)


def _nvcc(source: str, arch: str, form: str, contract: bool) -> tuple[bytes, str]:
    """What nvcc makes of the source, and what it says."""
    compiler = nvcc()
    if compiler is None:
        raise BuildError(
            [
                Problem(
                    "B031",
                    "build",
                    asked=f"code for {arch} needs nvcc",
                    why="it is not on PATH",
                    try_=("install the CUDA toolkit", "target: {kind: opencl}"),
                )
            ]
        )
    with tempfile.TemporaryDirectory() as folder:
        written, made = Path(folder, "kernels.cu"), Path(folder, f"kernels.{form}")
        written.write_text(source)
        command = [
            compiler,
            f"--{form}",
            "-O3",
            "-std=c++17",
            f"-arch={arch}",
            "--ptxas-options=-v",
            f"-fmad={'true' if contract else 'false'}",
            "-o",
            str(made),
            str(written),
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            raise BuildError(
                [
                    Problem(
                        "B032",
                        "build",
                        asked=f"nvcc for {arch}",
                        why=f"it had not finished after {_SECONDS} seconds",
                        try_=("unroll less",),
                    )
                ]
            ) from None
        if done.returncode or not made.exists():
            said = next(
                (line.strip() for line in (done.stderr + done.stdout).splitlines() if "error" in line or "fatal" in line), "it said nothing"
            )
            raise BuildError([Problem("B032", "build", asked=f"nvcc for {arch} failed", why=said)])
        return made.read_bytes(), done.stderr + done.stdout


def facts_of(log: str, arch: str) -> list[KernelFacts]:
    """The kernels that ptxas reports, in the order of its log."""
    out = []
    for part in re.split(r"(?=Compiling entry function ')", log)[1:]:
        name = re.match(r"Compiling entry function '(\w+)'", part)
        used = re.search(r"Used (\d+) registers", part)
        spilled = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part)
        if name is None or used is None or spilled is None:
            continue
        shared = re.search(r"(\d+) bytes smem", part)
        stack, stores, loads = map(int, spilled.groups())
        out.append(KernelFacts(name[1].removesuffix("_kernel"), arch, int(used[1]), stack, stores, loads, int(shared[1]) if shared else 0))
    return out


__all__ = ["CrossBuilt", "KernelFacts", "cross_build", "device_source", "facts_of", "kernels_of", "nvcc"]
