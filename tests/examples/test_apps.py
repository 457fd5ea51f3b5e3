"""Halide's applications: the references in NumPy agree with the algorithms' meaning and with every plan."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from PIL import Image as Picture
from skimage import data  # type: ignore[import-untyped]

from examples.apps import reference, settings

NAMES = ("stencil_chain", "bilateral_grid", "nl_means", "camera", "local_laplacian")
FOLDER = Path(reference.__file__).parent
CONSTANTS = {k: v for k, v in vars(settings).items() if k.isupper()}


def algorithm(name: str) -> Any:
    return getattr(import_module(f"examples.apps.{name}"), name)


def photograph(h: int, w: int) -> Any:
    """Three colours from 0 to 1, of Chelsea the cat."""
    picture = Picture.fromarray(data.chelsea()).resize((w, h))
    return np.ascontiguousarray(np.asarray(picture, np.float32).transpose(2, 0, 1) / 255)


def inputs(name: str, h: int, w: int) -> tuple[Any, ...]:
    random, image = np.random.default_rng(0), photograph(h, w)
    match name:
        case "stencil_chain":
            return ((image[1] * 65535).astype(np.uint16),)
        case "bilateral_grid":
            return (image[1],)
        case "nl_means":
            return (np.clip(image + random.normal(0, 0.05, image.shape).astype(np.float32), 0, 1), np.float32(0.12))
        case "camera":
            raw = np.empty((h, w), np.uint16)
            for (dy, dx), c in {(0, 0): 1, (0, 1): 0, (1, 0): 2, (1, 1): 1}.items():
                raw[dy::2, dx::2] = image[c, dy::2, dx::2] * 1023
            return raw, *(np.eye(3, 4, dtype=np.float32) + np.float32(share) for share in (0.05, -0.05))
    return (image * 65535).astype(np.uint16), np.float32(1 / 7), np.float32(1)


def near(name: str, found: Any, wanted: Any) -> None:
    """As far as the order of sums allows. A local Laplacian reads its table at whole numbers: there rounding may move a pixel by a step."""
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    apart = np.abs(found.astype(np.float64) - wanted)
    if name == "local_laplacian":
        assert apart.max() <= 65535 / 7 / 256 * 2 and np.mean(apart > 1) < 1e-3
    else:
        assert apart.max() <= (1e-5 if found.dtype == np.float32 else 0)


@pytest.mark.parametrize("name", NAMES)
def test_settings_are_the_algorithms(name: str) -> None:
    module = vars(import_module(f"examples.apps.{name}"))
    mine = {k: v for k, v in module.items() if k in CONSTANTS}
    assert mine and mine == {k: CONSTANTS[k] for k in mine}


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_is_the_meaning(name: str) -> None:
    given = inputs(name, 90, 122)
    near(name, fl.trace(algorithm(name)).run(*given), getattr(reference, name)(*given))


@pytest.mark.parametrize("plan", ["empty", "cpu"])
@pytest.mark.parametrize("name", NAMES[:4])
def test_every_plan_gives_the_same_picture(name: str, plan: str) -> None:
    path = None if plan == "empty" else FOLDER / f"{name}_cpu.yaml"
    model = fl.compile(algorithm(name), path)
    for h, w in ((90, 122), (157, 101)) if name != "camera" else ((90, 122), (156, 102)):
        given = inputs(name, h, w)
        near(name, model(*given), getattr(reference, name)(*given))


@pytest.mark.slow
def test_the_local_laplacian_of_a_photograph() -> None:
    given = inputs("local_laplacian", 90, 122)
    model = fl.compile(algorithm("local_laplacian"), FOLDER / "local_laplacian_cpu.yaml", extents={"h": 90, "w": 122})
    near("local_laplacian", model(*given), reference.local_laplacian(*given))
