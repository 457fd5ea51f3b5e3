"""A transformer block that fluorite built, compared with what its algorithm means."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np

from .attention import Block
from .commands import FOLDER, built_module, fluorite, relative

MODEL = f"{relative(FOLDER / 'attention.py')}:Block"
Array = np.ndarray[Any, Any]


def sequences() -> Array:
    """3 sequences of 50 positions."""
    return np.random.default_rng(7).standard_normal((3, 50, 64), np.float32)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.attention", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("build"), help="where the module goes (default: build)")
    given = parser.parse_args(arguments)
    given.output.mkdir(parents=True, exist_ok=True)
    fluorite("check", MODEL, "--plan", relative(FOLDER / "attention_tuned.yaml"), "--quick")
    fluorite("build", MODEL, "--plan", relative(FOLDER / "attention_tuned.yaml"), "-o", given.output / "attention_tuned")
    module = built_module(given.output / "attention_tuned")
    x = sequences()
    found = module.forward(x)
    weights = {name: np.asarray(value) for name, value in module.parameters.items()}
    wanted = fl.trace(Block()).run(x, parameters=weights)
    later = x.copy()
    later[:, 30:] += 1
    kept = bool(np.array_equal(module.forward(later)[:, :30], found[:, :30]))
    difference = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    print(f"{x.shape[0]} x {x.shape[1]} positions: largest difference from the algorithm {difference:.1e} of the largest value")
    print(f"earlier positions {'do not see' if kept else 'see'} later ones")
    expected = json.loads((FOLDER / "attention_expected.json").read_text())
    statistics = {"mean": float(found.mean()), "std": float(found.std())}
    if (
        difference > expected["difference_at_most"]
        or not kept
        or not all(np.isclose(statistics[k], expected[k], rtol=1e-4, atol=1e-6) for k in statistics)
    ):
        raise SystemExit("the results are not the expected ones")
