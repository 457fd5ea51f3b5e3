"""From the plan's target to the code generator's, and to what the schedulers need to know of the machine."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any

from fluorite.algo.errors import PlanError
from fluorite.schedule.machine import Machine
from fluorite.schedule.sections import Target

from .runtime.host import cpu_features, tiles_allowed

# LLVM's own detection names some machines after an older relative and then leaves instructions out, so features decide.
_LEVELS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("sapphirerapids", ("amx_tile", "amx_int8", "amx_bf16", "avx512_bf16", "avx512_fp16", "avx512_vbmi2")),
    ("cooperlake", ("avx512_bf16", "avx512_vnni")),
    ("icelake-server", ("avx512_vbmi2", "avx512_vnni", "avx512bw", "gfni")),
    ("cascadelake", ("avx512_vnni", "avx512bw")),
    ("skylake-avx512", ("avx512f", "avx512bw", "avx512dq", "avx512vl")),
    ("haswell", ("avx2", "fma", "bmi2")),
    ("nehalem", ("sse4_2", "popcnt")),
    ("x86-64", ()),
)
# LLVM masks the last part of short loops, and stores 32 bits where 16 are meant when the mask has one bit; so it shall not.
_UNMASKED = "-vectorizer-min-trip-count:uint=0"
_VECTOR_BYTES = (("avx512f", 64), ("avx2", 32), ("sse4_2", 16))


@dataclass(frozen=True)
class CodeTarget:
    """`config` for TVM; `cpu`, `features` (needed at run time, names as in /proc/cpuinfo); `machine` for schedulers."""

    kind: str
    cpu: str
    features: tuple[str, ...]
    machine: Machine
    config: tuple[tuple[str, Any], ...]

    def manifest(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "cpu": self.cpu,
            "machine": platform.machine(),
            "system": platform.system(),
            "features": list(self.features),
        }

    def dict(self) -> dict[str, Any]:
        return {k: list(v) if isinstance(v, tuple) else v for k, v in self.config}


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def resolve_target(target: Target, contract: bool = True, threads: int | str = "all") -> CodeTarget:
    """The code target of a plan's target section. Raises PlanError for a CPU that the code generator does not know."""
    if target.kind == "llvm":
        return _cpu(target, contract, cores() if threads == "all" else int(threads))
    if target.kind == "cuda":
        arch = target.arches[0]
        wrong = next((a for a in target.arches if not re.fullmatch(r"sm_[1-9][0-9]{1,2}[af]?", a)), None)
        if wrong is not None:
            raise PlanError(
                [
                    target.place_of("arch").problem(
                        "P240", f"target: arch: {wrong} is no GPU architecture", "NVIDIA names them by number", ("sm_80", "sm_90")
                    )
                ]
            )
        config: Mapping[str, Any] = {
            "kind": "cuda",
            "arch": arch,
            "max_shared_memory_per_block": 49152,
            "max_threads_per_block": 1024,
            "thread_warp_size": 32,
        }
        oldest = min(int(re.sub(r"\D", "", a)) for a in target.arches)
        return CodeTarget("cuda", arch, (), Machine("cuda", vector_bytes=16, registers=255, arch=oldest), tuple(config.items()))
    config = {
        "kind": "opencl",
        "max_num_threads": 1024,
        "max_threads_per_block": 1024,
        "max_shared_memory_per_block": 49152,
        "thread_warp_size": 1,
    }
    return CodeTarget("opencl", "generic", (), Machine("opencl", vector_bytes=16, registers=255), tuple(config.items()))


def _cpu(target: Target, contract: bool, threads: int) -> CodeTarget:
    name, needed, width = target.cpu, tuple(_FLAGS.get(f, f) for f in target.features), 16
    if platform.machine() in ("x86_64", "AMD64"):
        levels = dict(_LEVELS)
        if name == "native":
            here = cpu_features()
            name = "x86-64" if here is None else next(n for n, flags in _LEVELS if all(f in here for f in flags))
        elif name not in levels and name not in _known_cpus():
            raise PlanError(
                [
                    target.place_of("cpu").problem(
                        "P240",
                        f'target: cpu: "{name}" is not known to the code generator',
                        "it would silently compile for the oldest processor",
                        ("native", *list(levels)[:4]),
                    )
                ]
            )
        _require_features(target)
        at_least = _flags_of(name)
        needed = tuple(dict.fromkeys((*at_least, *needed)))
        width = next((w for f, w in _VECTOR_BYTES if f in at_least), 16)
    elif name == "native":
        name = _detected()
    attributes = [f"+{_attribute(f)}" for f in target.features] + ([] if contract else ["-fma", "-fma4"])
    config: list[tuple[str, Any]] = [("kind", "llvm"), ("mcpu", name), ("num-cores", threads), ("cl-opt", (_UNMASKED,))]
    if attributes:
        config.append(("mattr", tuple(attributes)))
    there = needed if target.cpu != "native" or tiles_allowed() else tuple(f for f in needed if not f.startswith("amx"))
    machine = Machine("llvm", width, 32 if width == 64 else 16, threads, *_caches(), features=there)
    return CodeTarget("llvm", name, needed, machine, tuple(config))


