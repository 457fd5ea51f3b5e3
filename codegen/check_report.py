"""What `check` found, as a value, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.numerics import Comparison

from .sampling import extents_text

Unjudged = tuple[str, str, str]
"""A derivative that could not be compared: the method, what with what, why."""


@dataclass(frozen=True)
class Case:
    """One output of one call, against the oracle. Errors are absolute, in the output's units; `used` is the largest error / tolerance.

    `of` is what was compared: a `value`; a compiled `gradient` with that of the interpreter; or what a derivative says with the `slope`
    of its function along random directions, which then are the elements.
    """

    method: str
    extents: Mapping[str, int]
    inputs: str  # random | given
    result: Comparison
    of: Literal["value", "gradient", "slope"] = "value"

    @property
    def ok(self) -> bool:
        return self.result.ok

    def as_dict(self) -> dict[str, object]:
        r = self.result
        return {
            "method": self.method,
            "extents": dict(self.extents),
            "inputs": self.inputs,
            "of": self.of,
            "output": r.path,
            "ok": r.ok,
            "max_error": _finite(r.max_error),
            "tolerance": _finite(r.tolerance),
            "used": _finite(r.used),
            "undecided": r.undecided,
            "elements": r.elements,
            "worst_index": list(r.worst_index),
            "why": r.why,
        }


@dataclass(frozen=True)
class Report:
    """What `check` found. `numerics` is the class that the tolerances belong to; `skipped` are extents that the algorithm refuses, and
    `unjudged` derivatives that could not be compared."""

    program: str
    plan: str
    numerics: str = "exact"
    cases: tuple[Case, ...] = ()
    skipped: tuple[tuple[str, str, str], ...] = ()
    unjudged: tuple[Unjudged, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    executed: bool = True

    @property
    def ok(self) -> bool:
        return not self.problems and all(c.ok for c in self.cases)

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """Problems in full; else one line for every output with the worst of its cases, and one for every case that is wrong."""
        if self.problems:
            return PlanError(self.problems).text("Nothing was run.")
        if not self.executed:
            return f"{self.program}: the plan is legal (class {self.numerics})"
        rows: list[tuple[str, ...]] = [("case", "max error", "tolerance", "used", "undecided", "class")]
        rows += [_row(worst, count, self.numerics) for worst, count in _worst(self.cases)]
        lines = _table(rows)
        lines += [f"wrong: {c.method}({extents_text(c.extents)}) {c.result.text()}" for c in self.cases if not c.ok]
        lines += [f"not tried: {method}({extents}): {why}" for method, extents, why in self.skipped]
        lines += [f"not compared: {what}: {why}" for _, what, why in self.unjudged]
        wrong = sum(not c.ok for c in self.cases)
        lines.append(f"{len(self.cases)} comparisons, {f'{wrong} wrong' if wrong else 'all within tolerance'}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, object]:
        return {
            "ok": self.ok,
            "program": self.program,
            "plan": self.plan,
            "numerics": self.numerics,
            "executed": self.executed,
            "cases": [c.as_dict() for c in self.cases],
            "skipped": [{"method": m, "extents": e, "why": w} for m, e, w in self.skipped],
            "unjudged": [{"method": m, "of": what, "why": w} for m, what, w in self.unjudged],
            "problems": [p.as_dict() for p in self.problems],
            "notes": list(self.notes),
        }


def _worst(cases: tuple[Case, ...]) -> list[tuple[Case, int]]:
    """Per output the case that uses most of its tolerance, and how many cases there were."""
    found: dict[str, list[Case]] = {}
    for c in cases:
        found.setdefault(c.result.path, []).append(c)
    return [(max(some, key=lambda c: (not c.ok, c.result.used)), len(some)) for some in found.values()]


def _row(c: Case, count: int, numerics: str) -> tuple[str, ...]:
    r = c.result
    where = f"({extents_text(c.extents)})" if c.extents else ""
    return (
        f"{r.path}{where} worst of {count}",
        f"{r.max_error:.3g}",
        f"{r.tolerance:.3g}",
        f"{r.used:.2g}",
        f"{r.undecided}/{r.elements}",
        "slope" if c.of == "slope" else numerics,
    )


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if n == 0 else cell.rjust(width) for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if np.isfinite(value) else None


__all__ = ["Case", "Report", "Unjudged"]
