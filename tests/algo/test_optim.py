"""Optimisers on the interpreter, in float64, against the published formulas in NumPy; their options; their names; what they refuse."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.parameters import initial_parameters
from optimizer_references import OPTIMIZERS, adam, sgd

Array = np.ndarray[Any, Any]
STEPS = 6
F64 = fl.f64


class Given(fl.Program):
    """Three parameters that are moved by gradients that the caller gives; the last has a norm of 0 at first."""

    def __init__(self, optimizer: fl.optim.Optimizer, dtype: Any = "float64") -> None:
        self.w = fl.param(init=fl.init.normal(1.0), dtype=dtype, in_=5, out=3)
        self.layers = [fl.param(init=fl.init.normal(1.0), dtype=dtype, i=7)]
        self.bias = fl.param(init=0.0, dtype=dtype)
        self.optimizer = optimizer

    @fl.method
    def step(self, g: F64(5, 3), h: F64(7), k: F64()) -> Any:  # type: ignore[valid-type]
        parts = [fl.cast(t, self.w.dtype) for t in (g, h, k)]
        self.optimizer.apply(dict(zip((self.w, self.layers[0], self.bias), parts, strict=True)))


def draws(count: int = STEPS, scale: float = 1.0) -> list[dict[str, Array]]:
    generator = np.random.default_rng(7)
    shapes: dict[str, tuple[int, ...]] = {"w": (5, 3), "layers.0": (7,), "bias": ()}
    return [{k: np.asarray(scale * generator.standard_normal(shape)) for k, shape in shapes.items()} for _ in range(count)]


def moved(optimizer: Any, gradients: list[dict[str, Array]]) -> list[dict[str, Array]]:
    """All parameters and state after each step."""
    graph = fl.trace(Given(optimizer))
    parameters: Any = initial_parameters(graph)
    found = []
    for g in gradients:
        parameters = graph.step(g["w"], g["layers.0"], g["bias"], method="step", parameters=parameters).parameters
        found.append(dict(parameters))
    return found


def expected(formula: Any, rate: Callable[[int], float], gradients: list[dict[str, Array]]) -> list[dict[str, Array]]:
    first = initial_parameters(fl.trace(Given(fl.optim.SGD())))
    held: dict[str, dict[str, Array]] = {k: {} for k in ("w", "layers.0", "bias")}
    values = {k: first[k] for k in held}
    found = []
    for t, g in enumerate(gradients, 1):
        values = {k: formula(w, g[k], held[k], t, rate(t - 1)) for k, w in values.items()}
        found.append(values)
    return found


def agree(found: list[dict[str, Array]], wanted: list[dict[str, Array]]) -> None:
    for n, (a, b) in enumerate(zip(found, wanted, strict=True)):
        for k, value in b.items():
            np.testing.assert_allclose(a[k], value, rtol=1e-11, atol=1e-13, err_msg=f"{k} after step {n + 1}")


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_those_of_the_published_formula(name: str) -> None:
    make, formula, rate = OPTIMIZERS[name]
    agree(moved(make(), draws()), expected(formula, lambda _: rate, draws()))


# ---------------------------------------------------------------- learning rates
SCHEDULES: dict[str, tuple[Any, Callable[[int], float]]] = {
    "constant": (fl.optim.constant(0.3), lambda t: 0.3),
    "step": (fl.optim.step(0.8, 2, 0.5), lambda t: 0.8 * 0.5 ** (t // 2)),
    "exponential": (fl.optim.exponential(0.8, 3, 0.5), lambda t: 0.8 * 0.5 ** (t / 3)),
    "cosine": (fl.optim.cosine(0.8, 4, 0.1), lambda t: 0.1 + 0.7 * 0.5 * (1 + math.cos(math.pi * min(t / 4, 1)))),
    "polynomial": (fl.optim.polynomial(0.8, 4, 0.1, 2.0), lambda t: 0.1 + 0.7 * (1 - min(t / 4, 1)) ** 2),
    "warmup": (fl.optim.warmup(0.8, 4), lambda t: 0.8 * min((t + 1) / 4, 1)),
    "warm_cosine": (
        fl.optim.warmup(fl.optim.cosine(0.8, 5), 2), lambda t: 0.4 * (1 + math.cos(math.pi * min(t / 5, 1))) * min((t + 1) / 2, 1),
    ),
    "cosine_with_warmup": (
        fl.optim.cosine(0.8, warmup=2, steps=5), lambda t: 0.4 * (1 + math.cos(math.pi * min(t / 5, 1))) * min((t + 1) / 2, 1),
    ),
    "piecewise": (fl.optim.piecewise([2, 4], [0.1, fl.optim.constant(0.2), 0.3]), lambda t: 0.1 if t < 2 else 0.2 if t < 4 else 0.3),
    "own": (lambda t: 0.5 / fl.sqrt(1.0 + t), lambda t: 0.5 / math.sqrt(1 + t)),
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_learning_rate_is_a_function_of_the_updates_made(name: str) -> None:
    schedule, rate = SCHEDULES[name]
    agree(moved(fl.optim.SGD(schedule), draws()), expected(sgd(), rate, draws()))
    agree(moved(fl.optim.Adam(schedule), draws()), expected(adam(), rate, draws()))


# ---------------------------------------------------------------- options
def test_gradients_are_clamped_by_value() -> None:
    clamped = [{k: np.clip(v, -0.4, 0.4) for k, v in g.items()} for g in draws()]
    agree(moved(fl.optim.Adam(0.02, clip_value=0.4), draws()), expected(adam(), lambda _: 0.02, clamped))


@pytest.mark.parametrize("most", [1.0, 100.0])
def test_gradients_are_scaled_to_a_norm_over_all_parameters(most: float) -> None:
    def scaled(g: dict[str, Array]) -> dict[str, Array]:
        norm = math.sqrt(sum(float((v**2).sum()) for v in g.values()))
        return {k: v * min(1, most / norm) for k, v in g.items()}

    agree(moved(fl.optim.SGD(0.1, clip_norm=most), draws()), expected(sgd(), lambda _: 0.1, [scaled(g) for g in draws()]))
    nothing = [{k: np.zeros_like(v) for k, v in g.items()} for g in draws(1)]
    agree(moved(fl.optim.SGD(0.1, clip_norm=most), nothing), expected(sgd(), lambda _: 0.1, nothing))


@pytest.mark.parametrize("decay", ["w", ["/w"], "layers.*", "**"])
def test_weight_decay_is_of_the_parameters_that_are_selected(decay: Any) -> None:
    found = moved(fl.optim.SGD(0.1, weight_decay=0.5, decay=decay), draws(1))[0]
    plain, decayed = (expected(sgd(decay=d), lambda _: 0.1, draws(1))[0] for d in (0.0, 0.5))
    chosen = {"w": {"w"}, "layers.*": {"layers.0"}, "**": {"w", "layers.0", "bias"}}[decay if isinstance(decay, str) else "w"]
    for k in plain:
        np.testing.assert_allclose(found[k], (decayed if k in chosen else plain)[k], rtol=1e-12)


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam", "ftrl_sparse", "lamb", "lars"])
def test_gradients_of_several_calls_make_one_update(name: str) -> None:
    make, formula, rate = OPTIMIZERS[name]
    given = draws(7)
    means = [{k: (given[n][k] + given[n + 1][k] + given[n + 2][k]) / 3 for k in given[0]} for n in (0, 3)]
    found = moved(make(accumulate=3), given)
    wanted = expected(formula, lambda _: rate, means)
    first = initial_parameters(fl.trace(Given(fl.optim.SGD())))
    begun = {k: first[k] for k in wanted[0]}
    agree(found, [begun, begun, wanted[0], wanted[0], wanted[0], wanted[1], wanted[1]])
    assert [int(f["optimizer/step"]) for f in found] == [0, 0, 1, 1, 1, 2, 2]


def test_a_moving_average_of_the_parameters_is_kept() -> None:
    class Averaged(Given):
        @fl.method
        def smooth(self) -> Any:
            return self.optimizer.averaged(self.w), self.optimizer.averaged(self.layers[0])

    graph = fl.trace(Averaged(fl.optim.SGD(0.1, average=0.9)))
    parameters: Any = initial_parameters(graph)
    wanted = expected(sgd(), lambda _: 0.1, draws())
    mean: Any = None
    for g, value in zip(draws(), wanted, strict=True):
        parameters = graph.step(g["w"], g["layers.0"], g["bias"], method="step", parameters=parameters).parameters
        mean = value["w"] if mean is None else 0.9 * mean + 0.1 * value["w"]
        np.testing.assert_allclose(graph.run(method="smooth", parameters=parameters)[0], mean, rtol=1e-12)


def test_narrow_parameters_are_updated_in_float32() -> None:
    graph = fl.trace(Given(fl.optim.Adam(0.02), "bfloat16"))
    held = {t.path: t.dtype for t in graph.leaves}
    assert held["w"] == "bfloat16" and held["optimizer/m/w"] == held["optimizer/v/w"] == "float32" and held["optimizer/step"] == "int32"


# ---------------------------------------------------------------- from a loss
class Net(fl.Program):
    def __init__(self, **optimizers: Any) -> None:
        self.first, self.second = fl.nn.Linear(4, 3), fl.nn.Linear(3, 1)
        self.frozen = fl.param(init=2.0, trainable=False)
        for name, o in optimizers.items():
            setattr(self, name, o)

    def loss(self, x: Any) -> Any:
        return fl.mean(fl.square(self.second(fl.tanh(self.first(x))) * self.frozen))

    @fl.method
    def all(self, x: fl.f32("n", 4)) -> Any:  # type: ignore[valid-type]
        loss = self.loss(x)
        self.optimizer.minimize(loss.named("loss"))
        return loss

    @fl.method
    def part(self, x: fl.f32("n", 4)) -> Any:  # type: ignore[valid-type]
        self.other.minimize(self.loss(x), params=self.second)

    @fl.method
    def turns(self, x: fl.f32("n", 4)) -> Any:  # type: ignore[valid-type]
        a, b = self.loss(x), fl.sum(self.first(x))
        self.optimizer.minimize(a, params="first")
        self.other.minimize(b, params=[self.first.w])
        return a

    @fl.method
    def infer(self, x: fl.f32("n", 4)) -> Any:  # type: ignore[valid-type]
        return self.loss(x)


def net() -> Net:
    return Net(optimizer=fl.optim.Adam(0.01), other=fl.optim.SGD(0.1, 0.9))


def test_minimize_moves_what_is_meant_and_names_it() -> None:
    graph = fl.trace(net())
    parts = ["first/w", "first/b", "second/w", "second/b"]
    updates = {m.name: m.updates for m in graph.methods}
    assert set(updates["all"]) == {*parts, "optimizer/step", *(f"optimizer/{k}/{p}" for k in "mv" for p in parts)}
    assert graph.path_of(updates["all"]["first/w"]) == "all/update/optimizer/first/w"
    assert graph.path_of(updates["all"]["optimizer/m/first/w"]) == "all/update/optimizer/m/first/w"
    assert set(updates["part"]) == {"other/step", "second/w", "second/b", "other/v/second/w", "other/v/second/b"}
    assert not updates["infer"]
    assert {s.role for s in graph.stages if s.path.startswith("all/grad/")} == {"gradient"}
    assert {s.role for s in graph.stages if "/update/" in s.path} == {"update"}
    assert all("optimizer" not in t.path and "other" not in t.path for t in fl.trace(net(), method="infer").leaves)


def test_two_optimisers_of_one_method_both_move_what_they_share() -> None:
    """The second is given a loss from before the first moved the weights."""
    graph = fl.trace(net())
    x = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    before = initial_parameters(graph)
    after = graph.step(x, method="turns", parameters=before).parameters
    first = graph.step(x, method="all", parameters=before).parameters["first/w"]  # Adam's step
    slope = np.repeat(x.sum(0)[:, None], 3, 1)
    np.testing.assert_allclose(after["first/w"], first - 0.1 * slope, rtol=1e-5, atol=1e-6)


def test_gradients_of_ones_own_making_are_pairs_too() -> None:
    class Own(Given):
        @fl.method
        def pairs(self, g: F64(5, 3)) -> Any:  # type: ignore[valid-type]
            self.optimizer.apply([(self.w, g)])

    graph = fl.trace(Own(fl.optim.SGD(0.5)))
    assert set(graph.method("pairs").updates) == {"w", "optimizer/step"}


# ---------------------------------------------------------------- refusals
def refusal(make: Any) -> fl.Problem:
    with pytest.raises(fl.AlgorithmError) as caught:
        make()
    return caught.value.problems[0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fl.optim.SGD("fast"), "learning_rate='fast'"),
        (lambda: fl.optim.SGD(0.1, 1.0), "momentum=1.0"),
        (lambda: fl.optim.SGD(0.1, nesterov=True), "nesterov=True"),
        (lambda: fl.optim.Adam(0.1, (0.9, 1.5)), "betas[1]=1.5"),
        (lambda: fl.optim.Adam(0.1, clip_norm=-1), "clip_norm=-1"),
        (lambda: fl.optim.Adam(0.1, accumulate=0), "accumulate=0"),
        (lambda: fl.optim.Adam(0.1, average=1), "average=1"),
        (lambda: fl.optim.piecewise([3, 2], [1, 2, 3]), "piecewise"),
        (lambda: fl.optim.cosine(0.1, 0), "steps=0"),
        (lambda: fl.optim.cosine(0.1, 10, warmup=-1), "warmup=-1"),
    ],
)
def test_arguments_are_checked(make: Any, words: str) -> None:
    found = refusal(make)
    assert found.code == "A191" and words in found.asked


def changed(change: Any, optimizer: Any = None) -> Any:
    class One(Net):
        @fl.method
        def step(self, x: fl.f32("n", 4)) -> Any:  # type: ignore[valid-type]
            change(self, self.loss(x), x)

    return lambda: fl.trace(One(optimizer=optimizer or fl.optim.SGD(0.1), other=fl.optim.SGD(0.1)), "step")


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda self, loss, x: self.optimizer.minimize(loss, params="thrid"), "A192", "params='thrid'"),
        (lambda self, loss, x: self.optimizer.minimize(loss, params=[]), "A192", "no parameters"),
        (lambda self, loss, x: self.optimizer.minimize(loss, params=3), "A192", "params=3"),
        (lambda self, loss, x: self.optimizer.minimize(fl.mean(x)), "A193", "minimize"),
        (lambda self, loss, x: self.optimizer.minimize(x), "A170", "gradient"),
        (lambda self, loss, x: self.optimizer.apply({self.first.b: x}), "A194", "the gradient"),
        (lambda self, loss, x: self.optimizer.apply({x: x}), "A194", "the gradient"),
        (lambda self, loss, x: self.optimizer.apply([(self.first.b, self.first.b)] * 2), "A194", "two gradients"),
        (lambda self, loss, x: fl.optim.SGD(0.1).minimize(loss), "A120", "SGD that no attribute holds"),
        (lambda self, loss, x: self.optimizer.averaged(self.first.w), "A191", "averaged"),
    ],
)
def test_what_an_optimiser_cannot_do_is_a_sentence(change: Any, code: str, words: str) -> None:
    found = refusal(changed(change))
    assert found.code == code and words in found.asked and found.source is not None


def test_decay_of_nothing_is_refused() -> None:
    optimizer = fl.optim.SGD(0.1, weight_decay=0.1, decay="weights")
    assert refusal(changed(lambda self, loss, x: self.optimizer.minimize(loss), optimizer)).code == "A192"
