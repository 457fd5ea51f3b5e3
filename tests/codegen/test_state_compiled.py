"""Methods that change state, compiled: against the interpreter over many calls, in place or by way of a copy, and from several threads."""

from __future__ import annotations

import importlib
import json
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.numerics import compare
from fluorite.algo.parameters import initial_parameters
from fluorite.codegen import driver
from hypothesis import given, settings
from hypothesis import strategies as st

F32 = np.float32


def variant(model: Any, method: str) -> dict[str, Any]:
    found: dict[str, Any] = model.manifest["methods"][method]["variants"][-1]
    return found


def copies(model: Any, method: str) -> set[str]:
    """The state whose new value takes the way over memory of its own."""
    v = variant(model, method)
    return {v["buffers"][held]["name"] for _, held in v.get("copies", ())}


def follow(program: Any, calls: list[tuple[str, tuple[Any, ...]]], model: Any = None) -> Any:
    """A compiled model that has made these calls, each compared with the interpreter's transition from the model's own state."""
    graph = fl.trace(program)
    model = model or fl.compile(program)
    for method, inputs in calls:
        before = {path: np.array(model.parameters[path]) for path in initial_parameters(graph)}
        result = getattr(model, method)(*inputs)
        held = {path: np.array(model.parameters[path]) for path in before}
        found = compare(graph, method, inputs, fl.algo.graph.Transition(result, held), "reassociates", before)
        assert found and all(c.ok for c in found), [c.text() for c in found if not c.ok]
    return model


class Line(fl.Program):
    """Linear regression with its gradient written out."""

    def __init__(self, features: int = 13) -> None:
        self.w, self.b = fl.param(init=fl.init.normal(1.0), in_=features, out=1), fl.param(init=0.0, out=1)
        self.steps = fl.state(init=0, dtype=fl.i32)
        self.velocity = fl.state(in_=features, out=1)

    def predict(self, x: Any) -> Any:
        return x @ self.w + self.b

    @fl.method(batch="n")
    def infer(self, x: fl.f32("n", 13)) -> Any:  # type: ignore[valid-type]
        return self.predict(x)

    @fl.method(batch="n")
    def train_step(self, x: fl.f32("n", 13), y: fl.f32("n", 1)) -> Any:  # type: ignore[valid-type]
        error = self.predict(x) - y
        loss = fl.mean(error * error, name="loss")
        slope = fl.stage(lambda i, o: fl.sum(lambda n: x[n, i] * error[n, o]), name="slope") * (2.0 / fl.cast(x.shape[0], fl.f32))
        self.velocity = 0.9 * self.velocity + slope
        self.w = self.w - 0.01 * self.velocity
        self.b = self.b - 0.02 * fl.mean(error, axis=0)
        self.steps += 1
        return {"loss": loss}


def rows(n: int, seed: int = 0) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((n, 13)).astype(F32)
    return x, (x @ np.arange(13, dtype=F32)[:, None] / 13 + 1).astype(F32)


def test_a_training_step_follows_the_interpreter_and_learns() -> None:
    model = follow(Line(), [("train_step", rows(n, n)) for n in (1, 2, 7, 64, 131)] + [("infer", (rows(5)[0],))])
    assert copies(model, "train_step") == set() and model.parameters["steps"] == 5
    x, y = rows(64)
    losses = [float(model.train_step(x, y)["loss"]) for _ in range(200)]
    assert losses[-1] < 1e-3 < losses[0]
    np.testing.assert_allclose(model.infer(x), y, atol=0.1)


def test_what_is_packed_before_calls_follows_the_weights() -> None:
    model = fl.compile(Line())
    x, y = rows(64)
    assert variant(model, "infer")["setup"], "the case is about packed weights"
    for _ in range(3):
        expected = x @ model.parameters["w"] + model.parameters["b"]
        np.testing.assert_allclose(model.infer(x), expected, rtol=1e-4, atol=1e-5)
        model.train_step(x, y)
    model.parameters["w"] = np.zeros((13, 1), F32)
    assert (model.infer(x) == model.parameters["b"]).all()


