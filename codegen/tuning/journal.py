"""The journal of a search: JSON lines, only ever appended to. A killed search goes on from it; journals of one search merge as sets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fluorite.algo.errors import PlanError, Problem

from ..runtime.whole_files import whole
from .records import Trial

FORMAT = 1
_SUBJECTS = {
    "plan": "another plan",
    "structure": "another program, or for the program before it changed",
    "target": "another target",
    "toolchain": "another version of the compiler",
    "seed": "another seed",
    "objective": "another objective",
    "at": "other extents",
    "inputs": "other inputs",
}


class Journal:
    """`trials` by key. Lines are flushed to the disk as they are added; a torn last line, as kill -9 leaves it, is dropped."""

    def __init__(self, path: Path | None, header: Mapping[str, Any], trials: Mapping[str, Trial] | None = None) -> None:
        self.path, self.header = path, dict(header)
        self.trials = dict(trials or {})

    @classmethod
    def start(cls, path: Path | None, header: Mapping[str, Any]) -> Journal:
        """A new journal. One that is there is kept beside it, as NAME.old. Raises PlanError if it cannot be written."""
        made = cls(path, header)
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                if path.exists():
                    path.replace(path.with_name(path.name + ".old"))
                made._line({"journal": FORMAT, **header})
            except OSError as error:
                raise _refused(path, "cannot be written", error.strerror or str(error)) from None
        return made

    @classmethod
    def resume(cls, path: Path, header: Mapping[str, Any]) -> Journal:
        """The journal of a search that was stopped, or a new one if it was stopped before the first line was there.

        Raises PlanError: it is no journal, or it belongs to another search.
        """
        if not path.exists() or b"\n" not in path.read_bytes()[: 1 << 20]:
            return cls.start(path, header)
        found, trials, whole = read(path)
        _same(path, found, header)
        made = cls(path, header, trials)
        try:
            with path.open("r+b") as file:
                file.truncate(whole)
        except OSError as error:
            raise _refused(path, "cannot be written", error.strerror or str(error)) from None
        return made

    def add(self, trial: Trial) -> None:
        self.trials[trial.key] = trial
        self._line(trial.data())

    def note(self, **facts: Any) -> None:
        """A line that is no trial, such as the result."""
        self._line({"note": facts})

    def _line(self, data: Mapping[str, Any]) -> None:
        if self.path is None:
            return
        try:
            with self.path.open("ab") as file:
                file.write(json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise _refused(self.path, "cannot be written", error.strerror or str(error)) from None


def read(path: Path) -> tuple[dict[str, Any], dict[str, Trial], int]:
    """Header, trials by key, and the length in bytes of what is whole. Raises PlanError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _refused(path, "cannot be read", error.strerror or str(error), "leave --resume out: the search then starts anew") from None
    whole = data.rfind(b"\n") + 1
    lines = data[:whole].split(b"\n")[:-1]
    header: dict[str, Any] | None = None
    trials: dict[str, Trial] = {}
    for n, line in enumerate(lines):
        try:
            entry = json.loads(line)
            if n == 0:
                header = {k: v for k, v in entry.items() if k != "journal"} if entry["journal"] == FORMAT else None
            elif "trial" in entry:
                trials.setdefault(str(entry["key"]), Trial.of(entry))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise _refused(path, f"is no journal of a search: line {n + 1} is not one that fluorite writes", "") from None
    if header is None:
        raise _refused(path, "is no journal of a search", "its first line says nothing that this version understands")
    return header, trials, whole


def merge(output: Path, journals: Iterable[Path]) -> int:
    """Write the trials of journals of one search, made on machines of one sort, as one; how many there are. Raises PlanError."""
    header: dict[str, Any] | None = None
    trials: dict[str, Trial] = {}
    for path in journals:
        found, some, _ = read(path)
        if header is None:
            header = found
        _same(path, found, header)
        for key, trial in some.items():
            trials.setdefault(key, trial)
    if header is None:
        raise _refused(output, "cannot be made of no journals", "")
    lines = [{"journal": FORMAT, **header}, *(t.data() for t in trials.values())]
    try:
        with whole(output) as file:
            file.writelines((json.dumps(x, ensure_ascii=False, separators=(",", ":")) + "\n").encode() for x in lines)
    except OSError as error:
        raise _refused(output, "cannot be written", error.strerror or str(error)) from None
    return len(trials)


def _same(path: Path, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    for key, subject in _SUBJECTS.items():
        if found.get(key) != wanted.get(key):
            raise _refused(
                path,
                f"was written for {subject}",
                f"{key}: {_short(found.get(key))} there, {_short(wanted.get(key))} here",
                "leave --resume out: the search then starts anew",
            )


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _refused(path: Path, what: str, why: str, *tries: str) -> PlanError:
    return PlanError([Problem("P122", "plan", str(path), asked=f"the journal {path.name} {what}", why=why, try_=tries)])


__all__ = ["Journal", "merge", "read"]
