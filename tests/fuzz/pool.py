"""Trials in processes of their own: a crash, a hang or an exhausted memory is the failure of one trial."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

SECONDS = 120.0
"""How long one trial may compute."""
WAITS = 10
"""How many times as long it may take on a machine that is busy with something else."""
MEMORY = 16 << 30
"""Bytes that the process of a trial may ask for."""
_ROOT = Path(__file__).resolve().parents[2]


def outcomes(kind: str, seeds: Iterator[int], jobs: int) -> Iterator[tuple[int, str, float]]:
    """(seed, what became of it, seconds) of every trial of this kind, in the order in which they end."""
    found: SimpleQueue[tuple[int, str, float] | None] = SimpleQueue()
    lock = threading.Lock()

    def work() -> None:
        worker = _Worker(kind)
        try:
            while True:
                with lock:
                    seed = next(seeds, None)
                if seed is None:
                    return
                found.put((seed, *worker.trial(seed)))
        finally:
            worker.end()
            found.put(None)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(jobs)]
    for t in threads:
        t.start()
    left = jobs
    while left:
        outcome = found.get()
        if outcome is None:
            left -= 1
        else:
            yield outcome


class _Worker:
    """One process, started anew after it was lost."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.process: subprocess.Popen[str] | None = None

    def trial(self, seed: int) -> tuple[str, float]:
        begun = time.monotonic()
        if self.process is None:
            command = [sys.executable, "-m", "tests.fuzz.pool", self.kind]
            self.process = subprocess.Popen(
                command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        process = self.process
        assert process.stdin is not None and process.stdout is not None
        done = threading.Event()
        threading.Thread(target=_kill_late, args=(process, done), daemon=True).start()
        try:
            process.stdin.write(f"{seed}\n")
            process.stdin.flush()
            said = process.stdout.readline()
        except BrokenPipeError:
            said = ""
        done.set()
        seconds = time.monotonic() - begun
        if said:
            return said.strip(), seconds
        self.end()
        code = process.wait()
        if seconds >= SECONDS:
            return f"failed: it takes longer than {SECONDS:.0f} s", seconds
        return f"failed: its process ended with {signal.Signals(-code).name if code < 0 else code}", seconds

    def end(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    stream.close()  # type: ignore[union-attr]


def _kill_late(process: subprocess.Popen[str], done: threading.Event) -> None:
    """Ends the process once it has computed for too long, or waited for far too long."""
    begun, before = time.monotonic(), _computed(process.pid)
    while not done.wait(SECONDS / 10):
        if _computed(process.pid) - before >= SECONDS or time.monotonic() - begun >= SECONDS * WAITS:
            process.kill()
            return


def _computed(process: int) -> float:
    """Seconds of computing so far."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:  # it is gone
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """One outcome a line for one seed a line."""
    from .guarded import poison
    from .kinds import KINDS
    from .run import Failure

    poison()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no outcome
    gc.freeze()  # what is imported stays
    gc.set_threshold(50_000, 20, 20)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for line in sys.stdin:
        try:
            said = KINDS[sys.argv[1]](int(line), False)
        except Failure as failure:
            said = f"failed: {failure}"
        except Exception as error:
            said = f"failed: {type(error).__name__} outside the compiler: {error}"
        print(" ".join(said.split()), file=answers, flush=True)


if __name__ == "__main__":
    main()
