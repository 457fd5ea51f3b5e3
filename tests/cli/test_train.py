"""train: passes and steps, metrics, checkpoints, going on, Ctrl-C, and what is refused."""

from __future__ import annotations

import csv
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import fluorite
from fluorite.cli.restarting import death_of
from safetensors.numpy import load_file

LINE = '''
import fluorite as fl


class Line(fl.Program):
    """A line through 10 points, 4 at a time."""

    def __init__(self, data="points.csv"):
        self.data = fl.data.csv(data, columns={"x": range(3), "y": [3]}, batch_size=4, shuffle=0)
        self.test = fl.data.csv(data, columns={"x": range(3), "y": [3]}, batch_size=8)
        self.layer, self.drop = fl.nn.Linear(3, 1), fl.nn.Dropout(0.1)
        self.optimizer = fl.optim.Adam(0.05)

    @fl.method(batch="n", training=True, reader="data")
    def train_step(self, x: fl.f32[fl.Tensor, "n", 3], y: fl.f32[fl.Tensor, "n", 1]):
        loss = fl.mean(fl.square(self.layer(self.drop(x)) - y), name="loss")
        self.optimizer.minimize(loss)
        return {"loss": loss, "prediction": self.layer(x)}

    @fl.method(batch="n", reader="test")
    def error(self, x: fl.f32[fl.Tensor, "n", 3], y: fl.f32[fl.Tensor, "n", 1]):
        return fl.mean(fl.abs(self.layer(x) - y)), fl.mean(y)

    @fl.method(batch="n")
    def infer(self, x: fl.f32[fl.Tensor, "n", 3]):
        return self.layer(x)


class Alone(fl.Program):
    def __init__(self):
        self.w = fl.param(init=1.0)
        self.optimizer = fl.optim.SGD(0.1)

    @fl.method
    def shrink(self):
        self.optimizer.minimize(self.w * self.w)
        return self.w
'''


@pytest.fixture(autouse=True)
def files(here: Path) -> Any:
    generator = np.random.default_rng(0)
    x = generator.standard_normal((10, 3)).astype("float32")
    points = np.concatenate([x, x @ [[1.0], [-2.0], [0.5]] + 0.3], axis=1)
    np.savetxt(here / "points.csv", points, delimiter=",")
    np.savetxt(here / "few.csv", points[:4], delimiter=",")
    (here / "line.py").write_text(LINE)
    return points


def rows(path: str) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return [*csv.DictReader(file)]


def weights(folder: str = "run") -> dict[str, bytes]:
    return {name: a.tobytes() for name, a in load_file(f"{folder}/last/weights.safetensors").items()}


def test_passes_are_reported_and_kept(files: Any) -> None:
    ran = fluorite("train", "line.py:Line", "--epochs", "40", "--evaluate", "error", "--out", "run", "--plan", "fluorite:cpu")
    assert ran.code == 0 and "Traceback" not in ran.err, ran.err
    lines = ran.out.splitlines()
    assert lines[0].startswith("step 3  epoch 1  loss ") and " error/0 " in lines[0] and lines[-1] == "run/step-00000120"
    found = rows("run/metrics.csv")
    assert [list(r) for r in found[:1]] == [["step", "epoch", "seconds", "loss", "error/0", "error/1"]]
    assert [r["step"] for r in found] == [str(n) for n in range(3, 121, 3)]
    assert float(found[-1]["loss"]) < 0.3 * float(found[0]["loss"])
    assert float(found[-1]["error/1"]) == pytest.approx(files[:, 3].mean(), rel=1e-5)  # weighted by the sizes of the batches
    assert Path("run/last").resolve().name == "step-00000120"
    ran = fluorite("run", "line.py:Line", "--method", "infer", "--weights", "run/last/weights.safetensors", "--set", "x=[1,1,1]", "--json")
    (value_of,) = ran.document["result"]["outputs"].values()
    assert value_of["value"][0] == pytest.approx(-0.2, abs=0.8)


def test_going_on_is_like_never_having_stopped() -> None:
    whole = fluorite("train", "line.py:Line", "--steps", "11", "--out", "whole", "--every", "2", "--json")
    assert whole.code == 0 and whole.document["result"]["step"] == 11 and whole.document["result"]["epoch"] == 3
    for steps in ("4", "7", "11"):
        ran = fluorite("train", "line.py:Line", "--steps", steps, "--checkpoint", "run", "--every", "2", "--resume")
        assert ran.code == 0
    assert "goes on after step 7" in ran.err and weights("whole") == weights()
    kept = [(r["step"], r["epoch"], r["loss"]) for r in rows("run/metrics.csv") if r["step"] in ("2", "4", "6", "10")]
    assert kept == [(r["step"], r["epoch"], r["loss"]) for r in rows("whole/metrics.csv") if r["step"] in ("2", "4", "6", "10")]
    again = fluorite("train", "line.py:Line", "--epochs", "2", "--out", "run", "--resume", "--json")
    assert again.code == 0 and again.document["result"]["step"] == 11 and "nothing is left to do" in again.err
    assert weights("whole") == weights()


