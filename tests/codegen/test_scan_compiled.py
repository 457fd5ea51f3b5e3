"""Scans and recurrent layers compiled, against the oracle, and the oracle against PyTorch's formulas written out in NumPy."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.numerics import compare
from fluorite.algo.program import trace
from fluorite.codegen import driver
from fluorite.codegen.target import resolve_target
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.sections import Target

TARGET = resolve_target(Target(cpu="skylake-avx512"), threads=2)
Array = np.ndarray[Any, Any]


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def network(x: Any, w: Any, u: Any) -> Any:
    def step(h: Any, e: Any) -> Any:
        h = fl.tanh(e @ w + h @ u)
        return h, fl.exp(h)

    return fl.scan(step, fl.zeros((x.shape[1], u.shape[0])), x)


def swapped(x: Any) -> Any:
    """Carries that change places: no stage reads itself, and each reads the other a step before."""
    return fl.scan(lambda c, e: ((c[1] * 0.5 + e, c[0]), c[0] - c[1]), (fl.zeros((x.shape[1],)), fl.ones((x.shape[1],))), x, reverse=True)


def agrees(g: fl.Graph, *inputs: Array, plan: str | None = None) -> Any:
    got = fl.compile(g, ExecutionPlan.from_yaml(plan, "p.yaml") if plan else None)(*inputs)
    for found in compare(g, None, inputs, got):
        assert found.ok, found.text()
    return got


def test_a_network_is_a_product_and_one_kernel_of_steps() -> None:
    g = fl.trace(network, inputs={"x": fl.f32("t", "n", 5), "w": fl.f32(5, 24), "u": fl.f32(24, 24)})
    (made,) = driver.lower_variants(g, driver.prepared(ExecutionPlan(), g)[0], TARGET)
    steps = next(k for k in made.kernels if any(p.endswith("tanh") for p in k.stages))
    assert {p.rsplit("/", 1)[1] for p in steps.stages} == {"matmul_2", "tanh"}  # the additions are written into tanh
    assert "for t in 1..1 + ((t-1)):" in steps.text() and steps.text().count("where(") <= steps.text().count("for t in 0..1:") * 2
    assert not any("scan/matmul" in p and "matmul_2" not in p for p in steps.stages)
    for t, n in [(1, 1), (2, 3), (7, 1), (9, 17)]:
        agrees(g, numbers(t, n, 5), numbers(5, 24, seed=1), numbers(24, 24, seed=2) / 5)


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_fixed_numbers_of_steps(steps: int) -> None:
    for width in (1, 3, 16, 17):
        g = fl.trace(network, inputs={"x": fl.f32(steps, 2, 5), "w": fl.f32(5, width), "u": fl.f32(width, width)})
        agrees(g, numbers(steps, 2, 5), numbers(5, width, seed=1), numbers(width, width, seed=2) / 5)
        agrees(fl.trace(swapped, inputs={"x": fl.f32(steps, width)}), numbers(steps, width))


def test_several_stages_under_plans_of_ones_own() -> None:
    inputs = {"x": fl.f32("t", 4, 5), "w": fl.f32(5, 32), "u": fl.f32(32, 32)}
    g, given = fl.trace(network, inputs=inputs), (numbers(6, 4, 5), numbers(5, 32, seed=1), numbers(32, 32, seed=2) / 5)
    for tanh in ("[{vectorize: {axis: j, width: 8}}]", "[{reorder: [j, i]}]", "[{parallel: i}]", "[{fuse: {axes: [i, j], into: f}}]"):
        agrees(g, *given, plan=f"version: 1\nschedule:\n  scan/tanh: {tanh}\n")
    turned = "  scan/tanh: [{layout: [j, t, i]}]\n  scan/matmul_2: [{layout: [i, j, t]}]\n"  # the next step reads where this one stores
    agrees(g, *given, plan=f"version: 1\nschedule:\n{turned}")
    for product in ("[{tile: {i: 2, j: 16}}, {vectorize: j_inner}]", "[{reorder: [k, i, j]}]", "[{unroll: {axis: k, factor: 4}}]"):
        agrees(g, *given, plan=f"version: 1\nnumerics: {{allow: reassociates}}\nschedule:\n  scan/matmul_2: {product}\n")
    for wrong, code in (
        ("scan/tanh: [{parallel: t}]", "P272"),
        ("scan/tanh: [{split: {axis: t, factor: 4}}]", "P272"),
        ("scan/tanh: [{reorder: [i, t]}]", "P272"),
        ("scan/matmul_2: [{compute_at: {stage: scan/tanh, axis: t}}]", "P273"),
        ("scan/matmul: [{compute_at: {stage: scan/matmul_2, axis: t}}]", "P273"),
        ("scan/matmul_2: [{rfactor: {axis: k, factor: 4}}]", "P271"),
        ("scan/matmul_2: [{pack: {tensor: tanh, sizes: {k: 8}, order: [t, i, k], into: packed}}]", "P271"),
    ):
        plan = ExecutionPlan.from_yaml(f"version: 1\nnumerics: {{allow: reassociates}}\nschedule:\n  {wrong}\n", "p.yaml")
        with pytest.raises(fl.PlanError) as caught:
            driver.lower_variants(g, driver.prepared(plan, g)[0], TARGET)
        assert caught.value.problems[0].code == code, caught.value.text()


def mixed(x: Any) -> Any:
    """A carry that each step mixes across its own axis, and a stage that reads all steps."""

    def step(h: Any, e: Any) -> Any:
        near = fl.edge(h)
        new = fl.stage(lambda j: fl.maximum(near[j - 1], near[j + 1]) + e[j], name="mixed")
        return new, new

    shifted = fl.stage(lambda t, j: x[t, j] + 1, name="shifted")
    every = fl.scan(step, fl.zeros((x.shape[1],)), shifted)[1]
    return fl.stage(lambda j, t: every[t, j] * 2, name="turned")


def test_producers_of_a_carry_inside_a_split_of_the_steps() -> None:
    g, x = fl.trace(mixed, inputs={"x": fl.f32("t", "n")}), numbers(7, 19)
    steps = "scan/mixed: [{split: {axis: t, factors: [3, 2, ~], into: [a, b, c]}}, {vectorize: {axis: j, width: 4}}]"
    for place in "abc":
        agrees(g, x, plan=f"schedule: {{zeros: [{{compute_at: {{stage: scan/mixed, axis: {place}}}}}], {steps}}}")


def test_what_stands_between_has_to_follow_and_cannot() -> None:
    g = fl.trace(mixed, inputs={"x": fl.f32("t", "n")})
    for stage, axis in (("shifted", "j"), ("zeros", "t")):
        plan = ExecutionPlan.from_yaml(f"schedule:\n  {stage}:\n    - compute_at: {{stage: turned, axis: {axis}}}\n", "p.yaml")
        with pytest.raises(fl.PlanError) as caught:
            driver.lower_variants(g, driver.prepared(plan, g)[0], TARGET)
        (problem,) = caught.value.problems
        assert (problem.code, problem.line, problem.column) == ("P204", 3, 27)
        assert "mixed, which reads it, would be computed there too: mixed reads itself at other places" in problem.why


def test_default_plans_can_be_written_down() -> None:
    g = fl.trace(network, inputs={"x": fl.f32("t", 4, 5), "w": fl.f32(5, 32), "u": fl.f32(32, 32)})
    text = driver.schedule(g, driver.prepared(ExecutionPlan(), g)[0], TARGET).text()
    agrees(g, numbers(6, 4, 5), numbers(5, 32, seed=1), numbers(32, 32, seed=2) / 5, plan=text)


# ---------------------------------------------------------------- layers
def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def rnn_step(p: dict[str, Array], x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    return np.tanh(x @ p["w_ih"] + p["b_ih"] + h @ p["w_hh"] + p["b_hh"]), c


def gru_step(p: dict[str, Array], x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    (xr, xz, xn), (hr, hz, hn) = (np.split(a @ p[w] + p[b], 3, -1) for a, w, b in ((x, "w_ih", "b_ih"), (h, "w_hh", "b_hh")))
    r, z = sigmoid(xr + hr), sigmoid(xz + hz)
    n = np.tanh(xn + r * hn)
    return (1 - z) * n + z * h, c


def lstm_step(p: dict[str, Array], x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    i, f, g, o = np.split(x @ p["w_ih"] + p["b_ih"] + h @ p["w_hh"] + p["b_hh"], 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


STEPS = {"RNN": rnn_step, "GRU": gru_step, "LSTM": lstm_step}


def walked(kind: str, parameters: dict[str, Array], x: Array, hidden: int, ways: list[bool], layers: int, lengths: Array) -> Any:
    """What the layers mean, element by element of the batch. Everything in float64."""
    states = []
    for layer in range(layers):
        outputs = []
        for k, reverse in enumerate(ways):
            prefix = f"rnn/cells.{layer * len(ways) + k}/"
            p = {name.removeprefix(prefix): v.astype(np.float64) for name, v in parameters.items() if name.startswith(prefix)}
            y, last = np.zeros((*x.shape[:2], hidden)), np.zeros((2, x.shape[1], hidden))
            for n in range(x.shape[1]):
                h = c = np.zeros(hidden)
                for t in reversed(range(lengths[n])) if reverse else range(lengths[n]):
                    h, c = STEPS[kind](p, x[t, n], h, c)
                    y[t, n] = h
                last[:, n] = h, c
            outputs.append(y)
            states.append(last)
        x = np.concatenate(outputs, -1)
    return x, np.stack(states, 1)


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize(("layers", "ways"), [(1, [False]), (1, [True]), (2, [False, True])])
def test_layers(kind: str, layers: int, ways: list[bool]) -> None:
    class Model(fl.Program):
        def __init__(self) -> None:
            layer = getattr(fl.nn, kind)
            self.rnn = layer(3, 5, layers, bidirectional=len(ways) == 2, reverse=ways == [True])

        @fl.method
        def infer(self, x: fl.f32[fl.Tensor, "t", "n", 3]) -> Any:
            return self.rnn(x)

        @fl.method
        def ragged(self, x: fl.f32[fl.Tensor, "t", "n", 3], lengths: fl.i32[fl.Tensor, "n"]) -> Any:
            return self.rnn(x, lengths=lengths)

    g, model = trace(Model), fl.compile(Model)
    parameters = {p: np.asarray(v) for p, v in model.parameters.items()}
    for steps, batch in [(1, 1), (6, 3)]:
        x = numbers(steps, batch, 3)
        lengths = np.array([steps, 0, 2], np.int32)[:batch]
        for method, given, counts in (("infer", (x,), np.full(batch, steps)), ("ragged", (x, lengths), lengths)):
            y, state = g.run(*given, method=method, parameters=parameters)
            wanted_y, wanted = walked(kind, parameters, x.astype(np.float64), 5, ways, layers, counts)
            np.testing.assert_allclose(y, wanted_y, rtol=1e-4, atol=1e-5)
            for found, want in zip(state if kind == "LSTM" else [state], wanted, strict=False):
                np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)
            for found in compare(g, method, given, getattr(model, method)(*given), parameters=parameters):
                assert found.ok, found.text()


def test_batch_first_and_given_states() -> None:
    class Model(fl.Program):
        def __init__(self) -> None:
            self.rnn = fl.nn.LSTM(3, 4, batch_first=True)

        @fl.method
        def infer(self, x: fl.f32[fl.Tensor, "n", "t", 3], h: fl.f32[fl.Tensor, 1, "n", 4], c: fl.f32[fl.Tensor, 1, "n", 4]) -> Any:
            return self.rnn(x, (h, c))

        @fl.method
        def step(self, x: fl.f32[fl.Tensor, "n", 3], h: fl.f32[fl.Tensor, "n", 4], c: fl.f32[fl.Tensor, "n", 4]) -> Any:
            return self.rnn.cells[0](x, (h, c))

    model = fl.compile(Model)
    x, h, c = numbers(2, 7, 3), numbers(1, 2, 4, seed=1), numbers(1, 2, 4, seed=2)
    y, (last_h, last_c) = model.infer(x, h, c)
    a, b = h[0], c[0]
    for t in range(7):
        a, b = (np.array(v) for v in model.step(np.ascontiguousarray(x[:, t]), a, b))
        np.testing.assert_allclose(y[:, t], a, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last_h[0], a, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last_c[0], b, rtol=1e-5, atol=1e-6)


def test_an_activation_that_is_none() -> None:
    with pytest.raises(fl.AlgorithmError, match="tanh or relu"):
        fl.nn.RNN(3, 4, activation="sigmoid")


@pytest.mark.parametrize("extents", ["{max: 9}", "{between: [0, 9]}"])
@pytest.mark.parametrize("reverse", [False, True])
def test_of_no_steps_nothing_is_written(reverse: bool, extents: str) -> None:
    """The first step of a loop stands before it, which must not be taken to be there: `out` is empty, and stands amid other numbers."""

    def model(x: Any) -> Any:
        def step(h: Any, x_t: Any) -> tuple[Any, Any]:
            new = fl.stage(lambda i: h[i] * 0.5 + x_t[i], name="new")
            return new, new

        return fl.scan(step, fl.zeros((x.shape[1],)), x, reverse=reverse)[1]

    g = fl.trace(model, None, inputs={"x": fl.f32("t", 8)})
    made = fl.compile(g, fl.ExecutionPlan.from_yaml(f"extents: {{t: {extents}}}"))
    around = np.full(64, 7, np.float32)
    made(np.zeros((0, 8), np.float32), out=around[32:32].reshape(0, 8))
    assert (around == 7).all(), around
    x = np.random.default_rng(0).random((5, 8), np.float32)
    np.testing.assert_allclose(np.asarray(made(x)), g.run(x), rtol=1e-6)
