"""`fluorite tune`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..command import Outcome
from ..refusals import not_built, usage
from ..terminal import Terminal


def tune(
    terminal: Terminal,
    model: str | None,
    plan: str | None,
    extents: list[str] | None,
    output: Path | None,
    trials: int | None,
    minutes: float | None,
    resume: bool,
    inputs: Path | None,
    seed: int,
    force: bool,
    later: Mapping[str, Any],
) -> Outcome:
    unbuilt = next((name for name, value in later.items() if value), None)
    if unbuilt:
        raise not_built(unbuilt)
    if output is None:
        raise usage("tune", "-o FILE is missing", "-o tuned.yaml")
    raise not_built("tune")
