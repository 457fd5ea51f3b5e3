"""The examples that learn: each reaches its figures under its plan, and its plan and the preset are legal."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import Any

import fluorite as fl
import numpy as np
import pytest

from examples.training.expected import FOLDER, wrong
from examples.training.runs import RUNS

PROGRAMS = {name: "".join(part.title() for part in name.split("_")) for name in RUNS}


def program(name: str) -> Any:
    return getattr(import_module(f"examples.training.{name}"), PROGRAMS[name])()


@pytest.mark.parametrize("name", RUNS)
def test_it_learns(name: str) -> None:
    assert wrong(name, RUNS[name](FOLDER / f"{name}_cpu.yaml")) == []


@pytest.mark.parametrize("name", RUNS)
def test_the_preset_fits(name: str) -> None:
    report = fl.check(program(name), "fluorite:cpu", quick=True)
    assert report.ok and not report.problems, report.text()


def test_the_plan_of_narrow_types_is_legal() -> None:
    """By hand: examples.training digits_net --plan digits_net_bf16.yaml reaches the same 99.2%."""
    report = fl.check(program("digits_net"), FOLDER / "digits_net_bf16.yaml", quick=True)
    assert report.ok and report.numerics == "precision", report.text()


def test_figures_outside_their_bounds_are_told() -> None:
    assert wrong("digits_net", {"accuracy": 0.5, "loss": 1.0}) == ["accuracy is 0.5, expected 0.98 to 1"]


def test_a_step_under_the_plan_is_what_the_algorithm_means() -> None:
    assert fl.check(program("fit_a_line"), FOLDER / "fit_a_line_cpu.yaml", extents={"n": 5}).ok


def test_the_line_is_the_least_squares_line() -> None:
    from sklearn.linear_model import LinearRegression  # type: ignore[import-untyped]

    model = program("fit_a_line").compile(FOLDER / "fit_a_line_cpu.yaml")
    for _ in range(40):
        for _ in model.epoch("train_step"):
            pass
    train, test = (next(iter(fl.data.diabetes(442, part=part))) for part in ("train", "test"))
    best = LinearRegression().fit(train["x"], train["y"]).predict(test["x"])
    apart, unexplained = (np.sqrt(np.mean((best - other) ** 2)) for other in (model.infer(test["x"]), test["y"]))
    assert apart < 0.1 * unexplained


def test_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "examples.training", "fit_a_line"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "squared_error" in done.stdout, done.stderr
