"""What training says as it goes: lines, a CSV file, TensorBoard's files, a bar."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluorite.algo.errors import Problem, RunError
from fluorite.codegen.runtime.whole_files import is_stream

from .files import remember, writable
from .terminal import Terminal

if TYPE_CHECKING:
    from fluorite.codegen.training import Progress, Report

_FIRST = ("step", "epoch", "seconds")


def line(report: Report) -> str:
    """``step 120  epoch 4  loss 0.0123  1.5 s``"""
    return "  ".join((f"step {report.step}", f"epoch {report.epoch}", *shown(report.metrics), f"{report.seconds:.1f} s"))


def shown(metrics: Mapping[str, float]) -> list[str]:
    return [f"{name} {value:.6g}" for name, value in metrics.items()]


class Csv:
    """A row for each report. Of a run that goes on, the rows behind its checkpoint are taken away first."""

    def __init__(self, path: Path, force: bool, resumed: int | None) -> None:
        self.path, self.names = path, [*_FIRST]
        self.rows: list[list[str]] = []
        if resumed is None:
            writable(path, force)
        elif path.exists():
            self._keep(resumed)
        self.width = 0  # of the file, once it is begun

    def _keep(self, step: int) -> None:
        try:
            with self.path.open(newline="", encoding="utf-8") as file:
                head, *rows = csv.reader(file)
            if tuple(head[:3]) != _FIRST:
                raise ValueError
            self.names, self.rows = head, [row for row in rows if int(row[0]) <= step]
        except OSError as error:
            raise RunError(Problem("R402", asked=f"{self.path} cannot be read", why=(error.strerror or "").lower())) from None
        except (ValueError, IndexError, csv.Error):
            raise RunError(Problem("R401", asked=f"{self.path} has no metrics of this run", try_=("--csv FILE",))) from None

    def write(self, report: Report) -> None:
        """Raises RunError."""
        self.names += [name for name in report.metrics if name not in self.names]
        facts = {"step": report.step, "epoch": report.epoch, "seconds": round(report.seconds, 3), **report.metrics}
        row = [str(facts.get(name, "")) for name in self.names]
        self.rows.append(row)
        try:
            if is_stream(self.path):
                with self.path.open("w", newline="", encoding="utf-8") as file:
                    csv.writer(file).writerows([self.names, row] if len(row) != self.width else [row])
                self.width = len(row)
                return
            if len(row) == self.width:
                with self.path.open("a", newline="", encoding="utf-8") as file:
                    csv.writer(file).writerow(row)
            else:  # whole: it is new, goes on, or has one column more
                temporary = self.path.with_name(f".{self.path.name}.new")
                with temporary.open("w", newline="", encoding="utf-8") as file:
                    csv.writer(file).writerows([self.names, *(r + [""] * (len(row) - len(r)) for r in self.rows)])
                os.replace(temporary, self.path)
            remember(self.path, self.path.read_bytes())
        except OSError as error:
            raise RunError(Problem("R402", asked=f"{self.path} cannot be written", why=(error.strerror or "").lower())) from None
        self.width = len(row)

    def close(self) -> None:
        """Every row is in the file already."""


class TensorBoard:
    """The same numbers as event files in a folder. Needs the package tensorboardX."""

    def __init__(self, folder: Path) -> None:
        try:
            from tensorboardX import SummaryWriter  # type: ignore[import-not-found, import-untyped, unused-ignore]
        except ImportError:
            tries = ("pip install 'fluorite[tensorboard]'",)
            raise RunError(Problem("R406", asked="--tensorboard", why="the package tensorboardX is not installed", try_=tries)) from None
        self.writer: Any = SummaryWriter(str(folder))

    def write(self, report: Report) -> None:
        for name, value in report.metrics.items():
            self.writer.add_scalar(name, value, report.step)

    def close(self) -> None:
        self.writer.close()  # a thread of its own writes


class Said:
    """Lines of reports to stdout."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal

    def __call__(self, now: Progress) -> None:
        """Hears of every call."""

    def report(self, report: Report) -> None:
        if not self.terminal.json:
            self.terminal.result(line(report))


class Bar(Said):
    """The same, and a bar for a person who looks."""

    def __init__(self, terminal: Terminal, drawn: Any, total: int | None) -> None:
        super().__init__(terminal)
        self.drawn, self.task = drawn, drawn.add_task("epoch 1", total=total, facts="")

    def __call__(self, now: Progress) -> None:
        self.drawn.update(self.task, description=f"epoch {now.epoch + 1}", completed=now.step, facts="  ".join(shown(now.metrics)))

    def report(self, report: Report) -> None:
        if self.terminal.stdout.isatty() and not self.terminal.json:
            self.drawn.console.print(line(report), markup=False, highlight=False)  # above the bar, which is on the same screen
        else:
            super().report(report)


@contextmanager
def said(terminal: Terminal, total: int | None) -> Iterator[Said]:
    """What hears of every call and every report."""
    if not terminal.shows_progress:
        yield Said(terminal)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Drawn

    shape = (TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(file=terminal.stderr, no_color=terminal.color == "never" or None)
    facts = TextColumn("{task.fields[facts]}")
    with Drawn(*shape, facts, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as drawn:
        yield Bar(terminal, drawn, total)


__all__ = ["Bar", "Csv", "Said", "TensorBoard", "line", "said", "shown"]
