"""Loops of unknown length compiled: one kernel that turns by itself, under default plans and others; scans of very many steps."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.numerics import compare
from fluorite.codegen import driver
from fluorite.codegen.statements import Kernel, While, walk
from fluorite.codegen.target import resolve_target
from fluorite.codegen.tuning.graph_text import graph_data, graph_of
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.sections import Target

TARGET = resolve_target(Target(cpu="skylake-avx512"), threads=2)
Array = np.ndarray[Any, Any]


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def agrees(g: fl.Graph, *inputs: Array, plan: str | None = None) -> Any:
    got = fl.compile(g, ExecutionPlan.from_yaml(plan, "p.yaml") if plan else None)(*inputs)
    for found in compare(g, None, inputs, got):
        assert found.ok, found.text()
    return got


def kernels(g: fl.Graph, plan: str | None = None) -> tuple[Kernel, ...]:
    chosen = ExecutionPlan.from_yaml(plan, "p.yaml") if plan else ExecutionPlan()
    (made,) = driver.lower_variants(g, driver.prepared(chosen, g)[0], TARGET)
    return made.kernels


def powers(m: Any, v: Any, n: Any) -> Any:
    """v, times m as often as n says, divided by its length each time."""

    def body(c: Any) -> Any:
        v, k = c
        w = v @ m
        return w / fl.sqrt(fl.sum(w * w)), k + 1

    return fl.while_loop(lambda c: c[1] < n, body, (v, 0))


POWERS = {"m": fl.f32("k", "k"), "v": fl.f32("rows", "k"), "n": fl.i32()}


@pytest.mark.parametrize("size", [1, 3, 16, 19])
def test_turns_are_one_kernel(size: int) -> None:
    g = fl.trace(powers, inputs=POWERS)
    found = [k for k in kernels(g) if any(isinstance(s, While) for s in walk(k.body))]
    assert len(found) == 1 and "while" in found[0].text()
    for rows in (1, 5):
        for n in (0, 1, 6):
            agrees(g, numbers(size, size), numbers(rows, size, seed=1), np.array(n, np.int32))


def swapped(x: Any, y: Any, n: Any) -> Any:
    return fl.while_loop(lambda c: c[2] < n, lambda c: (c[1], c[0] * 0.5, c[2] + 1, x[::-1]), (x, y, 0, x))


def inside(x: Any, n: Any) -> Any:
    def body(c: Any) -> Any:
        x, k = c
        even = fl.cond(k % 2 == 0, lambda: x * 0.5, lambda: fl.sort(x))
        walked = fl.scan(lambda h, e: (h * 0.5 + e, h), fl.zeros(()), even)[1]
        return walked + even, k + 1

    return fl.while_loop(lambda c: c[1] < n, body, (x, 0))


def around(x: Any, n: Any) -> Any:
    def twice(x: Any) -> Any:
        return fl.while_loop(lambda c: c[1] < n, lambda c: (c[0] * 2, c[1] + 1), (x, 0))[0]

    return fl.cond(fl.sum(x) > 0, twice, lambda x: fl.exp(x), x)


@pytest.mark.parametrize("size", [1, 4, 17])
def test_places_branches_scans_and_what_is_around(size: int) -> None:
    for n in (0, 1, 4, 5):
        times = np.array(n, np.int32)
        agrees(fl.trace(swapped, inputs={"x": fl.f32("s"), "y": fl.f32("s"), "n": fl.i32()}), numbers(size), numbers(size, seed=1), times)
        agrees(fl.trace(inside, inputs={"x": fl.f32("s"), "n": fl.i32()}), numbers(size), times)
        for sign in (1, -1):
            agrees(fl.trace(around, inputs={"x": fl.f32("s"), "n": fl.i32()}), sign * np.abs(numbers(size)), times)


def test_a_condition_that_rounding_decides() -> None:
    """The number of turns is data: the same as the interpreter's where nothing is close."""

    def newton(x: Any) -> Any:
        def body(c: Any) -> Any:
            return (c[0] + x / c[0]) * 0.5, c[1] + 1

        return fl.while_loop(lambda c: fl.max(fl.abs(c[0] * c[0] - x)) > 1e-2, body, (fl.ones_like(x), 0))

    g = fl.trace(newton, inputs={"x": fl.f32("n")})
    model = fl.compile(g)
    for n in (1, 2, 33):
        x = np.linspace(1, 99, n, dtype=np.float32)
        got, wanted = model(x), g.run(x)
        np.testing.assert_allclose(got[0], np.sqrt(x), rtol=1e-3)
        assert got[1] == wanted[1] > 0 or n == 1


def test_integers_and_python() -> None:
    @fl.function
    def collatz(n: Any) -> Any:
        k = 0
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            k += 1
        return k

    g = fl.trace(collatz, inputs={"n": fl.i64()})
    model = fl.compile(g)
    for n, steps in ((1, 0), (7, 16), (27, 111), (97, 118)):
        assert model(np.array(n, np.int64)) == steps == g.run(np.array(n, np.int64))


