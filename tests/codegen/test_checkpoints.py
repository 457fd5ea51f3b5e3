"""Checkpoints: going on is like never having stopped, to the bit, whenever the process stops; and what is refused."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import ArtifactError, RunError
from fluorite.codegen import driver
from fluorite.codegen.runtime import checkpoints
from safetensors.numpy import load_file

F32 = np.float32
PLANS: dict[str, Any] = {"float32": None, "bfloat16": fl.ExecutionPlan.from_yaml("version: 1\nprecision: {parameters: bf16}\n")}


class Net(fl.Program):
    """Everything that a checkpoint has to know: parameters, moments, running statistics, a random key, a counter, a shuffled reader."""

    def __init__(self, count: int = 13, batch_size: int = 4) -> None:
        generator = np.random.default_rng(0)
        x = generator.standard_normal((count, 6)).astype(F32)
        self.data = fl.data.arrays(x=x, y=(x.sum(1, keepdims=True) > 0).astype(F32), batch_size=batch_size, shuffle=7).prefetch(2)
        self.first, self.norm, self.last = fl.nn.Linear(6, 8), fl.nn.BatchNorm(8), fl.nn.Linear(8, 1)
        self.drop = fl.nn.Dropout(0.3)
        self.optimizer = fl.optim.Adam(0.01, weight_decay=0.01, clip_norm=1.0)
        self.seen = fl.state(init=0, dtype=fl.i64)

    @fl.method(batch="n", training=True, reader="data")
    def train_step(self, x: fl.f32("n", 6), y: fl.f32("n", 1)) -> Any:  # type: ignore[valid-type]
        hidden = self.drop(fl.relu(self.norm(self.first(x))))
        loss = fl.mean(fl.softplus(self.last(hidden)) - y * self.last(hidden), name="loss")
        self.optimizer.minimize(loss)
        self.seen += 1
        return {"loss": loss}

    @fl.method(batch="n")
    def infer(self, x: fl.f32("n", 6)) -> Any:  # type: ignore[valid-type]
        return self.last(fl.relu(self.norm(self.first(x))))


def state(model: Any) -> dict[str, bytes]:
    return {name: model.parameters[name].tobytes() for name in model.parameters}


def steps(model: Any, count: int) -> list[float]:
    return [float(model.train_step()["loss"]) for _ in range(count)]


@pytest.fixture(scope="module")
def nets() -> dict[str, Any]:
    return {name: Net().compile(plan) for name, plan in PLANS.items()}


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("stop", [0, 3, 4, 10])
def test_going_on_is_like_never_having_stopped(plan: str, stop: int, nets: dict[str, Any], tmp_path: Path) -> None:
    whole, first, then = (nets[plan].copy() for _ in range(3))
    losses = steps(whole, stop + 10)
    begun = steps(first, stop)
    made, position = first.checkpoint(tmp_path / "run"), first.position("train_step")
    steps(first, 3)  # what comes after it does not count
    steps(then, 5)
    assert then.resume(tmp_path / "run") == stop and then.position("train_step") == position
    assert begun + steps(then, 10) == losses and state(then) == state(whole)
    assert then.steps == whole.steps == {"train_step": stop + 10} and then.position("train_step") == whole.position("train_step")
    assert made.name == f"step-{stop:08}" and (tmp_path / "run" / "last").resolve() == made.resolve()


def test_the_loss_depends_on_all_that_is_kept(nets: dict[str, Any]) -> None:
    """The tests above would see a part that is missing: each part changes the losses that follow."""
    model = nets["float32"].copy()
    steps(model, 3)
    expected = steps(model.copy(), 6)
    for name in model.parameters:
        if name.startswith("constant/"):
            continue
        other = model.copy()
        other.parameters[name] = other.parameters[name] + np.ones((), other.parameters[name].dtype)
        changed = steps(other, 6) != expected or any(state(other)[n] != state(model)[n] for n in ("seen", name))
        assert changed, name
    rewound = model.copy()
    rewound._methods["train_step"].feed.seek((0, 0))
    assert steps(rewound, 6) != expected


def test_weights_are_named_as_in_the_algorithm(nets: dict[str, Any], tmp_path: Path) -> None:
    model = nets["float32"].copy()
    steps(model, 2)
    file = model.checkpoint(tmp_path) / "weights.safetensors"
    held = load_file(file)
    assert {"first/w", "norm/mean", "optimizer/m/first/w", "optimizer/step", "random/key", "random/calls", "seen"} <= set(held)
    other = nets["float32"].copy()
    other.load(tmp_path / "last" / "weights.safetensors")
    assert state(other) == state(model) and other.steps == {"train_step": 0}
    other.load(file, strict=False, rename=lambda name: name.replace("first/", "absent/"))
    driver.build(Net(), None, tmp_path / "net", weights=file)
    x = np.ones((3, 6), F32)
    built = fl.load(tmp_path / "net")
    assert built.infer(x).tobytes() == model.infer(x).tobytes()
    assert built.resume(tmp_path) == 2 and built.train_step(x, x[:, :1])["loss"] == model.train_step(x, x[:, :1])["loss"]


def test_copies_and_resets_with_state(nets: dict[str, Any]) -> None:
    model = nets["float32"].copy()
    begun = state(model)
    losses = steps(model, 5)
    copied = model.copy()
    assert copied.steps == model.steps and steps(copied, 4) == steps(model, 4)
    model.reset()
    assert state(model) == begun and model.steps == {"train_step": 0} and steps(model, 5) == losses
    model.reset(1)
    assert steps(model, 5) != losses


def test_only_the_newest_are_kept(nets: dict[str, Any], tmp_path: Path) -> None:
    model = nets["float32"].copy()
    for _ in range(4):
        steps(model, 1)
        model.checkpoint(tmp_path, keep=2)
    assert sorted(p.name for p in tmp_path.glob("step*")) == ["step-00000003", "step-00000004"]
    again = model.checkpoint(tmp_path)  # at the same step
    assert sorted(p.name for p in tmp_path.iterdir()) == [".lock", "last", again.name] and again.name == "step-00000004-2"
    assert model.copy().resume(again) == 4


# ---------------------------------------------------------------- stops
class Stop(BaseException):
    """The process is gone."""


POINTS = ("os.fsync", "os.replace", "pathlib.Path.rename", "pathlib.Path.symlink_to", "pathlib.Path.write_text")


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("after", [False, True])
def test_a_stop_anywhere_leaves_the_last_checkpoint(
    point: str, after: bool, nets: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = nets["float32"].copy()
    states = {}
    for n in (2, 4):
        steps(model, 2)
        states[n] = state(model)
        if n == 2:
            model.checkpoint(tmp_path)
    tries = 0
    for kth in range(1, 12):
        copied = tmp_path.parent / f"{tmp_path.name}-{kth}"
        shutil.copytree(tmp_path, copied, symlinks=True)
        with monkeypatch.context() as m:
            left = [kth]

            def failing(original: Callable[..., Any], left: list[int] = left) -> Callable[..., Any]:
                def call(*args: Any, **named: Any) -> Any:
                    left[0] -= 1
                    if left[0] == 0 and not after:
                        raise Stop
                    made = original(*args, **named)
                    if left[0] == 0:
                        raise Stop
                    return made

                return call

            home, name = point.rsplit(".", 1)
            owner: Any = os if home == "os" else Path
            m.setattr(owner, name, failing(getattr(owner, name)))
            m.setattr(shutil, "rmtree", lambda *a, **k: None)  # a process that is gone does not clean up
            try:
                model.checkpoint(copied)
                stopped = False
            except Stop:
                stopped = True
        other = nets["float32"].copy()
        assert state(other) != states[2]
        at = other.resume(copied)
        assert state(other) == states[at] and (stopped or at == 4)
        assert model.checkpoint(copied).name.startswith("step-00000004")  # and the next one works
        assert model.copy().resume(copied) == 4 and not [p for p in copied.iterdir() if p.name.startswith(".step")]
        tries += stopped
    assert tries >= 1


WORKER = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_checkpoints import Net
model, folder = Net().compile(), Path(sys.argv[1])
if (folder / "last").exists():
    print("resumed", model.resume(folder), flush=True)
while True:
    model.train_step()
    model.checkpoint(folder, keep=2)
    print("at", model.steps["train_step"], flush=True)
"""


