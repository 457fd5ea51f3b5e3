"""Artefacts that somebody changed, and arguments that fight back."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import runtime_kernels as hand
from fluorite.algo.errors import ArtifactError, BuildError, RunError
from fluorite.codegen import artifact
from fluorite.codegen.runtime import load

F32 = np.float32


def write(folder: Path) -> Path:
    return artifact.write(hand.manifest("photo", photo=hand.photo()), hand.library(), {}, folder)


def test_any_changed_byte_of_the_manifest_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "photo_built") / "manifest.json"
    whole, chance = path.read_bytes(), random.Random(7)
    load(path.parent)
    for _ in range(300):
        changed = bytearray(whole)
        at = chance.randrange(len(whole))
        match chance.randrange(3):
            case 0:
                changed[at] = chance.randrange(256)
            case 1:
                changed[at] = chance.choice(b'0123456789-[]{},"')
            case _:
                del changed[at : at + chance.randint(1, 40)]
        path.write_bytes(changed)
        try:
            same = json.loads(changed) == json.loads(whole)
        except ValueError:
            same = False
        if not same:
            with pytest.raises(ArtifactError, match=r"manifest\.json|photo"):
                load(path.parent)
    path.write_bytes(b"[" * 100_000)
    with pytest.raises(ArtifactError, match="is not valid JSON"):
        load(path.parent)


@pytest.mark.parametrize("place", ["toolchain", "target", "files", "program", "methods", "parameters", "threads"])
@pytest.mark.parametrize("value", [None, 3, "x", [1], {"a": 1}])
def test_a_manifest_of_other_types_is_a_sentence(tmp_path: Path, place: str, value: Any) -> None:
    path = write(tmp_path / "photo_built") / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {place: value}))
    with pytest.raises(ArtifactError):
        load(path.parent)


def test_a_name_that_no_file_may_have(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="B001"):
        write(tmp_path / ("a" * 300))
    assert not list(tmp_path.iterdir())


class Failing:
    def __array__(self, *_: Any, **__: Any) -> Any:
        raise OSError("no such luck")


class Lying:
    def __array__(self, *_: Any, **__: Any) -> Any:
        return "text"


@pytest.mark.parametrize("value", [Failing(), Lying()])
def test_objects_that_are_no_arrays_after_all(tmp_path: Path, value: Any) -> None:
    model = load(write(tmp_path / "photo_built"))
    with pytest.raises(RunError, match="image gives no array"):
        model(value, F32(1))


@pytest.mark.parametrize("extent", [-5, 10**30, "x", 2.5, None])
def test_memory_of_no_extents(tmp_path: Path, extent: Any) -> None:
    model = load(write(tmp_path / "photo_built"))
    with pytest.raises(RunError, match=r"h = .* is no extent"):
        model.memory({"h": extent, "w": 4})


def test_results_larger_than_memory(tmp_path: Path) -> None:
    model = load(write(tmp_path / "photo_built"))
    image = np.lib.stride_tricks.as_strided(np.zeros(1, F32), (1, 1 << 44), (0, 0))
    for call in (lambda: model(image, F32(1)), lambda: model.photo.call((image, F32(1)))):
        with pytest.raises(RunError, match="there is not enough memory"):
            call()
