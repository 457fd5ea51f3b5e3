"""Recurrences compiled: against the oracle on awkward extents, under the default plan and under others; and what plans may not do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import PlanError
from fluorite.algo.numerics import compare
from fluorite.codegen import driver
from fluorite.codegen.target import resolve_target
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.sections import Target

TARGET = resolve_target(Target(cpu="skylake-avx512"), threads=2)
SHAPES = [(1, 1), (1, 33), (7, 16), (17, 5), (33, 1), (9, 300), (64, 8), (3, 17)]
Fn = Callable[..., Any]


def columns(x: Any) -> Any:
    return fl.cumulative_sum(x, 0, name="run")


def rows(x: Any) -> Any:
    return fl.cumulative_sum(x, 1, name="run")


def backward(x: Any) -> Any:
    return fl.linear_recurrence(0.5, x, 0, reverse=True, name="run")


def filtered(x: Any) -> Any:
    return fl.lfilter([1.0, 0.5], [1.0, -0.5, 0.25], x, 0, name="run")


def mirrored(x: Any) -> Any:
    """Reads the other end of the row before: no axis but the clock is free."""
    m = x.shape[1]
    return fl.recurrence(lambda h, t, i: 0.5 * fl.where(t >= 1, h[t - 1, m - 1 - i], 0) + x[t, i], name="run")


def slanted(x: Any) -> Any:
    return fl.recurrence(lambda h, t, i: fl.where((t >= 1) & (i >= 1), h[t - 1, i - 1], 0) + x[t, i], name="run")


def looking_ahead(x: Any) -> Any:
    """The clock is the second axis, and the value depends on the first across it."""
    n = x.shape[0]
    return fl.recurrence(lambda h, i, t: 0.5 * fl.where(t >= 1, h[n - 1 - i, t - 1], 0) + x[i, t], name="run")


def means(x: Any) -> Any:
    """A sum at the root of the stage, over earlier positions."""
    m = x.shape[1]
    return fl.recurrence(lambda h, t, i: fl.sum(lambda k: fl.where(t >= 1, h[t - 1, k], x[t, k]) / m, over={"k": m}) * x[t, i], name="run")


def followed(x: Any) -> Any:
    """Stages before and after, which read it along and across its clock."""
    run = fl.cumulative_sum(fl.exp(x) * 0.01, 0, name="run")
    return {"soft": fl.softmax(run, 1), "last": run[-1], "total": fl.sum(run, 0), "turned": fl.transpose(run) * 2}


ALL = [columns, rows, backward, filtered, mirrored, slanted, looking_ahead, means, followed]


def agrees(fn: Fn | fl.Graph, *inputs: np.ndarray[Any, Any], plan: str | None = None, **specs: Any) -> Any:
    g = fn if isinstance(fn, fl.Graph) else fl.trace(fn, inputs=specs)
    got = fl.compile(g, ExecutionPlan.from_yaml(plan, "p.yaml") if plan else None)(*inputs)
    for found in compare(g, None, inputs, got):
        assert found.ok, found.text()
    return got


def numbers(shape: tuple[int, ...], seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("fn", ALL, ids=lambda f: f.__name__)
def test_symbolic_extents(fn: Fn) -> None:
    g = fl.trace(fn, inputs={"x": fl.f32("n", "m")})
    for shape in SHAPES:
        agrees(g, numbers(shape))


@pytest.mark.parametrize("fn", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(1, 1), (17, 5), (3, 33), (40, 16)])
def test_fixed_extents(fn: Fn, shape: tuple[int, int]) -> None:
    agrees(fn, numbers(shape), x=fl.Spec("float32", ("n", "m"), shape))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_nothing_to_walk(shape: tuple[int, int]) -> None:
    for fn in (columns, rows, backward, slanted):
        assert agrees(fn, numbers(shape), x=fl.Spec("float32", ("n", "m"), shape)).shape == shape


@pytest.mark.parametrize("dtype", ["float64", "int8", "int32", "int64", "uint8", "bool"])
def test_types(dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, (19, 21)).astype(dtype)
    for axis in (0, 1):
        for op in (fl.cumulative_sum, fl.cumulative_max):
            agrees(lambda x: op(x, axis), x, x=fl.Spec(dtype, ("n", "m"), (19, 21)))  # noqa: B023


@pytest.mark.parametrize(
    "directives",
    [
        "[{split: {axis: n, factor: 5}}]",
        "[{split: {axis: n, factor: 4}}, {unroll: n_inner}]",
        "[{unroll: {axis: n, factor: 4}}]",
        "[{tile: {n: 4, m: 8}}]",
        "[{reorder: [m, n]}]",
        "[{reorder: [m, n]}, {parallel: m}]",
        "[{split: {axis: m, factor: 8}}, {reorder: [m_outer, n, m_inner]}, {parallel: m_outer}, {vectorize: m_inner}]",
        "[{split: {axis: m, factor: 16, tail: shift}}, {reorder: [m_outer, n, m_inner]}, {parallel: m_outer}, {vectorize: m_inner}]",
        "[{parallel: m}]",
        "[{vectorize: {axis: m, width: native}}]",
        "[{split: {axis: m, factor: 8}}, {reorder: [m_outer, m_inner, n]}, {unroll: m_inner}]",
        "[compute_root]",
    ],
)
def test_legal_plans(directives: str) -> None:
    plan = f"version: 1\nschedule:\n  run: {directives}\n"
    for fn in (columns, backward, filtered):
        g = fl.trace(fn, inputs={"x": fl.f32("n", "m")})
        for shape in [(1, 1), (7, 16), (17, 5), (9, 33)]:
            agrees(g, numbers(shape), plan=plan)


def refused(fn: Fn, directives: str, more: str = "") -> fl.Problem:
    g = fl.trace(fn, inputs={"x": fl.f32("n", "m")})
    plan = ExecutionPlan.from_yaml(f"version: 1\nschedule:\n  run: {directives}\n{more}", "p.yaml")
    with pytest.raises(PlanError) as caught:
        driver.lower_variants(g, driver.prepared(plan, g)[0], TARGET)
    return caught.value.problems[0]


@pytest.mark.parametrize(
    ("fn", "directives", "code", "says"),
    [
        (columns, "[{parallel: n}]", "P272", "its steps run one after the other"),
        (columns, "[{vectorize: {axis: n, width: 8}}]", "P272", "vectorize: n_inner of run"),
        (columns, "[{fuse: {axes: [n, m]}}]", "P272", "fused"),
        (columns, "[{split: {axis: n, factor: 4}}, {reorder: [n_inner, n_outer]}]", "P272", "no longer run in its order"),
        (mirrored, "[{reorder: [i, t]}]", "P272", "i runs inside t"),
        (slanted, "[{split: {axis: i, factor: 8}}, {reorder: [i_outer, t, i_inner]}]", "P272", "i_outer runs inside t"),
        (columns, "[{cache: {into: acc}}]", "P271", "the next step reads what it stores"),
        (columns, "[compute_inline]", "P271", "the next step reads what it stores"),
        (columns, "[{pack: {tensor: run, sizes: {m: 8}, order: [m, n], into: packed}}]", "P271", "pack run"),
    ],
)
def test_plans_that_break_the_order_are_refused(fn: Fn, directives: str, code: str, says: str) -> None:
    problem = refused(fn, directives)
    assert problem.code == code and says in problem.text() and problem.line == 3, problem.text()


def test_a_consumer_may_keep_a_recurrence_row_by_row() -> None:
    """A running sum along the row is computed where its reader needs the row: all of the row, from its start."""

    def fn(x: Any) -> Any:
        run = fl.cumulative_sum(x, 1, name="run")
        return fl.stage(lambda i, j: run[i, j] * 2 + 1, name="out")

    g = fl.trace(fn, inputs={"x": fl.f32("n", "m")})
    plan = "version: 1\nschedule:\n  out: [{parallel: i}]\n  run: [{compute_at: {stage: out, axis: i}}]\n"
    for shape in SHAPES:
        agrees(g, numbers(shape), plan=plan)


def test_recurrences_across_places_are_not_computed_at_a_loop() -> None:
    def fn(x: Any) -> Any:
        run = slanted(x)
        return fl.stage(lambda i, j: run[i, j] * 2, name="out")

    assert refused(fn, "[{compute_at: {stage: out, axis: i}}]").code == "P273"


def test_default_plans_keep_the_order_and_can_be_written_down() -> None:
    """What the default scheduler does is legal as a plan of one's own, and means the same."""
    for fn in (columns, rows, filtered, mirrored, means):
        g = fl.trace(fn, inputs={"x": fl.f32("n", "m")})
        chosen, _ = driver.prepared(ExecutionPlan(), g)
        text = driver.schedule(g, chosen, TARGET).text()
        assert not driver.schedule(g, driver.prepared(ExecutionPlan.from_yaml(text, "d.yaml"), g)[0], TARGET).problems
        agrees(g, numbers((19, 21)), plan=text)


