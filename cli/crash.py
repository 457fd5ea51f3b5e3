"""A bug of ours: what the user sees of it, and the report that it leaves."""

from __future__ import annotations

import os
import platform
import tempfile
import time
import traceback
from pathlib import Path

from fluorite.algo.errors import BuildError, Problem


def report(error: BaseException, arguments: list[str]) -> Path | None:
    """Write everything that helps to find the bug to a file and return its path; None where nothing can be written."""
    import fluorite

    text = "\n".join(
        [
            f"fluorite {fluorite.__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"command: fluorite {' '.join(arguments)}",
            "",
            "".join(traceback.format_exception(error)),
        ]
    )
    for folder in _folders():
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = folder / f"report-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
            path.write_text(text, encoding="utf-8")
            return path
        except OSError:
            continue
    return None


def _folders() -> list[Path]:
    from fluorite.codegen.cache import cache_folder

    try:
        return [cache_folder() / "reports", Path(tempfile.gettempdir())]
    except BuildError:  # no home folder
        return [Path(tempfile.gettempdir())]


def problem(error: BaseException, path: Path | None) -> Problem:
    """The bug as one sentence. X001."""
    what = traceback.format_exception_only(error)[-1].strip()
    where = f"the report is in {path}: please send it along" if path else "no report could be written; -v shows the trace"
    return Problem("X001", asked=f"a bug of fluorite, not of yours: {what}", why=where)
