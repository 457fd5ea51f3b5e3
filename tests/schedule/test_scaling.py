"""Scheduling takes time in proportion to the network, and rewrites leave graphs that are in order and know their stages."""

from __future__ import annotations

import cProfile
from functools import cache
from pstats import Stats
from typing import Any

import fluorite as fl
import pytest
from fluorite.algo.ordering import ordered
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.default import default_schedule
from fluorite.schedule.machine import Machine
from fluorite.schedule.scheduled import Scheduled, apply

SHALLOW, DEEP = 6, 24


class Network(fl.Program):
    def __init__(self, depth: int) -> None:
        self.layers, self.optimizer = [fl.nn.Linear(32, 32) for _ in range(depth)], fl.optim.Adam()

    @fl.method(training=True)
    def train_step(self, x: fl.f32[fl.Tensor, 16, 32]) -> Any:
        for layer in self.layers:
            x = fl.relu(layer(x))
        self.optimizer.minimize(fl.mean(fl.square(x), name="cost"))


@cache
def scheduled(depth: int, written_out: bool) -> tuple[Scheduled, int]:
    """The network under the default plan, or under that plan written out; and how many calls of functions that took."""
    plan, graph = scheduled(depth, False)[0].complete_plan() if written_out else ExecutionPlan(), fl.trace(Network(depth))
    with cProfile.Profile() as profile:
        made = apply(plan, graph, Machine(), default_schedule)
    return made, Stats(profile).total_calls  # type: ignore[attr-defined]


@pytest.mark.parametrize("written_out", [False, True])
def test_work_grows_as_the_network_does(written_out: bool) -> None:
    few, many = (scheduled(depth, written_out)[1] for depth in (SHALLOW, DEEP))
    assert many < 1.25 * DEEP / SHALLOW * few


def test_graphs_are_in_order_and_know_their_stages() -> None:
    made, _ = scheduled(SHALLOW, False)
    assert len(made.steps) > 30
    for step in made.steps:
        g = step.graph
        assert g.stages == ordered(g.stages)
        assert g.by_id == {t.id: t for t in (*g.leaves, *g.stages)}
        assert g.paths == {t.path for t in (*g.leaves, *g.stages)}
