"""The object file of `entry.c`, which is linked into every library of kernels: compiled once, then taken from the build cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from fluorite.algo.errors import BuildError, Problem

from .cache import cached_file, key_of
from .tvm_adapter import FFI_VERSION, header_folders

COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-x", "c", "-std=c11", "-O2", "-fPIC", "-c")


@cache
def source() -> str:
    """The text of `entry.c`."""
    return Path(__file__).with_name("entry.c").read_text(encoding="utf-8")


def entry_object() -> Path:
    """Raises BuildError where there is no compiler, or it refuses."""
    compiler = c_compiler()
    return cached_file(key_of(source(), FFI_VERSION, compiler, *_FLAGS), ".o", lambda path: _compile(compiler, path))


def c_compiler() -> str:
    """$CC, or one that is installed. Raises BuildError."""
    found = os.environ.get("CC") or next(filter(shutil.which, COMPILERS), None)
    if found is None:
        asked, why = "no C compiler is there to link the kernels", "cc, gcc and clang are not on PATH"
        raise BuildError([Problem("B011", "build", asked=asked, why=why, try_=("install one",))])
    return found


def _compile(compiler: str, path: Path) -> None:
    headers = [f"-I{folder}" for folder in header_folders()]
    try:
        subprocess.run([compiler, *_FLAGS, *headers, "-", "-o", str(path)], input=source(), text=True, check=True, capture_output=True)
    except (subprocess.CalledProcessError, OSError) as error:
        why = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        asked = f"{compiler} does not compile what the kernels are called through"
        raise BuildError([Problem("B011", "build", asked=asked, why=why[-1] if why else "it says nothing", try_=("CC=gcc",))]) from None


__all__ = ["c_compiler", "entry_object", "source"]
