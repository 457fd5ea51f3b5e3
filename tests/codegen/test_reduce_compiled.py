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


def join(a: Any, b: Any) -> Any:
    """Pairs of the largest and of the sum of exponentials below it."""
    top = fl.maximum(a[0], b[0])
    return top, a[1] * fl.exp(a[0] - top) + b[1] * fl.exp(b[0] - top)


def better(a: Any, b: Any) -> Any:
    later = (b[0] > a[0]) | ((b[0] == a[0]) & (b[1] < a[1]))
    return fl.where(later, b[0], a[0]), fl.where(later, b[1], a[1])


def compose(a: Any, b: Any) -> Any:
    return b[0] * a[0], b[0] * a[1] + b[1]


def parts(x: Any) -> Any:
    def log_sum(k: Any) -> Any:
        top, scaled = fl.reduce(join, (-1e30, 0.0), lambda i: (x[i, k], 1.0))
        return top + fl.log(scaled)

    return {
        "rows": fl.stage(lambda i: fl.reduce(better, (-1e30, 2**31 - 1), lambda k: (x[i, k], k))[1], name="rows"),
        "columns": fl.stage(log_sum, name="columns"),
        "all": fl.stage(lambda: fl.reduce(better, (-1e30, 2**31 - 1), lambda i, k: (x[i, k], i))[1], name="all"),
        "decayed": fl.stage(lambda i: fl.reduce(compose, (1.0, 0.0), lambda k: (0.5 - x[i, k], x[i, k]))[1], name="decayed"),
        "of two axes": fl.stage(lambda: fl.reduce(compose, (1.0, 0.0), lambda i, k: (0.5 - x[i, k], x[i, k]))[1], name="flat"),
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


OF_PARTS = """schedule:
  rows/reduce: [{rfactor: {axis: k, factor: 5}}, {parallel: i}]
  rows/reduce/partial: [{compute_at: {stage: rows/reduce, axis: i}}, {store_in: stack}, {reorder: [k_outer, k_inner]}, {vectorize: k_inner}]
  columns/reduce: [{split: {axis: k, factor: 8}}, {reorder: [k_outer, i, k_inner]}, {vectorize: k_inner}]
  decayed/reduce: [{split: {axis: k, factor: 4}}, {parallel: i}]
  flat/reduce: [{rfactor: {axis: i, factor: 3}}]
"""


@pytest.mark.parametrize("plan", ["", "numerics: {allow: exact}\n", OF_PARTS], ids=["default", "exact", "by hand"])
def test_kernels_of_parts(plan: str) -> None:
    agrees(parts, plan)


def test_parts_have_no_loop() -> None:
    with pytest.raises(PlanError) as caught:
        driver.compile(fl.trace(parts, inputs=X), ExecutionPlan.from_yaml("schedule: {rows/reduce: [{parallel: part}]}", "p.yaml"))
    assert "the parts of an element are combined together" in caught.value.problems[0].why


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
        ("schedule: {all: [{reorder: [k, i]}, {fuse: [k, i]}]}", "P214"),
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
    agrees(lambda x: fl.grad(lambda x: fl.sum(fl.sin(parts(x)["columns"])) + fl.sum(parts(x)["decayed"]))(x), sizes=SIZES[:3])
    ties = np.zeros((2, 5), np.float32)
    top = fl.trace(lambda x: fl.grad(lambda x: fl.sum(fl.stage(lambda i: fl.reduce(fl.maximum, -np.inf, lambda k: x[i, k]))))(x), inputs=X)
    np.testing.assert_allclose(top.run(ties).sum(1), 1)  # shared out, whatever the ties


def test_every_pass_keeps_the_meaning() -> None:
    found = verify_each(fl.trace(lasts, inputs=X), ExecutionPlan.from_yaml("precision: {compute: bf16, keep: [rows]}\n", "p.yaml"))
    assert found.first_wrong is None, found.text()
    found = verify_each(fl.trace(parts, inputs=X), ExecutionPlan.from_yaml("precision: {compute: bf16, keep: [rows]}\n", "p.yaml"))
    assert found.first_wrong is None, found.text()
