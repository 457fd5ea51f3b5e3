"""Derivatives that the user gives for steps, compiled: the recurrences that they make, with steps of any number, against the oracle."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import pytest
from fluorite.algo.numerics import compare
from step_rules import graph, in_branches, inputs, inside_a_step, recurrent, results_apart, ruled, with_lengths


@pytest.mark.parametrize(("program", "steps"), [(recurrent, "s"), (results_apart, "s"), (in_branches, "s"), (with_lengths, 5)])
def test_agrees_with_the_oracle(program: Any, steps: Any) -> None:
    g = graph(program, ruled, steps)
    model = fl.compile(g)
    for n in (1, 2, 7) if steps == "s" else (steps,):
        for found in compare(g, None, inputs(n), model(*inputs(n))):
            assert found.ok, found.text()


def test_a_recurrence_of_several_stages_in_the_step_of_a_scan() -> None:
    g = fl.trace(lambda x, w: inside_a_step(ruled, x, w), inputs={"x": fl.f64(5, 3), "w": fl.f64(3, 3)})
    for found in compare(g, None, inputs(5), fl.compile(g)(*inputs(5))):
        assert found.ok, found.text()
