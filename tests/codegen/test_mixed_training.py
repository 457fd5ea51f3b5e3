"""Training in bf16 and f16, compiled: step for step what the algorithm with the plan's roundings gives, overflows included."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.graph import Transition
from fluorite.algo.numerics import compare
from fluorite.codegen.checking import check
from fluorite.codegen.driver import host_target, in_types, prepared, schedule
from fluorite.codegen.effects import changes, effect
from fluorite.schedule import ExecutionPlan, Precision
from fluorite.schedule.directives import Pack

SCALE, GOOD = "grad/train_step/loss/scale", "grad/train_step/loss/good"
PRECISIONS = {
    "f16": Precision(compute="f16", loss_scale="dynamic", gradients="f16", keep=("loss",)),
    "bf16": Precision(compute="bf16", loss_scale="dynamic", parameters="bf16", optimizer="bf16", keep=("update/optimizer/v/down",)),
}


class Net(fl.Program):
    """5 inputs, 7 hidden, 3 results."""

    def __init__(self) -> None:
        self.up, self.down = fl.param(i=5, j=7, init=fl.init.xavier_uniform()), fl.param(i=7, j=3, init=fl.init.xavier_uniform())
        self.optimizer = fl.optim.SGD(1e-2, momentum=0.9, clip_norm=1.0)

    @fl.method(training=True)
    def train_step(self, x: fl.f32[fl.Tensor, "n", 5], y: fl.f32[fl.Tensor, "n", 3]) -> Any:
        off = fl.relu(x @ self.up) @ self.down - y
        loss = fl.mean(off * off, name="loss")
        self.optimizer.minimize(loss)
        return {"loss": loss}


class Built:
    """A model under a plan, and its oracle: the graph with the plan's roundings, on the interpreter."""

    def __init__(self, precision: Precision) -> None:
        self.plan = ExecutionPlan(precision=precision)
        self.model = fl.compile(Net, self.plan)
        self.oracle = in_types(self.plan, fl.trace(Net())).graph
        self.start = self.state()

    def state(self) -> dict[str, Any]:
        return {name: np.array(value) for name, value in self.model.parameters.items()}

    def restart(self, scale: float, good: int = 0) -> None:
        self.model.parameters.assign(self.start | {SCALE: np.float32(scale), GOOD: np.int32(good)})

    def step(self, x: Any, y: Any) -> dict[str, Any]:
        """One step of both from the same state, compared; the new state."""
        before = self.state()
        result = self.model.train_step(x, y)
        after = self.state()
        found = compare(self.oracle, "train_step", (x, y), Transition(result, after), "reassociates", before)
        wrong = [c.text() for c in found if not c.ok]
        assert not wrong, wrong
        truth = self.oracle.step(x, y, method="train_step", parameters=before).parameters  # which decides what the bounds leave open
        assert all(truth[name] == after[name] for name in (SCALE, GOOD, "optimizer/step"))
        return after


def data(n: int = 6, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 5)).astype(np.float32)
    return x, np.tanh(x[:, :3])


@pytest.fixture(scope="module", params=PRECISIONS)
def built(request: pytest.FixtureRequest) -> Built:
    return Built(PRECISIONS[request.param])


def moved(a: Any, b: Any) -> set[str]:
    return {name for name in a if not np.array_equal(a[name], b[name])}


def test_steps_are_those_of_the_oracle(built: Built) -> None:
    built.restart(scale=2.0**10)
    for seed in range(3):
        after = built.step(*data(seed=seed))
    assert after["optimizer/step"] == 3 and after[GOOD] == 3 and after[SCALE] == 2**10
    assert moved(built.start, after) == built.start.keys()


def test_an_overflow_moves_nothing_but_the_scale_and_training_goes_on(built: Built) -> None:
    built.restart(scale=2.0**10, good=5)
    before = built.step(*data())
    x, y = data()
    x[2, 3] = np.inf
    after = built.step(x, y)
    assert moved(before, after) == {SCALE, GOOD}
    assert after[SCALE] == 2**9 and after[GOOD] == 0
    again = built.step(*data())
    assert again["optimizer/step"] == 2 and again[GOOD] == 1 and {"up", "down"} <= moved(after, again)


def test_a_scale_too_large_for_the_type_comes_down_until_gradients_fit(built: Built) -> None:
    """The seed alone is beyond float16 at first; bfloat16 has the range of float32."""
    built.restart(scale=2.0**20)
    x, y = data(1)
    scales = [float(built.step(x, y)[SCALE]) for _ in range(7)]
    assert built.plan.precision is not None
    if built.plan.precision.compute == "f16":
        assert scales[:2] == [2.0**19, 2.0**18] and scales[-1] == scales[-2]
        assert built.state()["optimizer/step"] == 7 - sum(a != b for a, b in pairwise([2.0**20, *scales]))
    else:
        assert set(scales) == {2.0**20} and built.state()["optimizer/step"] == 7


