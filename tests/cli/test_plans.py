"""PLAN, and whether it belongs to MODEL."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import fluorite

PLAN = "version: 1\nprogram: double.py:double\nschedule: {twice: [{vectorize: {axis: i, width: 8}}]}\n"


def test_the_model_may_be_left_out(here: Path) -> None:
    (here / "p.yaml").write_text(PLAN)
    ran = fluorite("check", "--plan", "p.yaml", "--quick")
    assert ran.code == 0
    assert ran.err == "running double.py, which p.yaml names\n"


def test_without_a_program_it_may_not() -> None:
    assert fluorite("check").code == 2


def test_a_plan_for_another_program_is_refused(here: Path) -> None:
    (here / "p.yaml").write_text(PLAN)
    ran = fluorite("check", "photo.py:blur", "--plan", "p.yaml", "--quick")
    assert ran.code == 1 and "p.yaml:2:10: error[P110]: this plan was made for double.py:double, not for photo.py:blur" in ran.err


def test_a_plan_from_another_folder_knows_its_program(here: Path) -> None:
    (here / "plans").mkdir()
    (here / "plans" / "p.yaml").write_text(PLAN.replace("double.py", "../double.py"))
    assert fluorite("check", "double.py", "--plan", "plans/p.yaml", "--quick").code == 0
    outside = fluorite("check", "--plan", "plans/p.yaml", "--quick")
    assert outside.code == 1 and "error[P110]" in outside.err and "of its own folder" in outside.err


def test_a_plan_that_moved_counts_by_the_name_of_its_program(here: Path) -> None:
    (here / "elsewhere").mkdir()
    (here / "elsewhere" / "p.yaml").write_text(PLAN)
    assert fluorite("check", "double.py", "--plan", "elsewhere/p.yaml", "--quick").code == 0


def test_the_structure_decides_where_it_is_known(here: Path) -> None:
    from fluorite.algo.program import trace
    from fluorite.cli.models import find_algorithm
    from fluorite.codegen.lowered import structure_hash

    structure = structure_hash(trace(find_algorithm("double.py", "test").model))
    (here / "same.yaml").write_text(PLAN.replace("double.py:double", "gone.py:f") + f"provenance: {{structure: '{structure}'}}\n")
    (here / "other.yaml").write_text(PLAN + "provenance: {structure: '0123456789abcdef'}\n")
    assert fluorite("check", "double.py", "--plan", "same.yaml", "--quick").code == 0
    ran = fluorite("check", "double.py", "--plan", "other.yaml", "--quick")
    assert ran.code == 1 and "error[P110]" in ran.err and "0123456789abcdef" in ran.err


@pytest.mark.parametrize("name", ["plans.py:fixed", "plans.py:made", "plans.py"])
def test_plans_in_python(here: Path, name: str) -> None:
    (here / "plans.py").write_text(
        "from fluorite.schedule import ExecutionPlan, Vectorize\n"
        "fixed = ExecutionPlan(schedule={'twice': [Vectorize('i', width=8)]})\n"
        "def made():\n    return fixed\n"
        "def wrong():\n    return 3\n"
    )
    ran = fluorite("show", "double.py", "--plan", name)
    assert ran.code == 0 and "vectorized" in ran.out, ran.err


def test_python_that_is_no_plan(here: Path) -> None:
    (here / "plans.py").write_text("def wrong():\n    return 3\n")
    assert fluorite("show", "double.py", "--plan", "plans.py:wrong").code == 2
    assert fluorite("show", "double.py", "--plan", "plans.py:absent").code == 2
    assert fluorite("show", "double.py", "--plan", "plans.py").code == 2
    assert fluorite("show", "double.py", "--plan", "absent.py:x").code == 2


def test_a_plan_that_is_not_there(here: Path) -> None:
    (here / "cpu.yaml").write_text(PLAN)
    ran = fluorite("check", "double.py", "--plan", "cpuu.yaml")
    assert ran.code == 1 and "error[P010]" in ran.err and "cpu.yaml" in ran.err
    assert fluorite("check", "double.py", "--plan", "fluorite:nothing").code == 1
