"""Results computed inside the nest of their reader: each element is made once, and stored whole."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import PlanError
from fluorite.algo.graph import Graph
from fluorite.codegen import driver
from fluorite.schedule import ExecutionPlan

INPUTS = {"x": fl.f32("n", "k"), "y": fl.f32("n", "k")}


def moments(x: Any, y: Any) -> Any:
    """A mean, a square, what is made of the two, and what is made of that: all of them results."""
    m = fl.stage(lambda i, j: 0.9 * x[i, j] + y[i, j], name="m")
    v = fl.stage(lambda i, j: x[i, j] * y[i, j], name="v")
    w = fl.stage(lambda i, j: m[i, j] / (v[i, j] * v[i, j] + 1), name="w")
    return m, v, w, fl.stage(lambda i, j: w[i, j] * 0.5 + m[i, j], name="mean")


PLANS = {
    "rows": ("mean: [{parallel: i}, {vectorize: {axis: j, width: 8}}]", "i"),
    "columns": ("mean: [{split: {axis: j, factor: 8}}, {reorder: [j_outer, i, j_inner]}, {vectorize: j_inner}]", "j_outer"),
    "tiles": ("mean: [{tile: {i: 4, j: 16}}, {parallel: i_outer}, {vectorize: {axis: j_inner, width: 8}}]", "j_outer"),
    "moved back": ("mean: [{split: {axis: i, factor: 4, tail: shift}}]", "i_outer"),
}


def built(f: Any, text: str) -> tuple[Any, Graph, int]:
    graph = fl.trace(f, None, inputs=INPUTS)
    compiled = driver.compile_graph(graph, ExecutionPlan.from_yaml(text, "p.yaml"), cache=False)
    return driver.assemble(compiled.manifest("model"), compiled.library, {}), graph, len(compiled.variants[0].kernels)


@pytest.mark.parametrize("name", PLANS)
def test_one_kernel_makes_all_of_them(name: str) -> None:
    owner, loop = PLANS[name]
    inside = f"[{{compute_at: {{stage: mean, axis: {loop}}}}}, {{vectorize: {{axis: j, width: 4}}}}]"
    model, graph, kernels = built(moments, f"schedule:\n  {owner}\n  m: {inside}\n  v: {inside}\n  w: {inside}\n")
    assert kernels == 1
    for n, k in [(1, 1), (1, 19), (7, 4), (16, 32), (33, 50)]:
        rng = np.random.default_rng(n * k)
        x, y = rng.random((n, k), np.float32), rng.random((n, k), np.float32)
        for got, wanted in zip(model(x, y), graph.run(x, y), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-6)


@pytest.mark.parametrize(
    "read",
    [lambda m, i, j: m[i, 0], lambda m, i, j: m[i, j] + m[i, j - 1], lambda m, i, j: m[j, i]],
)
def test_what_is_read_elsewhere_too_is_refused(read: Any) -> None:
    def model(x: Any, y: Any) -> Any:
        m = fl.stage(lambda i, j: x[i, j] + y[i, j], name="m")
        near = fl.edge(m)
        return m, fl.stage(lambda i, j: read(near, i, j) + x[i, j], name="w")

    with pytest.raises(PlanError) as caught:
        built(model, "schedule:\n  m: [{compute_at: {stage: w, axis: i}}]\n")
    assert [(p.code, p.line) for p in caught.value.problems] == [("P205", 2)]


def test_a_sum_that_is_a_result_takes_its_reader_into_its_own_loops() -> None:
    def model(x: Any, y: Any) -> Any:
        s = fl.stage(lambda i: fl.sum(lambda j: x[i, j]), name="s")
        return s, fl.stage(lambda i, j: y[i, j] / (s[i] + 1), name="w")

    with pytest.raises(PlanError) as caught:
        built(model, "schedule:\n  s: [{compute_at: {stage: w, axis: i}}]\n")
    (problem,) = caught.value.problems
    advice, _ = problem.try_
    assert problem.code == "P205" and advice == "w: [{compute_at: {stage: s, axis: i}}], the reader in its loops"
    made, graph, kernels = built(model, f"schedule: {{{advice.rpartition(',')[0]}}}")
    x, y = np.random.default_rng(0).random((2, 7, 19), np.float32)
    assert kernels == 1
    for got, wanted in zip(made(x, y), graph.run(x, y), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


class Line(fl.Program):
    def __init__(self) -> None:
        self.line, self.optimizer = fl.nn.Linear(19, 5), fl.optim.Adam(0.1)

    @fl.method(training=True)
    def train_step(self, x: fl.f32[fl.Tensor, 7, 19]) -> Any:
        self.optimizer.minimize(fl.mean(fl.square(self.line(x)), name="cost"))


def test_new_state_is_written_over_the_old() -> None:
    at = "[{compute_at: {stage: update/optimizer/line/w, axis: in}}, {vectorize: {axis: out, width: 4}}]"
    text = f"schedule: {{update/optimizer/m/line/w: {at}, update/optimizer/v/line/w: {at}, update/optimizer/line/w: []}}"
    plain, fused = fl.compile(Line()), fl.compile(Line(), ExecutionPlan.from_yaml(text, "p.yaml"))
    for path, value in plain.parameters.items():
        fused.parameters[path] = np.array(value)
    x = np.random.default_rng(3).random((7, 19), np.float32)
    for _ in range(3):
        plain.train_step(x)
        fused.train_step(x)
    for path, value in plain.parameters.items():
        np.testing.assert_allclose(fused.parameters[path], value, rtol=1e-5, atol=1e-6)
    assert fused.peak(method="train_step").buffers <= plain.peak(method="train_step").buffers


class Wide(Line):
    def __init__(self) -> None:
        self.line, self.optimizer = fl.nn.Linear(19, 33), fl.optim.Adam(0.1)


def test_the_default_plan_makes_moments_and_weights_in_one_pass() -> None:
    model, graph = fl.compile(Wide()), fl.trace(Wide())
    variant = model.manifest["methods"]["train_step"]["variants"][0]
    assert not variant.get("copies")
    assert sum("update_optimizer" in step["kernel"] and "_line_" in step["kernel"] for step in variant["steps"]) == 2  # w and b
    x = np.random.default_rng(4).random((7, 19), np.float32)
    before = {path: np.array(value) for path, value in model.parameters.items()}
    wanted = graph.step(x, method="train_step", parameters=before).parameters
    model.train_step(x)
    for path, value in wanted.items():
        np.testing.assert_allclose(model.parameters[path], value, rtol=1e-4, atol=1e-6)


class Decayed(fl.Program):
    """Gradients that depend on the parameters themselves, of several shapes."""

    def __init__(self, optimizer: Any, dtype: str = "float32") -> None:
        shapes = {"a": (40, 48), "b": (7, 37), "c": (3, 5, 16), "d": (19,), "e": (3, 8001)}
        first = {k: np.cos(np.arange(np.prod(n))).reshape(n).astype("float32") for k, n in shapes.items()}
        self.all = {k: fl.param(init=v, shape=v.shape, dtype=dtype) for k, v in first.items()}
        self.optimizer = optimizer

    @fl.method
    def step(self) -> Any:
        loss = sum(fl.sum(fl.sin(w)) for w in self.all.values())
        self.optimizer.minimize(loss)
        return loss


DECAYING = [
    lambda: fl.optim.SGD(0.1, momentum=0.9, weight_decay=0.1),
    lambda: fl.optim.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.1, clip_value=0.5),
    lambda: fl.optim.Adam(0.1, weight_decay=0.1),
    lambda: fl.optim.LAMB(0.1, weight_decay=0.1),
]


@pytest.mark.parametrize("make", DECAYING)
def test_decay_that_is_added_to_the_gradient_takes_no_other_pass(make: Any) -> None:
    optimizer = make()
    graph = fl.trace(Decayed(optimizer))
    plan, _ = driver.prepared(None, graph)
    (lowered,) = driver.lower_variants(graph, plan, driver.host_target(plan))
    made = {k: [name for name in lowered.kernels[n].stages if "/update/" in name] for n, k in enumerate(k.name for k in lowered.kernels)}
    for name in "abce":
        last = f"direction/all.{name}" if isinstance(optimizer, fl.optim.LAMB) else f"all.{name}"
        (own,) = (stages for stages in made.values() if f"step/update/optimizer/{last}" in stages)
        kept = sum(1 for path in graph.method("step").updates if path.startswith("optimizer/") and path.endswith(f"/all.{name}"))
        assert kept and len(own) == 1 + kept
    assert not lowered.graph.updates.keys() - lowered.in_place.keys()
    model = fl.compile(Decayed(make()))
    state: Any = {k: np.array(v) for k, v in model.parameters.items() if not k.startswith("constant")}
    for _ in range(3):
        model.step()
        state = graph.step(method="step", parameters=state).parameters
    for name in state:
        np.testing.assert_allclose(model.parameters[name], state[name], rtol=2e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_weights_narrower_or_wider_than_their_moments_are_written_over_too(dtype: str) -> None:
    """Tails of loops that store two bytes are shorter loops, those of others have tests."""
    for make in DECAYING:
        graph = fl.trace(Decayed(make(), dtype))
        plan, _ = driver.prepared(None, graph)
        (lowered,) = driver.lower_variants(graph, plan, driver.host_target(plan))
        assert not [lowered.graph[i].name for i in lowered.graph.updates.keys() - lowered.in_place.keys()]
