"""What this machine can do at best, measured by a small C program, so that a time can be read as a share of it."""
from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

NEAR = 1 << 20
"""Bytes per thread that the second-level cache holds."""


@dataclass(frozen=True)
class Limits:
    """Of all threads together: float32 operations per second, bytes per second read from the second-level cache, and from memory (32 MiB)."""

    threads: int
    flops: float
    near: float
    far: float

    def seconds(self, flops: float, bytes: float) -> tuple[float, str]:
        """The least time, and what sets it."""
        speed, name = (self.near, "the second-level cache") if bytes <= NEAR * self.threads else (self.far, "memory")
        return max((flops / self.flops, "arithmetic"), (bytes / speed, name))

    def text(self) -> str:
        return f"limits of {self.threads} threads: {self.flops * 1e-9:.0f} GFLOP/s, {self.near * 1e-9:.0f} GB/s from second-level caches, {self.far * 1e-9:.0f} GB/s from memory"


def measured(threads: int) -> Limits:
    source = Path(__file__).with_name("limits.c")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "limits"
        subprocess.run(["cc", "-O3", "-march=native", "-mprefer-vector-width=512", "-ffast-math", "-pthread", str(source), "-o", str(program)], check=True)
        found = json.loads(subprocess.run([str(program), str(threads)], check=True, capture_output=True, text=True).stdout)
    return Limits(threads, found["flops"], found["near"], found["far"])
