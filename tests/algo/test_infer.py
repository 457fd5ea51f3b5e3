"""Extents of axes, inferred from how a stage reads."""

from __future__ import annotations

from typing import Any

import pytest
from fluorite.algo.errors import AlgorithmError
from fluorite.algo.expr import cast, where
from fluorite.algo.program import trace
from fluorite.algo.reducing import reduce
from fluorite.algo.tensor import Bounded
from fluorite.algo.trace import stage
from fluorite.algo.types import f32, i32


def extents(fn: Any, **inputs: Any) -> dict[str, str]:
    """Axis name -> extent, of the last stage, reductions included."""
    s = trace(fn, inputs=inputs).stages[-1]
    return {a.name: str(n) for a, n in s.ranges.items()}


def code(fn: Any, **inputs: Any) -> str:
    with pytest.raises(AlgorithmError) as caught:
        trace(fn, inputs=inputs)
    problem = caught.value.problems[0]
    assert problem.why and "test_infer.py" in (problem.source or "")
    return problem.code


IMAGE = f32("h", "w")


@pytest.mark.parametrize(
    ("expected", "fn"),
    [
        ({"y": "h", "x": "w"}, lambda a: stage(lambda y, x: a[y, x] * 2)),
        ({"x": "w", "y": "h"}, lambda a: stage(lambda x, y: a[y, x])),
        ({"i": "h"}, lambda a: stage(lambda i: a[i, 0])),
        ({"y": "h", "x": "w-2"}, lambda a: stage(lambda y, x: a[y, x] + a[y, x + 2])),
        ({"y": "h-3", "x": "w-1"}, lambda a: stage(lambda y, x: a[y + 1, x] + a[y + 3, x + 1])),
        ({"y": "(h-1)//2+1", "x": "w"}, lambda a: stage(lambda y, x: a[y * 2, x])),
        ({"y": "(h)//2", "x": "w"}, lambda a: stage(lambda y, x: a[y * 2, x] + a[y * 2 + 1, x])),
        ({"y": "h", "x": "w"}, lambda a: stage(lambda y, x: Bounded(a, "edge")[y - 1, x + 5] + Bounded(a, "wrap")[y, x])),
        ({"y": "h", "x": "w"}, lambda a: stage(lambda y, x: Bounded(a, "constant", 0.0)[y - 1, x])),
        ({"y": "h", "x": "w-4"}, lambda a: stage(lambda y, x: Bounded(a, "edge")[y - 3, x] + a[y, x + 4])),
        ({"y": "5", "x": "7"}, lambda a: stage(lambda y, x: y + x, extents={"y": 5, "x": 7})),
        ({"y": "h", "x": "3"}, lambda a: stage(lambda y, x: a[y, x], extents={"x": 3})),
        ({"y": "h", "k": "w"}, lambda a: stage(lambda y: reduce("sum", lambda k: a[y, k]))),
        ({"y": "h", "x": "w-2", "k": "3"}, lambda a: stage(lambda y, x: reduce("sum", lambda k: a[y, x + k], {"k": 3}))),
        ({"y": "h", "k": "4"}, lambda a: stage(lambda y: reduce("sum", lambda k: a[y, k], {"k": (2, 6)}))),
        ({"y": "h", "x": "w"}, lambda a: stage(lambda y, x: where(x > 0, a[y, x - 1], a[y, x]))),
        ({"y": "h", "x": "w"}, lambda a: stage(lambda y, x: where(x > 0, a[y, x], 0.0))),
        ({"y": "h", "x": "w"}, lambda a: stage(lambda y, x: where(a[y, x] > 0, a[y, x + 1], 0.0))),
    ],
)
def test_inferred(expected: dict[str, str], fn: Any) -> None:
    assert extents(fn, a=IMAGE) == expected


def test_several_tensors_agree() -> None:
    assert extents(lambda a, b: stage(lambda i, j: reduce("sum", lambda k: a[i, k] * b[k, j])), a=f32("m", "n"), b=f32("n", "p")) == {
        "i": "m",
        "j": "p",
        "k": "n",
    }
    assert extents(
        lambda a, w: stage(lambda o, y: reduce("sum", lambda k: Bounded(a, "edge")[y + k - 1] * w[o, k])), a=f32("n"), w=f32(4, 3)
    ) == {"o": "4", "y": "n", "k": "3"}
    assert extents(lambda t, i: stage(lambda n, d: t[i[n], d]), t=f32(100, 8), i=i32("n")) == {"n": "n", "d": "8"}


@pytest.mark.parametrize(
    ("expected", "fn"),
    [
        ("A201", lambda a, b: stage(lambda y: a[y, 0] + b[y])),
        ("A202", lambda a, b: stage(lambda y, x: a[y, 0])),
        ("A202", lambda a, b: stage(lambda y: reduce("sum", lambda k: a[y, 0]))),
        ("A204", lambda a, b: stage(lambda y, x: a[y - 1, x])),
        ("A205", lambda a, b: stage(lambda i: b[i + 9], extents={"i": 2})),
        ("A205", lambda a, b: stage(lambda i: b[i], extents={"i": 9})),
        ("A205", lambda a, b: stage(lambda i: b[i + 9])),
        ("A205", lambda a, b: stage(lambda i: reduce("sum", lambda k: a[i, k] * b[k + 9]))),
        ("A112", lambda a, b: stage(lambda i: b[i], extents={"j": 9})),
        ("A106", lambda a, b: stage(lambda i: a[i])),
        ("A108", lambda a, b: stage(lambda i: b[i * 0.5])),
        ("A113", lambda a, b: stage(lambda i: reduce("sum", lambda i: a[i, 0]), extents={"i": 2})),
    ],
)
def test_refused(expected: str, fn: Any) -> None:
    assert code(fn, a=IMAGE, b=f32(8)) == expected


def test_a_refusal_names_both_sides_and_the_stage() -> None:
    with pytest.raises(AlgorithmError) as caught:
        trace(lambda a, b: stage(lambda y: a[y] + b[y], name="total"), inputs={"a": f32("h"), "b": f32("w")})
    text = caught.value.text()
    assert "axis 'y' is h in a (dimension 0) and w in b (dimension 0)" in text and "total" in text and "test_infer.py:" in text


def test_undecidable_minimum_is_refused() -> None:
    assert code(lambda a, b: stage(lambda i: a[i + 1] + b[i + 2]), a=f32("h"), b=f32("w")) == "A203"


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_only_reads_that_may_leave_carry_the_boundary(mode: str) -> None:
    text = trace(lambda a: stage(lambda y, x: Bounded(a, mode)[y, x] + Bounded(a, mode)[y, x + 1]), inputs={"a": IMAGE}).text()
    assert text.count(mode) == 1


def test_data_and_unproved_indices_are_clamped() -> None:
    text = trace(lambda a, i: stage(lambda n: a[i[n] + 1]), inputs={"a": f32(9), "i": i32("n")}).text()
    assert "edge(" in text
    text = trace(lambda a, i: stage(lambda n: a[cast(n, "int8")], extents={"n": 300}), inputs={"a": f32(300), "i": i32("n")}).text()
    assert "edge(int8(n), 300)" in text
