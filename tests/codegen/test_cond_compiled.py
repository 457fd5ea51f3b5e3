"""Branches compiled: only the one that is taken runs, under default plans and others, forward and backward."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.expr import Expr
from fluorite.algo.numerics import compare
from fluorite.algo.rewriting import reads
from fluorite.codegen import driver
from fluorite.codegen.statements import Allocate, For, If, Kernel, Sequence, Statement, Store
from fluorite.codegen.target import resolve_target
from fluorite.codegen.tuning.graph_text import graph_data, graph_of
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.sections import Target

TARGET = resolve_target(Target(cpu="skylake-avx512"), threads=2)
Array = np.ndarray[Any, Any]


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def either(x: Any, w: Any, i: Any) -> Any:
    return fl.cond(
        fl.sum(x) > 0,
        lambda: fl.softmax(fl.tanh(x @ w), 1),
        lambda: fl.switch(i, [lambda: x @ (w * 3), lambda: fl.embedding(fl.argmax(x, 1), w), lambda: fl.sort(x @ w, 0)]),
    )


def plan_of(text: str) -> ExecutionPlan:
    return ExecutionPlan.from_yaml(text, "p.yaml")


def agrees(g: fl.Graph, *inputs: Array, plan: ExecutionPlan | None = None) -> Any:
    got = fl.compile(g, plan)(*inputs)
    for found in compare(g, None, inputs, got):
        assert found.ok, found.text()
    return got


def kernels(g: fl.Graph, plan: ExecutionPlan | None = None) -> tuple[fl.Graph, tuple[Kernel, ...]]:
    (made,) = driver.lower_variants(g, driver.prepared(plan or ExecutionPlan(), g)[0], TARGET)
    return made.graph, made.kernels


def stores(s: Statement, under: tuple[Expr, ...] = ()) -> Iterator[tuple[int, tuple[Expr, ...]]]:
    """Every store's buffer, and the conditions around it."""
    match s:
        case Store():
            yield s.buffer, under
        case If():
            yield from stores(s.then, (*under, s.condition))
            if s.otherwise is not None:
                yield from stores(s.otherwise, under)
        case For() | Allocate():
            yield from stores(s.body, under)
        case Sequence():
            for p in s.body:
                yield from stores(p, under)


def asked(g: fl.Graph, kernel: Kernel) -> None:
    """Every store of a conditional stage stands under what its condition reads."""
    for buffer, under in stores(kernel.body):
        found = g.by_id.get(buffer)
        if isinstance(found, fl.Stage) and found.when is not None:
            there = {r.source for c in under for r in reads(c)}
            assert {r.source for r in reads(found.when)} <= there, kernel.text()


INPUTS = {"x": fl.f32("n", 7), "w": fl.f32(7, 7), "i": fl.i32()}


def test_no_store_of_a_branch_is_made_without_asking() -> None:
    for fn in (either, fl.grad(lambda x, w, i: fl.sum(either(x, w, i)[:, 0]), (0, 1))):
        g, found = kernels(fl.trace(fn, inputs=INPUTS))
        assert sum(s.when is not None for s in g.stages) > 3
        for k in found:
            asked(g, k)


@pytest.mark.parametrize("n", [7, 1, 19])
def test_every_branch(n: int) -> None:
    g = fl.trace(either, inputs=INPUTS)
    derived = fl.trace(fl.grad(lambda x, w, i: fl.sum(fl.square(either(x, w, i))), (0, 1)), inputs=INPUTS)
    w = numbers(7, 7, seed=1)
    for sign, i in [(1, 0), (-1, 0), (-1, 1), (-1, 2)]:
        x = sign * np.abs(numbers(n, 7))
        agrees(g, x, w, np.array(i, np.int32))
        agrees(derived, x, w, np.array(i, np.int32))


def test_the_other_branch_takes_no_time() -> None:
    def fn(x: Any, p: Any) -> Any:
        return fl.cond(p, lambda: (x @ x) @ (x @ x) @ x @ x, lambda: x + 1)

    model = fl.compile(fl.trace(fn, inputs={"x": fl.f32(512, 512), "p": fl.boolean()}))
    x = numbers(512, 512) / 30

    def seconds(p: bool) -> float:
        best = 1e9
        for _ in range(5 if p else 50):  # a thread may wait for a core
            start = perf_counter()
            model(x, np.array(p))
            best = min(best, perf_counter() - start)
        return best

    assert seconds(True) > 5 * seconds(False)


