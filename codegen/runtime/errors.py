"""The two ways in which a built model refuses: it cannot be loaded here, or not be called so.

Beside fluorite these are fluorite's own classes; in an artefact that travels alone they stand on the small copies below.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if not TYPE_CHECKING and "fluorite" in sys.modules:
    from fluorite.algo.errors import ArtifactError as _ArtifactError
    from fluorite.algo.errors import FluoriteError, Problem
    from fluorite.algo.errors import RunError as _RunError
else:

    @dataclass(frozen=True)
    class Problem:
        """One thing that is wrong and what would do instead."""

        code: str
        kind: str
        asked: str = ""
        try_: tuple[str, ...] = ()

    class FluoriteError(Exception):
        """Bad input. `.problems` holds every problem found."""

        problems: tuple[Problem, ...]

        def __init__(self, problems: Problem | Iterable[Problem]) -> None:
            self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
            super().__init__(self.problems)

    class _ArtifactError(FluoriteError):
        pass

    class _RunError(FluoriteError):
        pass


def _sentences(error: FluoriteError) -> str:
    """A program that only calls a model sees one sentence a problem, without the compiler's headings."""
    return "\n".join("; ".join((p.asked, *p.try_)) for p in error.problems)


class ArtifactError(_ArtifactError):
    """The artefact cannot be loaded here."""

    __str__ = _sentences


class RunError(_RunError):
    """The model cannot be called so."""

    __str__ = _sentences


def artifact_problem(code: str, sentence: str, *try_: str) -> Problem:
    return Problem(code=code, kind="artifact", asked=sentence, try_=try_)


def run_problem(code: str, sentence: str, *try_: str) -> Problem:
    return Problem(code=code, kind="run", asked=sentence, try_=try_)


def artifact_error(*problems: Problem) -> ArtifactError:
    return ArtifactError(problems)


def run_error(*problems: Problem) -> RunError:
    return RunError(problems)


__all__ = ["ArtifactError", "FluoriteError", "Problem", "RunError", "artifact_error", "artifact_problem", "run_error", "run_problem"]
