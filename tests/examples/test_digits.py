"""The digits example: scikit-learn's predictions, under every plan and through an imported module."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from safetensors.numpy import save_file

from examples import digits_run
from examples.digits import Digits

PLANS = [None, *(digits_run.FOLDER / f"digits_{kind}.yaml" for kind in ("cpu", "holes", "tuned"))]


@pytest.fixture(scope="module")
def learned() -> tuple[Any, Any, Any]:
    """The classifier, held-out pixels and their digits."""
    train, test, train_digits, test_digits = digits_run.samples()
    return digits_run.trained(train, train_digits), test, test_digits


@pytest.mark.parametrize("plan", PLANS, ids=lambda p: p.stem if p else "empty")
def test_predictions_are_those_of_scikit_learn(plan: Path | None, learned: tuple[Any, Any, Any], tmp_path: Path) -> None:
    classifier, pixels, digits = learned
    save_file(digits_run.weights_of(classifier), tmp_path / "w.safetensors")
    model = fl.compile(Digits(), plan, weights=tmp_path / "w.safetensors")
    found = model.predict(pixels)
    expected = json.loads((digits_run.FOLDER / "digits_expected.json").read_text())
    assert int((found != classifier.predict(pixels / 16)).sum()) == expected["predictions_that_differ"]
    assert (found == digits).mean() >= expected["accuracy_at_least"]
    np.testing.assert_allclose(model.probabilities(pixels), classifier.predict_proba(pixels / 16), atol=2e-6)
    assert np.array_equal(model.predict(pixels[:1]), found[:1])


def test_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    digits_run.main(["-o", str(tmp_path)])
    assert "0 predictions differ" in capfd.readouterr().out