def stepping(x: Any) -> Any:
    def step(h: Any, e: Any) -> Any:
        h = fl.cond(fl.sum(h * e) > 0, lambda: fl.tanh(h + e), lambda: h * 0.5 - fl.exp(e))
        return h, fl.cond(fl.sum(e) > 0, lambda: fl.exp(e), lambda: h)

    return fl.scan(step, fl.ones((x.shape[1],)), x)


@pytest.mark.parametrize("width", [1, 3, 16, 19])
def test_in_a_scan(width: int) -> None:
    g = fl.trace(stepping, inputs={"x": fl.f32("t", width)})
    for steps in (1, 2, 9):
        agrees(g, numbers(steps, width))
    derived = fl.trace(fl.grad(lambda x: fl.sum(stepping(x)[1])), inputs={"x": fl.f32(6, width)})
    agrees(derived, numbers(6, width))


def test_a_step_asks_inside_the_loop() -> None:
    def fn(x: Any, w: Any) -> Any:
        return fl.scan(lambda h, e: (fl.cond(e > 0, lambda: h @ w, lambda: h), None), fl.ones((3, 24)), x)[0]

    g = fl.trace(fn, inputs={"x": fl.f32("t"), "w": fl.f32(24, 24)})
    made, found = kernels(g)
    for k in found:
        asked(made, k)
    agrees(g, numbers(7), numbers(24, 24, seed=1) / 5)


def test_around_a_scan() -> None:
    def fn(x: Any) -> Any:
        def walk(x: Any) -> Any:
            return fl.scan(lambda h, e: (fl.tanh(h * 0.5 + e), h), fl.zeros(x.shape[1]), x)

        return fl.cond(fl.sum(x) > 0, walk, lambda x: (fl.sum(x, 0), fl.exp(x)), x)

    g = fl.trace(fn, inputs={"x": fl.f32("t", 5)})
    for sign in (1, -1):
        for n in (1, 6):
            agrees(g, sign * np.abs(numbers(n, 5)))


def choosing(x: Any, w: Any, p: Any) -> Any:
    return fl.cond(fl.all(p), lambda: fl.relu(x @ w), lambda: fl.max(x, 1, keepdims=True) + w[:1])


@pytest.mark.parametrize(
    "lines",
    [
        "cond/then/matmul: [{tile: {i: 2, j: 16}}, {vectorize: j_inner}]",
        "cond/then/matmul: [{cache: {into: acc, order: [j, i]}}]",
        "cond/then/matmul: [{rfactor: {axis: k, factor: 4}}]",
        "cond/then/matmul: [{pack: {tensor: x, sizes: {k: 8}, order: [i, k], into: packed}}]",
        "cond/then/matmul: [{stage_in: {read: w, into: near}}]",
        "cond/then/matmul: [{compute_at: {stage: cond/then/relu, axis: i}}]",
        "cond/then/relu: [compute_root, {parallel: i}]",
        "cond/otherwise/max: [{layout: [i0]}]",
        "all: [compute_root]",
    ],
)
def test_plans(lines: str) -> None:
    g = fl.trace(choosing, inputs={"x": fl.f32(9, 11), "w": fl.f32(11, 19), "p": fl.boolean(3)})
    plan = plan_of(f"version: 1\nnumerics: {{allow: reassociates}}\nschedule:\n  {lines}\n")
    for p in (True, False):
        agrees(g, numbers(9, 11), numbers(11, 19, seed=1), np.array([True, p, True]), plan=plan)


def test_a_condition_is_computed_before_what_it_decides() -> None:
    g = fl.trace(choosing, inputs={"x": fl.f32(9, 11), "w": fl.f32(11, 19), "p": fl.boolean(3)})
    plan = plan_of("version: 1\nschedule:\n  cond/then/matmul: [compute_root]\n  all: [{compute_at: {stage: cond/then/matmul, axis: i}}]\n")
    with pytest.raises(fl.PlanError) as caught:
        kernels(g, plan)
    assert caught.value.problems[0].code == "P273" and "decides whether" in caught.value.text(), caught.value.text()


