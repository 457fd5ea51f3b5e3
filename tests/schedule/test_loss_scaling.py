"""`loss_scale`: scaled losses give what unscaled ones give, to the bit; what is left alone when a gradient is not finite; refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.graph import Graph, Transition
from fluorite.algo.parameters import initial_parameters
from fluorite.schedule import Precision
from fluorite.schedule.loss_scaling import scaled
from fluorite.schedule.losses import losses_of
from fluorite.schedule.precision import refusals

DYNAMIC = Precision(compute="f16", loss_scale="dynamic")


class Trained(fl.Program):
    """A method that moves what `parts` makes by the gradient of what `loss` says."""

    def __init__(self, loss: Callable[[Any, Any], Any], optimizer: Any) -> None:
        self.up, self.down, self.loss, self.optimizer = fl.nn.Linear(6, 5), fl.nn.Linear(5, 3), loss, optimizer

    @fl.method
    def train_step(self, x: fl.f32[fl.Tensor, "n", 6]) -> Any:
        loss = self.loss(self, x)
        self.optimizer.minimize(loss)
        return {"loss": loss}


def classes(p: Any, x: Any) -> Any:
    return fl.mean(fl.cross_entropy(p.down(fl.relu(p.up(x))), fl.argmax(x[:, :3], axis=1)))


def constant_seed(p: Any, x: Any) -> Any:
    return fl.sum(p.up(x))


def extrema(p: Any, x: Any) -> Any:
    """Reductions whose adjoints need positions and counts, which are not scaled; a seed beside an adjoint that is."""
    h = fl.tanh(p.up(x))
    total = fl.sum(fl.max(h, axis=1)) + fl.sum(fl.prod(p.down(h), axis=1))
    return total + total * total


def recurrent(p: Any, x: Any) -> Any:
    last, _ = fl.scan(lambda h, row: (fl.tanh(h + row), h), fl.stage(lambda j: 0.0 * p.up.b[j]), p.up(x))
    return fl.sum(last)


def steep(p: Any, x: Any) -> Any:
    """Slopes that may be infinite behind a choice, which ask whether anything arrives."""
    h = p.up(x)
    return fl.sum(p.down(fl.where(h > 0.1, 2 * fl.log(fl.sqrt(h)) + 1, fl.relu(3 * fl.exp(h)))))


def penalty(p: Any, x: Any) -> Any:
    """A gradient inside of a loss."""
    slope = fl.grad(lambda t: fl.sum(fl.tanh(p.down(fl.tanh(p.up(t))))))(x)
    return fl.mean(slope * slope)


def own_rule(p: Any, x: Any) -> Any:
    """A derivative that is not linear, and is given what it would be given without a scale."""
    clipped = fl.custom_vjp(lambda t: t, lambda t: (t, ()), lambda _, g: (fl.clip(g, -0.01, 0.01),))
    return fl.sum(fl.tanh(p.down(clipped(p.up(x)))))


LOSSES = [classes, constant_seed, extrema, recurrent, steep, penalty, own_rule]


def inputs(n: int = 4) -> Any:
    return np.random.default_rng(3).normal(size=(n, 6)).astype(np.float32)


def in_scales(g: Graph, precision: Precision = DYNAMIC) -> Graph:
    found, problems = scaled(precision, g)
    assert problems == []
    return found


def step(g: Graph, state: Any = None, method: str = "train_step", x: Any = None) -> Transition:
    return g.step(inputs() if x is None else x, method=method, parameters=state or initial_parameters(g))


def same(a: Any, b: Any, within: float = 0.0) -> None:
    assert a.keys() <= b.keys()
    for path in a:
        np.testing.assert_allclose(a[path], b[path], within, err_msg=path)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
@pytest.mark.parametrize("precision", [DYNAMIC, Precision(compute="f16", loss_scale=1024)], ids=["dynamic", "1024"])
def test_a_power_of_two_changes_no_bit(loss: Any, precision: Precision) -> None:
    g = fl.trace(Trained(loss, fl.optim.Adam(1e-2, clip_norm=0.5)))
    whole = in_scales(g, precision)
    plain, found = step(g), step(whole)
    same(plain.result, found.result)
    same(plain.parameters, found.parameters, 1e-6 if loss is own_rule else 0.0)  # there the sum is one of three factors
    assert any(not np.array_equal(found.parameters[p], v) for p, v in initial_parameters(g).items() if p.endswith("/w"))


def test_every_adjoint_is_scaled_and_none_of_the_factors() -> None:
    g = fl.trace(Trained(extrema, fl.optim.SGD(1e-2)))
    whole = in_scales(g, Precision(compute="f16", loss_scale=1024))
    with_both = [(s, whole[s.id]) for s in g.stages if s.role == "gradient"]
    outputs = tuple(s.id for s, _ in with_both)

    def values(graph: Graph) -> Any:
        method = replace(graph.methods[0], result=outputs, updates={})
        return replace(graph, methods=(method,)).run(inputs(), parameters=initial_parameters(graph))

    factors = 0
    for (s, _), plain, found in zip(with_both, values(g), values(whole), strict=True):
        factors += not s.loss
        np.testing.assert_array_equal(np.asarray(plain) * (1024 if s.loss else 1), found, err_msg=s.path)
    assert factors == 3  # the place of a maximum, or how many there are; how many are 0, and the product of the others


def _state(g: Graph, **changes: Any) -> Any:
    found = initial_parameters(g, 1)
    for key, value in changes.items():
        path = f"grad/train_step/loss/{key}"
        found[path] = np.asarray(value, found[path].dtype)
    return found


class Simple(Trained):
    def __init__(self, optimizer: Any = None) -> None:
        super().__init__(lambda p, x: fl.mean(fl.tanh(p.down(p.up(x))), name="loss"), optimizer or fl.optim.Adam(1e-2, average=0.9))


@pytest.fixture(scope="module")
def simple() -> Graph:
    return in_scales(fl.trace(Simple()))


def test_what_is_not_finite_halves_the_scale_and_nothing_else_moves(simple: Graph) -> None:
    before = _state(simple, good=7)
    x = inputs()
    x[1, 2] = np.inf
    after = step(simple, before, x=x).parameters
    moved = {path for path in before if not np.array_equal(before[path], after[path])}
    assert moved == {"grad/train_step/loss/scale", "grad/train_step/loss/good"}
    assert (after["grad/train_step/loss/scale"], after["grad/train_step/loss/good"]) == (2**15, 0)
    again = step(simple, after).parameters
    assert again["optimizer/step"] == 1 and again["grad/train_step/loss/good"] == 1


@pytest.mark.parametrize(
    ("good", "scale", "expected"),
    [(1998, 4, (4, 1999)), (1999, 4, (8, 0)), (1999, 2.0**100, (2.0**100, 0)), (0, 2.0**-100, (2.0**-100, 1))],
)
def test_the_scale_doubles_after_two_thousand_good_calls(simple: Graph, good: int, scale: float, expected: Any) -> None:
    after = step(simple, _state(simple, good=good, scale=scale)).parameters
    assert (after["grad/train_step/loss/scale"], after["grad/train_step/loss/good"]) == expected


def test_the_micro_steps_of_an_accumulation_are_left_out_one_by_one() -> None:
    g = in_scales(fl.trace(Simple(fl.optim.SGD(0.1, momentum=0.9, accumulate=3))))
    state = step(g, _state(g)).parameters
    assert state["optimizer/calls"] == 1
    assert step(g, state, x=np.full((4, 6), np.nan, np.float32)).parameters["optimizer/calls"] == 1


class Two(fl.Program):
    """Two optimisers that take turns in one method."""

    def __init__(self) -> None:
        self.made, self.judge = fl.nn.Linear(6, 6), fl.nn.Linear(6, 1)
        self.first, self.second = fl.optim.Adam(1e-2), fl.optim.SGD(1e-2, momentum=0.9)
        self.seen = fl.state()

    @fl.method
    def train_step(self, x: fl.f32[fl.Tensor, "n", 6], factor: fl.f32[fl.Tensor]) -> Any:
        judged = fl.mean(self.judge(fl.stop_gradient(self.made(x))) * factor, name="judged")
        self.first.minimize(judged, params=self.judge)
        fooled = fl.mean(fl.tanh(self.judge(self.made(x))), name="fooled")
        self.second.minimize(fooled, params=self.made)
        self.seen = self.seen + fl.sum(x)
        return judged


def test_each_loss_has_its_own_scale_and_holds_back_its_own_optimiser() -> None:
    g = in_scales(fl.trace(Two()))
    assert [x.label for x in losses_of(g)] == ["judged", "fooled"]
    state = initial_parameters(g)
    after = g.step(inputs(), np.float32(np.inf), method="train_step", parameters=state).parameters
    still = {path for path in state if np.array_equal(state[path], after[path])}
    assert still == {p for p in state if p.startswith(("first/", "judge/"))} | {
        "grad/train_step/judged/good",
        "grad/train_step/fooled/scale",
    }
    assert after["grad/train_step/judged/scale"] == 2**15 and after["grad/train_step/fooled/scale"] == 2**16
    assert after["second/step"] == 1 and after["seen"] != 0


class ByHand(fl.Program):
    def __init__(self) -> None:
        self.w, self.v = fl.param(i=6, j=3), fl.state(i=6, j=3)

    @fl.method
    def train_step(self, x: fl.f32[fl.Tensor, "n", 6]) -> Any:
        loss = fl.mean(fl.tanh(x @ self.w), name="loss")
        g = fl.grad(lambda w: fl.mean(fl.tanh(x @ w), name="inner"))(self.w)
        self.v = self.v * 0.9 + g
        self.w = self.w - 0.1 * self.v
        return {"loss": loss, "slope": g}


def test_updates_by_hand_and_gradients_that_are_returned() -> None:
    g = fl.trace(ByHand())
    whole = in_scales(g)
    plain, found = step(g), step(whole)
    same(plain.result, found.result)
    same(plain.parameters, found.parameters)
    state = step(whole).parameters
    after = step(whole, state, x=np.full((4, 6), np.nan, np.float32)).parameters
    assert all(np.array_equal(state[p], after[p]) for p in ("w", "v"))


# ---------------------------------------------------------------- refusals
def only_forward(x: fl.f32[fl.Tensor, "n", 6]) -> Any:
    return fl.tanh(x)


class Wide(fl.Program):
    def __init__(self) -> None:
        self.w, self.optimizer = fl.param(i=6, dtype="float64"), fl.optim.SGD(0.1)

    @fl.method
    def train_step(self, x: fl.f64[fl.Tensor, 6]) -> Any:
        loss = fl.sum(self.w * x * x)
        self.optimizer.minimize(loss)
        return loss


@pytest.mark.parametrize(
    ("model", "precision", "says"),
    [
        (only_forward, DYNAMIC, "no method of only_forward moves parameters by gradients"),
        (Wide(), DYNAMIC, "is float64, whose range no gradient leaves"),
        (Simple(), Precision(loss_scale="dynamic"), "no gradient is computed in a type narrower than float32"),
        (Simple(), Precision(compute="f32", loss_scale=64), "no gradient is computed in a type narrower than float32"),
    ],
)
def test_what_is_refused(model: Any, precision: Precision, says: str) -> None:
    g = fl.trace(model)
    found, (problem,) = scaled(precision, g)
    assert found is g
    assert problem.code == "P403" and says in problem.text() and problem.try_


@pytest.mark.parametrize("key", ["gradients", "optimizer"])
def test_keys_about_training_of_a_program_that_does_not_train(key: str) -> None:
    (problem,) = refusals(Precision(**{key: "bf16"}), fl.trace(only_forward))
    assert problem.code == "P403" and f"{key}: bf16" in problem.text() and problem.try_
    assert refusals(Precision(**{key: "bf16"}), fl.trace(Simple())) == []