def test_a_killed_process_goes_on_to_the_bit(nets: dict[str, Any], tmp_path: Path) -> None:
    whole = nets["float32"].copy()
    expected = {0: state(whole)}
    text = WORKER.format(tests=str(Path(__file__).parent))
    generator, reached = random.Random(0), 0
    for _ in range(4):
        worker = subprocess.Popen([sys.executable, "-c", text, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True)
        assert worker.stdout is not None
        said = [worker.stdout.readline() for _ in range(3)]
        time.sleep(generator.random() * 0.05)
        os.kill(worker.pid, signal.SIGKILL)
        said += worker.stdout.readlines()
        worker.wait()
        worker.stdout.close()
        last = max(int(line.split()[1]) for line in said if line.endswith("\n"))
        resumed = nets["float32"].copy()
        at = resumed.resume(tmp_path / "run")
        assert last <= at <= last + 1 and at > reached
        while len(expected) <= at:
            whole.train_step()
            expected[len(expected)] = state(whole)
        assert state(resumed) == expected[at]
        reached = at


def test_a_checkpoint_beside_a_running_step_is_of_a_whole_step(nets: dict[str, Any], tmp_path: Path) -> None:
    whole = nets["float32"].copy()
    expected = [state(whole)]
    for _ in range(60):
        whole.train_step()
        expected.append(state(whole))
    model = nets["float32"].copy()
    worker = threading.Thread(target=lambda: steps(model, 60))
    worker.start()
    seen = set()
    for n in range(12):
        made = model.checkpoint(tmp_path / str(n % 2))
        other = nets["float32"].copy()
        at = other.resume(made)
        assert state(other) == expected[at]
        assert at >= 57 or (steps(other, 3) is not None and state(other) == expected[at + 3])
        seen.add(at)
    worker.join()
    assert seen


# ---------------------------------------------------------------- refusals
def damaged(change: Callable[[Path], None]) -> Callable[[Any, Path], Any]:
    def act(model: Any, folder: Path) -> Any:
        change(model.checkpoint(folder))
        return model.resume(folder)

    return act


def edited(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        raw = json.loads((folder / "checkpoint.json").read_text()) | changes
        (folder / "checkpoint.json").write_text(json.dumps(raw))

    return change


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


REFUSALS: dict[str, tuple[Callable[[Any, Path], Any], str, str]] = {
    "nothing there": (lambda m, f: m.resume(f / "none"), "R301", "is no folder of checkpoints"),
    "an empty folder": (lambda m, f: m.resume(f), "R301", "has no checkpoint"),
    "no weights": (damaged(lambda c: (c / "weights.safetensors").unlink()), "R302", "no whole checkpoint"),
    "half the weights": (damaged(lambda c: half(c / "weights.safetensors")), "R302", "not the file"),
    "half the facts": (damaged(lambda c: half(c / "checkpoint.json")), "R302", "not one that fluorite writes"),
    "changed facts": (damaged(edited(calls={"train_step": 7})), "R302", "was changed"),
    "another format": (damaged(edited(format=9)), "R303", "has format 9, this runtime reads format 1"),
    "a list": (damaged(lambda c: (c / "checkpoint.json").write_text("[]") and None), "R302", "not one that fluorite writes"),
    "keep nothing": (lambda m, f: m.checkpoint(f, keep=0), "R113", "keep=0"),
    "a file in the way": (lambda m, f: (f / "x").write_text("") or m.checkpoint(f / "x"), "R113", "cannot be written"),
    "no such method": (lambda m, f: m.position("train"), "R114", "no method train"),
    "a method that reads nothing": (lambda m, f: m.position("infer"), "R119", "reads nothing"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case: str, nets: dict[str, Any], tmp_path: Path) -> None:
    act, code, words = REFUSALS[case]
    model = nets["float32"].copy()
    steps(model, 1)
    before = state(model), model.position("train_step")
    with pytest.raises((ArtifactError, RunError)) as refused:
        act(model, tmp_path)
    assert refused.value.problems[0].code == code and words in str(refused.value)
    assert (state(model), model.position("train_step")) == before


def test_checkpoints_of_others_do_not_fit(nets: dict[str, Any], tmp_path: Path) -> None:
    class Other(Net):
        pass

    class Wider(Net):
        def __init__(self) -> None:
            super().__init__()
            self.more = fl.state(init=0.0)

        @fl.method
        def bump(self) -> None:
            self.more = self.more + 1

    Wider.__name__ = "Net"
    model = nets["float32"].copy()
    steps(model, 1)
    folder = model.checkpoint(tmp_path)
    for other, code, words in (
        (Other().compile(), "R304", "is of Net, this is Other"),
        (Net(batch_size=2).compile(), "R304", "had read 1 of 4 batches, and a pass has 7 here"),
        (Wider().compile(), "R110", "has no tensor more"),
    ):
        before = state(other)
        with pytest.raises(RunError) as refused:
            other.resume(folder)
        assert refused.value.problems[0].code == code and words in str(refused.value) and state(other) == before
    steps(model, 3)  # at the end of a pass it may be another division into batches
    other = Net(batch_size=2).compile()
    next(model.epoch("train_step"))
    model.checkpoint(tmp_path)
    with pytest.raises(RunError, match="1 of 4"):
        other.resume(tmp_path)


def test_one_process_writes_at_a_time(nets: dict[str, Any], tmp_path: Path) -> None:
    model = nets["float32"].copy()
    with checkpoints._alone(tmp_path), pytest.raises(RunError, match="by another process"):
        model.checkpoint(tmp_path)
    assert model.checkpoint(tmp_path).is_dir()