def test_a_condition_may_be_written_into_what_it_decides() -> None:
    g = fl.trace(lambda x: fl.cond(x[0] > 0, lambda: fl.exp(x), lambda: x), inputs={"x": fl.f32(9)})
    (test,) = [s.path.split("/", 1)[1] for s in g.stages if s.id in g.conditions]
    plan = plan_of(f"version: 1\nschedule:\n  {test}: [compute_inline]\n  cond/then/exp: [compute_root]\n")
    for sign in (1, -1):
        agrees(g, sign * np.abs(numbers(9)), plan=plan)
    assert test not in {s.path.split("/", 1)[1] for s in kernels(g, plan)[0].stages}


def test_conditions_travel_with_the_graph() -> None:
    g = fl.trace(choosing, inputs={"x": fl.f32(9, 11), "w": fl.f32(11, 19), "p": fl.boolean(3)})
    assert graph_of(graph_data(g)).text() == g.text()


def test_parameters_in_branches_are_packed_once() -> None:
    class Two(fl.Program):
        def __init__(self) -> None:
            self.a, self.b = fl.nn.Linear(24, 32), fl.nn.Linear(24, 32)

        @fl.method
        def infer(self, x: fl.f32[fl.Tensor, "n", 24]) -> Any:
            return fl.cond(fl.mean(x) > 0, self.a, self.b, x)

    program = Two()
    model = fl.compile(program)
    parameters = {k: np.asarray(v) for k, v in model.parameters.items()}
    for sign, name in ((1, "a"), (-1, "b")):
        x = sign * np.abs(numbers(5, 24))
        w, b = (next(v for k, v in parameters.items() if k.startswith(f"{name}/") and v.ndim == n) for n in (2, 1))
        np.testing.assert_allclose(model.infer(x), x @ w + b, rtol=1e-4, atol=1e-5)
    (made,) = driver.lower_variants(graph := fl.trace(program), driver.prepared(ExecutionPlan(), graph)[0], TARGET)
    assert sum("packed" in name for name in made.setup) == 2, made.setup


class Counter(fl.Program):
    """State that one branch changes, both change, and an inner branch changes."""

    def __init__(self) -> None:
        self.count = fl.state(init=0, dtype=fl.i32)
        self.mean = fl.state(n=3, init=0.5)
        self.kept = fl.state(n=3, init=2.0)

    @fl.method
    def step(self, x: fl.f32[fl.Tensor, 3]) -> Any:
        def up(x: Any) -> Any:
            self.count = self.count + 1
            self.mean = self.mean * 0.5 + x * 0.5

            def far() -> Any:
                self.count = self.count + 10
                return self.mean

            return fl.cond(fl.max(x) > 2, far, lambda: self.mean * 2)

        def down(x: Any) -> Any:
            self.count = self.count - 1
            return x

        return fl.cond(fl.sum(x) > 0, up, down, x)

    @fl.method
    def read(self) -> Any:
        return self.count, self.mean, self.kept


def test_state_that_branches_change() -> None:
    model = fl.compile(Counter())
    count, mean = 0, np.full(3, 0.5, np.float32)
    for k, x in enumerate([[1, 1, 1], [-1, 0, 0], [3, 0, 0], [1, 0, -0.5], [-1, -1, -1]]):
        v = np.array(x, np.float32)
        got = model.step(v)
        if v.sum() > 0:
            mean = mean * np.float32(0.5) + v * np.float32(0.5)
            count += 11 if v.max() > 2 else 1
            wanted = mean if v.max() > 2 else mean * 2
        else:
            count, wanted = count - 1, v
        np.testing.assert_allclose(got, wanted, rtol=1e-6, err_msg=str(k))
        found = model.read()
        assert found[0] == count
        np.testing.assert_allclose(found[1], mean, rtol=1e-6)
        np.testing.assert_array_equal(found[2], np.full(3, 2.0, np.float32))
