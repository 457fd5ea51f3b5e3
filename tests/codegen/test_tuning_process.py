"""Tuning for real: candidates in processes of their own that may fail in every way, and a search that is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import BuildError, PlanError
from fluorite.codegen import check, tune
from fluorite.codegen.sampling import random_inputs
from fluorite.codegen.tuning import measuring, tuned, workplace
from fluorite.codegen.tuning.journal import read
from fluorite.codegen.tuning.measuring import ProcessMeasurer, TuningCase
from fluorite.codegen.tuning.processes import Worker, WorkerLost
from fluorite.schedule import ExecutionPlan, Split, holes_of

MODEL = """
import fluorite as fl


def scale(x: fl.f32[fl.Tensor, "n"], y: fl.f32[fl.Tensor, "n"]):
    return fl.stage(lambda i: fl.exp(x[i]) + fl.sqrt(fl.abs(y[i])), name="scale")
"""
HOLES = """
schedule:
  scale:
    - split: {axis: i, factor: {choose: [64, 256, 1024]}}
    - {choose: [{vectorize: {axis: i_inner, width: 8}}, {parallel: q}, {parallel: i_outer}]}
tune: {at: [{n: 20000}]}
"""
space: dict[str, object] = {}
exec(MODEL, space)
scale = space["scale"]


@pytest.fixture(scope="module")
def measurer() -> Iterator[ProcessMeasurer]:
    graph = fl.trace(scale)
    cases = [TuningCase("scale", {"n": n}, random_inputs(graph, "scale", {"n": n}), w) for n, w in ((1000, 1.0), (7, 0.0))]
    made = ProcessMeasurer(graph, ExecutionPlan(), cases[:1], cases[1:], {})
    try:
        assert made.baseline().seconds > 0
        yield made
    finally:
        made.close()


def plan(text: str) -> ExecutionPlan:
    return ExecutionPlan.from_yaml(f"schedule: {{scale: {text}}}")


def test_a_good_candidate_is_timed_in_turns_with_the_untuned_plan(measurer: ProcessMeasurer) -> None:
    outcome = measurer.measure(plan("[{vectorize: {axis: i, width: 8}}]"))
    assert outcome.ok and outcome.seconds > 0 and outcome.baseline > 0
    again = measurer.compare([plan("[{vectorize: {axis: i, width: 8}}]"), plan("[{parallel: q}]")])
    assert [o.failure for o in again] == [None, "illegal"]


def test_an_illegal_candidate_says_why(measurer: ProcessMeasurer) -> None:
    outcome = measurer.measure(plan("[{parallel: q}]"))
    assert outcome.failure == "illegal" and "P203" in outcome.why


def test_a_wrong_candidate_is_found_and_its_process_replaced(measurer: ProcessMeasurer, monkeypatch: pytest.MonkeyPatch) -> None:
    path, dtype, truth = measurer.truths[0, None][0]
    value = truth.value.copy()
    value[-1] += 1e-3
    monkeypatch.setitem(measurer.truths, (0, None), [(path, dtype, type(truth)(value, truth.error, truth.undecided))])
    outcome = measurer.measure(plan("[{unroll: {axis: i, factor: 4}}]"))
    assert outcome.failure == "wrong" and "n=1000" in outcome.why and "[999]" in outcome.why
    assert not measurer.worker.running
    monkeypatch.undo()
    assert measurer.measure(plan("[{unroll: {axis: i, factor: 4}}]")).ok


def test_a_slow_candidate_is_given_up(measurer: ProcessMeasurer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurer, "usual", [1e-9, 1e-9])
    answer = measurer.worker.ask

    def slowly(seconds: float, **request: object) -> dict[str, object]:
        found = answer(seconds, **request)
        return {**found, "seconds": [0.5 for _ in found["seconds"]]} if request["do"] == "run" else found

    monkeypatch.setattr(measurer.worker, "ask", slowly)
    outcome = measurer.measure(plan("[{split: {axis: i, factor: 4}}]"))
    assert outcome.failure == "slow" and "times as long" in outcome.why


def test_a_candidate_that_takes_too_long_is_ended(measurer: ProcessMeasurer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert measurer.measure(plan("[]")).ok
    process = measurer.worker._process
    assert process is not None
    monkeypatch.setattr(measuring, "BUILD_SECONDS", 1e-4)
    outcome = measurer.measure(plan("[{split: {axis: i, factor: 32}}]"))
    assert outcome.failure == "time-out" and process.poll() is not None
    monkeypatch.undo()
    assert measurer.measure(plan("[{split: {axis: i, factor: 32}}]")).ok


def test_a_candidate_that_kills_its_process_takes_nothing_along(measurer: ProcessMeasurer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert measurer.measure(plan("[]")).ok
    ask = measurer.worker.ask

    def crash(seconds: float, **request: object) -> dict[str, object]:
        process = measurer.worker._process
        if request["do"] == "run" and request["slot"] == "candidate" and process is not None:
            process.send_signal(signal.SIGSEGV)
        return ask(seconds, **request)

    monkeypatch.setattr(measurer.worker, "ask", crash)
    outcome = measurer.measure(plan("[{split: {axis: i, factor: 16}}]"))
    assert outcome.failure == "crash" and "SIGSEGV" in outcome.why
    monkeypatch.undo()
    assert measurer.measure(plan("[{split: {axis: i, factor: 16}}]")).ok


def test_an_innocent_candidate_is_tried_again_in_a_fresh_process(measurer: ProcessMeasurer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert measurer.measure(plan("[]")).ok
    ask, left = measurer.worker.ask, [1]

    def crash(seconds: float, **request: object) -> dict[str, object]:
        if request["do"] == "run" and request["slot"] == "candidate" and left:
            left.pop()
            measurer.worker.stop()
            raise WorkerLost("crash", "planted")
        return ask(seconds, **request)

    monkeypatch.setattr(measurer.worker, "ask", crash)
    assert measurer.measure(plan("[{split: {axis: i, factor: 8}}]")).ok and not left


def test_the_folder_is_private_and_goes_away() -> None:
    graph = fl.trace(scale)
    made = ProcessMeasurer(graph, ExecutionPlan(), [TuningCase("scale", {"n": 3}, random_inputs(graph, "scale", {"n": 3}), 1.0)], [], {})
    assert made.folder.stat().st_mode & 0o077 == 0
    made.close()
    assert not made.folder.exists()


def test_folders_of_killed_searches_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(workplace, "_SETTLED_SECONDS", -1.0)
    living, other = workplace.Folder(), tmp_path / "fluorite-tune-of-somebody"
    left = tmp_path / "fluorite-tune-left"
    for folder in (left, other):
        folder.mkdir()
    (left / "lock").touch()
    third = workplace.Folder()
    assert living.path.exists() and other.exists() and not left.exists()
    living.remove()
    third.remove()
    assert [p.name for p in tmp_path.iterdir()] == [other.name]


def test_a_worker_ends_with_its_input(measurer: ProcessMeasurer) -> None:
    worker = Worker(measurer.folder)
    assert worker.ask(60, do="drop", slot="none") == {"ok": True}
    process = worker._process
    assert process is not None and process.stdin is not None
    process.stdin.close()
    assert process.wait(20) == 0
    worker.stop()


def test_a_tiny_plan_is_tuned(tmp_path: Path) -> None:
    told: list[str] = []
    path = tmp_path / "tuned.journal.jsonl"
    result = tuned(scale, ExecutionPlan.from_yaml(HOLES), journal=path, trials=20, progress=lambda p: told.append(p.phase))
    assert {"baseline", "trials", "final"} == set(told)
    failures = {reason: n for reason, n in result.failures.items() if reason != "slow"}  # a loaded machine may find more
    assert failures == {"illegal": 3} and len(result.trials) == 8
    assert result.seconds <= result.baseline
    made = ExecutionPlan.from_yaml(result.plan.to_yaml())
    assert made == result.plan and not holes_of(made) and not made.problems()
    facts = made.provenance
    assert (
        facts["tool"].startswith("fluorite ")
        and facts["trials"] == 8
        and facts["journal"] == path.name
        and facts["failures"]["illegal"] == 3
    )
    assert set(facts["filled"]) == {"schedule/scale/0/split/factor", "schedule/scale/1"}
    assert {entry["by"] for entry in facts["filled"].values()} == {"tuned" if result.improved else "default"}
    split = made.schedule["scale"][0]
    assert isinstance(split, Split) and facts["filled"]["schedule/scale/0/split/factor"]["value"] == split.factor
    assert check(scale, made).ok
    header, trials, _ = read(path)
    assert header["structure"] == facts["structure"] and len(trials) == 8
    json.dumps(result.as_dict())
    assert "candidates" in result.text()


def test_auto_becomes_directives() -> None:
    plan = ExecutionPlan.from_yaml("schedule: {scale: auto}\ntune: {at: [{n: 3000}]}")
    made = tune(scale, plan, trials=2)
    assert made.schedule["/scale/scale"] and not holes_of(made)
    assert set(made.provenance["filled"]) == {"/scale/scale"}


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        ("schedule: {scale: [{unroll: {axis: i, factor: {choose: [1]}}}]}\nextents: {n: 64}", {}, "leaves nothing open"),
        ("schedule: {scale: auto}", {}, "the extents n of scale are not known"),
        ("schedule: {scale: auto}\ntune: {at: [{m: 3}]}", {}, "has no symbolic extent m"),
        ("schedule: {scale: auto}", {"extents": {"z": 3}}, "has no symbolic extent z"),
        ("schedule: {scale: auto}\ntune: {objective: {skale: 1}, at: [{n: 3}]}", {}, "has no method skale"),
        ("schedule: {scale: [{parallel: q}, {unroll: {axis: i, factor: {choose: [2, 4]}}}]}\nextents: {n: 64}", {}, "no loop"),
        (
            "holes: {a: {choose: [4, 8]}}\nschedule: {scale: [{split: {axis: i, factor: $a}}]}\nextents: {n: 64}\ntune: {where: [$a > 4]}",
            {},
            "first alternatives",
        ),
        ("schedule: {scale: auto}\nextents: {n: 64}", {"resume": True}, "resume without a journal"),
    ],
)  # fmt: skip
def test_what_cannot_be_tuned_is_refused(text: str, options: dict[str, object], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        tuned(scale, ExecutionPlan.from_yaml(text), **options)  # type: ignore[arg-type]


def test_a_gpu_target_is_refused() -> None:
    with pytest.raises(BuildError, match="B020"):
        tuned(scale, ExecutionPlan.from_yaml("target: {kind: cuda, arch: sm_90}\nextents: {n: 64}"))


def test_inputs_given_are_the_ones_measured(tmp_path: Path) -> None:
    x = np.linspace(0, 1, 500, dtype=np.float32)
    np.savez(tmp_path / "in.npz", x=x, y=x)
    (tmp_path / "p.yaml").write_text("schedule: {scale: [{split: {axis: i, factor: {choose: [8, 16]}}}]}\ntune: {inputs: in.npz}\n")
    result = tuned(scale, tmp_path / "p.yaml", trials=3)
    assert result.plan.provenance["at"] == [["scale", {"n": 500}]] or tuple(result.plan.provenance["at"][0])[1] == {"n": 500}
    assert len(result.trials) == 1


SCRIPT = """
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
import model
from fluorite.codegen.tuning import tuned
from fluorite.schedule import ExecutionPlan

