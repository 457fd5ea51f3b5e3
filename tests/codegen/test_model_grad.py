"""model.grad: the derivative of a method's loss by a parameter, an input or a stage, beside differences of the oracle's losses."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite import nn

Array = np.ndarray[Any, Any]
F32 = np.float32


class Net(fl.Program):
    def __init__(self) -> None:
        self.rnn, self.drop, self.out = fl.param(in_=5, out=5, init=0.3), nn.Dropout(0.3), nn.Linear(5, 2)
        self.critic, self.spare = nn.Linear(2, 1), fl.param(n=3, init=1.0)
        self.count = fl.state(init=0, dtype=fl.i32)
        self.optimizer, self.other = fl.optim.Adam(0.01), fl.optim.SGD(0.1)
        self.data: Any = None

    def loss(self, x: Any, y: Any) -> Any:
        def step(h: Any, x_t: Any) -> Any:
            h = fl.tanh(h @ self.rnn + x_t)
            return h, h

        h, _ = fl.scan(step, fl.zeros((x.shape[1], 5)), x)
        return fl.mean(fl.square(self.out(self.drop(h)) - y), name="loss")

    @fl.method(training=True, reader="data")
    def train_step(self, x: fl.f32[fl.Tensor, "t", "n", 5], y: fl.f32[fl.Tensor, "n", 2]) -> Any:
        loss = self.loss(x, y)
        self.count = self.count + 1
        self.optimizer.minimize(loss, params=[self.rnn, self.out])
        return {"loss": loss, "twice": 2 * loss}

    @fl.method(training=True)
    def both(self, x: fl.f32[fl.Tensor, "n", 2]) -> Any:
        a, b = fl.sum(self.critic(x), name="a"), fl.sum(fl.square(self.critic(x)), name="b")
        self.optimizer.minimize(a, params=self.critic.w)
        self.other.minimize(b, params=self.critic.b)
        return {"a": a, "parts": [b, x]}

    @fl.method
    def score(self, x: fl.f32[fl.Tensor, "n", 2]) -> Any:
        return fl.sum(fl.exp(self.critic(x)))


@pytest.fixture(scope="module")
def model() -> Any:
    return fl.compile(Net(), seed=1)


def example(seed: int = 0, n: int = 3) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((4, n, 5)).astype(F32), rng.standard_normal((n, 2)).astype(F32)


def state_of(model: Any) -> dict[str, Array]:
    return {k: np.array(v) for k, v in model.parameters.items() if not k.startswith("constant")}


def difference(graph: fl.Graph, state: dict[str, Array], path: str, inputs: Any, method: str, of: Any) -> Array:
    """Central differences of the oracle's result by each element of a parameter."""
    found, eps = np.zeros(state[path].shape), 1e-2
    for at in np.ndindex(*found.shape):
        losses = []
        for side in (eps, -eps):
            moved = state[path].copy()
            moved[at] += side
            losses.append(float(of(graph.run(*inputs, method=method, parameters={**state, path: moved}))))
        found[at] = (losses[0] - losses[1]) / (2 * eps)
    return found


@pytest.mark.parametrize("path", ["rnn", "out/w", "out/b"])
def test_by_a_parameter_it_is_what_differences_say_and_nothing_moves(model: Any, path: str) -> None:
    graph, inputs, state = fl.trace(Net), example(), state_of(model)
    for _ in range(2):
        found = model.grad("train_step", path, *inputs)
        assert found.shape == state[path].shape and all((v == state[k]).all() for k, v in state_of(model).items())
        meant = difference(graph, state, path, inputs, "train_step", lambda r: r["loss"])
        np.testing.assert_allclose(found, meant, atol=2e-3)  # dropout drops the same as in the next call
        np.testing.assert_allclose(model.grad("train_step", path, *inputs, of="twice"), 2 * found, rtol=1e-5)
        model.train_step(*inputs)  # the next derivative is by other values
        state = state_of(model)


def test_by_inputs_and_stages_of_methods_with_one_scalar_or_several(model: Any) -> None:
    x = np.random.default_rng(3).standard_normal((4, 2)).astype(F32)
    w, b = (np.array(model.parameters[f"critic/{n}"]) for n in "wb")
    score = np.exp(x @ w + b)
    np.testing.assert_allclose(model.grad("score", "x", x), score * w[:, 0], rtol=1e-5)
    np.testing.assert_allclose(model.grad("score", "critic/bias", x), score, rtol=1e-5)
    np.testing.assert_allclose(model.grad("score", "score/critic/bias", x=x), score, rtol=1e-5)
    np.testing.assert_allclose(model.grad("both", "critic/b", x, of="parts/0"), [2 * (x @ w + b).sum()], rtol=1e-5)
    np.testing.assert_allclose(model.grad("both", "critic/w", x, of="a"), x.sum(0)[:, None], rtol=1e-5)
    np.testing.assert_allclose(model.copy().grad("score", "x", x), model.grad("score", "x", x))

    def cost(x: fl.f32[fl.Tensor, "n"]) -> Any:
        return fl.sum(x * x * x)

    assert fl.compile(cost).grad("cost", "x", [1.0, 2.0]).tolist() == [3, 12]


def test_without_inputs_it_is_of_what_the_method_reads_next() -> None:
    program = Net()
    program.data = [dict(zip("xy", example(n, n + 2), strict=True)) for n in range(3)]
    model = fl.compile(program, seed=2)
    model.train_step()
    meant = model.grad("train_step", "out/b", *example(1, 3))
    np.testing.assert_array_equal(model.grad("train_step", "out/b"), meant)
    assert model.position("train_step") == (0, 1)


def test_names_that_mean_nothing_or_several_things_are_refused(model: Any, tmp_path: Any) -> None:
    def refusal(*args: Any, **named: Any) -> str:
        with pytest.raises(fl.FluoriteError) as caught:
            model.grad(*args, **named)
        p = caught.value.problems[0]
        return f"{p.code} {p.asked}; {p.why}; {', '.join(p.try_)}"

    x = np.ones((4, 2), F32)
    near = refusal("score", "critic/v", x)
    assert near.startswith("A200 the derivative by 'critic/v'; score has no parameter") and "critic/w" in near
    assert "A200" in refusal("score", "y", x) and "it does not depend on it" in refusal("score", "spare", x)
    assert "it has several losses; of='a', of='b'" in refusal("both", "critic/w", x)
    assert "no scalar of this name; twice" in refusal("train_step", "rnn", *example(), of="twic")
    assert "R114" in refusal("step", "rnn") and "R101" in refusal("train_step", "rnn", example()[0])
    assert "count" in refusal("train_step", "count", *example())
    with pytest.raises(fl.RunError) as caught:
        fl.compile(fl.trace(Net)).grad("score", "x", x)
    assert caught.value.problems[0].code == "R132"
