"""What the README says is true: its code runs, its plan is legal, its commands work on files that exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from scipy import ndimage

from examples.photo import photo

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


COMMANDS = [line.split("  #")[0] for block in blocks("sh") for line in block.splitlines() if line.startswith(".venv/bin/fluorite")]


def test_the_algorithm_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "readme_algorithm.py").write_text(blocks("python")[0])
    monkeypatch.syspath_prepend(tmp_path)
    import readme_algorithm  # type: ignore[import-not-found]

    image = np.random.default_rng(0).random((30, 50), np.float32)
    np.testing.assert_allclose(fl.compile(readme_algorithm.blur)(image), ndimage.uniform_filter(image, 3, mode="nearest"), rtol=1e-5)


def test_the_training_step_learns(tmp_path: Path) -> None:
    (tmp_path / "readme_training.py").write_text(blocks("python")[3])
    done = subprocess.run([sys.executable, "readme_training.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    cost, value = (float(x.strip("[]")) for x in done.stdout.split())
    assert cost < 1e-2 and abs(value - 2.5) < 0.1


def test_the_plan_is_legal() -> None:
    report = fl.check(photo, fl.ExecutionPlan.from_yaml(blocks("yaml")[0]), quick=True)
    assert report.ok and not report.problems, report.text()


def test_the_files_exist() -> None:
    names = {word.split(":")[0] for line in COMMANDS for word in shlex.split(line) if word.startswith("examples/")}
    assert len(names) >= 4
    assert [name for name in names if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("verb", ["show", "explain", "train", "build"])
def test_the_commands_work(verb: str, tmp_path: Path) -> None:
    (command,) = (c for c in COMMANDS if c.split()[1] == verb)
    words = [word.replace("build/", f"{tmp_path.as_posix()}/") for word in shlex.split(command)[1:]]
    done = subprocess.run([sys.executable, "-m", "fluorite", *words], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    if verb == "build":
        code = "\n".join(blocks("python")[1].splitlines())
        made: Any = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert made.returncode == 0, made.stderr


def test_every_verb_of_the_tour_is_one_of_ours() -> None:
    assert {c.split()[1] for c in COMMANDS} == {"check", "show", "explain", "tune", "train", "build"}
