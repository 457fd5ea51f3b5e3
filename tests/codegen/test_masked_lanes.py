"""Choices that differ between the lanes of a vector: costly ones are computed for all lanes, whatever lies outside is not read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.codegen import driver
from fluorite.codegen.driver import lower_variants
from fluorite.codegen.target import resolve_target
from fluorite.schedule import ExecutionPlan

F = fl.f32


def rim(image: Any, picks: Any) -> Any:
    """A sum over the neighbours that there are, as a gradient has it."""

    def near(y: Any, x: Any, i: Any) -> Any:
        return fl.where((i <= x + 2) & (x - i + 2 < image.shape[1]), fl.exp(image[y, x - i + 2]), 0)

    size = dict(zip("yx", image.shape, strict=True))
    return fl.stage(lambda y, x: fl.sum(lambda i: near(y, x, i), over={"i": 5}), name="out", extents=size)


def cheap(image: Any, picks: Any) -> Any:
    return fl.stage(lambda y, x: fl.where(x >= 1, image[y, x - 1] * 2, 0), name="out", extents={"x": image.shape[1]})


def by_data(image: Any, picks: Any) -> Any:
    """Which positions are read is data, and outside where it says so."""
    return fl.stage(lambda y, x: fl.where((picks[x] >= 0) & (picks[x] < image.shape[1]), fl.exp(image[y, picks[x]]), -1), name="out")


def divided(image: Any, picks: Any) -> Any:
    """A division that stops the program where it is not asked for."""
    return fl.stage(lambda y, x: fl.where(picks[x] > 0, fl.exp(image[y, x]) + fl.cast(7 // picks[x], "float32"), 0), name="out")


@pytest.mark.parametrize(
    ("program", "select"), [(rim, True), (cheap, False), (by_data, True), (divided, True)], ids=["rim", "cheap", "data", "division"]
)
def test_the_values_and_how_they_are_chosen(program: Callable[..., Any], select: bool) -> None:
    graph = fl.trace(program, None, inputs={"image": F("h", "w"), "picks": fl.i32("w")})
    lanes = "{vectorize: {axis: x, width: 8}}" + ", {reorder: [x_outer, i, x_inner]}" * (program is rim)
    plan, _ = driver.prepared(ExecutionPlan.from_yaml(f"schedule: {{out: [{lanes}]}}"), graph)
    (lowered,) = lower_variants(graph, plan, resolve_target(plan.target))
    text = lowered.text()
    assert ("select(" in text) == select
    compiled = driver.compile_graph(graph, plan, cache=False)
    model = driver.assemble(compiled.manifest("masked"), compiled.library, {})
    for h, w in ((1, 1), (2, 3), (3, 8), (2, 29)):
        rng = np.random.default_rng(w)
        image, picks = rng.random((h, w), np.float32), rng.integers(-2, w + 2, w).astype(np.int32)
        np.testing.assert_allclose(model(image, picks), graph.run(image, picks), rtol=1e-6)