def test_first_steps_stand_apart() -> None:
    """The steady loop tests nothing and reads only what is there."""
    g = fl.trace(columns, inputs={"x": fl.f32("n=100", "m=64")})
    (made,) = driver.lower_variants(g, driver.prepared(ExecutionPlan(), g)[0], TARGET)
    text = made.text()
    assert "for n in 0..1:" in text and "for n in 1..1 + (99):" in text
    assert "where" not in text.split("for n in 1..")[1]


def test_building_and_checking_a_file_of_recurrences() -> None:
    report = fl.check(fl.trace(followed, inputs={"x": fl.f32("n", "m")}), None)
    assert report.ok and report.cases, report.text()


@pytest.mark.parametrize("batch", [1, 7, 8, 17, "n"])
def test_products_of_steps_are_tiles_of_registers(batch: int | str) -> None:
    """Forward and backward: the weights that a gradient reads along the other axis are packed once, before all steps."""

    def states(x: Any, w: Any) -> Any:
        def step(h: Any, fed: Any) -> Any:
            h = fl.tanh(fed + fl.matmul(h, w, name="kept"), name="h")
            return h, h

        return fl.scan(step, fl.zeros((x.shape[1], 32)), x)[1]

    def both(x: Any, w: Any) -> Any:
        value, pullback = fl.vjp(states, x, w)
        return value, pullback(value)

    g = fl.trace(both, inputs={"x": fl.f32("t", batch, 32), "w": fl.f32(32, 32)})
    for n in (1, 3, 8) if batch == "n" else (int(batch),):
        agrees(g, numbers((5, n, 32)), numbers((32, 32), 1) * 0.2)
    lowered = driver.lower_variants(g, driver.prepared(ExecutionPlan(), g)[0], TARGET)[0]
    steps = [k.text() for k in lowered.kernels if "[t - 1, " in k.text() or "0 - t + " in k.text()]
    assert len(steps) == 2 and "packed" in steps[1] and not any("kept_acc[0]" in text for text in steps)
    assert ("unrolled for i" in steps[0]) == (batch in (7, 8)), "rows of a tile share the weights: all of 7, none of 17"


