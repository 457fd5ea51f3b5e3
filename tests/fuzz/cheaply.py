"""Compiling for one trial, which nobody waits for to run fast: mostly without LLVM's optimisations.

LLVM takes half the time of a trial otherwise. What is tried are loops, guards, memory and arithmetic as fluorite writes them; every fourth
seed is optimised as users' kernels are, since what is wrong may show only then.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from fluorite.codegen import objects, tvm_adapter

OPTIMISED = 4
"""Of so many seeds one."""


@contextmanager
def cheaply(seed: int) -> Iterator[None]:
    usual = objects.object_files

    def object_files(functions: Mapping[str, Any], sizes: Mapping[str, int], target: dict[str, Any], folder: Path) -> list[Path]:
        return usual(functions, sizes, target if seed % OPTIMISED == 0 else {**target, "opt-level": 0}, folder)

    with patch.object(objects, "object_files", object_files), patch.object(tvm_adapter, "link", _link):
        yield


def _link(found: Sequence[Path], path: Path, compiler: str) -> None:
    """As the C compiler would, without starting it."""
    subprocess.run(["ld", "-shared", "-o", path, *found, _own_library(compiler)], check=True)


@cache
def _own_library(compiler: str) -> str:
    """What the compiler links in of its own."""
    return subprocess.run([compiler, "-print-libgcc-file-name"], check=True, capture_output=True, text=True).stdout.strip()
