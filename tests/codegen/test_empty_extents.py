"""Extents that a plan lets be 0: every kind of stage, compiled once for all sizes, between guards that nothing may be written to."""

from __future__ import annotations

import inspect
import random
from typing import Any

import fluorite as fl
import model_zoo
import numpy as np
import pytest
from fluorite.algo.errors import FluoriteError
from fluorite.algo.extent import nonnegative, symbol
from fluorite.algo.numerics import compare
from fluorite.codegen.buckets import bounded, range_of
from fluorite.codegen.runtime import memory, native
from fluorite.schedule import ExecutionPlan
from fuzz import plans, run
from fuzz.cheaply import cheaply
from fuzz.guarded import beside, placed, poison
from fuzz.repair import repaired
from fuzz.run import values


@pytest.fixture(autouse=True)
def _poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_raw", memory._raw)  # both are put back when the test is done
    monkeypatch.setattr(native, "_FROM_NUMPY", native._FROM_NUMPY)
    poison()


@pytest.mark.parametrize("name", list(model_zoo.SYMBOLIC))
def test_models_of_every_kind(name: str) -> None:
    """Under the default plan or a random one, by turns."""
    g = model_zoo.graph(name)
    numbers = random.Random(name)
    asked = plans.plan(numbers, g) if numbers.random() < 0.7 else ExecutionPlan()
    extents = ", ".join(f"{s}: {numbers.choice(['{max: 40}', '{between: [0, 40]}'])}" for s in g.symbols())
    text = asked.to_yaml() + f"extents: {{{extents}}}\n"
    for _ in range(12):
        try:
            with cheaply(1):
                compiled = run.built(g, ExecutionPlan.from_yaml(text))
            break
        except FluoriteError as error:
            left = repaired(text, error.problems)
            assert left is not None, error
            text = left
    assert compiled is not None
    usual = {s: 7 + 3 * n for n, s in enumerate(g.symbols())}
    run.agrees(g, compiled, [*run.extremes(compiled.plan, usual), dict.fromkeys(usual, 1), dict.fromkeys(usual, 33)], 0)


def test_proofs_know_what_a_plan_says_of_extents() -> None:
    g = fl.trace(lambda x: fl.stage(lambda i, j: x[i, j] + 1, name="out"), None, inputs={"x": fl.f32("n", "m")})
    plan = ExecutionPlan.from_yaml("extents: {n: {max: 9}, m: {between: [3, 9]}}")
    n, m = bounded(g, plan).stages[0].extents
    assert nonnegative(n) and not nonnegative(n - 1) and nonnegative(m - 3) and not nonnegative(m - 4)
    assert (str(n), str(m)) == ("n", "m") and n == symbol("n", 0)
    assert bounded(g, ExecutionPlan()) is g
    for said, least in (("{buckets: [0, 8]}", 0), ("{buckets: [8]}", 1), ("7", 7)):
        assert range_of(ExecutionPlan.from_yaml(f"extents: {{n: {said}}}"), "run", "n")["min"] == least


def test_a_bucket_of_none() -> None:
    model = fl.compile(fl.trace(lambda x: x + 1, None, inputs={"x": fl.f32("n")}), ExecutionPlan.from_yaml("extents: {n: {buckets: [0]}}"))
    assert np.asarray(model(np.zeros(0, np.float32))).shape == (0,)
    assert np.asarray(model(np.zeros(5, np.float32))).sum() == 5


def test_products_of_nothing() -> None:
    """Without rows, columns or terms, with and without what finishes them."""
    matrices = [((2, 3), (3, 0)), ((0, 3), (3, 4)), ((2, 0), (0, 4)), ((2, 0), (0, 0)), ((1, 3), (3, 0))]
    pairs = [*matrices, ((5, 0, 3), (5, 3, 0)), ((3,), (3, 0))]
    for to in ("float32", "bfloat16", "int8"):
        arrays = [np.ones(s, np.float32).astype(np.dtype(to)) for pair in pairs for s in pair]
        inputs = {f"x{k}": fl.Spec(to, (None,) * a.ndim, a.shape) for k, a in enumerate(arrays)}

        def products(**given: fl.Tensor) -> list[fl.Tensor]:
            return [y for p in zip(*[iter(given.values())] * 2, strict=True) for y in (p[0] @ p[1], fl.relu(p[0] @ p[1] + 1))]

        products.__signature__ = inspect.Signature([inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in inputs])  # type: ignore[attr-defined]
        g = fl.trace(products, inputs=inputs)
        for got, want in zip(fl.compile(g)(*arrays), g.run(*arrays), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_that_is_a_loop_has_no_turn_where_there_is_no_step(reverse: bool) -> None:
    """And so reads nothing; a loop that asks what it reads is refused, as the oracle refuses it."""

    def steps(x: Any) -> Any:
        def step(c: Any, e: Any) -> Any:
            r = fl.while_loop(lambda d: fl.any(d < e), lambda d: d * 1.5 + 0.25, c)
            return r * 0.25, r

        return fl.scan(step, fl.zeros(3), x, reverse=reverse)

    def asks(x: Any) -> Any:
        return fl.while_loop(lambda c: c[1][0] + x[0, 0] < 3, lambda c: (c[0] + 1, c[1] + 1), (0, fl.zeros(3)))

    plan = ExecutionPlan.from_yaml("extents: {n: {max: 9}}")
    for fn, refused in ((steps, False), (asks, True)):
        g = fl.trace(fn, None, inputs={"x": fl.f32("n", 3)})
        model, none = fl.compile(g, plan), np.zeros((0, 3), np.float32)
        for call in (g.run, model):
            if refused:
                with pytest.raises(fl.RunError, match="no elements"):
                    call(none)
            else:
                assert [a.shape for a in call(none)] == [(3,), (0, 3)]
        some = values(3, "float32", [5, 3])
        assert all(f.ok for f in compare(g, None, (some,), model(some)))


def test_guards_are_seen() -> None:
    a = placed(np.zeros(3, np.float32))
    assert not beside()
    a = placed(a)
    np.lib.stride_tricks.as_strided(a, (4,), (4,))[3] = 1
    assert beside() == "4 bytes beside a block of 12, the first at 12"
