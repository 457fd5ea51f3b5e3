"""Derivatives beside slopes: wrong rules are found and named, right ones pass at kinks, in scans and with values held fixed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.autodiff.pullbacks import Derivative, derivative
from fluorite.algo.autodiff.slopes import Point, Slope
from fluorite.algo.errors import AlgorithmError
from fluorite.algo.parameters import initial_parameters

F32 = np.float32


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(F32)


def slopes(model: Any, *inputs: Any, method: str | None = None) -> dict[str, list[Slope]]:
    """By the name of the rule, empty for the method's own derivative."""
    name = method or model.__name__
    d = derivative(model, name)
    assert isinstance(d, Derivative), d
    point = Point(d, inputs, initial_parameters(d.judged))
    return {c.name: point.judge(c, 2) for c in d.claims}


def verdicts(model: Any, *inputs: Any, method: str | None = None) -> dict[str, set[str]]:
    return {name: {s.verdict for s in found} for name, found in slopes(model, *inputs, method=method).items()}


def cubed(backward: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """x ** 3 + x, and tanh of it in all that follows, with the derivative given."""

    def cube(x: Any) -> Any:
        return x * x * x + x

    return fl.custom_vjp(cube, lambda x: (cube(x), x), lambda x, g: (backward(x, g),))


RULES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "right": (lambda x, g: g * (3 * x * x + 1), "right"),
    "right to seven digits": (lambda x, g: g * (3 * x * x + 1) * 1.0000001, "right"),
    "another sign": (lambda x, g: -g * (3 * x * x + 1), "wrong"),
    "a factor": (lambda x, g: g * (3 * x * x + 1) * 1.01, "wrong"),
    "a small factor": (lambda x, g: g * (3 * x * x + 1) * 1.0001, "wrong"),
    "a missing term": (lambda x, g: g * (3 * x * x), "wrong"),
    "a small missing term": (lambda x, g: g * (3 * x * x + 0.99), "wrong"),
    "nothing": (lambda x, g: None, "wrong"),
    "no number": (lambda x, g: g * (3 * x * x + 1) * fl.log(x - x - 1), "wrong"),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_judged_by_itself_and_in_all_that_uses_it(rule: str) -> None:
    backward, wanted = RULES[rule]

    def f(x: fl.f32[fl.Tensor, "n"], w: fl.f32[fl.Tensor, "n", 3]) -> Any:
        cube = cubed(backward)(fl.sin(x))
        return fl.tanh(fl.stage(lambda j: fl.sum(lambda n: cube[n] * w[n, j]))), fl.sum(w)

    found = slopes(f, normal(7), normal(7, 3, seed=1))
    assert {name: {s.verdict for s in some} for name, some in found.items()} == {"": {wanted}, "cube": {wanted}}
    (claim,) = {s.claim for s in found["cube"]}
    assert claim.source.startswith("test_slopes.py:")
    if wanted == "wrong":
        d = derivative(f, "f")
        assert isinstance(d, Derivative)
        assert {d.judged.path_of(i) for s in found[""] for i in s.by} == {"f/x"}  # w's is right


@pytest.mark.parametrize(("factor", "wanted"), [(1.0, "right"), (1.01, "wrong")])
def test_rules_in_the_step_of_a_scan(factor: float, wanted: str) -> None:
    rule = cubed(lambda x, g: g * (3 * x * x + 1) * factor)

    def f(x: fl.f32[fl.Tensor, "t", 3], h: fl.f32[fl.Tensor, 3]) -> Any:
        def step(c: Any, e: Any) -> Any:
            new = fl.tanh(rule(0.3 * c + e)) + fl.stop_gradient(c) * e
            return new, new

        return fl.scan(step, h, x)[1]

    assert verdicts(f, normal(5, 3), normal(3)) == {"": {wanted}, "cube": {wanted}}


def test_what_has_kinks_and_steps_is_judged_between_them_and_not_on_them() -> None:
    def f(x: fl.f32[fl.Tensor, "n"]) -> Any:
        return fl.abs(x), fl.max(x), fl.relu(x - 0.25), fl.round(8 * x), fl.sort(x), fl.where(x > 0.5, x * x, -x)

    x = np.linspace(-2.03, 2.01, 200).astype(F32)
    assert verdicts(f, x) == {"": {"right"}}
    x[3] = 0.0
    assert verdicts(f, x) == {"": {"unsure"}}


def test_a_value_held_fixed_is_held_fixed_in_the_comparison_too() -> None:
    def stable(x: fl.f32[fl.Tensor, "n", 4]) -> Any:
        return fl.softmax(x, -1), fl.logsumexp(x, -1)

    def through(x: fl.f32[fl.Tensor, "n"]) -> Any:
        return x + fl.stop_gradient(fl.round(x) - x)

    def product(x: fl.f32[fl.Tensor, "n"]) -> Any:
        return fl.stop_gradient(x) * x

    def cut(x: fl.f32[fl.Tensor, "n"]) -> Any:
        return fl.exp(fl.stop_gradient(x))

    for f, x in ((stable, normal(3, 4)), (through, normal(7)), (product, normal(7)), (cut, normal(7))):
        assert verdicts(f, x) == {"": {"right"}}
    d = derivative(cut, "cut")
    assert isinstance(d, Derivative) and d.cut


def doubled(x: np.ndarray) -> np.ndarray:
    return (2 * x + np.sin(x)).astype(F32)


@pytest.mark.parametrize(("factor", "wanted"), [(1.0, "right"), (1.01, "wrong"), (-1.0, "wrong")])
def test_functions_of_numpy_that_round_to_float32(factor: float, wanted: str) -> None:
    def pull(inputs: Any, g: Any) -> Any:
        return (g * (2 + fl.cos(inputs[0])) * factor,)

    def f(x: fl.f32[fl.Tensor, "n"]) -> Any:
        return fl.exp(fl.extern(doubled, x.shape, fl.f32, fl.tanh(x), vjp=pull, name="doubled"))

    assert verdicts(f, normal(7)) == {"": {wanted}, "doubled": {wanted}}


def test_narrow_floats_are_compared_without_their_rounding() -> None:
    def f(x: fl.f16[fl.Tensor, "n"], y: fl.bf16[fl.Tensor, "n"]) -> Any:
        return fl.erf(x) * 0.3, fl.tanh(y), fl.cast(x, fl.f32) * fl.cast(y, fl.f32)

    x = normal(9).astype(np.float16)
    assert verdicts(f, x, fl.trace(f).run(x, normal(9).astype("bfloat16"))[1]) == {"": {"right"}}


class Net(fl.Program):
    """A step that returns nothing, and minimises a loss."""

    def __init__(self) -> None:
        self.first, self.norm, self.drop, self.last = fl.nn.Linear(6, 8), fl.nn.BatchNorm(8), fl.nn.Dropout(0.3), fl.nn.Linear(8, 1)
        self.optimizer = fl.optim.Adam(0.1, clip_norm=1.0)

    @fl.method(batch="n", training=True)
    def train_step(self, x: fl.f32[fl.Tensor, "n", 6], y: fl.f32[fl.Tensor, "n", 1]) -> None:
        out = self.last(self.drop(fl.relu(self.norm(self.first(x)))))
        self.optimizer.minimize(fl.mean(fl.square(out - y), name="loss"))

    @fl.method
    def best(self, x: fl.f32[fl.Tensor, "n", 6]) -> Any:
        return fl.argmax(self.first(x), axis=-1)


def test_the_losses_of_a_training_step_are_judged() -> None:
    net = Net()
    d = derivative(net, "train_step")
    assert isinstance(d, Derivative)
    assert [d.judged.path_of(i) for i in d.claims[0].results] == ["train_step/loss"]
    assert {d.judged.path_of(i) for i in d.claims[0].by} >= {"train_step/x", "first/w", "norm/scale", "last/b"}
    assert not d.graph.updates
    assert verdicts(net, normal(5, 6), normal(5, 1), method="train_step") == {"": {"right"}}


def test_what_has_no_derivative_says_why() -> None:
    def loop(x: fl.f32[fl.Tensor, "n"], y: fl.f32[fl.Tensor, "n"]) -> Any:
        return fl.while_loop(lambda v: fl.sum(v) < 9.0, lambda v: v * 2, fl.abs(x)), fl.exp(y)

    def positions(i: fl.i32[fl.Tensor, "n"]) -> Any:
        return fl.cast(i, fl.f32)

    assert derivative(Net(), "best") == "it returns no floats"
    assert derivative(positions, "positions") == "it has no float inputs or parameters"
    d = derivative(loop, "loop")
    assert isinstance(d, Derivative)
    ((path, why),) = d.refused
    assert path.startswith("loop/while") and "how many turns" in why and "test_slopes.py:" in why
    assert verdicts(loop, normal(3), normal(3)) == {"": {"right"}}
    with pytest.raises(AlgorithmError, match="A174"):
        derivative(_ill, "_ill")


def _ill(x: fl.f32[fl.Tensor, "n"]) -> Any:
    return cubed(lambda x, g: fl.sum(g))(x)
