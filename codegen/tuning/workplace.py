"""A folder for the processes of one search, which goes away with it; those of searches that were killed go when the next one starts."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

_PREFIX, _LOCK = "fluorite-tune-", "lock"
_SETTLED_SECONDS = 60.0
"""A folder younger than this may not be locked yet."""


class Folder:
    """A new folder of this user alone, locked for as long as it is in use."""

    def __init__(self) -> None:
        _sweep()
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = (self.path / _LOCK).open("wb")
        _locked(self._lock)

    def remove(self) -> None:
        self._lock.close()
        shutil.rmtree(self.path, ignore_errors=True)


def _sweep() -> None:
    """Remove what killed searches left behind. Where locks cannot be asked about, the system's own cleaning has to do."""
    if sys.platform == "win32":
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError), (folder / _LOCK).open("r+b") as lock:
            if time.time() - folder.stat().st_mtime > _SETTLED_SECONDS and _locked(lock):
                shutil.rmtree(folder, ignore_errors=True)


def _locked(file: IO[bytes]) -> bool:
    """Lock the file; whether nobody else holds it."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


__all__ = ["Folder"]
