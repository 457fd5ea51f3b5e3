"""fl.reduce as kernels: against the interpreter on awkward extents, under plans, with gradients, and what is refused."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import PlanError
from fluorite.algo.numerics import compare
from fluorite.codegen import driver
from fluorite.codegen.verifying import verify_each
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.default import default_schedule
from fluorite.schedule.machine import Machine
from fluorite.schedule.scheduled import apply

SIZES = [(1, 1), (7, 3), (17, 129), (64, 1000), (2, 70001)]
MACHINE = Machine("llvm", 64, 32, 2)
X = {"x": fl.f32("n", "m")}


def either(a: Any, b: Any) -> Any:
    return a + b - a * b


def last(a: Any, b: Any) -> Any:
    return fl.where(b != 0, b, a)


def chances(x: Any) -> Any:
    return {
        "rows": fl.stage(lambda i: fl.reduce(either, 0.0, lambda k: x[i, k]), name="rows"),
        "columns": fl.stage(lambda k: fl.reduce(either, 0.0, lambda i: x[i, k]), name="columns"),
        "all": fl.stage(lambda: fl.reduce(either, 0.0, lambda i, k: x[i, k]), name="all"),
    }


def lasts(x: Any) -> Any:
    return {
        "rows": fl.stage(lambda i: fl.reduce(last, 0.0, lambda k: x[i, k]), name="rows"),
        "columns": fl.stage(lambda k: fl.reduce(last, 0.0, lambda i: x[i, k]), name="columns"),
        "all": fl.stage(lambda: fl.reduce(last, 0.0, lambda i, k: x[i, k]), name="all"),
    }


def given(n: int, m: int) -> np.ndarray[Any, Any]:
    """Chances, most of them 0."""
    g = np.random.default_rng(m)
    return np.where(g.random((n, m)) < 0.8, 0, g.random((n, m)) / m).astype(np.float32)


def agrees(fn: Any, plan: str = "", sizes: Any = SIZES) -> None:
    g = fl.trace(fn, inputs=X)
    model = driver.compile(g, ExecutionPlan.from_yaml(plan, "p.yaml") if plan else None)
    for n, m in sizes:
        x = given(n, m)
        found = compare(g, None, (x,), getattr(model, g.methods[0].name)(x))
        assert all(c.ok for c in found), (n, m, [c.text() for c in found])


PLANS = [
    "",
    "numerics: {allow: exact}\n",
    "schedule: {rows: [{rfactor: {axis: k, factor: 5}}], columns: [{split: {axis: k, factor: 8}}, {reorder: [k_outer, i, k_inner]}, "
    "{vectorize: k_inner}], all: [{rfactor: {axis: i, factor: 3}}]}\n",
]


@pytest.mark.parametrize("plan", PLANS, ids=["default", "exact", "by hand"])
@pytest.mark.parametrize("fn", [chances, lasts])
def test_kernels(fn: Any, plan: str) -> None:
    agrees(fn, plan)


def test_lanes_and_threads_are_shared_out_if_it_commutes_and_runs_if_not() -> None:
    found = {}
    for fn in (chances, lasts):
        g = fl.trace(lambda x, fn=fn: fn(x)["all"], inputs={"x": fl.f32(64, 65536)})
        found[fn] = apply(ExecutionPlan(), g, MACHINE, default_schedule).text()
    assert "tasks" in found[chances] and "vectorize" in found[chances]
    assert "tasks" in found[lasts] and "vectorize" not in found[lasts]


@pytest.mark.parametrize(
    "plan, code",
    [
        ("schedule: {all: [{reorder: [k, i]}]}", "P214"),
        ("schedule: {all: [{rfactor: {axis: k, factor: 4}}]}", "P222"),
        ("schedule: {rows: [{split: {axis: k, factor: 4}}, {reorder: [k_inner, k_outer]}]}", "P214"),
    ],
)
def test_what_does_not_commute_keeps_its_order(plan: str, code: str) -> None:
    g = fl.trace(lasts, inputs=X)
    with pytest.raises(PlanError) as caught:
        driver.compile(g, ExecutionPlan.from_yaml(plan, "p.yaml"))
    (problem,) = caught.value.problems
    assert problem.code == code and "does not commute" in problem.why
    agrees(chances, plan, SIZES[:3])


def test_gradients() -> None:
    agrees(lambda x: fl.grad(lambda x: fl.sum(fl.stage(lambda i: fl.reduce(either, 0.0, lambda k: x[i, k])) ** 2))(x), sizes=SIZES[:3])
    ties = np.zeros((2, 5), np.float32)
    top = fl.trace(lambda x: fl.grad(lambda x: fl.sum(fl.stage(lambda i: fl.reduce(fl.maximum, -np.inf, lambda k: x[i, k]))))(x), inputs=X)
    np.testing.assert_allclose(top.run(ties).sum(1), 1)  # shared out, whatever the ties


def test_every_pass_keeps_the_meaning() -> None:
    found = verify_each(fl.trace(lasts, inputs=X), ExecutionPlan.from_yaml("precision: {compute: bf16, keep: [rows]}\n", "p.yaml"))
    assert found.first_wrong is None, found.text()
