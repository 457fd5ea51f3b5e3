"""`check` of derivatives and of whole training steps: what is wrong is found and named, and what cannot be compared is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fluorite as fl
import pytest
from fluorite.algo.autodiff.pullbacks import Derivative, derivative
from fluorite.codegen import comparing, driver
from fluorite.codegen.checking import check
from fluorite.codegen.compiled import compile_kernels

FIVE = fl.ExecutionPlan.from_yaml("extents: {n: 5}")


def clipped(factor: float) -> Any:
    def clip(x: Any) -> Any:
        return fl.clamp(x, -1, 1)

    def backward(x: Any, g: Any) -> Any:
        return (fl.where(fl.abs(x) < 1, factor * g, 0.0),)

    return fl.custom_vjp(clip, lambda x: (clip(x), x), backward)


class Net(fl.Program):
    def __init__(self, factor: float) -> None:
        self.layer, self.factor = fl.nn.Linear(4, 3), factor

    @fl.method
    def infer(self, x: fl.f32[fl.Tensor, "n", 4]) -> Any:
        return fl.exp(clipped(self.factor)(self.layer(x)))

    @fl.method
    def best(self, x: fl.f32[fl.Tensor, "n", 4]) -> Any:
        return fl.argmax(self.layer(x), axis=-1)


def test_right_derivatives_pass_and_what_has_none_is_said() -> None:
    report = check(Net(1.0), FIVE, gradients=True)
    found = {of: {c.result.path for c in report.cases if c.of == of} for of in ("gradient", "slope")}
    assert report.ok and not report.notes
    assert found == {"gradient": {f"infer by {name}" for name in ("x", "layer/w", "layer/b")}, "slope": {"infer slope", "infer/clip slope"}}
    assert report.unjudged == (("best", "the derivative of best", "it returns no floats"),)
    assert "not compared: the derivative of best: it returns no floats" in report.text()
    document = json.loads(json.dumps(report.as_dict()))
    assert {c["of"] for c in document["cases"]} == {"value", "gradient", "slope"} and document["unjudged"][0]["method"] == "best"


def test_a_wrong_rule_is_named_with_its_stage_and_line() -> None:
    report = check(Net(1.02), FIVE, gradients=True)
    wrong = {c.result.path: c.result.why for c in report.cases if not c.ok}
    assert not report.ok and list(wrong) == ["infer slope", "infer/clip slope"]
    assert "by layer/w, layer/b, infer/x says" in wrong["infer slope"]
    line = next(n for n, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "fl.exp(clipped(" in text)
    assert f"clip (test_checking_derivatives.py:{line}) gives by infer/layer/bias" in wrong["infer/clip slope"]
    assert "wrong: infer(n=5) infer/clip slope: the derivative that clip" in report.text()
    assert check(Net(1.02), FIVE).ok and check(Net(1.02), gradients=True, quick=True).ok


def test_what_a_rule_reads_beside_its_arguments_is_told() -> None:
    def scaled(x: fl.f32[fl.Tensor, "n"], w: fl.f32[fl.Tensor, "n"]) -> Any:
        return fl.custom_vjp(lambda a: a * w, lambda a: (a * w, None), lambda _, g: (g * w,))(x)

    report = check(scaled, FIVE, gradients=True)
    assert {c.result.path for c in report.cases if not c.ok} == {"scaled slope"}
    assert "the derivative by scaled/w says" in report.text() and "reads it without taking it as an argument" in report.text()


def test_a_surrogate_is_not_compared_and_the_other_rules_are() -> None:
    reversed_ = fl.custom_vjp(lambda x: x, lambda x: (x, None), lambda _, g: (-g,), surrogate=True)

    def adversarial(x: fl.f32[fl.Tensor, "n"]) -> Any:
        return fl.exp(reversed_(clipped(1.1)(x)))

    report = check(adversarial, FIVE, gradients=True)
    assert {c.result.path for c in report.cases if c.of == "slope" and not c.ok} == {"adversarial/clip slope"}
    ((_, what, why),) = report.unjudged
    assert what == "adversarial with its slope" and "surrogates" in why and "<lambda> (test_checking_derivatives.py:" in why


def test_a_fault_in_the_code_of_a_derivative_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    twin = derivative(Net(1.001), "infer")
    assert isinstance(twin, Derivative)

    def faulty(variants: Any, target: Any) -> Path:
        if any(leaf.name == "cotangent" for leaf in variants[0].graph.leaves):
            plan, _ = driver.prepared(FIVE, twin.graph)
            variants = driver.lower_variants(twin.graph, plan, target)
        return compile_kernels(variants, target)

    monkeypatch.setattr(comparing, "compile_kernels", faulty)
    report = check(Net(1.0), FIVE, gradients=True)
    assert {(c.of, c.result.path) for c in report.cases if not c.ok} == {("gradient", f"infer by {n}") for n in ("x", "layer/w", "layer/b")}


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("schedule: {double: [{vectorize: {axis: n, width: 8}}]}", ""),
        ("schedule: {quad: [{split: {axis: n, factor: 8}}], double: [{compute_at: {stage: quad, axis: n_outer}}]}", "double"),
        ("precision: {compute: bf16}", ""),
    ],
)
def test_a_plan_that_does_not_fit_the_derivative_is_left_to_the_default(text: str, note: str) -> None:
    def model(x: fl.f32[fl.Tensor, "n"]) -> Any:
        double = fl.edge(fl.stage(lambda n: fl.exp(x[n]) * 2, name="double"))
        return fl.stage(lambda n: double[n] * double[n + 1], name="quad")

    report = check(model, fl.ExecutionPlan.from_yaml(f"extents: {{n: 20}}\n{text}"), gradients=True)
    assert report.ok and [c.of for c in report.cases].count("gradient") >= 1, report.text()
    assert [note in line and "follows the default schedule" in line for line in report.notes] == [True] * bool(note)


def test_a_graph_alone_does_not_say_how_it_is_derived() -> None:
    report = check(fl.trace(Net(1.0), "infer"), gradients=True)
    assert report.ok and "a Graph does not say" in report.unjudged[0][2]


def test_extents_that_are_too_small_and_points_that_are_not_smooth() -> None:
    def far(x: fl.f32[fl.Tensor, "n"]) -> Any:
        return fl.stage(lambda i: x[i] * x[i + 9], name="far")

    def bent(x: fl.f32[fl.Tensor, "n"]) -> Any:
        return fl.sqrt(fl.abs(x - x) + 0) + fl.abs(fl.where(x < 9, 0.0, x) - 0 * x) + x ** (1 / 3)

    (slope,) = (c for c in check(far, gradients=True).cases if c.of == "slope")
    assert slope.extents == {"n": 15} and slope.ok
    positive = [c for c in check(bent, gradients=True).cases if c.of == "slope"]  # at the second point, where x is positive
    assert [c.ok for c in positive] == [True]

    def root(x: fl.f32[fl.Tensor, "n"]) -> Any:
        return fl.sqrt(-1 - fl.abs(x))

    def cut(x: fl.f32[fl.Tensor, "n"]) -> Any:
        return fl.round(x)

    report = check(root, gradients=True)
    assert report.ok and report.unjudged == (("root", "root with its slope", "the results are no numbers at the points that were tried"),)
    report = check(cut, gradients=True)
    assert report.ok and "the derivative of cut, compiled: no result follows" in report.text() and "cut slope" in report.text()


def test_a_method_that_counts_has_a_derivative_too() -> None:
    class Counting(fl.Program):
        def __init__(self) -> None:
            self.w, self.seen = fl.param(k=3, init=2.0), fl.state(init=1.0)

        @fl.method
        def scaled(self, x: fl.f32[fl.Tensor, "n", 3]) -> Any:
            self.seen = self.seen + 1
            return fl.tanh(x * self.w) * self.seen

    report = check(Counting(), FIVE, gradients=True)
    assert report.ok and {c.result.path for c in report.cases if c.of != "value"} == {"scaled by x", "scaled by w", "scaled slope"}


# ---------------------------------------------------------------- whole steps
class Fit(fl.Program):
    """A step whose optimiser is given."""

    def __init__(self, optimizer: Any) -> None:
        self.layer, self.optimizer = fl.nn.Linear(5, 2), optimizer

    @fl.method(batch="n", training=True)
    def train_step(self, x: fl.f32[fl.Tensor, "n", 5], y: fl.f32[fl.Tensor, "n", 2]) -> Any:
        loss = fl.mean(fl.square(self.layer(x) - y), name="loss")
        self.optimizer.minimize(loss)
        return loss


class Pair(fl.Program):
    """Two networks, each with an optimiser, moved by two steps."""

    def __init__(self, rate: float) -> None:
        self.fake, self.critic = fl.nn.Linear(3, 4), fl.nn.Linear(4, 1)
        self.fake_opt, self.critic_opt = fl.optim.Adam(rate), fl.optim.SGD(rate, momentum=0.9)

    @fl.method(training=True)
    def critic_step(self, x: fl.f32[fl.Tensor, "n", 4], z: fl.f32[fl.Tensor, "n", 3]) -> Any:
        loss = fl.mean(fl.softplus(self.critic(fl.stop_gradient(self.fake(z)))) + fl.softplus(-self.critic(x)), name="loss")
        self.critic_opt.minimize(loss, self.critic)
        return loss

    @fl.method(training=True)
    def fake_step(self, z: fl.f32[fl.Tensor, "n", 3]) -> Any:
        loss = fl.mean(fl.softplus(-self.critic(self.fake(z))), name="loss")
        self.fake_opt.minimize(loss, self.fake)
        return loss


STEPS: dict[str, tuple[Any, Any, set[str]]] = {
    "sgd": (
        lambda: Fit(fl.optim.SGD(0.1)),
        lambda: Fit(fl.optim.SGD(0.101)),
        {"train_step/update/optimizer/layer/w", "train_step/update/optimizer/layer/b"},
    ),
    "adam": (
        lambda: Fit(fl.optim.Adam(0.1)),
        lambda: Fit(fl.optim.Adam(0.1, betas=(0.9, 0.99))),
        {f"train_step/update/optimizer/{part}layer/{p}" for p in "wb" for part in ("", "v/")},
    ),
    "two networks": (
        lambda: Pair(0.1),
        lambda: Pair(0.1001),
        {f"fake_step/update/fake_opt/fake/{p}" for p in "wb"} | {f"critic_step/update/critic_opt/critic/{p}" for p in "wb"},
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_every_part_of_a_training_step_is_compared(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of a step that is slightly another one: exactly the new values that differ are told."""
    meant, other, wrong = STEPS[name]
    program, twin = fl.trace(meant()), fl.trace(other())
    report = check(meant(), FIVE, gradients=True)
    assert report.ok and not report.unjudged
    told = {c.result.path for c in report.cases if c.of == "value"}
    assert told == {program.path_of(i) for m in program.methods for i in m.ends}
    assert {c.result.path for c in report.cases if c.of == "slope"} == {f"{m.name} slope" for m in program.methods}

    def faulty(variants: object, target: Any) -> Path:
        plan, _ = driver.prepared(FIVE, twin)
        return compile_kernels(driver.lower_variants(twin, plan, target), target)

    monkeypatch.setattr(comparing, "compile_kernels", faulty)
    assert {c.result.path for c in check(meant(), FIVE).cases if not c.ok} == wrong
