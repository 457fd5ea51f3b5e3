"""Layers that know that they train: dropout, batch norm, and the keys of a Program's random numbers."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite import nn
from fluorite.algo.parameters import initial_parameters

F32 = np.float32


class Drawing(fl.Program):
    def __init__(self) -> None:
        self.drop = nn.Dropout(0.5)
        self.w = fl.param(init=1.0)

    @fl.method(training=True)
    def step(self, x: fl.f32("n", 8)) -> Any:  # type: ignore[valid-type]
        once = self.drop(x * self.w)
        loss = fl.sum(once, name="loss")
        (slope,) = fl.gradients(loss, [self.w])
        return once, self.drop(x), slope, fl.random.uniform(fl.random.next_key(), 3)

    @fl.method
    def infer(self, x: fl.f32("n", 8)) -> Any:  # type: ignore[valid-type]
        return self.drop(x)

    @fl.method
    def sample(self) -> Any:
        return fl.random.normal(fl.random.next_key(), 4)


def test_dropout_drops_in_training_only_and_forward_as_backward() -> None:
    graph = fl.trace(Drawing)
    x = np.random.default_rng(0).standard_normal((50, 8)).astype(F32)
    (once, twice, slope, _), after = graph.step(x, method="step")
    assert (graph.run(x, method="infer") == x).all() and not graph.method("infer").updates
    for y in (once, twice):
        kept = y != 0
        assert 0.4 < kept.mean() < 0.6
        np.testing.assert_allclose(y[kept], 2 * x[kept])
    assert ((once != 0) != (twice != 0)).any()
    np.testing.assert_allclose(slope, once.sum(), rtol=1e-5)
    assert after["random/calls"] == 1


def test_every_call_draws_other_numbers_and_a_state_the_same_again() -> None:
    graph = fl.trace(Drawing)
    x = np.ones((20, 8), F32)
    parameters: Any = initial_parameters(graph, 5)
    seen, begun = [], dict(parameters)
    for _ in range(3):
        found, parameters = graph.step(x, method="step", parameters=parameters)
        seen.append(found)
    assert len({r[0].tobytes() for r in seen}) == 3 and len({r[3].tobytes() for r in seen}) == 3
    again = graph.step(x, method="step", parameters=begun).result
    assert all((a == b).all() for a, b in zip(again, seen[0], strict=True))
    other = graph.step(x, method="step", parameters=initial_parameters(graph, 6)).result
    assert (other[0] != seen[0][0]).any()
    drawn = graph.step(method="sample", parameters=parameters)
    assert drawn.parameters["random/calls"] == 4 and (drawn.parameters["random/key"] == begun["random/key"]).all()


def test_keys_are_those_of_their_place_and_call() -> None:
    graph = fl.trace(Drawing, method="sample")
    begun = initial_parameters(graph, 2)
    key = fl.trace(lambda k: fl.random.normal(fl.random.fold_in(fl.random.fold_in(k, 7), 0), 4), inputs={"k": fl.u32(2)})
    expected = key.run(begun["random/key"])
    assert (graph.run(parameters={**begun, "random/calls": np.int32(7)}) == expected).all()


@pytest.mark.parametrize("shape", [(12, 3), (4, 3, 5), (2, 3, 4, 5), (1, 3)])
def test_batch_norm_learns_the_statistics_of_batches(shape: tuple[int, ...]) -> None:
    class Normed(fl.Program):
        def __init__(self) -> None:
            self.norm = nn.BatchNorm(3, momentum=0.25)

        @fl.method(training=True)
        def step(self, x: Any) -> Any:
            return self.norm(x)

        @fl.method
        def infer(self, x: Any) -> Any:
            return self.norm(x)

    for method in (Normed.step, Normed.infer):
        method.__annotations__["x"] = fl.f32("n", *shape[1:])
    graph = fl.trace(Normed)
    parameters: Any = initial_parameters(graph)
    assert {t.path: t.kind for t in graph.leaves}["norm/mean"] == "state"
    mean, var, over = np.zeros(3), np.ones(3), tuple(d for d in range(len(shape)) if d != 1)
    wide = (3, *(1,) * (len(shape) - 2))
    for n in range(3):
        x = (2 * np.random.default_rng(n).standard_normal(shape) + 1).astype(F32)
        found, parameters = graph.step(x, method="step", parameters=parameters)
        m, v, count = x.mean(over, dtype=np.float64), x.var(over, dtype=np.float64), x.size // 3
        np.testing.assert_allclose(found, (x - m.reshape(wide)) / np.sqrt(v.reshape(wide) + 1e-5), rtol=1e-4, atol=1e-4)
        mean, var = 0.75 * mean + 0.25 * m, 0.75 * var + 0.25 * v * count / max(count - 1, 1)
        np.testing.assert_allclose(parameters["norm/mean"], mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(parameters["norm/var"], var, rtol=1e-5, atol=1e-6)
    still = graph.run(x, method="infer", parameters=parameters)
    np.testing.assert_allclose(still, (x - mean.reshape(wide)) / np.sqrt(var.reshape(wide) + 1e-5), rtol=1e-4, atol=1e-4)
    assert set(graph.method("step").updates) == {"norm/mean", "norm/var"} and not graph.method("infer").updates


def test_modules_may_ask_whether_they_train() -> None:
    class Asking(fl.Program):
        @fl.method(training=True)
        def step(self, x: fl.f32("n")) -> Any:  # type: ignore[valid-type]
            return x + (1.0 if nn.training() else 2.0)

        @fl.method
        def infer(self, x: fl.f32("n")) -> Any:  # type: ignore[valid-type]
            return x + (1.0 if nn.training() else 2.0)

    graph = fl.trace(Asking)
    assert graph.run([0.0], method="step") == [1] and graph.run([0.0], method="infer") == [2]


def test_a_second_random_key_is_refused() -> None:
    class Taken(Drawing):
        def __init__(self) -> None:
            super().__init__()
            self.random = {"key": 0}
            self.random_ = fl.param(init=0.0)

    fl.trace(Taken)

    class Key(nn.Module):
        def __init__(self) -> None:
            self.key = fl.param(init=0.0)

    class Clash(Drawing):
        def __init__(self) -> None:
            super().__init__()
            self.random = Key()

    with pytest.raises(fl.AlgorithmError) as caught:
        fl.trace(Clash)
    assert caught.value.problems[0].code == "A110"


def test_a_draw_in_a_branch_moves_the_keys_on_whichever_is_taken() -> None:
    class Branching(fl.Program):
        def __init__(self) -> None:
            self.drop = nn.Dropout(0.5)

        @fl.method(training=True)
        def step(self, x: fl.f32(64), often: fl.boolean()) -> Any:  # type: ignore[valid-type]
            return fl.cond(often, lambda: self.drop(x), lambda: x), self.drop(x)

    graph = fl.trace(Branching)
    parameters: Any = initial_parameters(graph)
    seen = []
    for n, often in enumerate((True, False, True)):
        (one, other), parameters = graph.step(np.ones(64, F32), often, method="step", parameters=parameters)
        assert ((one == 0).any() if often else (one == 1).all()) and (other == 0).any() and parameters["random/calls"] == n + 1
        seen.append(other.tobytes())
    assert len(set(seen)) == 3
