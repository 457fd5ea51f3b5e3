"""memory: recompute: auto: what is computed again so that a step of training stays within the limit."""

from __future__ import annotations

from math import sqrt
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import PlanError
from fluorite.codegen import driver
from fluorite.codegen.explaining import explain
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.rematerialisation import Kernel, Rematerialisation


class Deep(fl.Program):
    def __init__(self) -> None:
        self.layers, self.optimizer = [fl.nn.Linear(8, 8) for _ in range(3)], fl.optim.SGD(0.1)

    @fl.method(batch="n", training=True)
    def train_step(self, x: fl.f32[fl.Tensor, "n", 8]) -> Any:
        for layer in self.layers:
            x = fl.tanh(fl.exp(layer(x)), name="act")
        cost = fl.mean(fl.square(x), name="cost")
        self.optimizer.minimize(cost)
        return cost


N = 512


def plan(limit: int | str, extents: str = f"{{n: {N}}}") -> ExecutionPlan:
    return ExecutionPlan.from_yaml(f"extents: {extents}\nmemory: {{recompute: auto, limit: {limit}}}\n", "p.yaml")


def peak(chosen: ExecutionPlan) -> int:
    return explain(Deep(), chosen, {"n": N}).memory["train_step"]


def test_a_step_stays_within_the_limit_and_computes_the_same() -> None:
    whole = peak(ExecutionPlan(extents={"n": N}))
    limit = whole * 9 // 10
    usual, less = fl.compile(Deep(), ExecutionPlan(extents={"n": N})), fl.compile(Deep(), plan(limit))
    x = np.random.default_rng(0).normal(size=(N, 8)).astype("float32")
    for _ in range(2):
        np.testing.assert_allclose(usual.train_step(x), less.train_step(x), rtol=1e-6)
    for name in usual.parameters:
        np.testing.assert_allclose(usual.parameters[name], less.parameters[name], rtol=1e-5, atol=1e-7)
    arena = [len(next(iter(m.train_step._prepared.values())).run.arenas[0]) - 1 for m in (usual, less)]
    assert less.memory({"n": N}, "train_step") <= limit
    assert arena[0] - arena[1] == usual.memory({"n": N}, "train_step") - less.memory({"n": N}, "train_step")  # measured = predicted
    shown = less.manifest["plan"]
    assert "/train_step/act" in shown and "auto" not in shown
    assert [s for s in explain(Deep(), plan(limit), {"n": N}).text().splitlines() if "recompute: auto computes /train_step/" in s]


class Plain(fl.Program):
    """Layers whose kernels hold stages of the backward pass, which cannot be computed again."""

    def __init__(self) -> None:
        self.layers, self.optimizer = [fl.nn.Linear(64, 64) for _ in range(6)], fl.optim.SGD(0.1)

    @fl.method(batch="n", training=True)
    def train_step(self, x: fl.f32[fl.Tensor, "n", 64]) -> Any:
        for layer in self.layers:
            x = fl.tanh(layer(x))
        cost = fl.mean(x, name="cost")
        self.optimizer.minimize(cost)
        return cost


def test_a_byte_below_what_is_needed_is_no_harder_than_less() -> None:
    graph = fl.trace(Plain())
    whole = explain(Plain(), ExecutionPlan(extents={"n": N}), {"n": N}).memory["train_step"]
    chosen = driver.prepared(plan(whole - 1), graph)[0]
    assert chosen.memory is not None and chosen.memory.recompute
    assert explain(Plain(), chosen, {"n": N}).memory["train_step"] < whole


def test_it_is_the_same_each_time_and_nothing_where_nothing_is_needed() -> None:
    graph = fl.trace(Deep())
    first, again = (driver.prepared(plan("105KiB"), graph)[0].memory for _ in range(2))
    assert first == again and first is not None and first.recompute and first.limit == "105KiB"
    enough = driver.prepared(plan("1GiB"), graph)[0].memory
    assert enough is not None and enough.recompute == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("memory: {recompute: auto}", "without a limit"),
        ("memory: {recompute: auto, limit: 1MiB}", "extent n has no bound"),
        (f"memory: {{recompute: auto, limit: 2KiB}}\nextents: {{n: {N}}}", "the least that was found is"),
    ],
)
def test_what_is_refused(text: str, says: str) -> None:
    with pytest.raises(PlanError) as caught:
        fl.compile(Deep(), ExecutionPlan.from_yaml(text, "p.yaml"))
    (problem,) = caught.value.problems
    assert problem.code == "P404" and problem.line == 1
    assert says in problem.text() and problem.try_


def test_the_least_is_a_limit_that_can_be_met() -> None:
    with pytest.raises(PlanError) as caught:
        fl.compile(Deep(), plan("2KiB"))
    least = int(caught.value.problems[0].try_[0].removeprefix("limit: "))
    assert peak(plan(least)) <= least


def test_chains_come_in_segments() -> None:
    """Of a chain of n equal values at most about 2 sqrt(n) are there at a time, and none is computed more than once more."""
    for n in (16, 49):
        forward = [Kernel({i: 1}, (i - 1,) if i > 1 else (), frozenset(), frozenset(), 1.0, False) for i in range(1, n + 1)]
        back = [Kernel({n + i: 1}, (n + i - 1, n + 1 - i), frozenset(), frozenset(), 1.0, True) for i in range(1, n + 1)]
        chain = Rematerialisation((*forward, *back), frozenset(range(1, n + 1)), frozenset())
        least = chain.found(0)
        assert least.peak <= 2 * sqrt(n) + 3 and least.work <= n
        half = chain.found(n // 2)
        assert half.peak <= n // 2 and half.work < least.work
        assert chain.found(n + 2).again == frozenset()
