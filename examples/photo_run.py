"""From algorithm and plan to a module that is built, imported, run on a real photograph and compared with SciPy; and a picture."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as Picture
from skimage import data  # type: ignore[import-untyped]

from . import photo_reference as reference
from .commands import FOLDER, built_module, fluorite, relative

AMOUNT = np.float32(1.5)
MODEL = f"{relative(FOLDER / 'photo.py')}:photo"
Array = np.ndarray[Any, Any]


def photograph() -> Array:
    """512 x 512 pixels from 0 to 1."""
    return (data.camera() / 255).astype(np.float32)


def metrics(found: dict[str, Array]) -> dict[str, Any]:
    """What `photo_expected.json` holds."""
    corners = reference.peaks(found["corners"])
    return {
        "sharp_mean": float(found["sharp"].mean()),
        "sharp_std": float(found["sharp"].std()),
        "corners_max": float(found["corners"].max()),
        "corners": len(corners),
        "strongest": corners[0].tolist(),
    }


def compare(image: Array, found: dict[str, Array]) -> None:
    """Raises SystemExit where the results are not those of SciPy and scikit-image, or not the expected ones."""
    sharp = reference.unsharp(image, float(AMOUNT))
    corners = reference.harris(sharp)
    errors = {
        "sharp": float(np.abs(found["sharp"] - sharp).max()),
        "corners": float(np.abs(found["corners"] - corners).max() / np.abs(corners).max()),
    }
    same = np.array_equal(reference.peaks(found["corners"]), reference.peaks(corners))
    expected = json.loads((FOLDER / "photo_expected.json").read_text())
    wrong = [k for k, v in metrics(found).items() if not np.allclose(v, expected[k], rtol=1e-5)]
    print(f"largest difference from SciPy: sharp {errors['sharp']:.1e}, corners {errors['corners']:.1e} of the largest")
    print(f"corners found by scikit-image: {'the same' if same else 'others'}")
    if max(errors.values()) > 1e-5 or not same or wrong:
        raise SystemExit(f"the results are not the expected ones{': ' if wrong else ''}{', '.join(wrong)}")


def picture(image: Array, found: dict[str, Array], path: Path) -> None:
    """The photograph beside the sharpened one with its corners marked, as PNG."""
    pixels = np.repeat((np.concatenate([image, found["sharp"]], axis=1) * 255 + 0.5).astype(np.uint8)[..., None], 3, axis=2)
    for y, x in reference.peaks(found["corners"]):
        x += image.shape[1]
        for dy, dx in ((0, np.arange(-3, 4)), (np.arange(-3, 4), 0)):
            pixels[np.clip(y + dy, 0, pixels.shape[0] - 1), np.clip(x + dx, 0, pixels.shape[1] - 1)] = (255, 32, 32)
    Picture.fromarray(pixels).save(path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.photo", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("build"), help="where the module and the picture go (default: build)")
    parser.add_argument(
        "--tune", type=int, metavar="TRIALS", help="search for a plan for this machine first, instead of using photo_tuned.yaml"
    )
    given = parser.parse_args(arguments)
    given.output.mkdir(parents=True, exist_ok=True)
    plan = relative(FOLDER / "photo_tuned.yaml")
    if given.tune:
        plan = given.output / "photo_tuned.yaml"
        fluorite("tune", MODEL, "--plan", relative(FOLDER / "photo_holes.yaml"), "--trials", str(given.tune), "-o", plan)
    fluorite("check", MODEL, "--plan", plan, "--extents", "h=512,w=512")
    fluorite("build", MODEL, "--plan", plan, "-o", given.output / "photo_tuned")
    module = built_module(given.output / "photo_tuned")
    image = photograph()
    found = module.run(image, AMOUNT)
    begin = time.perf_counter()
    found = module.run(image, AMOUNT)
    milliseconds = (time.perf_counter() - begin) * 1e3
    print(f"import photo_tuned; photo_tuned.run(image, {AMOUNT}): {image.shape[0]} x {image.shape[1]} pixels in {milliseconds:.2f} ms")
    compare(image, found)
    picture(image, found, given.output / "photo.png")
    print(f"{given.output / 'photo.png'}: the photograph, and sharpened with its corners marked")
