"""A deep graph: worst-case bounds say nothing any more, sampled ones still tell right from wrong."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
from fluorite.algo.numerics import bounds, compare
from fluorite.algo.program import trace


def layers(x: Any, w: Any) -> Any:
    for _ in range(4):
        x = fl.layer_norm(x + fl.gelu(x @ w), np.ones(48, np.float32), np.zeros(48, np.float32))
    return x


def test_a_small_fault_in_a_deep_graph_is_seen() -> None:
    graph = trace(layers, None, {"x": fl.f32("n", 48), "w": fl.f32(48, 48)})
    rng = np.random.default_rng(1)
    inputs = (rng.standard_normal((5, 48), np.float32), rng.standard_normal((48, 48), np.float32) / 7)
    right = graph.run(*inputs)
    loose = next(iter(bounds(graph, inputs).values()))
    assert loose.error is not None and loose.error.max() > 0.05
    (told,) = compare(graph, None, inputs, right)
    assert told.ok and told.tolerance < 0.01
    wide = graph.run(*(i[:, ::-1] for i in inputs[:1]), inputs[1])
    assert not compare(graph, None, inputs, wide)[0].ok
    off = right.copy()
    off[3, 17] += 0.02
    assert not compare(graph, None, inputs, off)[0].ok
