"""The transformer block: the algorithm's own meaning, under every plan and at several sizes."""

from __future__ import annotations

from pathlib import Path

import fluorite as fl
import numpy as np
import pytest

from examples import attention_run
from examples.attention import Block

PLANS = [None, *(attention_run.FOLDER / f"attention_{kind}.yaml" for kind in ("cpu", "holes", "tuned"))]


@pytest.mark.parametrize("plan", PLANS, ids=lambda p: p.stem if p else "empty")
def test_every_plan_means_the_algorithm(plan: Path | None) -> None:
    model = fl.compile(Block(), plan, seed=3)
    weights = {name: np.asarray(value) for name, value in model.parameters.items()}
    graph = fl.trace(Block())
    for n, t in ((1, 1), (2, 17), (1, 33)):
        x = np.random.default_rng(t).standard_normal((n, t, 64), np.float32)
        wanted = graph.run(x, parameters=weights)
        assert np.abs(model.forward(x) - wanted).max() < 2e-6 * np.abs(wanted).max()


def test_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    attention_run.main(["-o", str(tmp_path)])
    assert "earlier positions do not see later ones" in capfd.readouterr().out
