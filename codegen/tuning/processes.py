"""The parent's end of a worker process: requests with a time-out, and what became of a worker that does not answer."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

from fluorite.algo.errors import InternalError
from fluorite.algo.externs import named_folders

START_SECONDS = 120.0


class WorkerLost(Exception):
    """The worker is gone. `failure` is crash or time-out."""

    def __init__(self, failure: str, why: str) -> None:
        super().__init__(why)
        self.failure, self.why = failure, why


class Worker:
    """A worker process, started when it is first asked something and again after it was lost."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked = 0  # requests since the process was started
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    @property
    def running(self) -> bool:
        return self._process is not None

    def ask(self, seconds: float, **request: Any) -> dict[str, Any]:
        """The answer to one request. Raises WorkerLost if the process dies or takes longer than `seconds`."""
        if self._process is None:
            self._start()
        process = self._process
        assert process is not None and process.stdin is not None
        self.asked += 1
        with contextlib.suppress(OSError):  # a dead process is noticed by its silence
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        return self._answer(seconds)

    def stop(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        self.asked = 0

    def _start(self) -> None:
        environment = {**os.environ, "FLUORITE_CACHE": str(self.folder / "cache"), "PYTHONFAULTHANDLER": "", "PYTHONIOENCODING": "utf-8"}
        answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        with (self.folder / "worker.log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "fluorite.codegen.tuning.worker", str(self.folder), *named_folders()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                text=True,
                encoding="utf-8",
            )
        assert self._process.stdout is not None
        threading.Thread(target=_forward, args=(self._process.stdout, answers), daemon=True).start()
        self._answers = answers
        self.asked = 0
        try:
            self._answer(START_SECONDS)
        except WorkerLost as lost:
            raise InternalError(f"the process that runs candidates did not start: {lost.why}\n{self._log()}") from None

    def _answer(self, seconds: float) -> dict[str, Any]:
        try:
            line = self._answers.get(timeout=seconds)
        except queue.Empty:
            self.stop()
            raise WorkerLost("time-out", f"no answer within {seconds:.3g} s") from None
        if line is None:
            assert self._process is not None
            code = self._process.wait()
            log = self._log()
            self.stop()
            raise WorkerLost("crash", f"the process ended with {_ending(code)}{f': {log}' if log else ''}")
        answer = json.loads(line)
        assert isinstance(answer, dict)
        return answer

    def _log(self) -> str:
        """The last line that the process wrote."""
        lines = (self.folder / "worker.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1].strip()[:300] if lines else ""


def _forward(stream: IO[str], answers: queue.SimpleQueue[str | None]) -> None:
    with contextlib.suppress(ValueError, OSError):
        for line in stream:
            answers.put(line)
    answers.put(None)


def _ending(code: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return f"signal {-code}"


__all__ = ["Worker", "WorkerLost"]