def test_the_scale_grows_after_two_thousand_good_steps(built: Built) -> None:
    built.restart(scale=2.0**6, good=1998)
    assert [(s[SCALE], s[GOOD]) for s in (built.step(*data()) for _ in range(3))] == [(64, 1999), (128, 0), (128, 1)]


def test_a_checkpoint_has_the_scale_and_goes_on_to_the_bit(built: Built, tmp_path: Path) -> None:
    built.restart(scale=2.0**9, good=1999)
    built.step(*data())
    built.model.checkpoint(tmp_path)
    there = [built.step(*data(seed=k)) for k in range(2)][-1]
    other = fl.compile(Net, built.plan, seed=1)
    other.resume(tmp_path)
    assert other.parameters[SCALE] == 2**10
    for k in range(2):
        other.train_step(*data(seed=k))
    assert moved(there, {name: np.array(v) for name, v in other.parameters.items()}) == set()


def test_checkpoints_do_not_depend_on_the_plan(built: Built, tmp_path: Path) -> None:
    """A plan without scales has no use for them, and one with a scale begins where it stands; types are those of the algorithm."""
    built.restart(scale=2.0**9)
    built.step(*data())
    built.model.checkpoint(tmp_path / "scaled")
    plain = fl.compile(Net)
    steps = plain.resume(tmp_path / "scaled")
    for name, value in plain.parameters.items():
        np.testing.assert_array_equal(value, np.asarray(built.model.parameters[name]).astype(value.dtype), name)
    plain.train_step(*data())
    plain.checkpoint(tmp_path / "plain")
    other = fl.compile(Net, built.plan)
    assert other.resume(tmp_path / "plain") == steps + 1 and other.parameters[SCALE] == built.start[SCALE]


def test_master_weights_keep_what_a_narrow_type_would_lose() -> None:
    """A step of a thousandth of a weight: float32 moves by it, and stored bfloat16 does not."""
    plan = ExecutionPlan(precision=Precision(compute="bf16"))
    g = in_types(plan, fl.trace(Net())).graph
    new = next(s for s in g.stages if s.path == "train_step/update/optimizer/up")
    old = {t.id: t for t in g.leaves}
    assert {g[i].path for i in new.sources} & {"up"} and "train_step/up/cast" not in {g[i].path for i in new.sources}
    assert {t.dtype for t in old.values() if t.kind in ("parameter", "state")} == {"float32", "int32"}
    assert next(s for s in g.stages if s.path == "train_step/update/optimizer/rate").dtype == "float64"


def test_types_in_which_state_is_stored() -> None:
    state = fl.compile(Net, ExecutionPlan(precision=PRECISIONS["bf16"])).parameters
    narrow = {name for name, value in state.items() if value.dtype.name == "bfloat16"}
    assert narrow == {"up", "down", "optimizer/v/up"}


def test_plans_differ_in_class() -> None:
    g, plan = fl.trace(Net()), ExecutionPlan(precision=PRECISIONS["f16"])
    numerics = [c.text() for c in changes(effect(g, ExecutionPlan(), {"n": 2}), effect(g, plan, {"n": 2})) if c.what == "numerics"]
    assert len(numerics) == 1 and numerics[0].endswith("-> precision")


def test_check_compares_the_scale_too() -> None:
    class Line(fl.Program):
        def __init__(self) -> None:
            self.w, self.optimizer = fl.param(i=5), fl.optim.SGD(0.1)

        @fl.method
        def train_step(self, x: fl.f32[fl.Tensor, 5]) -> Any:
            loss = fl.sum(self.w * x, name="loss")
            self.optimizer.minimize(loss)
            return loss

    plan = ExecutionPlan(precision=Precision(compute="f16", loss_scale="dynamic", optimizer="bf16"))
    report = check(Line(), plan)
    assert report.ok and report.numerics == "precision", report.text()
    assert {c.result.path for c in report.cases} >= {"train_step/loss", "train_step/update/grad/train_step/loss/scale as rounded"}


class Image(fl.Program):
    def __init__(self) -> None:
        self.conv, self.optimizer = fl.nn.Conv2d(4, 16, 3, padding=1), fl.optim.SGD(0.1)

    @fl.method
    def train_step(self, x: fl.f32[fl.Tensor, 8, 4, 8, 8]) -> Any:
        loss = fl.mean(fl.tanh(self.conv(x)), name="loss")
        self.optimizer.minimize(loss)
        return loss


def test_convolutions_of_rounded_tensors_are_products_while_training_too() -> None:
    """Weights that a step moves are rounded at each call, once, and not at each multiplication."""
    plan, _ = prepared(ExecutionPlan(precision=Precision(compute="bf16")), g := fl.trace(Image()))
    made = schedule(g, plan, host_target(plan))
    assert {"train_step/conv/w/cast", "train_step/x/cast"} <= {s.path for s in made.graph.stages}
    assert any(isinstance(d, Pack) for d in made.chosen["train_step/conv/conv2d/product/acc"])
