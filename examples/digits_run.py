"""Training with scikit-learn, then the same predictions from a module that fluorite built."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from sklearn.datasets import load_digits  # type: ignore[import-untyped]
from sklearn.model_selection import train_test_split  # type: ignore[import-untyped]
from sklearn.neural_network import MLPClassifier  # type: ignore[import-untyped]

from .commands import FOLDER, built_module, fluorite, relative

MODEL = f"{relative(FOLDER / 'digits.py')}:Digits"
Array = np.ndarray[Any, Any]


def samples() -> tuple[Array, Array, Array, Array]:
    """Pixels to train on and to test with, then the digits of both."""
    pixels, digits = load_digits(return_X_y=True)
    return tuple(train_test_split(pixels.astype(np.float32), digits, test_size=0.25, random_state=0, stratify=digits))  # type: ignore[return-value]


def trained(pixels: Array, digits: Array) -> MLPClassifier:
    """Trained on pixels from 0 to 1, which is what the Program makes of its input."""
    return MLPClassifier((64,), learning_rate_init=0.005, max_iter=500, random_state=0).fit(pixels / 16, digits)


def weights_of(classifier: MLPClassifier) -> dict[str, Array]:
    """Under the names of the Program's parameters."""
    (hidden_w, digit_w), (hidden_b, digit_b) = classifier.coefs_, classifier.intercepts_
    found = {"hidden_w": hidden_w, "hidden_b": hidden_b, "digit_w": digit_w, "digit_b": digit_b}
    return {name: np.ascontiguousarray(value, np.float32) for name, value in found.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.digits", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("build"), help="where the weights and the module go (default: build)")
    given = parser.parse_args(arguments)
    given.output.mkdir(parents=True, exist_ok=True)
    train, test, train_digits, test_digits = samples()
    classifier = trained(train, train_digits)
    weights = given.output / "digits.safetensors"
    save_file(weights_of(classifier), weights)
    fluorite("build", MODEL, "--plan", relative(FOLDER / "digits_tuned.yaml"), "--weights", weights, "-o", given.output / "digits_tuned")
    module = built_module(given.output / "digits_tuned")
    found, wanted = module.predict(test), classifier.predict(test / 16)
    difference = float(np.abs(module.probabilities(test) - classifier.predict_proba(test / 16)).max())
    accuracy = float((found == test_digits).mean())
    print(f"{len(test)} held-out digits, {accuracy:.1%} right: {int((found != wanted).sum())} predictions differ from scikit-learn's")
    print(f"largest difference of a probability {difference:.1e}")
    least = json.loads((FOLDER / "digits_expected.json").read_text())["accuracy_at_least"]
    if not np.array_equal(found, wanted) or difference > 1e-5 or accuracy < least:
        raise SystemExit("the predictions are not scikit-learn's")
