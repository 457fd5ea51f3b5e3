"""Initial and given values of a Program's parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fluorite.algo.errors import RunError
from fluorite.algo.parameters import initial_parameters
from fluorite.algo.program import Program, method, param, trace
from fluorite.algo.trace import stage
from fluorite.algo.types import f32


class Affine(Program):
    def __init__(self) -> None:
        self.w = param(init=lambda g, shape: g.standard_normal(shape), in_=3, out=2)
        self.b = param(init=0.5, out=2)
        self.z = param(out=2)

    @method
    def predict(self, x: f32("n", 3)) -> Any:  # type: ignore[valid-type]
        return stage(lambda n, o: self.b[o] + self.z[o] + x[n, 0] * self.w[0, o])

    @method
    def twice(self, x: f32("n", 3)) -> Any:  # type: ignore[valid-type]
        return stage(lambda n, d: x[n, d] * 2)


def test_parameters_are_drawn_from_the_seed_and_their_path_alone() -> None:
    graph = trace(Affine)
    first, again, other = initial_parameters(graph, 0), initial_parameters(graph, 0), initial_parameters(graph, 1)
    assert (first["w"] == again["w"]).all() and (first["w"] != other["w"]).any() and first["w"].dtype == np.float32
    assert first["b"].tolist() == [0.5, 0.5] and first["z"].tolist() == [0, 0]
    alone = trace(Affine, method="predict")
    assert (initial_parameters(alone, 0)["w"] == first["w"]).all()


def test_given_parameters_are_checked() -> None:
    graph = trace(Affine)
    values = initial_parameters(graph)
    x = np.ones((1, 3), np.float32)
    assert (graph.run(x, method="predict", parameters=values | {"b": np.float32([1, 2])}) == values["w"][0] + np.float32([1, 2])).all()
    with pytest.raises(RunError) as caught:
        graph.run(x, method="predict", parameters={"w": np.zeros((2, 2), np.float32), "b": np.zeros(2), "q": 1})
    assert [p.asked for p in caught.value.problems] == [
        "Affine has no parameter q",
        "w has shape [2, 2], expected float32[3, 2]",
        "b is float64, expected float32[2]",
        "parameter z is missing",
    ]


def test_a_method_must_be_named_where_there_are_several() -> None:
    graph = trace(Affine)
    with pytest.raises(RunError, match="several methods"):
        graph.run(np.ones((1, 3), np.float32))
    with pytest.raises(RunError, match="no method learn"):
        graph.run(np.ones((1, 3), np.float32), method="learn")
    assert graph.run(np.ones((1, 3), np.float32), method="twice").tolist() == [[2, 2, 2]]
