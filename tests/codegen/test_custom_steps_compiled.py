"""Derivatives that the user gives for steps, compiled: the recurrences that they make, with steps of any number, against the oracle."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import pytest
from fluorite.algo.numerics import compare
from step_rules import graph, in_branches, inputs, inside_a_step, recurrent, results_apart, ruled, with_lengths

PROGRAMS = [(recurrent, "s"), (results_apart, "s"), (in_branches, "s"), (with_lengths, 5), (inside_a_step, 5)]


@pytest.mark.parametrize(("program", "steps"), PROGRAMS)
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


@pytest.mark.parametrize("steps", ["s", 5])
def test_a_sum_of_products_that_are_a_stage(steps: Any) -> None:
    """The default plan computes it, although it is a product of what it reads only when that stage is written into it."""

    def fn(x: Any, y: Any) -> Any:
        a = fl.tanh(x)
        return fl.sum(fl.stage(lambda t, i, j: a[t, i] * y[t, j], name="outer"), axis=0), a

    g = fl.trace(fn, inputs={"x": fl.f64(steps, 3), "y": fl.f64(steps, 3)})
    args = (inputs(5)[0], inputs(5)[0][::-1].copy())
    for found in compare(g, None, args, fl.compile(g)(*args)):
        assert found.ok, found.text()
