"""A model as a wheel to install; and one method of several to explain and to tune for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import fluorite
from fluorite.schedule import ExecutionPlan

TWO = """
import fluorite as fl
Row = fl.f32[fl.Tensor, "n"]
class Two(fl.Program):
    @fl.method
    def first(self, x: Row): return fl.stage(lambda i: x[i] * 2, name="double")
    @fl.method
    def second(self, x: Row): return fl.stage(lambda i: x[i] + 2, name="more")
"""
HOLES = """
program: two.py:Two
schedule:
  first/double: [{vectorize: {axis: i, width: {choose: [8, 16]}}}]
tune: {at: [{first/n: 256, second/n: 256}]}
"""


@pytest.mark.slow
def test_a_wheel_is_installed_and_imported(here: Path) -> None:
    arguments = ("build", "double.py", "-o", "build/doubled", "--wheel")
    ran = fluorite(*arguments)
    assert ran.code == 0, ran.err
    wheel = here / ran.out.strip()
    assert wheel.suffix == ".whl" and (here / "build/doubled/__init__.py").is_file()
    before = wheel.read_bytes()
    assert fluorite(*arguments).out == ran.out and wheel.read_bytes() == before  # the same model, the same bytes
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", here / "site", wheel]
    subprocess.run(pip, check=True, timeout=120, capture_output=True)
    (about,) = (here / "site").glob("doubled-*.dist-info/METADATA")
    assert "Requires-Dist: safetensors" in about.read_text() and "ml_dtypes" not in about.read_text()
    code = "import sys; sys.path.insert(0, 'site'); import numpy, doubled; print(doubled.run(numpy.ones(3, 'float32')))"
    done = subprocess.run([sys.executable, "-c", code], cwd=here, check=True, timeout=120, capture_output=True, text=True)
    assert done.stdout == "[2. 2. 2.]\n"


def test_one_method_is_explained(here: Path) -> None:
    (here / "two.py").write_text(TWO)
    document = fluorite("explain", "two.py", "--extents", "n=100", "--method", "second", "--json").document["result"]
    assert {k["method"] for k in document["kernels"]} == {"second"} and set(document["decided_by"]) == {"second/more"}
    assert {k["method"] for k in fluorite("explain", "two.py", "--json").document["result"]["kernels"]} == {"first", "second"}
    refused = fluorite("explain", "two.py", "--method", "third")
    assert refused.code == 1 and "no method third" in refused.err


@pytest.mark.slow
def test_one_method_is_tuned_for(here: Path) -> None:
    (here / "two.py").write_text(TWO)
    (here / "holes.yaml").write_text(HOLES)
    ran = fluorite("tune", "--plan", "holes.yaml", "--method", "first", "--trials", "2", "-o", "tuned.yaml")
    assert ran.code == 0, ran.err
    assert dict(ExecutionPlan.load("tuned.yaml").tune.objective) == {"first": 1.0}
