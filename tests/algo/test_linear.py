"""Index arithmetic against brute force: whatever is proved or rewritten holds at every point."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from fluorite.algo.expr import Axis, Expr, Op, Size, as_expr, axis, binary, cast, where
from fluorite.algo.extent import Extent, evaluate, symbol
from fluorite.algo.graph import Graph
from fluorite.algo.linear import bounds, linear, simplify, surely_at_most, within
from fluorite.algo.printing import show
from fluorite.algo.rewriting import substitute
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scalar_reference import Element

N = symbol("n")
SIZES: list[Extent] = [1, 2, 3, 5, 7, N, N + 2, N * 3, N * 2 - 1]
AXES = tuple(axis(name) for name in "ijk")
EMPTY = Graph("g", (), (), ())


@st.composite
def index(draw: Any, depth: int = 3) -> Expr:
    if depth == 0:
        return draw(st.sampled_from([*AXES, *map(as_expr, (0, 1, 2, 3, 5, -1, -4)), as_expr(N)]))
    part = index(depth - 1)
    size = as_expr(draw(st.sampled_from(SIZES)))
    match draw(st.sampled_from(["add", "sub", "mul", "floordiv", "mod", "min", "max", "edge", "reflect", "wrap", "where", "cast", "axis"])):
        case "mul":
            return draw(part) * draw(st.sampled_from([-3, -1, 2, 4, N]))
        case "floordiv" | "mod" as op:
            return binary(op, draw(part), draw(st.sampled_from([size, as_expr(-2)])))
        case "edge" | "reflect" | "wrap" as op:
            return Op(op, (draw(part), size), "int32", True)
        case "where":
            return where(binary(draw(st.sampled_from(["lt", "le", "eq"])), draw(part), draw(part)), draw(part), draw(part))
        case "cast":
            return cast(draw(part), draw(st.sampled_from(["int32", "int64"])))
        case "axis":
            return draw(st.sampled_from(AXES)) + draw(st.integers(-9, 9))
        case op:
            return binary(op, draw(part), draw(part))


RANGES = st.fixed_dictionaries({a: st.sampled_from([*SIZES, 200]) for a in AXES})
MANY = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=200)


def points(ranges: dict[Axis, Extent], n: int) -> Any:
    """Corners and some of the inside."""
    each = [
        sorted({0, 1, 2, size // 2, size - 2, size - 1} & set(range(size))) for size in (evaluate(e, {"n": n}) for e in ranges.values())
    ]
    return (dict(zip(ranges, p, strict=True)) for p in itertools.product(*each))


@MANY
@given(index(), RANGES, st.sampled_from([1, 2, 3, 6]))
def test_simplified_is_the_same_everywhere(e: Expr, ranges: dict[Axis, Extent], n: int) -> None:
    at, simple = Element(EMPTY, {}, {"n": n}).at, simplify(e, ranges)
    for point in points(ranges, n):
        assert at(simple, point) == at(e, point), f"{show(e)} became {show(simple)} at {point}"


@MANY
@given(index(), RANGES, st.sampled_from([1, 2, 3, 6]))
def test_bounds_enclose(e: Expr, ranges: dict[Axis, Extent], n: int) -> None:
    at = Element(EMPTY, {}, {"n": n}).at
    low, high = bounds(e, ranges)
    for point in points(ranges, n):
        value = at(e, point)
        assert low is None or evaluate(low, {"n": n}) <= value, f"{show(e)} at {point} is {value}, below {low}"
        assert high is None or value <= evaluate(high, {"n": n}), f"{show(e)} at {point} is {value}, above {high}"


@MANY
@given(index(2), RANGES, st.sampled_from(SIZES), st.sampled_from([1, 2, 3, 6]))
def test_within_means_within(e: Expr, ranges: dict[Axis, Extent], size: Extent, n: int) -> None:
    if within(e, size, ranges):
        at = Element(EMPTY, {}, {"n": n}).at
        assert all(0 <= at(e, p) < evaluate(size, {"n": n}) for p in points(ranges, n)), show(e)


@MANY
@given(index(2), st.integers(-3, 3), st.sampled_from(["min", "max", "edge", "floordiv"]), index(1), RANGES, st.sampled_from([1, 2, 3, 6]))
def test_what_is_surely_at_most_is(a: Expr, c: int, op: str, other: Expr, ranges: dict[Axis, Extent], n: int) -> None:
    """Of an expression and of another one near it, so that there is something to prove."""
    size = Size(N) if op == "edge" else as_expr(4) if op == "floordiv" else other
    x, y = (Op(op, (e, size), "int32", True) for e in (a, a + c))
    at = Element(EMPTY, {}, {"n": n}).at
    for e, f in ((x, y), (y, x), (x, y + 1), (x, binary("max", other, y)), (binary("min", x, other), y)):
        if surely_at_most(e, f, ranges):
            for point in points(ranges, n):
                assert at(e, point) <= at(f, point), f"{show(e)} <= {show(f)} at {point}"
    low, high = bounds(binary("sub", y, x), ranges)
    for point in points(ranges, n):
        apart = at(y, point) - at(x, point)
        assert (low is None or evaluate(low, {"n": n}) <= apart) and (high is None or apart <= evaluate(high, {"n": n}))


@MANY
@given(index(), RANGES, st.sampled_from([1, 2, 5]))
def test_the_linear_form_is_the_expression(e: Expr, ranges: dict[Axis, Extent], n: int) -> None:
    at, again = Element(EMPTY, {}, {"n": n}).at, linear(e).expr()
    for point in points(ranges, n):
        assert at(again, point) == at(e, point)


@pytest.mark.parametrize(
    ("text", "e", "ranges"),
    [
        ("h//2", lambda h, d: (h * 8 + d) // 16, {"h": 100, "d": 8}),
        ("c", lambda h, d: (h * 5 + d) // 5, {"h": 9, "d": 5}),
        ("d", lambda h, d: (h * 5 + d) % 5, {"h": 9, "d": 5}),
        ("h", lambda h, d: (h * N + d) // N, {"h": 9, "d": N}),
        ("h", lambda h, d: Op("edge", (h, Size(N)), "int32", True), {"h": N, "d": 1}),
        ("h", lambda h, d: binary("min", h, Size(N) - 1), {"h": N, "d": 1}),
        ("True", lambda h, d: h < as_expr(N), {"h": N, "d": 1}),
        ("False", lambda h, d: h * 2 < as_expr(-1), {"h": N, "d": 1}),
        ("h", lambda h, d: where(as_expr(0) <= h, h, 0 - h), {"h": N, "d": 1}),
        ("0", lambda h, d: d // 5, {"h": 1, "d": 5}),
        ("max(d, h)", lambda h, d: binary("max", h, binary("max", binary("max", d, h), h - 1)), {"h": 9, "d": 9}),
        ("h", lambda h, d: binary("min", h, binary("max", d, h)), {"h": 9, "d": 9}),
        ("(h + 15) // 16", lambda h, d: binary("max", (h + 15) // 16, (h + 14) // 16), {"h": 90, "d": 1}),
        ("(h + 15) // 16 - 1", lambda h, d: binary("min", (h + 15) // 16, (h - 17) // 16 + 1), {"h": 90, "d": 1}),
    ],
)
def test_known_simplifications(text: str, e: Any, ranges: dict[str, Extent]) -> None:
    h, d = axis("h"), axis("d")
    simple = simplify(e(h, d), {h: ranges["h"], d: ranges["d"]})
    expected = {"c": "h", "h//2": "h // 2"}.get(text, text)
    assert show(simple) == expected


def test_wide_ranges_are_not_bounds_of_a_narrow_cast() -> None:
    i = axis("i")
    assert bounds(cast(i, "int8"), {i: 300}) != (0, 299) and bounds(cast(i - 1, "uint8"), {i: 3})[0] != -1
    assert bounds(cast(i, "int32"), {i: 300}) == (0, 299)


def test_substitution_reaches_every_axis() -> None:
    i, j = axis("i"), axis("j")
    assert show(simplify(substitute(i * 2 + j, {i: j + 1}), {})) == "j * 3 + 2"
    assert linear(substitute(i * 2 + j, {i: j + 1})).coefficient(j) == 3
