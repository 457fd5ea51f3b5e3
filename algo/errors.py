"""What can go wrong, as values and as exceptions.

Exception
├── FluoriteError        bad input: one or more problems, each a sentence with its place
│   ├── AlgorithmError   A...  the algorithm cannot mean what it says
│   ├── PlanError        P...  the plan cannot be read, or cannot be carried out
│   ├── BuildError       B...  lowering, compiling or writing failed
│   ├── ArtifactError    R...  a built model is not what it should be
│   └── RunError         R...  a call on a built model was refused or failed
└── InternalError        X...  a bug of ours, never the user's
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

_KINDS = {"A": "algorithm", "P": "plan", "B": "build", "R": "run", "X": "internal"}


@dataclass(frozen=True, slots=True)
class Problem:
    """One refusal: what was asked, where, why not, and what would do instead.

    `file`, `line` and `column` (both from 1) are the place in the plan, the algorithm or the data that asked; `path` is the
    stage, parameter or argument concerned and `source` its line in the algorithm (``photo.py:19``). `try_` holds alternatives:
    names, or whole sentences. `kind` is `algorithm`, `plan`, `build`, `run` or `internal`, taken from the code's letter when left out.
    """

    code: str
    kind: str = ""
    file: str | None = None
    line: int | None = None
    column: int | None = None
    path: str | None = None
    source: str | None = None
    asked: str = ""
    why: str = ""
    try_: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.kind:
            object.__setattr__(self, "kind", _KINDS.get(self.code[:1], "internal"))

    def place(self) -> str:
        """FILE:LINE:COLUMN of the plan, or the algorithm's line where no file asked; empty when neither is known."""
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part) or self.source or ""

    def text(self) -> str:
        """Four parts: place and what / where in the algorithm / why not / what would do."""
        where = self.place()
        lines = [f"{where}: error[{self.code}]: {self.asked}" if where else f"error[{self.code}]: {self.asked}"]
        source = self.source if self.source != where else None
        if self.path or source:
            lines.append(f"{self.path}   ({source})" if self.path and source else str(self.path or source))
        if self.why:
            lines.extend(self.why.splitlines())
        names = [entry for entry in self.try_ if " " not in entry]
        if names:
            lines.append("try: " + ", ".join(names))
        for sentence in self.try_:
            if " " in sentence:
                lines.extend(sentence.splitlines())
        return "\n  ".join(lines)

    def as_dict(self) -> dict[str, object]:
        """The same facts as one JSON object, keys as the command line's contract names them."""
        return {
            "code": self.code,
            "kind": self.kind,
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "path": self.path,
            "source": self.source,
            "asked": self.asked,
            "why": self.why,
            "try": list(self.try_),
        }

    def with_(self, **changes: object) -> Problem:
        """The same problem with some facts changed or added."""
        return replace(self, **changes)  # type: ignore[arg-type]


class FluoriteError(Exception):
    """Bad input. Carries every problem that was found, not only the first."""

    problems: tuple[Problem, ...]

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        if not self.problems:
            raise InternalError("an error was raised without a problem to report")
        super().__init__(self.problems)

    def __str__(self) -> str:
        return self.text()

    def text(self, outcome: str = "") -> str:
        """All problems, then their count and `outcome` (such as "Nothing was built.")."""
        lines = [problem.text() for problem in self.problems]
        count = len(self.problems)
        if outcome or count > 1:
            lines.append(f"{count} error{'s' if count > 1 else ''}." + (f" {outcome}" if outcome else ""))
        return "\n".join(lines)


class AlgorithmError(FluoriteError):
    """The algorithm cannot mean what it says: shapes, dtypes, names, reads out of bounds."""


class PlanError(FluoriteError):
    """The plan cannot be read, does not fit the program, or asks for something illegal."""


class BuildError(FluoriteError):
    """Lowering, compiling or writing the artefact failed."""


class ArtifactError(FluoriteError):
    """A built model is damaged, altered, or made for another machine or version."""


class RunError(FluoriteError):
    """A call on a built model was refused or failed."""


class InternalError(Exception):
    """A bug of ours. Outside the tree of bad input: nobody should catch it as such."""
