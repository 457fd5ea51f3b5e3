"""Object files of kernels, made on all cores: every process takes the largest batch that nobody has taken yet.

A batch is a large kernel or several small ones, which share what LLVM asks for each file. TVM compiles under Python's global lock, so
threads would not do. What a kernel becomes depends on no other kernel, nor on which process compiles it. Processes meet in a folder: a
batch is `7.json` until one of them renames it, and `7.o` when it is done. One that fails leaves its batch to the parent, where the failure
has a place to be seen.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from . import index_operations
from .real_functions import CALLS
from .tvm_adapter import compile_functions, from_json, to_json, write_object

PER_KERNEL, PER_CHARACTER = 0.01, 4.5e-5
"""Seconds that compiling takes: of each kernel, and of each character of its text. Rough; they only decide how many processes to start."""
BATCH = 8_000
"""Characters of kernels that are compiled together: some third of a second, so that processes end at about the same time."""
SHARE = 3.0
"""Seconds of work that pay for one more process, which takes some two seconds to start."""


def object_files(functions: Mapping[str, Any], sizes: Mapping[str, int], target: dict[str, Any], folder: Path) -> list[Path]:
    """The object files of PrimFuncs by name, whose texts have `sizes`, in `folder`, one for each of `batches`.

    Without functions, one file without code.
    """
    parts = [{name: functions[name] for name in names} for names in batches({name: sizes[name] for name in functions})]
    (folder / "target").write_text(json.dumps(target), encoding="utf-8")
    others = min(helpers(len(functions), sum(sizes[name] for name in functions)), len(parts) - 1)
    for n, part in enumerate(parts):
        _task(folder, n).write_text(to_json(part) if others else "", encoding="utf-8")
    started = [_started(folder) for _ in range(others)]
    try:
        for n, part in enumerate(parts):
            if _take(_task(folder, n)):
                _compile(part, target, folder, n)
        for process in started:
            process.wait()
    finally:
        for process in started:
            process.kill()
            process.wait()
    for n, part in enumerate(parts):
        if not _object(folder, n).exists():
            _compile(part, target, folder, n)
    return [_object(folder, n) for n in range(len(parts))]


def batches(sizes: Mapping[str, int]) -> list[list[str]]:
    """Names of what is compiled together, the most work first: nothing else goes with what has BATCH characters itself."""
    found: list[list[str]] = [[]]
    room = BATCH
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        if found[-1] and sizes[name] > room:
            found.append([])
            room = BATCH
        found[-1].append(name)
        room -= sizes[name]
    return found


def helpers(kernels: int, characters: int) -> int:
    """How many processes besides this one are worth starting."""
    return max(0, min(_cores(), int((kernels * PER_KERNEL + characters * PER_CHARACTER) / SHARE)) - 1)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _started(folder: Path) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen([sys.executable, "-m", "fluorite.codegen.objects", str(folder)], stdin=quiet, stdout=quiet, stderr=quiet)


def _task(folder: Path, number: int) -> Path:
    return folder / f"{number}.json"


def _object(folder: Path, number: int) -> Path:
    return folder / f"{number}.o"


def _take(task: Path) -> bool:
    """Whether the task is now this process's: only one can rename it."""
    try:
        task.rename(task.with_suffix(".taken"))
    except FileNotFoundError:
        return False
    return True


def _compile(functions: Mapping[str, Any], target: dict[str, Any], folder: Path, number: int) -> None:
    unfinished = folder / f"{number}.part.o"
    write_object(compile_functions(dict(functions), target), unfinished)
    unfinished.rename(_object(folder, number))


def _open(folder: Path) -> Iterator[Path]:
    """The tasks that are left, largest first."""
    sizes = {}
    for task in folder.glob("*.json"):
        try:
            sizes[task] = task.stat().st_size
        except FileNotFoundError:  # taken in the meantime
            continue
    yield from sorted(sizes, key=lambda task: (-sizes[task], task.name))


def main(folder: Path) -> None:
    assert CALLS and index_operations  # their operations are registered
    target = json.loads((folder / "target").read_text(encoding="utf-8"))
    for task in _open(folder):
        if _take(task):
            functions = from_json(task.with_suffix(".taken").read_text(encoding="utf-8"))
            _compile(functions, target, folder, int(task.stem))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    os._exit(0)  # Python would look for garbage among all that TVM is, which takes longer than a kernel


__all__ = ["batches", "helpers", "object_files"]
