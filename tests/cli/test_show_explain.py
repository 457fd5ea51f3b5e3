"""show at every level, and explain."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import fluorite
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.passes import PASSES

PLAN = """version: 1
schedule:
  sharp: [{parallel: y}, {vectorize: {axis: x, width: 8}}]
  blur: [{parallel: y}]
  rows: [{compute_at: {stage: blur, axis: y}}]
"""


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("graph", "graph sharpen"),
        ("plan", "/sharpen/sharp:"),
        ("loops", "parallel for y"),
        ("lowered", "kernel sharpen_"),
        ("source", "define "),
        ("asm", ".text"),
    ],
)
def test_levels(here: Path, at: str, said: str) -> None:
    (here / "p.yaml").write_text(PLAN)
    ran = fluorite("show", "photo.py:sharpen", "--plan", "p.yaml", "--at", at)
    assert ran.code == 0 and said in ran.out and ran.err == ""


def test_the_plan_that_is_shown_is_a_plan(here: Path) -> None:
    (here / "p.yaml").write_text(PLAN)
    assert fluorite("show", "photo.py:sharpen", "--plan", "p.yaml", "--at", "plan", "-o", "whole.yaml").code == 0
    assert ExecutionPlan.load("whole.yaml").fusion.rest == "none"
    assert fluorite("check", "photo.py:sharpen", "--plan", "whole.yaml", "--quick").code == 0


def test_selected_stages_only(here: Path) -> None:
    (here / "p.yaml").write_text(PLAN)
    common = ("show", "photo.py:sharpen", "--plan", "p.yaml", "--select", "sharp", "--at")
    assert fluorite(*common, "graph").out.count("\n") == 1
    assert list(ExecutionPlan.from_yaml(fluorite(*common, "plan").out).schedule) == ["/sharpen/sharp"]
    assert "rows" not in fluorite(*common, "loops").out
    assert fluorite(*common, "lowered").out.count("kernel ") == 1
    missing = fluorite("show", "photo.py:sharpen", "--select", "sharpp")
    assert missing.code == 1 and "--select: error[P101]" in missing.err and "sharp" in missing.err


def test_extents_are_fixed(here: Path) -> None:
    text = fluorite("show", "photo.py:blur", "--extents", "h=16,w=32", "--at", "graph").out
    assert "y:16, x:32" in text
    assert "h" not in fluorite("show", "photo.py:blur", "--extents", "h=16,w=32", "--at", "loops").out.split("\n", 1)[1].replace(
        "h = 16", ""
    )


def test_all_problems_of_a_plan_are_told(here: Path) -> None:
    (here / "p.yaml").write_text("version: 1\nschedule:\n  sharpp: [compute_root]\n  rowss: [compute_root]\n")
    for at in ("plan", "loops"):
        ran = fluorite("show", "photo.py:sharpen", "--plan", "p.yaml", "--at", at)
        assert ran.code == 1 and ran.err.count("error[P101]") == 2


@pytest.mark.parametrize("option", [("--role", "trainer"), ("--at", "role")])
def test_levels_of_later_versions(option: tuple[str, ...]) -> None:
    ran = fluorite("show", "double.py", *option)
    assert ran.code == 1 and "is not built yet" in ran.err


def test_explain_a_model() -> None:
    ran = fluorite("explain", "photo.py:sharpen", "--extents", "h=64,w=64")
    assert ran.code == 0 and "flops" in ran.out and "rows" in ran.out
    assert fluorite("explain", "photo.py:sharpen", "--extents", "h=64,w=64", "--json").document["result"]
    assert fluorite("explain", "photo.py:sharpen", "--extents", "z=64").code == 2
    assert fluorite("explain").code == 2


GPU = """version: 1
target: {kind: %s}
schedule:
  twice: [{split: {axis: i, factor: 64}}, {gpu_blocks: [i_outer]}, {gpu_threads: [i_inner]}]
"""


@pytest.mark.parametrize(("target", "said"), [("opencl", "__kernel void"), ("cuda, arch: sm_80", "__global__ void")])
def test_gpu_code(here: Path, target: str, said: str) -> None:
    (here / "gpu.yaml").write_text(GPU % target)
    for option in ((), ("--select", "twice")):
        ran = fluorite("show", "double.py", "--plan", "gpu.yaml", "--at", "source", *option)
        assert ran.code == 0 and said in ran.out, ran.err
    refused = fluorite("show", "double.py", "--plan", "gpu.yaml", "--at", "asm")
    assert refused.code == 2 and "--at source" in refused.err
    assert fluorite("show", "double.py", "--at", "ptx").code == 2
    assert fluorite("run", "double.py", "--plan", "gpu.yaml", "--set", "x=[1]").code == 1


def test_after_a_pass(here: Path) -> None:
    (here / "p.yaml").write_text("schedule: {blur/blur: [{cache: {into: acc}}], rows: [compute_inline]}\n")
    shown = {
        name: fluorite("show", "photo.py:sharpen", "--plan", "p.yaml", "--after", name).out
        for name in ("trace", "rewrites", "inline", "loops")
    }
    assert "blur/acc" not in shown["trace"] and "blur/acc" in shown["rewrites"]
    assert "blur/rows(" in shown["rewrites"] and "blur/rows(" not in shown["inline"]
    assert "kernel sharpen_" in shown["loops"]
    first, last = (fluorite("show", "photo.py:sharpen", "--at", "source", "--after", name).out for name in ("loops", "sharing"))
    assert "define " in first and "define " in last and first != last
    refused = fluorite("show", "photo.py:sharpen", "--after", "lops")
    assert refused.code == 2 and "--after lops" in refused.err and "loops" in refused.err
    for at, after, there in (("asm", "rewrites", "graph"), ("graph", "phases", "lowered, source, asm")):
        refused = fluorite("show", "photo.py:sharpen", "--at", at, "--after", after)
        assert refused.code == 2 and f"after {after} there is {there}" in refused.err


def test_help_names_every_pass() -> None:
    help_ = " ".join(fluorite("show", "--help").out.split())
    assert f"After one pass: {', '.join(PASSES)}." in help_


def test_verify_each(here: Path) -> None:
    ran = fluorite("show", "photo.py:sharpen", "--verify-each")
    assert ran.code == 0 and ran.out.rstrip().endswith("every pass keeps what the algorithm means")
    assert "partition" in ran.out and "allocation" in ran.out
    written = fluorite("show", "photo.py:sharpen", "--verify-each", "-o", "passes.txt")
    assert written.code == 0 and (here / "passes.txt").read_text().rstrip() == ran.out.rstrip()
    refused = fluorite("show", "photo.py:sharpen", "--verify-each", "--after", "loops", "--at", "lowered")
    assert refused.code == 2 and "--verify-each --at --after" in refused.err
