from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import DOUBLE, PHOTO


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder with two models, a cache of its own, and the working directory in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLUORITE_CACHE", str(cache))
    (tmp_path / "photo.py").write_text(PHOTO)
    (tmp_path / "double.py").write_text(DOUBLE)
    yield tmp_path
