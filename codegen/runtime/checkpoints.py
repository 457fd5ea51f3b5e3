"""Checkpoints: folders that are there whole or not at all, whenever the process, or the machine, stops.

    DIR/step-00000120/weights.safetensors    parameters and state by the algorithm's names
    DIR/step-00000120/checkpoint.json        of which program, after how many calls, how far each reader was; and the digest of the weights
    DIR/last -> step-00000120

A checkpoint is written under another name, brought to the disk, and renamed; then `last` is replaced. Nothing in it is executed.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import file_digest
from pathlib import Path
from typing import Any

from . import weights
from .errors import artifact_error, artifact_problem, run_error, run_problem
from .manifest import SEAL, digest
from .parameters import Array

FORMAT = 1
FACTS, WEIGHTS, LAST = "checkpoint.json", "weights.safetensors", "last"
_STEP, _UNDER_WAY = "step-", ".step-"


@dataclass(frozen=True)
class Facts:
    """What a checkpoint knows beside the tensors. `calls` are those that changed state, by method; `positions` where each method reads
    next (pass, index in it), and `counts` how many batches a pass has, where that is known."""

    program: str
    calls: Mapping[str, int]
    positions: Mapping[str, tuple[int, int]]
    counts: Mapping[str, int | None] = field(default_factory=dict)

    @property
    def step(self) -> int:
        return sum(self.calls.values())


def write(folder: Path, facts: Facts, arrays: Mapping[str, Array], keep: int) -> Path:
    """Write a checkpoint into `folder` and return its own folder; the newest `keep` stay. Raises RunError if it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            _sweep(folder, _UNDER_WAY)  # of runs that were killed
            made = _written(folder, facts, arrays)
            _point(folder, made.name)
            for old in _steps(folder)[:-keep]:
                if old != made:
                    shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise run_error(run_problem("R113", f"{folder} cannot be written: {error.strerror or error}")) from None
    return made


def _written(folder: Path, facts: Facts, arrays: Mapping[str, Array]) -> Path:
    name = f"{_STEP}{facts.step:08}"
    temporary = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=folder))
    try:
        weights.write(temporary / WEIGHTS, arrays)
        raw = {"format": FORMAT, **asdict(facts), "weights": _of_file(temporary / WEIGHTS)}
        (temporary / FACTS).write_text(json.dumps({**raw, SEAL: digest(json.loads(json.dumps(raw)))}, indent=1) + "\n", encoding="utf-8")
        temporary.chmod(0o755)
        for path in (temporary / WEIGHTS, temporary / FACTS, temporary):
            _sync(path)
        made = _free(folder, name)
        temporary.rename(made)
        _sync(folder)
        return made
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _point(folder: Path, name: str) -> None:
    link = folder / f"{_UNDER_WAY}{LAST}"
    link.unlink(missing_ok=True)
    link.symlink_to(name)
    os.replace(link, folder / LAST)
    _sync(folder)


def read(path: Path) -> tuple[Path, Facts]:
    """The weights and the facts of a checkpoint: of its own folder, or of the last one in a folder of them. Raises ArtifactError."""
    folder = _found(path)
    try:
        raw = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        if raw["format"] != FORMAT:
            why = f"{folder} has format {raw['format']}, this runtime reads format {FORMAT}"
            raise artifact_error(artifact_problem("R303", why, f"model.load({str(folder / WEIGHTS)!r}) for the weights alone"))
        if raw.get(SEAL) != digest(raw):
            raise artifact_error(artifact_problem("R302", f"{folder / FACTS} was changed after it was written"))
        if _of_file(folder / WEIGHTS) != raw["weights"]:
            raise artifact_error(artifact_problem("R302", f"{folder / WEIGHTS} is not the file that the checkpoint was written with"))
        positions = {name: (int(epoch), int(index)) for name, (epoch, index) in raw["positions"].items()}
        return folder / WEIGHTS, Facts(raw["program"], dict(raw["calls"]), positions, dict(raw["counts"]))
    except OSError as error:
        raise artifact_error(artifact_problem("R302", f"{folder} is no whole checkpoint: {error.strerror}")) from None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise artifact_error(artifact_problem("R302", f"{folder / FACTS} is not one that fluorite writes ({error})")) from None


def exists(path: Path) -> bool:
    """Whether there is a checkpoint to go on with."""
    return (path / FACTS).is_file() or (path / LAST / FACTS).is_file() or bool(_steps(path))


def newest(path: Path) -> Path:
    """The checkpoint that a run would go on with. Raises ArtifactError."""
    return _found(path)


def _found(path: Path) -> Path:
    if (path / FACTS).is_file():
        return path
    if (path / LAST / FACTS).is_file():
        return (path / LAST).resolve()
    if whole := _steps(path):  # killed before there was a `last`
        return whole[-1]
    what = "has no checkpoint" if path.is_dir() else "is no folder of checkpoints"
    raise artifact_error(artifact_problem("R301", f"{path} {what}", "model.checkpoint(folder) writes one"))


def _steps(folder: Path) -> list[Path]:
    """The checkpoints of a folder, oldest first."""
    found = [p for p in folder.glob(f"{_STEP}*") if (p / FACTS).is_file()]
    return sorted(found, key=lambda p: [int(n) for n in p.name.removeprefix(_STEP).split("-") if n.isdigit()])


def _free(folder: Path, name: str) -> Path:
    made, n = folder / name, 2
    while made.exists():
        made, n = folder / f"{name}-{n}", n + 1
    return made


def _sweep(folder: Path, prefix: str) -> None:
    for stray in folder.glob(f"{prefix}*"):
        if stray.is_dir() and not stray.is_symlink():
            shutil.rmtree(stray, ignore_errors=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time writes; the lock of one that is killed is free. Raises RunError."""
    import fcntl

    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise run_error(run_problem("R113", f"{folder} is being written by another process", "a folder for each run")) from None
        yield


def _of_file(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"bytes": os.fstat(file.fileno()).st_size, "sha256": file_digest(file, "sha256").hexdigest()}


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


__all__ = ["FACTS", "LAST", "WEIGHTS", "Facts", "exists", "read", "write"]
