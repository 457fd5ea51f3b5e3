"""Stages in terms of themselves: which are understood, which are refused, and that steps and shortcuts mean the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.interpreter.recurrences import Evaluation, evaluate_unit
from fluorite.algo.numerics import bounds, compare
from fluorite.algo.running import running
from fluorite.algo.specialise import specialise
from fluorite.algo.stages import Stage
from fluorite.codegen.lowered import structure_hash
from fluorite.codegen.tuning.graph_text import graph_data, graph_of
from operator_running import numbers, refusal, run

X = {"x": fl.f32("n", "m")}
RNN = {"x": fl.f32("n", 8), "w": fl.f32(8, 8)}


def cells(x: Any, w: Any) -> Any:
    return fl.recurrence(lambda h, t, i: fl.tanh(x[t, i] + fl.sum(lambda k: fl.where(t >= 1, h[t - 1, k], 0) * w[k, i])), name="cells")


def total(x: Any) -> Any:
    return fl.recurrence(lambda h, t, i: fl.where(t >= 1, h[t - 1, i] + x[t, i], x[t, i]), name="total")


def test_the_reads_say_which_axis_is_walked_and_which_way() -> None:
    def clock(fn: Callable[..., Any]) -> tuple[str, bool]:
        (s,) = fl.trace(fn, inputs={"x": fl.f32(7, 5)}).stages
        assert s.clock is not None and s.facts["kind"] == "recurrence" and s.sources == s.sources and s.id not in s.sources
        return s.clock.axis.name, s.clock.reverse

    assert clock(lambda x: fl.recurrence(lambda h, t, i: fl.where(t >= 1, h[t - 1, i], 0) + x[t, i])) == ("t", False)
    assert clock(lambda x: fl.recurrence(lambda h, i, t: fl.where(t >= 2, h[i, t - 2], 0) + x[i, t])) == ("t", False)
    assert clock(lambda x: fl.recurrence(lambda h, t, i: fl.where(t < 6, h[t + 1, i], 0) + x[t, i])) == ("t", True)
    assert clock(lambda x: fl.recurrence(lambda h, t, i: fl.where(t >= 1, h[t - 1, 4 - i], 0) + x[t, i])) == ("t", False)
    assert clock(lambda x: fl.recurrence(lambda h, t, i: fl.where((t >= 1) & (i >= 1), h[t - 1, i - 1], 0) + x[t, i])) == ("t", False)


def test_an_axis_of_one_position_is_no_recurrence() -> None:
    (s,) = fl.trace(total, inputs={"x": fl.f32(1, 5)}).stages
    assert s.clock is None and "where" not in s.text()


def test_sums_over_earlier_positions_are_stages_of_the_same_recurrence() -> None:
    g = fl.trace(cells, inputs=RNN)
    assert [s.name for s in g.stages] == ["sum", "cells"]
    clocks = [s.clock for s in g.stages]
    assert all(c is not None and c.axis.name == "t" for c in clocks) and len({c.group for c in clocks if c}) == 1
    assert "step by step along t" in g.text()


@pytest.mark.parametrize(
    ("code", "fn"),
    [
        ("A161", lambda x: fl.recurrence(lambda h, t, i: h[t - 1, i] + x[t, i])),
        ("A161", lambda x: fl.recurrence(lambda h, t, i: fl.where(x[t, i] > 0, h[t - 1, i], 0))),
        ("A161", lambda x: fl.recurrence(lambda h, t, i: fl.where(t >= 1, h[t - 2, i], 0) + x[t, i])),
        ("A160", lambda x: fl.recurrence(lambda h, t, i: h[t, i] + x[t, i])),
        ("A160", lambda x: fl.recurrence(lambda h, t, i: fl.where(t >= 1, h[t // 2, i], 0) + x[t, i])),
        ("A160", lambda x: fl.recurrence(lambda h, t, i: fl.where(t >= 1, h[t - 1, 0], h[t, i]) + x[t, i])),
        ("A160", lambda x: fl.recurrence(lambda h, t, i: fl.where((t >= 1) & (t < 6), h[t - 1, i] + h[t + 1, i], 0) + x[t, i])),
        ("A162", lambda x: fl.recurrence(lambda h, t, i: fl.where(t >= 1, h[t - 1, i], 0) + fl.cast(x[t, i], fl.f64))),
        ("A119", lambda x: fl.recurrence(lambda t: 1.0)),
        ("A106", lambda x: fl.recurrence(lambda h, t, i: fl.where(t >= 1, h[t - 1], 0) + x[t, i])),
    ],
)
def test_what_cannot_be_walked_is_refused(code: str, fn: Callable[..., Any]) -> None:
    problem = refusal(fn, numbers(7, 5))
    assert problem.code == code and problem.source.startswith("test_recurrences.py"), problem.text()


def test_messages_say_what_would_do() -> None:
    problem = refusal(lambda x: fl.recurrence(lambda h, t, i: h[t - 1, i] + x[t, i]), numbers(7, 5))
    assert problem.asked == "h read at t - 1 of t" and "fl.where(t >= 1" in problem.try_[0]
    problem = refusal(lambda x: fl.recurrence(lambda h, t, i: fl.where(t >= 1, h[t // 2, i], 0) + x[t, i]), numbers(7, 5))
    assert "t // 2 of t, which is not t and a fixed number" in problem.why


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (7, 1), (33, 5), (0, 3), (3, 0)])
@pytest.mark.parametrize("op", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "int64"])
def test_running_combinations_are_what_their_steps_give(shape: tuple[int, ...], op: str, dtype: str) -> None:
    """The shortcut for running sums, products and extremes against the steps that they stand for, and NumPy."""
    from fluorite.algo.expr import binary

    x = numbers(*shape, dtype=dtype)
    for reverse in (False, True):

        def fn(x: Any, reverse: bool = reverse) -> Any:
            def body(h: Any, t: Any, i: Any) -> Any:
                guard, last = (t + 1 < shape[0], t + 1) if reverse else (t >= 1, t - 1)
                return fl.where(guard, binary(op, h[last, i], x[t, i]), x[t, i])

            return fl.recurrence(body, dtype=dtype)

        g = fl.trace(fn, inputs={"x": fl.Spec(dtype, ("t", "i"), shape)})
        (s,) = g.stages
        got = g.run(x)
        ufunc = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[op]
        wanted = np.flip(ufunc.accumulate(np.flip(x, 0), 0, dtype=dtype), 0) if reverse else ufunc.accumulate(x, 0, dtype=dtype)
        np.testing.assert_array_equal(got, wanted)
        assert got.dtype == wanted.dtype
        if s.clock is not None:
            assert running(s) is not None
            np.testing.assert_array_equal(got, by_steps(s, {g.leaves[0].id: x}))


def by_steps(s: Stage, sources: dict[int, np.ndarray]) -> np.ndarray:
    from fluorite.algo.interpreter import recurrences

    saved, recurrences.running = recurrences.running, lambda _: None
    try:
        return evaluate_unit(Evaluation({}), (s,), sources)[s.id]
    finally:
        recurrences.running = saved


def test_only_plain_running_combinations_take_the_shortcut() -> None:
    def is_running(fn: Callable[..., Any]) -> bool:
        return running(fl.trace(fn, inputs=X).stages[-1]) is not None

    assert is_running(total)
    assert is_running(lambda x: fl.recurrence(lambda h, t, i: fl.where(t >= 1, h[t - 1, i], 0) + x[t, i]))
    assert not is_running(lambda x: fl.recurrence(lambda h, t, i: fl.where(t >= 2, h[t - 2, i], 0) + x[t, i]))
    assert not is_running(lambda x: fl.recurrence(lambda h, t, i: fl.where(t >= 2, h[t - 1, i], 0) + x[t, i]))
    assert not is_running(lambda x: fl.recurrence(lambda h, t, i: fl.where(t >= 1, h[t - 1, i], 0) - x[t, i]))
    assert not is_running(lambda x: fl.recurrence(lambda h, t, i: fl.where(t >= 1, h[t - 1, i] + x[t, i], 2 * x[t, i])))


@pytest.mark.parametrize("steps", [1, 2, 7, 40])
def test_a_recurrent_network_by_hand(steps: int) -> None:
    x, w = numbers(steps, 8), numbers(8, 8, seed=1) / 3
    h, wanted = np.zeros(8, np.float32), []
    for t in range(steps):
        h = np.tanh(x[t] + h @ w)
        wanted.append(h)
    for got in (fl.trace(cells, inputs=RNN).run(x, w), run(cells, x, w)):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_several_delays_and_both_directions() -> None:
    x = numbers(19)

    def fibre(x: Any) -> Any:
        return fl.recurrence(lambda h, t: x[t] + 0.5 * fl.where(t >= 1, h[t - 1], 0) - 0.25 * fl.where(t >= 3, h[t - 3], 0))

    h = np.zeros(19, np.float32)
    for t in range(19):
        h[t] = x[t] + np.float32(0.5) * (h[t - 1] if t >= 1 else 0) - np.float32(0.25) * (h[t - 3] if t >= 3 else 0)
    np.testing.assert_allclose(run(fibre, x), h, rtol=1e-6)


def test_many_steps_need_no_stack() -> None:
    x, w = numbers(5_000, 2), numbers(2, 2, seed=1)
    got = run(cells, x, w)
    assert got.shape == (5_000, 2) and np.isfinite(got).all()


# ---------------------------------------------------------------- bounds
def test_bounds_hold_and_notice_a_wrong_element() -> None:
    g = fl.trace(total, inputs=X)
    for n in (1, 7, 3000):
        x = numbers(n, 5)
        exact = np.cumsum(x.astype(np.float64), 0)
        assert compare(g, None, (x,), np.cumsum(x, 0))[0].ok
        assert compare(g, None, (x,), exact.astype(np.float32))[0].ok
        wrong = np.cumsum(x, 0)
        wrong[n // 2] += 0.3 + 0.1 * abs(wrong[n // 2])
        assert not compare(g, None, (x,), wrong)[0].ok


def test_the_closed_form_bound_is_that_of_the_steps() -> None:
    from fluorite.algo.numerics import recurrences

    g, x = fl.trace(total, inputs=X), numbers(50, 3)
    (fast,) = bounds(g, (x,)).values()
    saved, recurrences.at_once = recurrences.at_once, lambda _: None
    try:
        (slow,) = bounds(g, (x,)).values()
    finally:
        recurrences.at_once = saved
    np.testing.assert_allclose(fast.value, slow.value)
    assert fast.error is not None and slow.error is not None
    np.testing.assert_allclose(fast.error[1:], slow.error[1:], rtol=0.02)


def test_networks_are_compared_within_sampled_bounds() -> None:
    g, x, w = fl.trace(cells, inputs=RNN), numbers(60, 8), numbers(8, 8, seed=1)
    got = g.run(x, w)
    assert compare(g, None, (x, w), got)[0].ok
    got[30, 3] += 0.01
    assert not compare(g, None, (x, w), got)[0].ok


# ---------------------------------------------------------------- graphs
def test_graphs_with_recurrences_travel_and_specialise() -> None:
    g, x, w = fl.trace(cells, inputs=RNN), numbers(5, 8), numbers(8, 8, seed=1)
    again = graph_of(graph_data(g))
    assert structure_hash(again) == structure_hash(g) and again.text() == g.text()
    np.testing.assert_array_equal(again.run(x, w), g.run(x, w))
    np.testing.assert_array_equal(specialise(g, {"n": 5}).run(x, w), g.run(x, w))
    one = specialise(g, {"n": 1})
    np.testing.assert_array_equal(one.run(x[:1], w), g.run(x[:1], w))
    assert structure_hash(fl.trace(total, inputs=X)) != structure_hash(g)
