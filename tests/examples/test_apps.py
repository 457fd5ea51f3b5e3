"""Halide's applications: the references in NumPy agree with the algorithms' meaning and with every plan."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from PIL import Image

from examples.apps import reference, reference_scipy, settings
from examples.apps.photographs import differs, inputs

NAMES = ("stencil_chain", "bilateral_grid", "nl_means", "camera", "local_laplacian")
LATER = ("interpolate", "lens_blur", "max_filter", "fft_convolution", "hist", "iir_blur", "wavelet", "resize")
FOLDER = Path(reference.__file__).parent
CONSTANTS = {k: v for k, v in vars(settings).items() if k.isupper()}


def algorithm(name: str) -> Any:
    return getattr(import_module(f"examples.apps.{name}"), name)


def referred(name: str, *given: Any) -> Any:
    return getattr(reference if name in NAMES else reference_scipy, name)(*given)


def near(name: str, found: Any, wanted: Any) -> None:
    assert differs(name, found, wanted) == ""


@pytest.mark.parametrize("name", NAMES + LATER)
def test_settings_are_the_algorithms(name: str) -> None:
    module = vars(import_module(f"examples.apps.{name}"))
    mine = {k: v for k, v in module.items() if k in CONSTANTS}
    assert mine and mine == {k: CONSTANTS[k] for k in mine}


@pytest.mark.parametrize("name", NAMES + LATER)
def test_the_reference_is_the_meaning(name: str) -> None:
    given = inputs(name, 90, 122)
    near(name, fl.trace(algorithm(name)).run(*given), referred(name, *given))


@pytest.mark.parametrize("plan", ["empty", "cpu"])
@pytest.mark.parametrize("name", NAMES[:4] + LATER)
def test_every_plan_gives_the_same_picture(name: str, plan: str) -> None:
    path = None if plan == "empty" else FOLDER / f"{name}_cpu.yaml"
    model = fl.compile(algorithm(name), path)
    for h, w in ((90, 122), (157, 101)) if name != "camera" else ((90, 122), (156, 102)):
        given = inputs(name, h, w)
        near(name, model(*given), referred(name, *given))


@pytest.mark.slow
def test_the_local_laplacian_of_a_photograph() -> None:
    given = inputs("local_laplacian", 90, 122)
    model = fl.compile(algorithm("local_laplacian"), FOLDER / "local_laplacian_cpu.yaml", extents={"h": 90, "w": 122})
    near("local_laplacian", model(*given), reference.local_laplacian(*given))


def test_results_that_differ_are_told() -> None:
    image = np.zeros((3, 4), np.float32)
    assert differs("bilateral_grid", image, image) == ""
    assert "largest difference is 0.001" in differs("bilateral_grid", image + np.float32(1e-3), image)
    assert "expected float32[3, 4]" in differs("bilateral_grid", image[:2], image)


def test_the_command_builds_a_module_and_a_picture(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "examples.apps", "camera", "-o", tmp_path]
    done = subprocess.run(command, cwd=FOLDER.parents[1], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "the same as in NumPy" in done.stdout
    with Image.open(tmp_path / "camera.png") as picture:
        assert (picture.size, picture.mode) == ((440, 300), "RGB")
