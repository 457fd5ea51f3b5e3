"""A plan without what was refused of it: what is left is legal, or is refused for something else."""

from __future__ import annotations

from collections.abc import Sequence

from fluorite.algo.errors import Problem


def repaired(text: str, problems: Sequence[Problem]) -> str | None:
    """The YAML text without the first line that is blamed in each entry, and what hangs on it; None if no line is.

    Later complaints about one stage are often only consequences: a loop is not there, since the split that makes it is refused.
    """
    lines = text.splitlines()
    blamed = sorted({p.line for p in problems if p.line})
    gone: set[int] = set()
    headers: set[int] = set()
    for number in blamed:
        header = _header(lines, number - 1)
        if header not in headers:
            headers.add(header)
            gone |= _block(lines, number - 1)
    kept = [line for n, line in enumerate(lines) if n not in gone]
    kept = [line for n, line in enumerate(kept) if not line.endswith(":") or _depth(kept, n + 1) > _depth(kept, n)]
    return "\n".join(kept) + "\n" if gone else None


def _depth(lines: Sequence[str], n: int) -> int:
    return len(lines[n]) - len(lines[n].lstrip()) if n < len(lines) else -1


def _header(lines: Sequence[str], n: int) -> int:
    """The line of the entry that line n belongs to."""
    return next((k for k in range(n, -1, -1) if _depth(lines, k) <= 2), 0)


def _block(lines: Sequence[str], n: int) -> set[int]:
    """Line n and those that are further in."""
    end = next((k for k in range(n + 1, len(lines)) if _depth(lines, k) <= _depth(lines, n)), len(lines))
    return set(range(n, end))
