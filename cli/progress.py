"""How far a search is: a bar for a person who looks, else a line now and then."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .table import seconds
from .terminal import Terminal

if TYPE_CHECKING:
    from fluorite.codegen.tuning import Progress

EVERY = 10.0
"""Seconds between two lines where no bar is drawn."""


class Lines:
    """Progress for logs: at every phase, then every ten seconds."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.phase, self.said = "", 0.0

    def __call__(self, now: Progress) -> None:
        if now.phase != self.phase or time.monotonic() - self.said >= EVERY:
            self.phase, self.said = now.phase, time.monotonic()
            self.terminal.note(now.text())


class Bar:
    """Progress on a terminal: the bar, the best so far, failures by reason, time left."""

    def __init__(self, bar: Any) -> None:
        self.bar = bar
        self.task = bar.add_task("baseline", total=None, facts="")

    def __call__(self, now: Progress) -> None:
        total = now.trials if now.phase == "trials" else None
        self.bar.update(self.task, description=now.phase, total=total, completed=now.done, facts=facts(now))


def facts(now: Progress) -> str:
    """What stands to the right of the bar."""
    best = f"best {seconds(now.best)}, {now.baseline / now.best:.2f} times as fast" if now.best and now.baseline else ""
    failed = ", ".join(f"{n} {reason}" for reason, n in now.failures.items() if n)
    left = f"{now.left:.0f} s left" if now.left is not None else ""
    return "   ".join(part for part in (best, failed and f"failed: {failed}", left) if part)


@contextmanager
def progress(terminal: Terminal) -> Iterator[Lines | Bar]:
    """Something to call with every Progress."""
    if not terminal.shows_progress:
        yield Lines(terminal)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Drawn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.fields[facts]}"))
    console = Console(file=terminal.stderr, no_color=terminal.color == "never" or None)
    with Drawn(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as bar:
        yield Bar(bar)