def test_views_show_what_is_held_now() -> None:
    model = fl.compile(Line())
    w, steps = model.parameters["w"], model.parameters["steps"]
    first = np.array(w)
    model.train_step(*rows(8))
    assert (w == model.parameters["w"]).all() and (w != first).any() and steps == 1
    with pytest.raises(ValueError, match="read-only"):
        w[0] = 1
    model.parameters["w"] = first
    assert (w == first).all()


def test_state_is_saved_copied_and_reset(tmp_path: Path) -> None:
    model = fl.compile(Line(), seed=3)
    begun = {k: np.array(v) for k, v in model.parameters.items()}
    for n in range(3):
        model.train_step(*rows(8, n))
    model.save(tmp_path / "line.safetensors")
    twin = model.copy()
    trained = {k: np.array(v) for k, v in model.parameters.items()}
    model.train_step(*rows(8, 3))
    assert all((twin.parameters[k] == v).all() for k, v in trained.items()) and model.parameters["steps"] == 4
    twin.train_step(*rows(8, 3))
    assert all((twin.parameters[k] == v).all() for k, v in model.parameters.items())
    model.load(tmp_path / "line.safetensors")
    assert all((model.parameters[k] == v).all() for k, v in trained.items())
    model.reset()
    assert all((model.parameters[k] == v).all() for k, v in begun.items())
    model.reset(4)
    again = initial_parameters(fl.trace(Line), 4)
    assert all((model.parameters[k] == v).all() for k, v in again.items())
    assert fl.compile(Line(), weights=tmp_path / "line.safetensors").parameters["steps"] == 3


def test_a_built_model_trains_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = driver.build(Line(), None, tmp_path / "trained_line", seed=3)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("trained_line")
    model = fl.compile(Line(), seed=3)
    x, y = rows(32)
    for _ in range(3):
        assert module.train_step(x, y)["loss"] == model.train_step(x, y)["loss"]
    assert all((module.parameters[k] == v).all() for k, v in model.parameters.items())
    assert (module.infer(x) == model.infer(x)).all()
    own = module.Model()
    assert own.parameters["steps"] == 0
    own.train_step(x, y)
    own.reset()
    assert own.parameters["steps"] == 0
    with pytest.raises(Exception, match="without initialisers"):
        own.reset(1)
    assert "updates" in json.loads((folder / "manifest.json").read_text())["methods"]["train_step"]
    sys.modules.pop("trained_line")


def test_check_compares_every_new_state() -> None:
    report = fl.check(Line())
    assert report.ok, report.text()
    assert {f"train_step/update/{k}" for k in ("w", "b", "steps", "velocity")} <= {c.result.path for c in report.cases}


def test_tuning_begins_every_call_from_the_same_state() -> None:
    from fluorite.codegen.tuning.measuring import ProcessMeasurer, TuningCase

    graph = fl.trace(Line(), method="train_step")
    case = TuningCase("train_step", {"n": 8}, rows(8), 1.0)
    measurer = ProcessMeasurer(graph, fl.ExecutionPlan(), [case], [], initial_parameters(graph))
    try:
        assert measurer.baseline().seconds > 0
        plan = fl.ExecutionPlan.from_yaml("schedule: {train_step/update/velocity: [parallel: in]}")
        assert measurer.measure(plan).seconds > 0 and measurer.compare([plan])[0].seconds > 0
    finally:
        measurer.close()


