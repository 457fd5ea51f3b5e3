"""Does this machine have what the kernels were compiled for?"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from . import ffi
from .errors import Problem, artifact_problem


@cache
def cpu_features() -> frozenset[str] | None:
    """The processor's features by their names in /proc/cpuinfo; None where that cannot be known."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return frozenset(value.lower().split())
    return None


@cache
def tiles_allowed() -> bool:
    """Whether the system lets this process use the tile registers of AMX, for which it has to be asked."""
    try:
        return bool(ctypes.CDLL(None).syscall(_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XTILEDATA) == 0)
    except (OSError, AttributeError):
        return False


_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XTILEDATA = 158, 0x1023, 18
"""Of Linux on x86-64: a system call, what is asked of it, and for which state of the processor."""


def refused_tiles(name: str, target: Mapping[str, Any]) -> Iterator[Problem]:
    """R012 where kernels use tile registers and the system does not allow it."""
    if target.get("tiles") and not tiles_allowed():
        why = f"{name} uses the tile registers of AMX, which this system does not let the process have"
        instead = ("Linux 5.16 or later, outside a sandbox that forbids it", "build it with target: {cpu: cooperlake}")
        yield artifact_problem("R012", why, *instead)


def problems(name: str, target: dict[str, Any], toolchain: dict[str, Any], features: frozenset[str] | None) -> Iterator[Problem]:
    """Everything in which this machine and environment differ from the ones that `name` was built for."""
    here = (platform.system(), platform.machine())
    built = (target.get("system", here[0]), target.get("machine", here[1]))
    if built != here:
        yield artifact_problem("R005", f"{name} was built for {' '.join(built)}, this machine is {' '.join(here)}", "build it for this one")
    elif features is not None and (missing := [f for f in target.get("features", ()) if f not in features]):
        needs = f"{name} was built for {target.get('cpu', 'another processor')} and needs {', '.join(missing)}"
        yield artifact_problem("R006", f"{needs}, which this processor does not have", "build it for this one")
    wanted = toolchain.get("tvm_ffi")
    if wanted and _release(wanted) != _release(ffi.version):
        yield artifact_problem(
            "R007",
            f"{name} was built with apache-tvm-ffi {wanted}, this environment has {ffi.version}",
            f"pip install apache-tvm-ffi=={wanted}",
        )


def _release(version: str) -> list[str]:
    return version.split(".")[:3]
