"""One peer in a process of its own: JSON lines in and out. `python -m benchmarks.worker PEER`."""

from __future__ import annotations

import glob
import importlib
import json
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Answer = dict[str, Any]


def waited() -> float:
    """Seconds that this process's threads have waited for a core so far; 0 where the system does not say."""
    total = 0
    for path in glob.glob("/proc/self/task/*/schedstat"):
        try:
            with open(path) as f:
                total += int(f.read().split()[1])
        except OSError:
            continue
    return total * 1e-9


def sample(call: Callable[[], Any], count: int, least: float = 1e-3) -> list[tuple[float, float]]:
    """`count` times of a call in seconds, each with the share of it spent waiting for a core. Short calls are repeated for `least`."""
    call()
    begin = time.perf_counter()
    call()
    repeats = max(1, math.ceil(least / max(time.perf_counter() - begin, 1e-7)))
    found = []
    for _ in range(count):
        before, begin = waited(), time.perf_counter()
        for _ in range(repeats):
            call()
        passed = time.perf_counter() - begin
        found.append((passed / repeats, (waited() - before) / passed))
    return found


def answers(peer: Any, calls: dict[tuple[str, str], Callable[[], Any]], question: Answer) -> Answer:
    key = (question["workload"], question["variant"])
    match question["do"]:
        case "build":
            begin = time.perf_counter()
            call = peer.build(*key)
            if call is None:
                return {"skipped": True}
            calls[key] = call
            result = call()
            np.save(question["path"], np.asarray(result))
            return {"seconds": time.perf_counter() - begin}
        case "sample":
            return {"samples": sample(calls[key], question["count"])}
        case "drop":
            calls.clear()
            return {}
    raise ValueError(question["do"])


def main(name: str) -> None:
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a peer prints must not meet the answers
    peer = importlib.import_module(f"benchmarks.peer_{name}")
    calls: dict[tuple[str, str], Callable[[], Any]] = {}
    out.write(json.dumps({"variants": peer.VARIANTS}) + "\n")
    for line in sys.stdin:
        try:
            answer = answers(peer, calls, json.loads(line))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:2000]}
        out.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
