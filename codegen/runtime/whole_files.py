"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole(path: Path, mode: int | None = None) -> Iterator[BinaryIO]:
    """A file to write in the place of `path`, under a temporary name until all of it is there; where `path` is a link, of what it leads
    to. A device or a pipe is written as it is. `mode` are the permissions, by default those of a new file. Raises OSError."""
    if is_stream(path):
        with path.open("wb") as file:
            yield file
        return
    path = Path(os.path.realpath(path))
    if path.is_symlink():  # one of a circle
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        os.chmod(temporary, 0o666 & ~_mask() if mode is None else mode)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def is_stream(path: Path) -> bool:
    """Whether this is a device or a pipe, which must not be replaced by a file."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


__all__ = ["is_stream", "whole"]
