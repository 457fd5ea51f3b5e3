"""plan init, resolve, diff, schema, directives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import fluorite
from fluorite.schedule import DIRECTIVES, ExecutionPlan

PARENT = "version: 1\ntarget: {kind: llvm, cpu: native}\nschedule:\n  blur: [compute_root]\n  sharp:\n    - parallel: y\n"
CHILD = """version: 1
extends: parent.yaml
holes: {t: {choose: [8, 16]}}
schedule:
  sharp:
    - split: {axis: x, factor: $t}
    - vectorize: {axis: x_inner, width: {choose: [4, 8]}}
runtime: {threads: 1}
"""


@pytest.fixture
def plans(here: Path) -> Path:
    (here / "parent.yaml").write_text(PARENT)
    (here / "child.yaml").write_text(CHILD)
    return here


DEEP = """
import fluorite as fl

class Deep(fl.Program):
    def __init__(self):
        self.layers, self.optimizer = [fl.nn.Linear(8, 8) for _ in range(3)], fl.optim.SGD(0.1)

    @fl.method(batch="n", training=True)
    def train_step(self, x: fl.f32[fl.Tensor, "n", 8]):
        for layer in self.layers:
            x = fl.tanh(fl.exp(layer(x)), name="act")
        cost = fl.mean(fl.square(x), name="cost")
        self.optimizer.minimize(cost)
        return cost
"""


def test_resolve_shows_what_is_computed_again_for_a_model(here: Path) -> None:
    (here / "deep.py").write_text(DEEP)
    (here / "deep.yaml").write_text("memory: {recompute: auto, limit: 105KiB}\n")
    ran = fluorite("plan", "resolve", "deep.yaml")
    assert ran.code == 0 and "recompute: auto" in ran.out and "--model MODEL" in ran.err
    ran = fluorite("plan", "resolve", "deep.yaml", "--model", "deep.py", "--extents", "n=512")
    assert ran.code == 0 and "recompute: [/train_step/" in ran.out and "# deep.yaml:1" in ran.out and ran.err == ""
    (here / "deep.yaml").write_text("extents: {n: {between: [1, 512]}}\nmemory: {recompute: auto, limit: 105KiB}\n")
    assert "auto computes /train_step/" in fluorite("explain", "deep.py", "--plan", "deep.yaml", "--extents", "n=512").out
    assert fluorite("plan", "resolve", "deep.yaml", "--extents", "n=3").code == 2
    assert fluorite("plan", "resolve", "deep.yaml", "--model", "deep.py", "--holes").code == 2


def test_init_names_every_stage_and_resolves(here: Path) -> None:
    ran = fluorite("plan", "init", "photo.py:sharpen", "-o", "new.yaml")
    assert ran.code == 0 and ran.out == "new.yaml\n"
    text = (here / "new.yaml").read_text()
    plan = ExecutionPlan.load(here / "new.yaml").resolve()
    assert plan.program == "photo.py:sharpen" and list(plan.schedule) == ["rows", "blur", "sharp"]
    assert "# y=h x=w   stencil, float32   photo.py:11" in text
    assert fluorite("check", "--plan", "new.yaml", "--quick").code == 0


def test_init_writes_paths_from_the_plans_folder(here: Path) -> None:
    (here / "plans").mkdir()
    assert fluorite("plan", "init", "double.py", "-o", "plans/new.yaml").code == 0
    assert ExecutionPlan.load(here / "plans" / "new.yaml").program == "../double.py:double"
    assert fluorite("plan", "init", "double.py").out.startswith("version: 1\nprogram: double.py:double\n")


def test_init_tells_reductions_and_stages_of_several_methods(here: Path) -> None:
    (here / "net.py").write_text("""
import fluorite as fl

class Net(fl.Program):
    def __init__(self):
        self.w = [fl.param(in_=3, out=3), fl.param(in_=3, out=3)]

    def hidden(self, x):
        for w in self.w:
            x = fl.stage(lambda n, j: fl.sum(lambda k: x[n, k] * w[k, j]), name="product")
        return x

    @fl.method
    def one(self, x: fl.f32[fl.Tensor, "n", 3]):
        return self.hidden(x)

    @fl.method
    def two(self, x: fl.f32[fl.Tensor, "n", 3]):
        return fl.stage(lambda n, j: self.hidden(x)[n, j] if False else x[n, j] + 1, name="last")
