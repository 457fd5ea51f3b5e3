"""Workers, one for each peer, timed in turn: round after round, the others held still."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .workloads import Workload

ROOT = Path(__file__).resolve().parent.parent
CLEAN = 0.03
"""A sample counts as undisturbed if its threads waited for a core for less than this share of it."""


class Worker:
    def __init__(self, peer: str, python: str, threads: int) -> None:
        self.peer = peer
        count = {f"{k}_NUM_THREADS": str(threads) for k in ("HL", "OMP", "OPENBLAS", "MKL")}
        env = {**os.environ, **count, "FLUORITE_THREADS": str(threads), "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):  # they would make NumPy look slower than it is
            env.pop(name, None)
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", peer], cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.variants: list[str] = self._answer().get("variants", [])

    def ask(self, **question: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"error": "the worker died"}
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": f"the worker of {self.peer} died with status {self.process.wait()}"}  # type: ignore[no-any-return]

    @contextmanager
    def alone(self, others: Sequence[Worker]) -> Iterator[None]:
        """Nobody else's idle threads spin meanwhile."""
        quiet = [w.process for w in others if w is not self and hasattr(signal, "SIGSTOP")]
        for p in quiet:
            p.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for p in quiet:
                p.send_signal(signal.SIGCONT)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@dataclass
class Result:
    """Of one variant of one peer. `difference` from the reference, relative to its largest value."""

    worker: Worker
    variant: str
    build: float = 0.0
    difference: float = 0.0
    error: str = ""
    samples: list[tuple[float, float]] = field(default_factory=list)

    @property
    def times(self) -> list[float]:
        clean = [t for t, waited in self.samples if waited < CLEAN]
        return clean if len(clean) >= 5 else [t for t, _ in self.samples]

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def best(self) -> float:
        return min(self.times)

    @property
    def disturbed(self) -> bool:
        return len(self.times) == len(self.samples) and any(w >= CLEAN for _, w in self.samples)


def prepare(workload: Workload, workers: Sequence[Worker], only: Sequence[str]) -> list[Result]:
    """Everything that offers the workload, built, run once and compared with the reference."""
    reference = workload.reference(workload.inputs())
    reference = reference.astype(np.result_type(reference, np.float64))
    found = []
    for worker in workers:
        for variant in worker.variants:
            if only and not any(o in variant for o in only):
                continue
            with tempfile.TemporaryDirectory() as folder, worker.alone(workers):
                path = Path(folder) / "result.npy"
                answer = worker.ask(do="build", workload=workload.name, variant=variant, path=str(path))
                if answer.get("skipped"):
                    continue
                result = Result(worker, variant, answer.get("seconds", 0.0), error=answer.get("error", ""))
                if not result.error:
                    value = np.load(path)
                    if value.shape != reference.shape:
                        result.error = f"the result is {value.shape}, expected {reference.shape}"
                    else:
                        result.difference = float(np.abs(value - reference).max() / np.abs(reference).max())
                        near = result.difference < workload.tolerance
                        result.error = "" if near else f"differs from the reference by {result.difference:.1e}"
                found.append(result)
    return found


def measure(workload: Workload, results: Sequence[Result], workers: Sequence[Worker], rounds: int, count: int) -> None:
    good = [r for r in results if not r.error]
    for _ in range(rounds):
        for r in good:
            with r.worker.alone(workers):
                answer = r.worker.ask(do="sample", workload=workload.name, variant=r.variant, count=count)
            r.error = answer.get("error", r.error)
            r.samples += [(t, w) for t, w in answer.get("samples", [])]
    for w in workers:
        w.ask(do="drop", workload=workload.name, variant="")


def python_of(peer: str, folder: Path | None) -> str:
    """fluorite and NumPy run in this environment; other peers in the one given for them."""
    if peer in ("fluorite", "numpy") or folder is None:
        return sys.executable
    return str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