def test_rows_behind_the_checkpoint_are_taken_away() -> None:
    fluorite("train", "line.py:Line", "--steps", "2", "--out", "run", "--every", "1")
    with open("run/metrics.csv", "a") as file:
        file.write("3,1,0.1,7.5\n")  # of a run that was killed before its checkpoint
    assert fluorite("train", "line.py:Line", "--steps", "4", "--out", "run", "--every", "1", "--resume").code == 0
    found = rows("run/metrics.csv")
    assert [r["step"] for r in found] == ["1", "2", "3", "4"] and "7.5" not in [r["loss"] for r in found]


def test_other_data_and_batches() -> None:
    ran = fluorite("train", "line.py:Line", "--epochs", "2", "--batch-size", "2", "--data", "data=few.csv", "--json")
    assert ran.document["result"]["step"] == 4 and ran.document["result"]["checkpoint"] is None
    assert not list(Path().glob("step*")) and ran.document["result"]["csv"] is None


def test_a_method_without_inputs_and_files_of_ones_own() -> None:
    ran = fluorite("train", "line.py:Alone", "--method", "shrink", "--steps", "6", "--every", "3", "--csv", "m.csv", "--tensorboard", "tb")
    assert ran.code == 0, ran.err
    assert [r["step"] for r in rows("m.csv")] == ["3", "6"]
    events = [*Path("tb").glob("events.out.tfevents.*")]
    assert len(events) == 1 and b"result" in events[0].read_bytes()
    assert fluorite("train", "line.py:Alone", "--method", "shrink", "--steps", "1", "--csv", "m.csv").code == 0  # fluorite wrote it
    Path("m.csv").write_text("mine\n")
    ran = fluorite("train", "line.py:Alone", "--method", "shrink", "--steps", "1", "--csv", "m.csv")
    assert ran.code == 1 and "R401" in ran.err and Path("m.csv").read_text() == "mine\n"


MISTAKES: list[tuple[tuple[str, ...], int, str]] = [
    (("line.py:Line",), 2, "nothing says when it is done"),
    (("line.py:Line", "--steps", "0"), 2, "--steps"),
    (("line.py:Line", "--steps", "1", "--resume"), 2, "--out DIR --resume"),
    (("line.py:Line", "--steps", "1", "--method", "train"), 2, "--method train_step"),
    (("line.py:Line", "--steps", "1", "--method", "infer"), 1, "R310"),
    (("line.py:Line", "--steps", "1", "--evaluate", "infer"), 1, "R119"),
    (("line.py:Line", "--steps", "1", "--evaluate", "train_step"), 1, "evaluation must not"),
    (("line.py:Line", "--steps", "1", "--evaluate", "nothing"), 2, "there is no method nothing"),
    (("line.py:Line", "--steps", "1", "--data", "points.csv"), 2, "NAME=VALUE"),
    (("line.py:Line", "--steps", "1", "--data", "date=points.csv"), 1, "the readers of Line are data, test"),
    (("line.py:Line", "--steps", "1", "--data", "data=absent.csv"), 1, "absent.csv cannot be read"),
    (("line.py:Alone", "--epochs", "1", "--method", "shrink"), 1, "no passes to count"),
    (("line.py:Line", "--steps", "1", "--restarts", "2"), 2, "--out DIR --restarts 3"),
    (("line.py:Line", "--steps", "1", "--out", "points.csv"), 1, "is no folder"),
    (("line.py:Line", "--steps", "1", "--csv", "none/m.csv"), 1, "there is no folder none"),
    (("double.py", "--steps", "1"), 1, "changes no state"),
]


@pytest.mark.parametrize(("given", "code", "words"), MISTAKES, ids=lambda v: " ".join(v) if isinstance(v, tuple) else None)
def test_mistakes(given: tuple[str, ...], code: int, words: str) -> None:
    ran = fluorite("train", *given)
    assert ran.code == code and words in ran.err and "Traceback" not in ran.err, ran.err


def test_a_cell_that_is_no_number() -> None:
    Path("points.csv").write_text("1,2,3,4\n1,2,x,4\n")
    ran = fluorite("train", "line.py:Line", "--steps", "1", "--json")
    error = ran.document["errors"][0]
    assert ran.code == 1 and (error["code"], error["line"], Path(error["file"]).name) == ("R203", 2, "points.csv")


def test_a_run_is_not_mixed_with_another() -> None:
    assert fluorite("train", "line.py:Line", "--steps", "2", "--out", "run").code == 0
    before = weights()
    ran = fluorite("train", "line.py:Line", "--steps", "3", "--out", "run")
    assert ran.code == 1 and "R401" in ran.err and "--resume goes on with it" in ran.err and weights() == before
    ran = fluorite("train", "line.py:Alone", "--method", "shrink", "--steps", "3", "--out", "run", "--resume")
    assert ran.code == 1 and "is of Line, this is Alone" in ran.err and weights() == before
    assert fluorite("train", "line.py:Line", "--steps", "1", "--out", "run", "--force").code == 0 and weights() != before
    assert [r["step"] for r in rows("run/metrics.csv")] == ["1"]


