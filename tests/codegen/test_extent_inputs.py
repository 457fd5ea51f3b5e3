"""Inputs that are an extent, given as a number: one build for all numbers, against the oracle; readers, plans and artefacts."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite import nn
from fluorite.codegen import driver


class Generator(fl.Program):
    def __init__(self) -> None:
        self.net, self.optimizer = nn.Linear(4, 3), fl.optim.SGD(0.1)
        self.data: Any = None

    def made(self, n: fl.extent) -> Any:
        return self.net(fl.random.normal(fl.random.key(3), (n, 4)))

    @fl.method(batch="n")
    def sample(self, n: fl.extent) -> Any:
        return self.made(n)

    @fl.method(batch="n", training=True)
    def train_step(self, n: fl.extent, y: fl.f32[fl.Tensor, 3]) -> Any:
        loss = fl.mean(fl.square(self.made(n) - y), name="loss")
        self.optimizer.minimize(loss)
        return loss

    @fl.method(batch="n", reader="data")
    def distances(self, x: fl.f32[fl.Tensor, "n", 3], n: fl.extent) -> Any:
        return fl.sum(fl.square(x - self.made(n)), axis=1)


def tiled(x: fl.f32[fl.Tensor, "h", "w"], h: fl.extent, k: fl.extent) -> Any:
    """The extent of a tensor again, and one that no tensor has: as an extent, in arithmetic on extents, and as a value."""
    return fl.stage(lambda i, t: x[i, t % x.shape[1]] + t * k, extents={"t": 2 * k + 1}), fl.sum(x) * h / k


@pytest.fixture(scope="module")
def model() -> Any:
    return fl.compile(Generator(), seed=0)


def test_the_oracle_and_one_build_agree_for_all_numbers(model: Any) -> None:
    graph = fl.trace(Generator)
    weights = {k: v for k, v in model.parameters.items() if not k.startswith("constant")}
    for n in (1, 2, 7, 64, np.int64(31)):
        meant = graph.run(n, method="sample", parameters=weights)
        assert meant.shape == (n, 3)
        np.testing.assert_allclose(model.sample(n), meant, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(model.sample(n=n), model.sample(n))
    assert fl.check(Generator()).ok and fl.check(tiled).ok
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    grid, total = fl.compile(tiled)(x, h=2, k=3)
    np.testing.assert_array_equal(grid, x[:, np.arange(7) % 3] + np.arange(7) * 3)
    assert total == x.sum() * 2 / 3


def test_a_step_of_as_many_samples_as_it_is_told() -> None:
    graph, model = fl.trace(Generator), fl.compile(Generator(), seed=4)
    for n in (3, 8):
        before = {k: np.array(v) for k, v in model.parameters.items() if not k.startswith("constant")}
        meant = graph.step(n, [1.0, 2.0, 3.0], method="train_step", parameters=before)
        np.testing.assert_allclose(model.train_step(n, [1.0, 2.0, 3.0]), meant.result, rtol=1e-5)
        np.testing.assert_allclose(model.parameters["net/w"], meant.parameters["net/w"], rtol=1e-5)


def test_a_reader_has_what_its_tensors_say(model: Any) -> None:
    program = Generator()
    program.data = [{"x": np.ones((n, 3), np.float32)} for n in (2, 5)]
    reading = fl.compile(program, seed=0)
    assert [len(d) for d in reading.epoch("distances")] == [2, 5] and reading.batch_rows("distances") == 5
    np.testing.assert_array_equal(reading.distances(), model.distances(np.ones((2, 3), np.float32), 2))


def refusal(call: Any, *args: Any, **named: Any) -> str:
    with pytest.raises(fl.RunError) as caught:
        call(*args, **named)
    return f"{caught.value.problems[0].code} {caught.value.problems[0].asked}"


def test_numbers_that_are_no_extent_are_refused(model: Any) -> None:
    graph = fl.trace(Generator)
    for call in (model.sample, lambda *n: graph.run(*n, method="sample")):
        for wrong in (2.5, True, -1, "8", [3], np.ones(3, np.int64), 2**60):
            assert "R104 " in refusal(call, wrong) and "expected an extent" in refusal(call, wrong), wrong
        assert "n is missing, expected extent" in refusal(call)
    for call in (model.distances, lambda *n: graph.run(*n, method="distances")):
        assert "n is 2 in x, but 3 in n" in refusal(call, np.ones((2, 3), np.float32), 3)
    assert "n is 0, it may be 1 or more" in refusal(model.sample, 0)
    with pytest.raises(Exception, match=re.escape("extents: {n: {between: [0, 512]}}")):
        model.sample(0)
    assert "n is 7, it may be 8..8" in refusal(fl.compile(Generator(), extents={"sample/n": 8}).sample, 7)


def test_a_plan_bounds_it_and_an_artefact_takes_it(tmp_path: Path) -> None:
    plan = fl.ExecutionPlan.from_yaml("version: 1\nextents: {sample/n: {between: [0, 9]}, train_step/n: {buckets: [4, 8]}}\n", "p.yaml")
    folder = driver.build(Generator(), plan, tmp_path / "generator_built")
    built = fl.load(folder)
    assert built.sample(0).shape == (0, 3) and "it may be 0..9" in refusal(built.sample, 10)
    assert np.isfinite(built.train_step(8, [1.0, 2.0, 3.0])) and built.signatures["sample"] == "sample(n: extent) -> float32[n, 3]"
    code = "import generator_built as g; print(g.sample(n=2).shape, g.sample(9).shape)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout == "(2, 3) (9, 3)\n", done.stderr
    assert "def sample(n: int, *" in (folder / "__init__.pyi").read_text()
