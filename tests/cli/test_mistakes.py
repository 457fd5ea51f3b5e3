"""The mistakes that plans are made with: file, line and column, where in the algorithm, why, what would do; all at once, a count last."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import fluorite

GPT = """
import fluorite as fl


class Block(fl.Module):
    def __init__(self):
        self.up = fl.param(in_=4, out=8)
        self.down = fl.param(in_=8, out=4)

    def __call__(self, x):
        hidden = gelu(up(x, self.up))
        return x + hidden @ self.down


@fl.function
def up(x, w):
    y = fl.stage(lambda t, f: fl.sum(lambda c: x[t, c] * w[c, f]), name="matmul")
    return fl.stage(lambda t, f: y[t, f] + 0.5, name="bias")


def gelu(y):
    return fl.stage(lambda t, f: fl.maximum(y[t, f], 0.0), name="gelu")


class GPT(fl.Program):
    def __init__(self):
        self.layers = [Block() for _ in range(4)]

    @fl.method
    def predict(self, x: fl.f32[fl.Tensor, "n", 4]):
        for layer in self.layers:
            x = layer(x)
        return x
"""


def refused(here: Path, model: str, plan: str) -> str:
    (here / "mistake.yaml").write_text(plan)
    ran = fluorite("check", model, "--plan", "mistake.yaml", "--quick")
    assert ran.code == 1 and ran.out == ""
    count = ran.err.count("error[P")
    assert ran.err.endswith(f"{count} error{'s' if count > 1 else ''}. Nothing was built.\n")
    return ran.err


def test_selectors(here: Path) -> None:
    (here / "gpt.py").write_text(GPT)
    said = refused(here, "gpt.py:GPT", "version: 1\nschedule:\n  layer.*/gelu: [compute_root]\n  up/matmul: [{parallel: t}]\n")
    assert (
        'mistake.yaml:3:3: error[P101]: selector "layer.*/gelu" matches nothing in GPT\n  nearest: layers.*/gelu (4 stages in predict)'
        in said
    )
    assert (
        'mistake.yaml:4:3: error[P102]: selector "up/matmul" matches 4 stages of predict; without a wildcard it may match one per method'
        in said
    )
    assert "predict/layers.0/up/matmul ... predict/layers.3/up/matmul   (gpt.py:" in said
    assert "for all of them write: layers.*/up/matmul" in said


def test_axes(here: Path) -> None:
    plan = """version: 1
schedule:
  blur:
    - tile: {y: 64, x: 512}
    - split: {axis: x, factor: 8}
    - parallel: y
  rows:
    - compute_at: {stage: blur, axis: z}
"""
    said = refused(here, "photo.py:blur", plan)
    assert 'mistake.yaml:5:21: error[P203]: split: blur has no loop "x" any more' in said
    assert "line 4 (tile) made it x_outer, x_inner" in said
    assert "loops here, outermost first: y_outer, x_outer, y_inner, x_inner" in said
    assert 'mistake.yaml:6:17: error[P203]: parallel: blur has no loop "y" any more' in said
    assert (
        'mistake.yaml:8:39: error[P204]: rows cannot be computed at blur\'s "z"' in said
        and "no such loop; legal: y_outer, x_outer, y_inner" in said
    )
    assert said.endswith("3 errors. Nothing was built.\n")


def test_yaml(here: Path) -> None:
    said = refused(here, "photo.py:blur", "version: 1\nprecision: {keep: [*/softmax/*]}\n")
    assert 'mistake.yaml:2:20: error[P001]: "*" starts a YAML alias here, so the file cannot be read' in said
    assert 'write  softmax   (or quote it: "*/softmax/*")' in said


def test_a_key_given_twice(here: Path) -> None:
    said = refused(here, "photo.py:blur", "version: 1\nschedule:\n  blur: [compute_root]\n  blur: [{parallel: y}]\n")
    assert 'mistake.yaml:4:3: error[P002]: key "blur" is given twice (first at line 3); YAML would silently keep the last' in said


def test_the_same_facts_as_json(here: Path) -> None:
    (here / "mistake.yaml").write_text("version: 1\nschedule:\n  blurr: [compute_root]\n")
    document = fluorite("check", "photo.py:blur", "--plan", "mistake.yaml", "--json").document
    assert document["ok"] is False and document["result"] is None and document["verb"] == "check"
    (error,) = document["errors"]
    assert set(error) == {"code", "kind", "file", "line", "column", "path", "source", "asked", "why", "try"}
    assert (error["code"], error["kind"], error["file"], error["line"], error["column"]) == ("P101", "plan", "mistake.yaml", 3, 3)


@pytest.mark.parametrize(
    "text", ["version: !!int 1\n", "- a\n", "version: 1\nnonsense: 3\n", "version: [1\n", "a: " * 100 + "\n", "\x00\x01"]
)
def test_no_plan_at_all(here: Path, text: str) -> None:
    (here / "mistake.yaml").write_text(text)
    for verb in (
        ["check", "double.py", "--plan", "mistake.yaml"],
        ["plan", "resolve", "mistake.yaml"],
        ["plan", "diff", "mistake.yaml", "mistake.yaml"],
    ):
        ran = fluorite(*verb)
        assert ran.code == 1 and ran.out == "" and "mistake.yaml" in ran.err and "error[P" in ran.err and "Traceback" not in ran.err