def test_without_the_package_for_tensorboard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    ran = fluorite("train", "line.py:Alone", "--method", "shrink", "--steps", "1", "--tensorboard", "tb")
    assert ran.code == 1 and "pip install 'fluorite[tensorboard]'" in ran.err


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "fluorite", "train", "line.py:Line", *arguments]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_stopped_goes_on(number: signal.Signals, cache: Path) -> None:
    fluorite("train", "line.py:Line", "--steps", "1")  # compiled once
    environment = os.environ | {"FLUORITE_CACHE": str(cache)}
    asked = command("--steps", "100000000", "--every", "5", "--out", "run")
    worker = subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert worker.stdout is not None and worker.stderr is not None
    lines = [worker.stdout.readline() for _ in range(3)]
    worker.send_signal(number)
    out, err = worker.communicate(timeout=60)
    assert lines[2].startswith("step 15 ")
    if number != signal.SIGKILL:
        assert worker.returncode == 128 + number and "--resume goes on with it" in err and err.rstrip().endswith("interrupted"), err
        step = int(out.splitlines()[-1].split()[1])
        assert json.loads(Path("run/last/checkpoint.json").read_text())["calls"] == {"train_step": step}
        assert rows("run/metrics.csv")[-1]["step"] == str(step)
    step = json.loads(Path("run/last/checkpoint.json").read_text())["calls"]["train_step"]
    assert fluorite("train", "line.py:Line", "--steps", str(step + 7), "--every", "5", "--out", "run", "--resume").code == 0
    assert fluorite("train", "line.py:Line", "--steps", str(step + 7), "--every", "5", "--out", "whole").code == 0
    assert weights() == weights("whole")
    assert [r["step"] for r in rows("run/metrics.csv")] == sorted({r["step"] for r in rows("run/metrics.csv")}, key=int)


def test_a_bar_for_a_person(cache: Path) -> None:
    fluorite("train", "line.py:Line", "--steps", "1")
    outer, inner = pty.openpty()
    environment = os.environ | {"FLUORITE_CACHE": str(cache), "TERM": "xterm", "COLUMNS": "100"}
    worker = subprocess.Popen(command("--epochs", "300"), stdout=subprocess.PIPE, stderr=inner, env=environment)
    os.close(inner)
    seen, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            part = os.read(outer, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    assert worker.stdout is not None
    with worker.stdout:
        out = worker.stdout.read().decode()
    assert worker.wait(60) == 0 and len(out.splitlines()) == 300 and b"/900" in seen and b"epoch" in seen and b"loss" in seen
    os.close(outer)


def restarted(code: str, cache: Path, *arguments: str, deaths: int = 2) -> tuple[int, str, str]:
    """A run that may be started again twice, of a Program that does something before its fifth step, until a file says how often it has."""
    source = LINE + f"""
import os, signal
class Dying(Line):
    def __init__(self):
        super().__init__()
        self.data = self.counted(list(self.data))

    def counted(self, batches):
        class Batches:
            def __iter__(this):
                for n, batch in enumerate(batches * 3):
                    with open("deaths", "a+") as file:
                        file.seek(0)
                        if n == 4 and len(file.read()) < {{deaths}}:
                            file.write("x")
                            file.flush()
                            {code}
                    yield batch
        return Batches()
"""
    Path("dying.py").write_text(source.replace("{deaths}", str(deaths)))
    asked = [sys.executable, "-m", "fluorite", "train", "dying.py:Dying", "--steps", "8", "--every", "1", "--out", "run", *arguments]
    ran = subprocess.run(asked, capture_output=True, text=True, env=os.environ | {"FLUORITE_CACHE": str(cache)}, timeout=120)
    return ran.returncode, ran.stdout, ran.stderr


def test_a_process_that_dies_goes_on_from_its_last_checkpoint(cache: Path) -> None:
    code, out, err = restarted("os.kill(os.getpid(), signal.SIGKILL)", cache, "--restarts", "2", "--json")
    assert code == 0 and json.loads(out)["result"]["step"] == 8, err
    assert "was ended by SIGKILL; it is started again from run/" in err and "(restart 2 of 2)" in err
    assert [r["step"] for r in rows("run/metrics.csv")] == [str(n) for n in range(1, 9)]


def test_deaths_are_counted_and_refusals_are_none(cache: Path) -> None:
    code, _, err = restarted("raise MemoryError", cache, "--restarts", "1", deaths=100)
    assert code == 1 and "had no memory left; it is started again" in err and "R311" in err and "training died 2 times" in err
    Path("deaths").unlink()
    code, _, err = restarted("os.kill(os.getpid(), signal.SIGINT)", cache, "--restarts", "5", "--force")
    assert code == 130 and "restart" not in err
    assert [death_of(code) is None for code in (0, 1, 2, 130, 70, 137, -9, -11)] == [True] * 4 + [False] * 4
