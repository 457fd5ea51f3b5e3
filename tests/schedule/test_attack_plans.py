"""Plans written to hurt: endless files, holes that hold themselves, factors without end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import fluorite as fl
import pytest
from fluorite.schedule import ExecutionPlan, fill
from fluorite.schedule.default import default_schedule
from fluorite.schedule.machine import Machine
from fluorite.schedule.scheduled import apply


def doubled(x: fl.f32[fl.Tensor, "n", 19]) -> Any:
    return fl.stage(lambda i, j: x[i, j] * 2, name="out")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no such device")
def test_a_plan_that_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(fl.PlanError, match="it is no ordinary file"):
        ExecutionPlan.load("/dev/zero")
    (tmp_path / "child.yaml").write_text("version: 1\nextends: /dev/zero\n")
    with pytest.raises(fl.PlanError, match=r"child\.yaml:2:10: error\[P010\]"):
        ExecutionPlan.load(tmp_path / "child.yaml").resolve()


def test_holes_that_name_each_other() -> None:
    holes = "version: 1\nholes: {a: {choose: [$b, 4]}, b: {choose: [%s, 16]}}\nschedule:\n  out: [{split: {axis: j, factor: $a}}]\n"
    with pytest.raises(fl.PlanError, match=r"\$a has no value"):
        fill(ExecutionPlan.from_yaml(holes % "$a"), {})
    (split,) = fill(ExecutionPlan.from_yaml(holes % "8"), {}).schedule["out"]
    assert split.factor == 8


@pytest.mark.parametrize("factor", [10**12, 2**40])
@pytest.mark.parametrize("directive", ["split: {{axis: {0}, factor: {1}}}", "tile: {{{0}: {1}}}", "unroll: {{axis: {0}, factor: {1}}}"])
def test_factors_far_beyond_the_extent(directive: str, factor: int) -> None:
    for axis in ("i", "j"):
        plan = ExecutionPlan.from_yaml("version: 1\nschedule:\n  out:\n    - " + directive.format(axis, factor) + "\n")
        problems = problems_of(plan)
        assert problems[0].code == "P207" and problems[0].line == 4, problems


def problems_of(plan: ExecutionPlan) -> list[fl.Problem]:
    try:
        return apply(plan, fl.trace(doubled), Machine(), default_schedule).check()
    except fl.PlanError as error:
        return list(error.problems)


@pytest.mark.parametrize(
    ("lines", "code", "said"),
    [
        ("tile: {i: 3, j: 7}|vectorize: {axis: j_outer, width: 1024}", "P211", "a vector of float32 has 16 here, and more than 128"),
        ("vectorize: {axis: j, width: 1024}", "P211", "{axis: j, width: native}, or a width of 32, 64, 128"),
        ("split: {axis: i, factor: 1024}|reorder: [i_outer, j, i_inner]|vectorize: i_inner", "P211", "{axis: i, width: native}"),
        ("tile: {i: 64, j: 64}|unroll: i_inner|unroll: j_inner", "P216", "writes 2 operations out 4,096 times"),
        ("split: {axis: i, factor: 512}|unroll: i_inner|vectorize: {axis: j, width: 16}", "P216", "smaller factors, whose product is 256"),
        ("unroll: {axis: i, factor: 600}", "P211", "more than 512 would make very much code"),
    ],
)
def test_what_would_make_very_much_code(lines: str, code: str, said: str) -> None:
    """Refused in words, before minutes in the code generator."""
    plan = f"schedule: {{out: [{', '.join('{' + line + '}' for line in lines.split('|'))}]}}"
    found = problems_of(ExecutionPlan.from_yaml(plan))
    assert [p.code for p in found] == [code] and said in " ".join((found[0].asked, found[0].why, *found[0].try_)), found


def test_what_makes_enough_code_is_legal() -> None:
    for lines in (
        "{vectorize: {axis: j, width: 128}}, {unroll: {axis: i, factor: 8}}",
        "{tile: {i: 8, j: 64}}, {reorder: [i_outer, j_outer, i_inner, j_inner]}, {unroll: i_inner}, {vectorize: j_inner}",
        "{tile: {i: 16, j: 16}}, {unroll: i_inner}, {unroll: j_inner}",
    ):
        assert problems_of(ExecutionPlan.from_yaml(f"schedule: {{out: [{lines}]}}")) == []