""")
    ran = fluorite("plan", "init", "net.py", "-o", "net.yaml")
    assert ran.code == 0, ran.err
    text = (here / "net.yaml").read_text()
    assert "# n=n j=3 over k=3   matmul, float32" in text
    assert fluorite("check", "net.py", "--plan", "net.yaml", "--quick").code == 0


def test_resolve_gives_every_value_its_place(plans: Path) -> None:
    ran = fluorite("plan", "resolve", "child.yaml")
    assert ran.code == 0
    lines = {line.split("#")[0].strip(): line.rsplit("# ", 1)[-1] for line in ran.out.splitlines() if "#" in line}
    assert lines["- compute_root"] == "parent.yaml:4"
    assert lines["- split: {axis: x, factor: 8}"] == "child.yaml:6"
    assert lines["- vectorize: {axis: x_inner, width: 4}"] == "child.yaml:7"
    assert lines["cpu: native"] == "parent.yaml:2" and lines["threads: 1"] == "child.yaml:8"
    assert "sharp:" in lines and lines["blur:"] == "parent.yaml:4"
    assert "$t is open (child.yaml:3" in ran.err
    resolved = ExecutionPlan.from_yaml(ran.out)
    assert not resolved.holes and not resolved.extends and len(resolved.schedule) == 2


def test_resolve_says_where_a_nearer_file_decides(here: Path) -> None:
    """Read back from the text alone, the farther line would win: it is longer."""
    (here / "far.yaml").write_text("schedule: {blur/rows: [compute_inline], blur/blur: [{parallel: y}]}\n")
    (here / "near.yaml").write_text('extends: far.yaml\nschedule:\n  "*ows": [compute_root]\n')
    alone = fluorite("plan", "resolve", "near.yaml")
    assert '"*ows" (near.yaml:3:3) is of a nearer file and goes before "blur/rows" (far.yaml:1' in alone.err
    assert "blur/blur" not in alone.err
    ran = fluorite("plan", "resolve", "near.yaml", "--model", "photo.py:sharpen", "-o", "whole.yaml")
    assert ran.code == 0 and "nearer" not in ran.err
    for plan in ("near.yaml", "whole.yaml"):
        assert "compute_root" in fluorite("show", "photo.py:sharpen", "--plan", plan, "--at", "plan", "--select", "rows").out


def test_resolve_can_leave_holes_open(plans: Path) -> None:
    ran = fluorite("plan", "resolve", "child.yaml", "--holes")
    assert ran.err == "" and "factor: $t" in ran.out
    assert ExecutionPlan.from_yaml(ran.out).resolve() == ExecutionPlan.load("child.yaml").resolve()


def test_resolve_refuses_what_is_not_built(here: Path) -> None:
    (here / "later.yaml").write_text("version: 1\nmesh: {data: 2}\n")
    ran = fluorite("plan", "resolve", "later.yaml")
    assert ran.code == 1 and "later.yaml:2:1: error[P901]" in ran.err


def test_diff_is_1_if_anything_differs(plans: Path) -> None:
    same = fluorite("plan", "diff", "child.yaml", "child.yaml")
    assert (same.code, same.out) == (0, "")
    ran = fluorite("plan", "diff", "parent.yaml", "child.yaml")
    assert ran.code == 1 and "runtime" in ran.out and "schedule/sharp" in ran.out and ran.err == ""
    document = fluorite("plan", "diff", "parent.yaml", "child.yaml", "--json").document
    assert document["ok"] is False and document["errors"] == [] and {"path", "old", "new"} == set(document["result"][0])


def test_diff_says_what_changes_in_bytes_and_numerics(here: Path) -> None:
    (here / "net.py").write_text(
        "import fluorite as fl\n\n\nclass Net(fl.Program):\n    def __init__(self):\n        self.up = fl.nn.Linear(64, 96)\n\n"
        "    @fl.method\n    def predict(self, x: fl.f32[fl.Tensor, 'n', 64]):\n        return fl.relu(self.up(x))\n"
    )
    plan = "version: 1\ntarget: {cpu: x86-64-v3}\n"  # with AMX there is no buffer: x is rounded as it is packed
    (here / "a.yaml").write_text(plan)
    (here / "b.yaml").write_text(plan + "precision: {compute: bf16, parameters: bf16}\n")
    ran = fluorite("plan", "diff", "a.yaml", "b.yaml", "--model", "net.py:Net", "--extents", "n=10")
    assert ran.code == 1 and ran.err == ""
    lines = ran.out.splitlines()
    assert lines[0] == "precision: (nothing) -> {compute: bf16, parameters: bf16}"
    assert "numerics reassociates -> precision" in lines or "numerics exact -> precision" in lines
    assert "predict: parameters 24.4 KiB -> 12.2 KiB (-12.2 KiB)" in lines
    assert any(line.startswith("predict: buffers ") and "+" in line for line in lines)  # x in bfloat16
    document = fluorite("plan", "diff", "a.yaml", "b.yaml", "--model", "net.py:Net", "--extents", "n=10", "--json").document
    assert {"method": "predict", "what": "parameters", "old": 24960, "new": 12480} in document["result"]["effects"]
    assert document["result"]["differences"][0]["path"] == "precision"
    ran = fluorite("plan", "diff", "a.yaml", "b.yaml", "--model", "net.py:Net")
    assert ran.code == 1 and "--extents n=1024" in ran.err and "-> precision" in ran.out and "predict: parameters" not in ran.out
    ran = fluorite("plan", "diff", "a.yaml", "a.yaml", "--model", "net.py:Net", "--extents", "n=10")
    assert (ran.code, ran.out.strip()) == (0, "neither memory nor numerics change")
    assert fluorite("plan", "diff", "a.yaml", "b.yaml", "--extents", "n=10").code == 2
    assert fluorite("plan", "diff", "a.yaml", "b.yaml", "--model", "net.py:Net", "--extents", "m=10").code == 2


def test_diff_and_resolve_run_no_model(here: Path) -> None:
    (here / "trap.py").write_text("open('sprung', 'w')\n")
    (here / "trap.yaml").write_text("version: 1\nprogram: trap.py:f\n")
    fluorite("plan", "resolve", "trap.yaml")
    fluorite("plan", "diff", "trap.yaml", "trap.yaml")
    assert not (here / "sprung").exists()


def test_schema_is_json(here: Path) -> None:
    assert json.loads(fluorite("plan", "schema").out)["properties"]["schedule"]
    assert fluorite("plan", "schema", "-o", "schema.json").code == 0
    assert json.loads((here / "schema.json").read_text())


def test_directives() -> None:
    every = fluorite("plan", "directives").out
    assert all(f"\n{name} " in "\n" + every for name in DIRECTIVES)
    assert "before" in fluorite("plan", "directives", "tile").out
    section = fluorite("plan", "directives", "precision").out
    assert "loss_scale  a number or none or dynamic = none" in section and "Each loss has its own scale" in section
    assert fluorite("plan", "directives", "tile", "--json").document["result"]["tile"].startswith("tile")
