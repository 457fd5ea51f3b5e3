"""Problems and the tree of errors."""

from __future__ import annotations

import json

import pytest
from fluorite.algo.errors import AlgorithmError, ArtifactError, BuildError, FluoriteError, InternalError, PlanError, Problem, RunError


def test_the_four_parts_of_a_message() -> None:
    problem = Problem(
        "P203", file="cpu.yaml", line=6, column=21, path="photo/unsharp", source="photo.py:19",
        asked='unsharp has no loop "x" any more', why="loops here: y_outer, x_outer", try_=("x_outer", "x_inner", "or split it anew"),
    )  # fmt: skip
    assert problem.text() == (
        'cpu.yaml:6:21: error[P203]: unsharp has no loop "x" any more\n  photo/unsharp   (photo.py:19)\n'
        "  loops here: y_outer, x_outer\n  try: x_outer, x_inner\n  or split it anew"
    )


def test_the_parts_that_are_not_known_are_left_out() -> None:
    assert Problem("B001", asked="no").text() == "error[B001]: no"
    assert Problem("A101", source="m.py:3", asked="no").text() == "m.py:3: error[A101]: no"
    assert Problem("P010", file="a.yaml", asked="no").text() == "a.yaml: error[P010]: no"


@pytest.mark.parametrize(("code", "kind"), [("A1", "algorithm"), ("P1", "plan"), ("B1", "build"), ("R1", "run"), ("X1", "internal")])
def test_the_kind_follows_from_the_code(code: str, kind: str) -> None:
    assert Problem(code, asked="no").kind == kind


def test_json_has_the_keys_of_the_contract() -> None:
    facts = Problem("P203", file="cpu.yaml", line=6, column=21, asked="no", try_=("x_inner",)).as_dict()
    assert list(facts) == ["code", "kind", "file", "line", "column", "path", "source", "asked", "why", "try"]
    assert json.loads(json.dumps(facts))["try"] == ["x_inner"]


def test_an_error_holds_all_problems_and_counts_them_last() -> None:
    error = PlanError([Problem("P001", asked="one"), Problem("P002", asked="two")])
    assert str(error) == "error[P001]: one\nerror[P002]: two\n2 errors."
    assert error.text("Nothing was built.").endswith("\n2 errors. Nothing was built.")
    assert str(PlanError(Problem("P001", asked="one"))) == "error[P001]: one"


def test_the_tree() -> None:
    for kind in (AlgorithmError, PlanError, BuildError, ArtifactError, RunError):
        assert issubclass(kind, FluoriteError)
    assert not issubclass(InternalError, FluoriteError)
    with pytest.raises(InternalError):
        PlanError([])
