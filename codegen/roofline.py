"""What this machine can do at best: float operations and bytes per second, measured once and kept beside the build cache."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fluorite.algo.errors import BuildError

from .cache import cache_folder, key_of
from .runtime.host import cpu_features
from .target import cores

_SIDE, _BYTES, _REPEATS = 768, 64 << 20, 3


@dataclass(frozen=True)
class Roofline:
    """`flops` and `bytes` per second of all cores together; `kernel_seconds` to start a parallel kernel."""

    flops: float
    bytes: float
    kernel_seconds: float = 5e-6
    measured: bool = True

    def seconds(self, flops: float, moved: float) -> float:
        """The least time for so many operations and bytes."""
        return max(flops / self.flops, moved / self.bytes)

    def bound(self, flops: float, moved: float) -> str:
        """What limits it: compute or memory."""
        return "compute" if flops / self.flops >= moved / self.bytes else "memory"


def roofline() -> Roofline:
    """Of this machine; half a second the first time."""
    try:
        path = cache_folder() / "machine" / f"{_machine()}.json"
    except BuildError:  # there is no place to keep it
        return _measure()
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return Roofline(float(kept["flops"]), float(kept["bytes"]))
    except (OSError, ValueError, KeyError, TypeError):
        found = _measure()
    _keep(path, found)
    return found


def _measure() -> Roofline:
    a = np.ones((_SIDE, _SIDE), np.float32)
    out = np.empty_like(a)
    source, target = np.ones(_BYTES // 4, np.float32), np.empty(_BYTES // 4, np.float32)
    multiplied = _fastest(lambda: np.matmul(a, a, out=out))
    copied = _fastest(lambda: np.copyto(target, source))
    return Roofline(2.0 * _SIDE**3 / multiplied, 2.0 * _BYTES / copied)


def _fastest(work: Callable[[], object]) -> float:
    work()
    taken = []
    for _ in range(_REPEATS):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def _machine() -> str:
    return key_of(platform.machine(), platform.processor(), str(cores()), " ".join(sorted(cpu_features() or ())))[:16]


def _keep(path: Path, found: Roofline) -> None:
    """For the next time; without a cache it is measured again."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary.write_text(json.dumps({"flops": found.flops, "bytes": found.bytes}), encoding="utf-8")
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)


__all__ = ["Roofline", "roofline"]