def _require_features(target: Target) -> None:
    """Raises PlanError for a feature of a processor that the code generator does not know."""
    unknown = [f for f in target.features if _attribute(f) not in _known_features()]
    if unknown:
        near = [_FLAGS.get(f, f) for name in unknown for f in get_close_matches(_attribute(name), _known_features(), 2)]
        asked = f"target: features: {', '.join(unknown)}"
        why = "the code generator knows no such feature of a processor, and would leave it out silently"
        raise PlanError([target.place_of("features").problem("P240", asked, why, tuple(near) or ("the names that /proc/cpuinfo has",))])


_OTHER_NAMES = {
    "abm": "lzcnt", "avx_vnni": "avxvnni", "bmi1": "bmi", "pclmulqdq": "pclmul", "pni": "sse3", "rdrand": "rdrnd", "sha_ni": "sha",
}  # fmt: skip


def _attribute(feature: str) -> str:
    """LLVM's name of a feature that /proc/cpuinfo names."""
    if feature in _OTHER_NAMES:
        return _OTHER_NAMES[feature]
    match feature.split("_")[0]:
        case "sse4":
            return feature.replace("_", ".")
        case "avx512":
            return feature.replace("_", "")
        case "amx":
            return feature.replace("_", "-")
    return feature


_FLAGS = {
    _attribute(f): f
    for f in (
        *_OTHER_NAMES, "sse4_1", "sse4_2", "amx_tile", "amx_int8", "amx_bf16", "amx_fp16", "amx_complex", "avx512_bf16", "avx512_bitalg",
        "avx512_fp16", "avx512_vbmi2", "avx512_vnni", "avx512_vp2intersect", "avx512_vpopcntdq",
    )
}  # fmt: skip
"""What /proc/cpuinfo calls features for which LLVM has another name."""


def _flags_of(cpu: str) -> tuple[str, ...]:
    """What a processor of this name has, as far as code generated for it relies on it."""
    names = [n for n, _ in _LEVELS]
    if cpu not in names:
        return ()
    level = names.index(cpu)
    base = [n for n in names[level:] if n not in ("cooperlake", "cascadelake") or n == cpu]
    return tuple(dict.fromkeys(f for n in reversed(base) for f in dict(_LEVELS)[n]))


@cache
def _caches() -> tuple[int, int]:
    """L1 data and L2 bytes of the first core."""
    sizes = {}
    for index in range(4):
        folder = f"/sys/devices/system/cpu/cpu0/cache/index{index}/"
        try:
            with open(folder + "type") as t, open(folder + "level") as level, open(folder + "size") as size:
                if t.read().strip() != "Instruction":
                    text = size.read().strip()
                    sizes[int(level.read())] = int(text.rstrip("KM")) << (10 if text.endswith("K") else 20)
        except (OSError, ValueError):
            break
    return sizes.get(1, 32 << 10), sizes.get(2, 1 << 20)


def _detected() -> str:
    from .tvm_adapter import tvm

    return str(tvm.target.codegen.llvm_get_system_cpu())


def _known_features() -> frozenset[str]:
    """The features of all the processors that the code generator knows."""
    from .tvm_adapter import Target as TvmTarget
    from .tvm_adapter import tvm

    found: set[str] = set()
    for cpu in _known_cpus():
        with TvmTarget({"kind": "llvm", "mcpu": cpu}):
            found.update(map(str, tvm.target.codegen.llvm_get_cpu_features()))
    return frozenset(found)


@cache
def _known_cpus() -> frozenset[str]:
    from .tvm_adapter import Target as TvmTarget
    from .tvm_adapter import tvm

    with TvmTarget({"kind": "llvm"}):
        return frozenset(map(str, tvm.target.codegen.llvm_get_cpu_archlist()))
