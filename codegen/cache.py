"""The build cache: compiled libraries by the hash of what they were made from. Two jobs may share it; a reader sees whole files only."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from fluorite.algo.errors import BuildError, Problem


def cache_folder() -> Path:
    """$FLUORITE_CACHE, else $XDG_CACHE_HOME/fluorite, else ~/.cache/fluorite. Raises BuildError where there is no home folder."""
    chosen = os.environ.get("FLUORITE_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "fluorite"
    except RuntimeError:
        tries = ("FLUORITE_CACHE=a folder of yours",)
        raise BuildError(Problem("B010", asked="the build cache has no place", why="there is no home folder", try_=tries)) from None


def key_of(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def cached_file(key: str, suffix: str, make: Callable[[Path], None], use: bool = True) -> Path:
    """The file of this key; `make(path)` writes it if it is not there. Raises BuildError where nothing can be written."""
    folder = cache_folder() / "kernels" / key[:2]
    path = folder / f"{key}{suffix}"
    if use and path.is_file():
        os.utime(path)
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(suffix=suffix, prefix=".", dir=folder)
        os.close(handle)
        temporary = Path(name)
        try:
            make(temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise BuildError(
            [
                Problem(
                    "B010",
                    "build",
                    asked=f"the build cache {folder} cannot be written",
                    why=str(error.strerror or error),
                    try_=("FLUORITE_CACHE=another folder",),
                )
            ]
        ) from None
    return path
