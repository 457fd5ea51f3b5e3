"""Files that -o names: whole or not at all, and never over something that fluorite did not write."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from fluorite.algo.errors import BuildError, Problem, RunError


def writable(path: Path, force: bool = False) -> None:
    """Refuses before the work is done what `write` would refuse after it. Raises RunError."""
    from fluorite.codegen.runtime.whole_files import is_stream

    if path.is_dir():
        raise _refused(path, "it is a folder", "the name of a file")
    if is_stream(path):
        if not os.access(path, os.W_OK):
            raise _refused(path, "permission denied")
        return
    path = Path(os.path.realpath(path)) if path.is_symlink() else path  # a link is written where it leads
    if not path.parent.is_dir():
        raise _refused(path, f"there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise _refused(path, "the folder above it is read-only")
    if path.exists() and not force and path.stat().st_size and _record(path) != _digest(path.read_bytes()):
        raise RunError(
            Problem(
                "R401",
                "run",
                asked=f"{path} exists",
                why="and fluorite did not write it, or it was changed since",
                try_=("another name", "--force replaces it"),
            )
        )


def write(path: Path, data: bytes, force: bool = False) -> None:
    """Put `data` into a file under a temporary name, then rename. Raises RunError: R401 it is somebody's, R402 it cannot be written."""
    from fluorite.codegen.runtime.whole_files import is_stream, whole

    writable(path, force)
    try:
        with whole(path) as file:
            file.write(data)
    except OSError as error:
        raise _refused(path, (error.strerror or str(error)).lower()) from None
    if not is_stream(path):
        remember(path, data)


def remember(path: Path, data: bytes) -> None:
    """Note in the cache that fluorite wrote these bytes here, so that it may replace them. Without a cache it will ask for --force."""
    try:
        record = _record_file(path)
        record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        record.write_text(_digest(data), encoding="ascii")
    except (OSError, BuildError):
        return


def _record(path: Path) -> str:
    try:
        return _record_file(path).read_text(encoding="ascii")
    except (OSError, ValueError, BuildError):
        return ""


def _record_file(path: Path) -> Path:
    from fluorite.codegen.cache import cache_folder

    return cache_folder() / "written" / _digest(os.path.realpath(path).encode())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _refused(path: Path, why: str, *try_: str) -> RunError:
    return RunError(Problem("R402", "run", asked=f"{path} cannot be written", why=why, try_=try_))
