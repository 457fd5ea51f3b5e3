"""Training in a process of its own, which is started again from its last checkpoint when it dies.

A death is an end by a signal, as of a kill, a crash or the system being out of memory; the process having no memory left; and a bug of
fluorite's. What ends with a sentence about the command, the model or its data is none, nor is Ctrl-C.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fluorite.algo.errors import Problem, RunError

from .command import BUG, INTERRUPTED
from .ending import ASKING
from .terminal import Terminal

NO_MEMORY = 128 + signal.SIGKILL
"""The exit code of a process that had no memory left: that of one which the system ended for it."""


@dataclass(frozen=True)
class Ended:
    """How the last process ended: its exit code, and what it wrote to stdout where that was kept."""

    code: int
    out: str


def supervised(terminal: Terminal, arguments: Sequence[str], out: Path, force: bool, restarts: int) -> Ended:
    """Runs `fluorite ARGUMENTS --supervised`, again with --resume after each death. Raises RunError after one more death than
    `restarts`, KeyboardInterrupt."""
    before = _checkpoint(out)
    for number in range(restarts + 1):
        with _forwarding() as child:
            ended = child.run([*arguments, *_going_on(out, before, force, number)], terminal.json)
        if child.stopped or ended.code in (INTERRUPTED, -signal.SIGINT):
            raise KeyboardInterrupt
        how = death_of(ended.code)
        if how is None:
            return ended
        if number < restarts:
            at = _checkpoint(out)
            place = "from the beginning" if at is None or (force and at == before) else f"from {at[0]}"
            terminal.error(f"the training process {how}; it is started again {place} (restart {number + 1} of {restarts})")
    times = "once" if restarts == 0 else f"{restarts + 1} times"
    tries = ("--resume goes on with the last checkpoint", f"--restarts {2 * restarts or 1}")
    raise RunError(Problem("R311", "run", asked=f"training died {times}", why=f"the last process {how}", try_=tries))


def _going_on(out: Path, before: tuple[Path, int] | None, force: bool, number: int) -> list[str]:
    """The options of a process: those of the first are the user's; a later one goes on, unless all that is there is another run's."""
    now = _checkpoint(out)
    if force and (number == 0 or now == before):
        return ["--force"]
    return ["--resume"] if number else []


def _checkpoint(out: Path) -> tuple[Path, int] | None:
    """The checkpoint that a run would go on with, and when it was written."""
    from fluorite.codegen.runtime import checkpoints

    if not checkpoints.exists(out):
        return None
    found = checkpoints.newest(out)
    return out / found.name if found != out else out, found.stat().st_mtime_ns


def death_of(code: int) -> str | None:
    """What a process died of; None if it did not."""
    if code - 128 in ASKING:
        code = 128 - code
    if code < 0:
        try:
            return f"was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"was ended by signal {-code}"
    return {NO_MEMORY: "had no memory left", BUG: "failed by a bug of fluorite's"}.get(code)


class _Child:
    """The process that runs now. In a group of its own, so that Ctrl-C reaches it once: by way of this one."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.stopped = False

    def run(self, arguments: Sequence[str], kept: bool) -> Ended:
        command = [sys.executable, "-m", "fluorite", *arguments, "--supervised"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE if kept else None, text=True, process_group=0)
        if self.stopped:
            self.process.send_signal(signal.SIGINT)
        out, _ = self.process.communicate()
        return Ended(self.process.returncode, out or "")

    def stop(self, number: int, _: object) -> None:
        self.stopped = True
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)


@contextmanager
def _forwarding() -> Iterator[_Child]:
    """What stops this process stops the child, which leaves a checkpoint."""
    child = _Child()
    before = signal.signal(signal.SIGINT, child.stop)
    try:
        yield child
    finally:
        signal.signal(signal.SIGINT, before)
        if child.process is not None and child.process.poll() is None:
            child.process.kill()


__all__ = ["NO_MEMORY", "Ended", "death_of", "supervised"]
