"""The photo example: every plan gives SciPy's picture, and the README's command gives a module and a PNG."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from PIL import Image

from examples import photo_reference as reference
from examples import photo_run
from examples.photo import photo

ROOT = Path(__file__).resolve().parents[2]
PLANS = [None, *(photo_run.FOLDER / f"photo_{kind}.yaml" for kind in ("cpu", "holes", "tuned"))]


@pytest.mark.parametrize("plan", PLANS, ids=lambda p: p.stem if p else "empty")
def test_every_plan_gives_the_expected_picture(plan: Path | None) -> None:
    image = photo_run.photograph()
    found = fl.compile(photo, plan)(image, photo_run.AMOUNT)
    photo_run.compare(image, found)


def test_results_that_differ_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    image = photo_run.photograph()
    sharp = reference.unsharp(image, 1.5)
    corners = reference.harris(sharp)
    photo_run.compare(image, {"sharp": sharp, "corners": corners})
    with pytest.raises(SystemExit):
        photo_run.compare(image, {"sharp": sharp + np.float32(1e-3), "corners": corners})
    with pytest.raises(SystemExit):
        photo_run.compare(image, {"sharp": sharp, "corners": corners[:, ::-1].copy()})


@pytest.mark.parametrize("shape", [(1, 1), (3, 40), (31, 17), (97, 131)])
def test_other_sizes(shape: tuple[int, int]) -> None:
    image: Any = np.random.default_rng(1).random(shape, np.float32)
    found = fl.compile(photo, photo_run.FOLDER / "photo_cpu.yaml")(image, np.float32(0.5))
    sharp = reference.unsharp(image, 0.5)
    np.testing.assert_allclose(found["sharp"], sharp, atol=1e-6)
    np.testing.assert_allclose(found["corners"], reference.harris(sharp), atol=2e-5)


def test_the_command_builds_a_module_and_a_picture(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "examples.photo", "-o", tmp_path], cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "corners found by scikit-image: the same" in done.stdout
    with Image.open(tmp_path / "photo.png") as picture:
        assert (picture.size, picture.mode) == ((1024, 512), "RGB")
        assert (np.asarray(picture) == (255, 32, 32)).all(axis=2).sum() > 300  # the marks
    assert (tmp_path / "photo_tuned" / "__init__.py").exists()
