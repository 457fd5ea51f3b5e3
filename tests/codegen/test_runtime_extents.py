from __future__ import annotations

from typing import Any

import pytest
from fluorite.codegen.runtime.extents import evaluate, solve, text
from hypothesis import given
from hypothesis import strategies as st

EXTENTS = st.recursive(
    st.integers(0, 50) | st.sampled_from(["n", "h"]),
    lambda e: st.builds(lambda o, a, b: [o, a, b], st.sampled_from(["+", "*", "-", "min", "max"]), e, e),
    max_leaves=6,
)


def test_evaluate_every_operator() -> None:
    symbols = {"n": 7}
    cases: list[tuple[Any, int]] = [
        (3, 3), ("n", 7), (["+", "n", 1, 2], 10), (["*", 2, "n", 3], 42), (["-", "n", 9], -2), (["//", "n", 2], 3), (["//", -7, 2], -4),
        (["min", "n", 3], 3), (["max", "n", 3], 7),
    ]  # fmt: skip
    for extent, value in cases:
        assert evaluate(extent, symbols) == value


@given(EXTENTS, st.integers(0, 40), st.integers(0, 40))
def test_solving_inverts_evaluating(extent: Any, n: int, h: int) -> None:
    found = solve(extent, evaluate(extent, {"n": n, "h": h}), {"h": h})
    if found is not None:
        assert evaluate(extent, {"h": h, found[0]: found[1]}) == evaluate(extent, {"n": n, "h": h})


def test_solve_finds_the_one_unknown() -> None:
    assert solve(["+", ["*", 2, "n"], "h"], 13, {"h": 3}) == ("n", 5)
    assert solve(["-", 10, "n"], 4, {}) == ("n", 6)
    assert solve(["*", 2, "n"], 5, {}) is None
    assert solve(["+", "n", "h"], 5, {}) is None


def test_text_is_what_a_person_writes() -> None:
    assert text(["//", ["-", "h", 1], 2]) == "(h - 1) // 2"
    assert text(["max", "h", ["*", 2, "n"]]) == "max(h, 2 * n)"


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="no extent"):
        evaluate(["%", "n", 2], {"n": 1})
