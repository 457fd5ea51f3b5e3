"""The figures that the examples must reach."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def wrong(name: str, figures: Mapping[str, float]) -> list[str]:
    """A sentence for each figure outside its bounds."""
    bounds: dict[str, tuple[float, float]] = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))[name]
    outside = [key for key, (low, high) in bounds.items() if not low <= figures[key] <= high]
    return [f"{key} is {figures[key]:.4g}, expected {bounds[key][0]:g} to {bounds[key][1]:g}" for key in outside]


__all__ = ["FOLDER", "wrong"]
