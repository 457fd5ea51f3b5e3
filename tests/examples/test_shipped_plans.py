"""Every plan that ships is legal for what it is meant for, and is written in the canonical way where it is a preset."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.schedule import holes_of

from benchmarks import algorithms
from benchmarks.peer_fluorite import APPS, PLANS, build
from benchmarks.workloads import WORKLOADS
from examples.attention import Block
from examples.commands import FOLDER
from examples.digits import Digits
from examples.photo import photo

MODELS: dict[str, Any] = {"photo": photo, "digits": Digits(), "attention": Block()}


@pytest.mark.parametrize("name", MODELS)
def test_the_cpu_preset_fits_every_example(name: str) -> None:
    report = fl.check(MODELS[name], "fluorite:cpu", quick=True)
    assert report.ok and not report.problems, report.text()


def test_the_cpu_preset_means_what_the_empty_plan_means() -> None:
    image = np.random.default_rng(5).random((40, 70), np.float32)
    preset, empty = (fl.compile(photo, plan)(image, np.float32(1)) for plan in ("fluorite:cpu", None))
    assert all(np.array_equal(preset[k], empty[k]) for k in empty)


@pytest.mark.parametrize("path", [*sorted(PLANS.glob("*.yaml")), *sorted(APPS.glob("*.yaml"))], ids=lambda p: p.stem)
def test_the_plans_of_the_benchmarks(path: Path) -> None:
    report = fl.check(algorithms.named(path.stem.removesuffix("_tuned").removesuffix("_cpu")), path, quick=True)
    assert report.ok and not report.problems, report.text()


PRODUCTS = ["byte_product", "int8_product", "half_product", "complex_product"]


@pytest.mark.parametrize("name", ["blur", "layernorm", *PRODUCTS, "unsharp_gradient", "bilateral_gradient"])
def test_benchmarks_measure_the_right_results(name: str) -> None:
    call = build(name, "fluorite empty")
    assert call is not None
    workload = WORKLOADS[name]
    np.testing.assert_allclose(call(), workload.reference(workload.inputs()), rtol=1e-4, atol=1e-5)


def test_benchmarks_measure_the_checkout_that_they_stand_in() -> None:
    code = "import benchmarks, fluorite; print(fluorite.__file__)"
    root = Path(__file__).parents[2]
    found = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True).stdout.strip()
    assert Path(found).resolve() == root / "__init__.py"


def test_workloads_without_a_plan_are_skipped() -> None:
    assert build("softmax", "fluorite hand") is None


@pytest.mark.parametrize("name", MODELS)
def test_tuned_plans_came_from_tuning(name: str) -> None:
    plan = fl.ExecutionPlan.load(FOLDER / f"{name}_tuned.yaml").resolve()
    assert not holes_of(plan, lambda _selector, _axis: None)
    assert plan.provenance["tool"].startswith("fluorite") and plan.provenance["filled"]
