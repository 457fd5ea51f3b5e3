"""A graph survives the way to another process."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import fluorite as fl
import numpy as np
from fluorite.algo.extent import evaluate, floordiv, maximum, minimum, symbol
from fluorite.algo.extent_json import to_json
from fluorite.algo.interpreter import run
from fluorite.codegen.lowered import structure_hash
from fluorite.codegen.tuning.graph_text import extent_of, graph_data, graph_of
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "algo"))
import random_stages


def again(graph: fl.Graph) -> fl.Graph:
    values = {leaf.path: leaf.value for leaf in graph.leaves if leaf.kind == "constant"}
    return graph_of(json.loads(json.dumps(graph_data(graph))), values)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_random_graphs_come_back_equal(data: st.DataObject) -> None:
    call = data.draw(random_stages.random_call())
    made = again(call.graph)
    assert made.text() == call.graph.text()
    assert structure_hash(made) == structure_hash(call.graph)
    assert [s.dtype for s in made.stages] == [s.dtype for s in call.graph.stages]


def test_a_program_runs_as_before() -> None:
    class Net(fl.Program):
        def __init__(self) -> None:
            self.layer = fl.nn.Linear(8, 4)

        @fl.method
        def infer(self, x: fl.f32[fl.Tensor, "n", 8]) -> object:
            y = self.layer(fl.relu(x)) + np.arange(4, dtype=np.float32)
            return {"y": y, "both": (fl.sum(y, axis=1), [fl.argmax(y, axis=1)])}

    graph = fl.trace(Net())
    made = again(graph)
    x = np.random.default_rng(0).standard_normal((5, 8)).astype(np.float32)
    weights = {"layer/w": np.full((8, 4), 0.5, np.float32), "layer/b": np.arange(4, dtype=np.float32)}
    want, got = run(graph, (x,), parameters=weights), run(made, (x,), parameters=weights)
    assert list(want) == list(got) and isinstance(got["both"], tuple) and isinstance(got["both"][1], list)
    np.testing.assert_array_equal(want["y"], got["y"])
    np.testing.assert_array_equal(want["both"][1][0], got["both"][1][0])


def test_axes_of_another_process_stay_apart() -> None:
    @fl.function
    def twice(x: fl.f32[fl.Tensor, "n"]) -> object:
        return fl.stage(lambda i: fl.sum(lambda k: x[k] * x[i]), name="outer")

    graph = fl.trace(twice)
    made = again(graph)
    axes = [a for s in made.stages for a in (*s.axes, *s.reduce_axes)]
    assert len({id(a) for a in axes}) == len(axes)
    assert not {id(a) for a in axes} & {id(a) for s in graph.stages for a in (*s.axes, *s.reduce_axes)}


@given(st.integers(1, 9), st.integers(1, 9), st.integers(2, 5))
def test_extents_come_back(h: int, w: int, d: int) -> None:
    a, b = symbol("h"), symbol("w")
    for e in (3, a, a * b - 2 * a + 1, floordiv(a + 3, d), maximum(a - b, floordiv(b, d)), minimum(a, b) * d):
        back = extent_of(json.loads(json.dumps(to_json(e))))
        assert evaluate(back, {"h": h, "w": w}) == evaluate(e, {"h": h, "w": w})
        assert str(back) == str(e)