# ---------------------------------------------------------------- in place, or not
class Moves(fl.Program):
    """Every way in which a new value may read old ones."""

    def __init__(self) -> None:
        self.a, self.b, self.c = (fl.state(init=np.arange(k, k + 70, dtype=F32), i=70) for k in (0, 100, 200))
        self.m = fl.state(init=fl.init.normal(1.0), y=33, x=17)
        self.count = fl.state(init=0, dtype=fl.i64)

    @fl.method
    def pointwise(self) -> Any:
        a, b = self.a, self.b
        self.a = fl.stage(lambda i: a[i] * 0.5 + b[i])

    @fl.method
    def swap(self) -> Any:
        self.a, self.b = self.b, self.a

    @fl.method
    def cycle(self) -> Any:
        self.a, self.b, self.c = self.b, self.c, self.a

    @fl.method
    def shift(self) -> Any:
        old = self.a
        self.a = fl.stage(lambda i: fl.where(i > 0, old[i - 1], -1.0), extents={"i": 70})

    @fl.method
    def back(self) -> Any:
        self.a = self.a[::-1]

    @fl.method
    def smooth(self) -> Any:
        old = fl.edge(self.m)
        self.m = fl.stage(lambda y, x: (old[y - 1, x] + old[y, x] + old[y + 1, x]) / 3.0)

    @fl.method
    def later(self) -> Any:
        old = self.a
        self.a = self.a + 1.0
        return fl.stage(lambda i: old[69 - i] + self.a[i], name="both"), old, self.a

    @fl.method
    def total(self) -> Any:
        old = self.a
        self.a = old / fl.sum(old)

    @fl.method
    def rows(self) -> Any:
        old = self.m
        self.m = fl.softmax(old, axis=1)
        self.c = fl.cumulative_sum(self.c) * 0.01

    @fl.method
    def gather(self, ids: fl.i32(70)) -> Any:  # type: ignore[valid-type]
        old = self.a
        self.a = fl.stage(lambda i: old[ids[i]])
        self.count = self.count + 1
        return self.count

    @fl.method
    def product(self) -> Any:
        m = self.m
        self.m = fl.stage(lambda y, x: fl.sum(lambda k: m[y, k] * m[k, x], over={"k": 17}), name="square") * 0.01

    @fl.method
    def one_for_two(self) -> Any:
        same = self.a + self.b
        self.a = same
        self.b = same
        return same


IDS = (np.arange(70) * 7 % 70).astype(np.int32)


def moves() -> list[tuple[str, tuple[Any, ...]]]:
    return [(m.name, (IDS,) if m.name == "gather" else ()) for m in fl.trace(Moves).methods]


def test_every_way_of_moving_state_is_right() -> None:
    model = follow(Moves(), moves() * 2)
    assert {name: copies(model, name) for name, _ in moves()} == {
        "pointwise": set(),
        "swap": {"a"} if copies(model, "swap") == {"a"} else {"b"},
        "cycle": copies(model, "cycle"),
        "shift": {"a"},
        "back": {"a"},
        "smooth": {"m"},
        "later": {"a"},
        "total": set(),
        "rows": copies(model, "rows"),
        "gather": {"a"},
        "product": {"m"},
        "one_for_two": copies(model, "one_for_two"),
    }
    assert len(copies(model, "cycle")) == 1


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(moves()), min_size=3, max_size=12))
def test_any_sequence_of_moves_is_right(calls: list[tuple[str, tuple[Any, ...]]]) -> None:
    follow(Moves(), calls, moved())


def moved() -> Any:
    if not hasattr(moved, "model"):
        moved.model = fl.compile(Moves())  # type: ignore[attr-defined]
    moved.model.reset()  # type: ignore[attr-defined]
    return moved.model  # type: ignore[attr-defined]


PLANS = {
    "vectors": "- vectorize: {axis: i, width: 16, tail: shift}",
    "guarded": "- vectorize: {axis: i, width: 16, tail: guard}",
    "parallel": "- split: {axis: i, factor: 8}\n    - parallel: i_outer",
    "scalar": "- compute_root",
}


@pytest.mark.parametrize("name", PLANS)
def test_loops_of_a_plan_leave_updates_right(name: str) -> None:
    text = "\n".join(f"  /{m}/update/{s}:\n    {PLANS[name]}" for m, s in (("pointwise", "a"), ("shift", "a"), ("swap", "b")))
    model = fl.compile(Moves(), fl.ExecutionPlan.from_yaml(f"schedule:\n{text}\n"))
    follow(Moves(), [c for c in moves() if c[0] in ("pointwise", "shift", "swap")] * 2, model)
    assert copies(model, "pointwise") == ({"a"} if name == "vectors" else set())  # a last vector that is moved back computes some twice


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int8", "uint64", "bool"])
def test_state_of_every_kind(dtype: str) -> None:
    class Kind(fl.Program):
        def __init__(self) -> None:
            self.a, self.one = fl.state(init=1, dtype=dtype, i=9), fl.state(init=1, dtype=dtype)
            self.none = fl.state(dtype=dtype, i=0)

        @fl.method
        def step(self) -> Any:
            if dtype == "bool":
                self.a, self.one, self.none = ~self.a, self.one & self.a[3], ~self.none
            else:
                self.a, self.one, self.none = self.a + self.one, self.one + self.one, self.none + 1

    follow(Kind(), [("step", ())] * 9)


