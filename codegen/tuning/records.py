"""What tuning passes around: measurements of candidates, where they failed, and how far the search is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Failure = Literal["illegal", "build", "crash", "time-out", "wrong", "slow"]
FAILURES: tuple[Failure, ...] = ("illegal", "build", "crash", "time-out", "wrong", "slow")
"""illegal: refused by legality. build: code generation failed. crash: its process died. time-out: building or running took too long.
wrong: it computes something else. slow: given up after one call."""


@dataclass(frozen=True)
class Outcome:
    """A trial's result: weighted sums over methods of its seconds and of the untuned plan's, timed in turns with it; 0 where it failed."""

    failure: Failure | None = None
    seconds: float = 0.0
    baseline: float = 0.0
    why: str = ""

    @property
    def ok(self) -> bool:
        return self.failure is None

    @property
    def ratio(self) -> float:
        """Time as a fraction of the baseline's; infinite where the trial failed."""
        return self.seconds / self.baseline if self.ok and self.baseline > 0 else float("inf")


@dataclass(frozen=True)
class Trial:
    """One line of a journal. `choice` has the values of holes, `edits` directives of stages left to the scheduler, as plain data."""

    number: int
    key: str
    outcome: Outcome
    choice: Mapping[str, Any] = field(default_factory=dict)
    edits: Mapping[str, Any] = field(default_factory=dict)
    elapsed: float = 0.0  # seconds that the trial took
    date: str = ""

    def data(self) -> dict[str, Any]:
        o = self.outcome
        made: dict[str, Any] = {"trial": self.number, "key": self.key, "result": o.failure or "ok"}
        if o.ok:
            made |= {"seconds": o.seconds, "baseline": o.baseline}
        if o.why:
            made["why"] = o.why
        return made | {"choice": dict(self.choice), "edits": dict(self.edits), "elapsed": round(self.elapsed, 3), "date": self.date}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Trial:
        """Raises KeyError, TypeError or ValueError for what is no trial."""
        result = data["result"]
        if result != "ok" and result not in FAILURES:
            raise ValueError(result)
        outcome = (
            Outcome(None, float(data["seconds"]), float(data["baseline"]))
            if result == "ok"
            else Outcome(result, why=str(data.get("why", "")))
        )
        return cls(
            int(data["trial"]),
            str(data["key"]),
            outcome,
            dict(data["choice"]),
            dict(data["edits"]),
            float(data["elapsed"]),
            str(data["date"]),
        )


@dataclass(frozen=True)
class Progress:
    """How far the search is. `best` and `baseline` are weighted sums of seconds over methods; None before they are known."""

    phase: Literal["baseline", "trials", "final"]
    done: int
    trials: int
    failures: Mapping[str, int]
    elapsed: float
    left: float | None = None  # seconds, estimated
    best: float | None = None
    baseline: float | None = None
    last: str = ""

    def text(self) -> str:
        """One line for a log."""
        best = ""
        if self.best and self.baseline:
            best = f", best {in_words(self.best)} ({self.baseline / self.best:.2f} times as fast as untuned)"
        failed = ", ".join(f"{n} {reason}" for reason, n in self.failures.items() if n)
        left = f", {self.left:.0f} s left" if self.left is not None else ""
        return f"{self.phase}: {self.done} of {self.trials}{best}{f', failed: {failed}' if failed else ''}{left}"


Watch = Callable[[Progress], None]


def in_words(seconds: float) -> str:
    """A duration with four digits."""
    return f"{seconds:.4g} s" if seconds >= 1 else f"{seconds * 1e3:.4g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.4g} us"


def failures_in(trials: Iterable[Trial]) -> dict[str, int]:
    """How many failed, by reason, in the order of FAILURES."""
    count = Counter(t.outcome.failure for t in trials)
    return {reason: count[reason] for reason in FAILURES if count[reason]}
