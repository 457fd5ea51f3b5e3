"""What the readers of data refuse, in one sentence with the file and the line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import Problem, RunError


def refused(code: str, asked: str, why: str = "", *try_: str, file: str | Path | None = None, line: int | None = None) -> RunError:
    return RunError(Problem(code, file=None if file is None else str(file), line=line, asked=asked, why=why, try_=try_))


def unreadable(path: Path, error: OSError) -> RunError:
    return refused("R202", f"{path} cannot be read", (error.strerror or str(error)).lower())


def whole(value: Any, what: str, low: int = 1) -> int:
    """A whole number from `low` on. Raises RunError."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < low:
        raise refused("R201", f"{what}={value!r}", f"it is a whole number from {low} on")
    return int(value)


__all__ = ["refused", "unreadable", "whole"]