@pytest.mark.parametrize(
    "lines",
    [
        "while/matmul: [{tile: {i: 2, j: 16}}, {vectorize: j_inner}]",
        "while/matmul: [{pack: {tensor: m, sizes: {j: 16}, order: [j, k], into: packed}}]",
        "while/matmul: [{pack: {tensor: carry, sizes: {k: 4}, order: [i, k], into: packed}}]",
        "while/matmul: [{stage_in: {read: carry, into: near}}]",
        "while/matmul: [{cache: {into: acc, order: [j, i]}}]",
        "while/matmul: [{rfactor: {axis: k, factor: 4}}]",
        "while/divide: [{parallel: i}]",
        "while/carry: [{vectorize: {axis: rows, width: 4}}]",
    ],
)
def test_plans(lines: str) -> None:
    g = fl.trace(powers, inputs={"m": fl.f32(19, 19), "v": fl.f32(5, 19), "n": fl.i32()})
    lines = lines.replace("axis: rows", f"axis: {next(s for s in g.stages if s.is_carry).axes[0].name}")
    plan = f"version: 1\nnumerics: {{allow: reassociates}}\nschedule:\n  {lines}\n"
    for n in (0, 3):
        agrees(g, numbers(19, 19), numbers(5, 19, seed=1), np.array(n, np.int32), plan=plan)


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ("while/carry: [compute_inline]", "P225"),
        ("while/divide: [compute_inline]", "P225"),
        ("while/less: [compute_inline]", "P225"),
        ("while/carry: [{layout: [b, a]}]", "P271"),
        ("while/divide: [{layout: [b, a]}]", "P226"),
        ("while/divide: [{compute_at: {stage: exp, axis: i0}}]", "P273"),
        ("while/matmul: [{compute_at: {stage: exp, axis: i0}}]", "P273"),
    ],
)
def test_refused_plans(lines: str, code: str) -> None:
    g = fl.trace(lambda m, v, n: fl.exp(powers(m, v, n)[0]), inputs={"m": fl.f32(19, 19), "v": fl.f32(5, 19), "n": fl.i32()})
    names = next(s for s in g.stages if s.path.endswith("/divide")).axis_names
    lines = lines.replace("[b, a]", f"[{names[1]}, {names[0]}]")
    lines = lines.replace("axis: i0", f"axis: {next(s for s in g.stages if s.name == 'exp').axis_names[0]}")
    with pytest.raises(fl.PlanError) as caught:
        kernels(g, f"version: 1\nschedule:\n  {lines}\n")
    assert caught.value.problems[0].code == code, caught.value.text()


def test_loops_travel_with_the_graph_and_state_may_be_what_comes_out() -> None:
    g = fl.trace(powers, inputs=POWERS)
    assert graph_of(graph_data(g)).text() == g.text()

    class Doubling(fl.Program):
        def __init__(self) -> None:
            self.x = fl.state(n=3, init=1.0)

        @fl.method
        def run(self, limit: fl.f32[fl.Tensor]) -> Any:
            self.x = fl.while_loop(lambda x: fl.sum(x) < limit, lambda x: x * 2, self.x)
            return fl.sum(self.x)

    model = fl.compile(Doubling())
    assert [float(model.run(np.float32(v))) for v in (5, 5, 50, 0)] == [6, 6, 96, 96]


def test_a_turn_is_no_call_of_python() -> None:
    g = fl.trace(
        lambda n: fl.while_loop(lambda c: c[1] < n, lambda c: (c[0] * 0.5 + 1, c[1] + 1), (fl.zeros(8), 0)), inputs={"n": fl.i32()}
    )
    model = fl.compile(g)

    def seconds(n: int) -> float:
        model(np.array(n, np.int32))
        return min(_timed(model, n) for _ in range(3))

    assert (seconds(200_000) - seconds(0)) / 200_000 < 2e-6


def _timed(model: Any, n: int) -> float:
    start = perf_counter()
    model(np.array(n, np.int32))
    return perf_counter() - start


def test_twenty_thousand_steps_and_their_gradient() -> None:
    def walked(x: Any, a: Any) -> Any:
        return fl.scan(lambda h, e: (fl.tanh(h * a + e), None), fl.zeros(()), x)[0]

    x, a = numbers(20_000), np.array(0.5, np.float32)
    h, d = 0.0, 0.0  # the derivative by a, forward
    for e in x.astype(np.float64):
        new = np.tanh(h * 0.5 + e)
        h, d = new, (1 - new * new) * (h + 0.5 * d)
    for steps in (20_000, "t"):
        inputs = {"x": fl.f32(steps), "a": fl.f32()}
        np.testing.assert_allclose(fl.compile(fl.trace(walked, inputs=inputs))(x, a), h, rtol=1e-5)
        derived = fl.trace(lambda x, a: fl.grad(walked, 1)(x, a), inputs=inputs)
        np.testing.assert_allclose(fl.compile(derived)(x, a), d, rtol=1e-4)


@pytest.mark.parametrize("depth", [3, 40])
def test_a_product_of_what_a_turn_makes_is_scheduled_as_any_other(depth: int) -> None:
    def halved(x: fl.Tensor, w: fl.Tensor) -> Any:
        def body(c: Any) -> Any:
            half = 0.5 * c[0]
            return half, fl.sum(x @ half)

        return fl.while_loop(lambda c: c[1] > 1.0, body, (w, fl.sum(x @ w)))

    g = fl.trace(halved, inputs={"x": fl.f32("n", depth), "w": fl.f32(depth, 5)})
    model = fl.compile(g)
    for n in (1, 4, 17):
        x, w = np.ones((n, depth), np.float32), np.ones((depth, 5), np.float32)
        for a, b in zip(model(x, w), g.run(x, w), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
