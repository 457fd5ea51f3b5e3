"""What this machine can do at best, measured by a small C program, so that a time can be read as a share of it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Limit:
    """The least seconds that a workload can take. `flops` and `bytes` are peaks per second, the latter of reading as much as it touches."""

    seconds: float
    why: str
    flops: float
    bytes: float

    def text(self) -> str:
        return f"{self.seconds * 1e6:.0f} us by {self.why} ({self.flops * 1e-9:.0f} GFLOP/s, {self.bytes * 1e-9:.0f} GB/s)"


def built(folder: Path) -> Path:
    """The measuring program, compiled into the folder."""
    program = folder / "limits"
    source = Path(__file__).with_name("limits.c")
    subprocess.run(
        ["cc", "-O3", "-march=native", "-mprefer-vector-width=512", "-ffast-math", "-pthread", str(source), "-o", str(program)], check=True
    )
    return program


def limit(program: Path, threads: int, flops: float, bytes: float) -> Limit:
    """For `flops` operations and `bytes` read or written. The peaks are measured anew: a shared machine's change."""
    found = json.loads(subprocess.run([str(program), str(threads), str(int(bytes))], check=True, capture_output=True, text=True).stdout)
    seconds, why = max((flops / found["flops"], "arithmetic"), (bytes / found["bytes"], "memory"))
    return Limit(seconds, why, found["flops"], found["bytes"])