text = "schedule: {scale: [{split: {axis: i, factor: {range: [2, 400]}}}]}\\ntune: {at: [{n: 2000}]}"
journal = Path(sys.argv[1]) / "j.jsonl"
tuned(model.scale, ExecutionPlan.from_yaml(text), journal=journal, trials=int(sys.argv[2]), resume="resume" in sys.argv)
print("done")
"""


def test_kill_minus_nine_and_resume(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "run.py").write_text(SCRIPT)
    journal = tmp_path / "j.jsonl"
    process = subprocess.Popen([sys.executable, str(tmp_path / "run.py"), str(tmp_path), "12"])
    watch = threading.Timer(120, process.kill)
    watch.start()
    while process.poll() is None and (not journal.exists() or journal.read_bytes().count(b'"trial"') < 3):
        time.sleep(0.02)
    process.kill()
    process.wait()
    watch.cancel()
    before = read(journal)[1]
    assert 3 <= len(before) < 12
    ended = subprocess.run(
        [sys.executable, str(tmp_path / "run.py"), str(tmp_path), str(len(before) + 3), "resume"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.stdout == "done\n", ended.stderr
    after = read(journal)[1]
    assert list(after)[: len(before)] == list(before) and len(after) == len(before) + 3
    assert [t.number for t in after.values()] == list(range(1, len(after) + 1))
    assert not _workers_of(process.pid), "workers of the killed search are gone"


def _workers_of(pid: int) -> list[str]:
    """Processes that still have the dead one as their parent, on systems that say."""
    if not Path("/proc").is_dir():
        return []
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(entry.name)
    return found
