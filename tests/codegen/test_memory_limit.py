"""What a call takes: predicted at build, measured, held to the plan's limit; and stages computed again so that it takes less."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import PlanError
from fluorite.codegen.checking import check
from fluorite.codegen.driver import build
from fluorite.codegen.explaining import explain
from fluorite.schedule import ExecutionPlan, Memory
from fluorite.schedule.recompute import recomputed

N = 64 * 1024


def residual(x: fl.f32[fl.Tensor, "n", 64], w: fl.f32[fl.Tensor, 64, 64]) -> Any:
    first = (x @ w).named("first")
    a = (fl.relu(first) @ w).named("a")
    b = (fl.relu(a) @ w).named("b")
    c = (fl.relu(b) @ w).named("c")
    return fl.max(c + first, axis=1).named("out")



def plan(**keys: Any) -> ExecutionPlan:
    return ExecutionPlan(memory=Memory(**keys))


def inputs(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, 64)).astype("float32"), rng.normal(size=(64, 64)).astype("float32") / 8


def arena(model: fl.Model, n: int) -> int:
    """Bytes that a call really takes from the system for what lies between its kernels."""
    model(*inputs(n))
    (prepared,) = model.residual._prepared.values()
    return len(prepared.run.arenas[0]) - 1


def test_what_is_predicted_is_what_is_taken() -> None:
    for keys in ({}, {"recompute": ("first",)}):
        predicted = explain(residual, plan(**keys), {"n": 256}).peaks["residual"]
        model = fl.compile(residual, plan(**keys))
        assert arena(model, 256) == predicted.buffers
        assert model.memory({"n": 256}) == predicted.total == model.peak({"n": 256}).total
        assert predicted.results == 1024 and predicted.parameters == predicted.constants == 0


def test_extents_that_the_plan_fixes_need_not_be_given_again() -> None:
    model = fl.compile(residual, plan(), extents={"n": 256})
    assert model.peak() == model.peak({"n": 256}) and model.memory() == model.peak().total


def test_recomputing_saves_what_it_promises() -> None:
    usual, again = (fl.compile(residual, plan(**keys)) for keys in ({}, {"recompute": ("first",)}))
    saved = usual.peak({"n": 256}).buffers - again.peak({"n": 256}).buffers
    assert saved == arena(usual, 256) - arena(again, 256) == N
    for n in (1, 7, 64):
        np.testing.assert_array_equal(usual(*inputs(n)), again(*inputs(n)))
    report = check(residual, plan(recompute=("first",)), extents={"n": 37})
    assert report.ok, report.text()


def test_what_is_recomputed_has_a_path_that_suffixes_do_not_enter() -> None:
    graph, problems = recomputed(Memory(recompute=("first", "a")), fl.trace(residual))
    assert problems[0].code == "P402"  # a is read once
    graph, problems = recomputed(Memory(recompute=("first",)), fl.trace(residual))
    assert problems == [] and [s.path for s in graph.stages if "recompute" in s.path] == ["residual/recompute/first"]
    named = plan(recompute=("first",)).with_schedule("first", [fl.schedule.Parallel("i")])
    named = named.with_schedule("recompute/first", [fl.schedule.Vectorize("j", width=8)])
    assert check(residual, named, extents={"n": 9}).ok


class Learner(fl.Program):
    def __init__(self) -> None:
        self.line, self.optimizer = fl.nn.Linear(4, 4), fl.optim.SGD(0.1)

    def hidden(self, x: Any) -> Any:
        return fl.tanh(self.line(x))

    @fl.method(training=True)
    def step(self, x: fl.f32[fl.Tensor, "n", 4]) -> Any:
        loss = fl.sum(fl.exp(self.hidden(x)))
        self.optimizer.minimize(loss)
        return loss

    @fl.method
    def infer(self, x: fl.f32[fl.Tensor, "n", 4]) -> Any:
        return self.hidden(x)


def test_one_line_means_the_methods_that_have_a_use_for_it() -> None:
    """tanh is the result of infer, where nothing is kept for a backward pass."""
    graph, problems = recomputed(Memory(recompute=("tanh",)), fl.trace(Learner()))
    assert problems == [] and [s.path for s in graph.stages if "recompute" in s.path] == ["step/recompute/tanh"]
    assert recomputed(Memory(recompute=("infer/tanh",)), fl.trace(Learner()))[1][0].code == "P402"


def chain(x: fl.f32[fl.Tensor, "n"]) -> Any:
    a = fl.stage(lambda i: x[i] * 2, name="a")
    b = fl.stage(lambda i: a[i] + 1, name="b")
    early = fl.stage(lambda i: b[i] * b[i], name="early")
    late = fl.stage(lambda i: early[i] + b[i], name="late")
    return late


def test_a_copy_reads_copies() -> None:
    graph, problems = recomputed(Memory(recompute=("a", "b")), fl.trace(chain))
    assert problems == []
    texts = {s.path: s.text(graph.path_of).split("    #")[0] for s in graph.stages}
    assert texts["chain/recompute/b"].endswith("chain/recompute/a[i] + 1.0") and texts["chain/late"].endswith("chain/recompute/b[i]")
    assert texts["chain/early"].endswith("chain/b[i] * chain/b[i]")
    x = np.arange(5, dtype="float32")
    np.testing.assert_array_equal(graph.run(x), fl.trace(chain).run(x))


# ---------------------------------------------------------------- the limit
def test_a_bounded_extent_is_checked_at_build(tmp_path: Path) -> None:
    text = "extents: {n: {between: [1, 1024]}}\nmemory: {limit: 256KiB}\n"
    chosen = ExecutionPlan.from_yaml(text, "p.yaml")
    for refused in (lambda: fl.compile(residual, chosen), lambda: build(residual, chosen, tmp_path / "built")):
        with pytest.raises(PlanError) as caught:
            refused()
        (problem,) = caught.value.problems
        assert (problem.code, problem.line) == ("P401", 2)
        assert "with n = 1024 takes" in problem.text() and "most in kernel" in problem.text() and "the limit is 256 KiB" in problem.text()
        assert any(t == "memory: {recompute: [/residual/first]}" for t in problem.try_)
    assert [p.code for p in check(residual, chosen, quick=True).problems] == ["P401"]
    enough = explain(residual, chosen, {"n": 1024}).memory["residual"]
    assert fl.compile(residual, chosen.replace(memory=Memory(limit=enough))).memory({"n": 1024}) == enough
    with pytest.raises(PlanError, match="P401"):
        fl.compile(residual, chosen.replace(memory=Memory(limit=enough - 1)))


def test_fixed_extents_and_buckets_are_checked_at_build() -> None:
    for extents in ({"n": 512}, {"n": {"buckets": [4, 512]}}):
        with pytest.raises(PlanError, match="with n = 512 takes"):
            fl.compile(residual, plan(limit="160KiB").replace(extents=extents))
    fl.compile(residual, plan(limit="160KiB").replace(extents={"n": 4}))


def test_other_extents_are_checked_at_the_call(tmp_path: Path) -> None:
    build(residual, plan(limit="160KiB"), tmp_path / "built")
    for model in (fl.compile(residual, plan(limit="160KiB")), fl.load(tmp_path / "built")):
        assert model(*inputs(8)).shape == (8,)
        with pytest.raises(Exception, match=r"with n = 512 takes .*the plan's limit is 160 KiB"):
            model(*inputs(512))


def test_a_call_that_check_cannot_make_is_told_once() -> None:
    """Not once for each of its results."""
    graph = fl.trace(lambda x: (fl.exp(x), fl.sin(x), fl.cos(x)), inputs={"x": fl.f32("n")})
    report = fl.check(graph, plan(limit="1KiB"), extents={"n": 512})
    (wrong,) = [c for c in report.cases if not c.ok and c.extents["n"] == 512]
    assert "the plan's limit is 1 KiB" in wrong.result.why


class Wide(fl.Program):
    def __init__(self) -> None:
        self.up = fl.nn.Linear(64, 256)

    @fl.method
    def predict(self, x: fl.f32[fl.Tensor, 2, 64]) -> Any:
        return self.up(x)


def test_parameters_count_and_narrower_ones_are_proposed() -> None:
    with pytest.raises(PlanError) as caught:
        fl.compile(Wide(), plan(limit="100KiB"))
    text = caught.value.problems[0].text()
    assert "parameters 65 KiB" in text and "constants 64 KiB" in text
    assert "memory" in explain(Wide(), plan()).text() and "parameters 65 KiB" in explain(Wide(), plan()).text()


# ---------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("section", "code", "says"),
    [
        ("{offload: [x]}", "P903", "offload is not built yet"),
        ("{limit: 12MB}", "P008", "25MiB"),
        ("{recompute: [out]}", "P402", "it is a result"),
        ("{recompute: [b]}", "P402", "read by one stage only"),
        ("{recompute: [frist]}", "P101", "first"),
    ],
)
def test_what_is_refused(section: str, code: str, says: str) -> None:
    try:
        report = check(residual, ExecutionPlan.from_yaml(f"memory: {section}\n", "p.yaml"), quick=True)
        problems = report.problems
    except PlanError as error:
        problems = tuple(error.problems)
    (problem,) = problems
    assert problem.code == code and problem.line == 1 and says in problem.text()


def test_a_recurrence_is_not_computed_again() -> None:
    def running(x: fl.f32[fl.Tensor, "n"]) -> Any:
        s = fl.cumulative_sum(x)
        return fl.stage(lambda i: s[i] * fl.max(lambda j: s[j]))

    (path,) = [s.path for s in fl.trace(running).stages if s.clock is not None]
    problems = recomputed(Memory(recompute=("/" + path,)), fl.trace(running))[1]
    assert [p.code for p in problems] == ["P402"] and "recurrence" in problems[0].text()


def test_updates_run_as_soon_as_they_free_what_they_read() -> None:
    """The gradient of a weight is there only until its own update, not until those of all weights."""

    class Deep(fl.Program):
        def __init__(self) -> None:
            self.layers = [fl.nn.Linear(64, 64, bias=False) for _ in range(4)]
            self.optimizer = fl.optim.Adam(0.01)

        @fl.method(training=True)
        def train_step(self, x: fl.f32[fl.Tensor, 2, 64]) -> dict[str, fl.Tensor]:
            for layer in self.layers:
                x = fl.relu(layer(x))
            cost = fl.mean(fl.square(x), name="cost")
            self.optimizer.minimize(cost)
            return {"cost": cost}

    peak = fl.compile(Deep()).peak(method="train_step")
    assert peak.buffers < 2 * 64 * 64 * 4, peak.text()
