"""Loops of unknown length inside loops, scans, branches and batches, compiled: against the oracle and against what Python means."""

from __future__ import annotations

import json

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.numerics import compare
from fluorite.codegen.tuning.graph_text import graph_data, graph_of
from nested_loops import CASES, flat

COMPILED = [
    "a loop in a condition",
    "a batch of batches",
    "a batch of three loops",
    "a batch in a branch",
    "a scan that waits, reversed, of lengths",
]


@pytest.mark.parametrize("name", COMPILED)
def test_agrees(name: str) -> None:
    case = CASES[name]
    g = fl.trace(case.program, inputs=case.given)
    model = fl.compile(g)
    for n in case.sizes:
        args = case.inputs(n)
        got = model(*args)
        for found in compare(g, None, tuple(args), got):
            assert found.ok, (n, found.text())
        for a, b in zip(flat(got), case.meant(*args), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_tuning_sees_the_same_loops() -> None:
    case = CASES["a batch of loops in loops"]
    g = fl.trace(case.program, inputs=case.given)
    again = graph_of(json.loads(json.dumps(graph_data(g))))
    assert [s.turn for s in again.stages] == [s.turn for s in g.stages]
    assert max(len(s.loops) for s in g.stages) == 2
