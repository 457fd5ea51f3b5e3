"""Methods that change state, compiled: against the interpreter over many calls, in place or by way of a copy, and from several threads."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.parameters import initial_parameters
from fluorite.codegen import driver
from stateful import Line, copies, follow, rows, variant

F32 = np.float32


def test_a_training_step_follows_the_interpreter_and_learns() -> None:
    model = follow(Line(), [("train_step", rows(n, n)) for n in (1, 2, 7, 64, 131)] + [("infer", (rows(5)[0],))])
    assert copies(model, "train_step") == set() and model.parameters["steps"] == 5
    x, y = rows(64)
    losses = [float(model.train_step(x, y)["loss"]) for _ in range(200)]
    assert losses[-1] < 1e-3 < losses[0]
    np.testing.assert_allclose(model.infer(x), y, atol=0.1)


class Wide(fl.Program):
    """A layer of several columns, whose weights are packed."""

    def __init__(self) -> None:
        self.w = fl.param(init=fl.init.normal(), i=32, j=48)

    @fl.method(batch="n")
    def infer(self, x: fl.f32[fl.Tensor, "n", 32]) -> fl.Tensor:
        return fl.matmul(x, self.w)

    @fl.method(training=True)
    def shrink(self, by: fl.f32[fl.Tensor]) -> None:
        self.w = self.w * by


def test_what_is_packed_before_calls_follows_the_weights() -> None:
    model = fl.compile(Wide())
    x = np.random.default_rng(3).random((64, 32), F32)
    assert variant(model, "infer")["setup"], "the case is about packed weights"
    for _ in range(3):
        np.testing.assert_allclose(model.infer(x), x @ model.parameters["w"], rtol=1e-4, atol=1e-5)
        model.shrink(F32(0.5))
    model.parameters["w"] = np.zeros((32, 48), F32)
    assert (model.infer(x) == 0).all()


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