def test_weights_that_another_stage_hands_on_are_not_packed_by_name() -> None:
    """The stage in between costs nothing and is written into the product, which the plan names before that happens."""

    def states(x: Any, w: Any) -> Any:
        turned = fl.stage(lambda i, j: w[j, i], name="turned")

        def step(h: Any, fed: Any) -> Any:
            h = fl.tanh(fed + fl.matmul(h, turned, name="kept"), name="h")
            return h, h

        return fl.scan(step, fl.zeros((x.shape[1], 32)), x)[1]

    agrees(states, numbers((5, 3, 32)), numbers((32, 32), 1) * 0.2, x=fl.f32("t", 3, 32), w=fl.f32(32, 32))


@pytest.mark.parametrize("compute", ["bf16", "f16"])
def test_recurrences_train_in_narrow_types(compute: str) -> None:
    class Net(fl.Program):
        def __init__(self) -> None:
            self.layer, self.optimizer = fl.nn.LSTM(4, 16, batch_first=True), fl.optim.SGD(0.1)

        @fl.method(training=True)
        def train_step(self, x: fl.f32[fl.Tensor, 2, 3, 4], lengths: fl.i32[fl.Tensor, 2]) -> fl.Tensor:
            cost = fl.mean(fl.square(self.layer(x, lengths=lengths)[0]), name="cost")
            self.optimizer.minimize(cost)
            return cost

    plan = ExecutionPlan.from_yaml(f"version: 1\nprecision: {{compute: {compute}, keep: [cost], loss_scale: dynamic}}\n", "p.yaml")
    report = fl.check(Net(), plan)
    assert report.ok and report.numerics == "precision", report.text()