def test_symbolic_extents_and_buckets() -> None:
    plan = fl.ExecutionPlan.from_yaml("extents: {n: {buckets: [4, 16]}}\n")
    follow(Line(), [("train_step", rows(n, n)) for n in (4, 16, 5, 1)] + [("infer", (rows(4)[0],))], fl.compile(Line(), plan))


def test_large_state_is_changed_where_it_is() -> None:
    class Large(fl.Program):
        def __init__(self) -> None:
            self.w = fl.param(init=fl.init.normal(1.0), y=301, x=257)

        @fl.method
        def step(self, g: fl.f32(301, 257)) -> Any:  # type: ignore[valid-type]
            self.w = self.w - 0.1 * g

        @fl.method
        def twice(self, g: fl.f32(301, 257)) -> Any:  # type: ignore[valid-type]
            self.w = self.w + g
            return fl.sum(g), self.w

    g = np.random.default_rng(0).standard_normal((301, 257)).astype(F32)
    model = follow(Large(), [("step", (g,)), ("twice", (g,))])
    assert copies(model, "step") == copies(model, "twice") == set()
    w = np.array(model.parameters["w"])
    total, doubled = model.twice(model.parameters["w"])  # the input is the state itself
    np.testing.assert_allclose(total, w.sum(dtype=np.float64), rtol=1e-3)
    assert (doubled == 2 * w).all() and (model.parameters["w"] == 2 * w).all() and not np.shares_memory(doubled, model.parameters["w"])


# ---------------------------------------------------------------- calls at the same time
class Pair(fl.Program):
    """Two tensors that are equal between any two steps, and kept apart so long that a reader could see them differ."""

    def __init__(self) -> None:
        self.a, self.b = fl.state(i=20_000), fl.state(i=20_000)

    @fl.method
    def step(self) -> Any:
        self.a = self.a + 1.0
        self.b = self.b + 1.0

    @fl.method
    def differ(self) -> Any:
        return fl.max(fl.abs(self.a - self.b)), fl.min(self.a)


def test_readers_see_whole_steps_and_no_step_is_lost() -> None:
    model, seen, stop = fl.compile(Pair()), [], threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.append(model.differ())

    def step() -> None:
        for _ in range(200):
            model.step()

    readers, writers = [threading.Thread(target=read) for _ in range(2)], [threading.Thread(target=step) for _ in range(2)]
    for t in (*readers, *writers):
        t.start()
    for t in writers:
        t.join()
    stop.set()
    for t in readers:
        t.join()
    assert (model.parameters["a"] == 400).all() and (model.parameters["b"] == 400).all()
    assert all(float(d) == 0 for d, _ in seen)


def test_a_refused_call_changes_nothing() -> None:
    model = fl.compile(Line())
    x, y = rows(4)
    model.train_step(x, y)
    before = {k: np.array(v) for k, v in model.parameters.items()}
    for wrong in ((x, y[:3]), (x.astype(np.float64), y), (x,)):
        with pytest.raises(fl.RunError):
            model.train_step(*wrong)
    assert all((model.parameters[k] == v).all() for k, v in before.items())
    model.train_step(x, y)
    assert model.parameters["steps"] == 2


def test_an_interrupt_between_kernels_waits_for_the_end_of_the_step() -> None:
    from fluorite.codegen.runtime.stepwise import _whole

    done: list[int] = []

    def interrupted(n: int) -> None:
        done.append(n)
        if n == 1:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may have had it ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            _whole([(interrupted, [n]) for n in range(4)])
    finally:
        signal.signal(signal.SIGINT, before)
    assert done == [0, 1, 2, 3]


def test_attributes_of_a_compiled_model_are_not_its_state() -> None:
    model = fl.compile(Line())
    for name in ("w", "steps", "infer"):
        with pytest.raises(fl.RunError, match=r"Line.* cannot be assigned"):
            setattr(model, name, 0)
    model.remark = "mine"
    assert model.remark == "mine"
