"""Stages that a plan computes inside one another."""

from __future__ import annotations

import fluorite as fl
import pytest
from fluorite.algo.errors import PlanError
from fluorite.schedule import ExecutionPlan


def test_stages_inside_one_another_are_refused() -> None:
    def chain(x: fl.f32[fl.Tensor, 8, 8]) -> fl.Tensor:
        a = fl.stage(lambda i, j: x[i, j] + 1, name="a")
        b = fl.stage(lambda i, j: a[i, j] * 2, name="b")
        return fl.stage(lambda i, j: b[i, j] - 1, name="c")

    text = "version: 1\nschedule:\n  a: [{compute_at: {stage: b, axis: i}}]\n  b: [{compute_at: {stage: a, axis: i}}]\n"
    with pytest.raises(PlanError) as caught:
        fl.compile(chain, ExecutionPlan.from_yaml(text))
    assert {p.code[0] for p in caught.value.problems} == {"P"} and all(p.line for p in caught.value.problems)
