"""Extents are integers: every law and every proof is checked by substituting numbers."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from fluorite.algo.extent import (
    Dim,
    Extent,
    at_most,
    ceildiv,
    evaluate,
    exact_quotient,
    floordiv,
    maximum,
    minimum,
    nonnegative,
    substitute,
    symbol,
    symbols_of,
)
from fluorite.algo.extent_json import to_json
from hypothesis import given, settings
from hypothesis import strategies as st

H, W = symbol("h"), symbol("w")
VALUES = [{"h": h, "w": w} for h in (1, 2, 3, 8, 17) for w in (1, 4, 5)]


@st.composite
def extents(draw: Any, depth: int = 3) -> Extent:
    if depth == 0:
        return draw(st.sampled_from([H, W, 0, 1, 2, 3, -1, 7]))
    a, b = draw(extents(depth - 1)), draw(extents(depth - 1))
    match draw(st.sampled_from("+-*/mM_")):
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return floordiv(a, draw(st.sampled_from([2, 3, H, W + 1])))
        case "m":
            return minimum(a, b)
        case "M":
            return maximum(a, b)
    return a


QUICK = settings(deadline=None, max_examples=80)


@QUICK
@given(extents(), extents())
def test_operations_are_those_of_integers(a: Extent, b: Extent) -> None:
    for v in VALUES:
        x, y = evaluate(a, v), evaluate(b, v)
        assert (evaluate(a + b, v), evaluate(a - b, v), evaluate(a * b, v)) == (x + y, x - y, x * y)
        assert (evaluate(maximum(a, b), v), evaluate(minimum(a, b), v)) == (max(x, y), min(x, y))
        for by in (2, 3, 5):
            assert (evaluate(floordiv(a, by), v), evaluate(ceildiv(a, by), v)) == (x // by, -(-x // by))
            assert evaluate(ceildiv(ceildiv(a, by), 4), v) == -(-x // (4 * by))
        if isinstance(a, Dim):
            assert evaluate(a % 3, v) == x % 3
        if y > 0:
            assert evaluate(floordiv(a, b), v) == x // y


@QUICK
@given(extents(), extents())
def test_what_is_proved_holds(a: Extent, b: Extent) -> None:
    if nonnegative(a):
        assert all(evaluate(a, v) >= 0 for v in VALUES)
    if at_most(a, b):
        assert all(evaluate(a, v) <= evaluate(b, v) for v in VALUES)
    if nonnegative(a, {"h": 8, "w": 4}):
        assert all(evaluate(a, v) >= 0 for v in VALUES if v["h"] >= 8 and v["w"] >= 4)
    if (q := exact_quotient(a, b)) is not None:
        assert all(evaluate(q, v) * evaluate(b, v) == evaluate(a, v) for v in VALUES)


@QUICK
@given(extents())
def test_substitution_json_and_equality(e: Extent) -> None:
    swapped = substitute(e, {"h": W, "w": H}.__getitem__)
    for v in VALUES:
        assert evaluate(swapped, {"h": v["w"], "w": v["h"]}) == evaluate(e, v)
        assert from_json(to_json(e), v) == evaluate(e, v)
    assert e + 0 == e and e * 1 == e and e - e == 0 and hash(e + 1) == hash(1 + e)
    assert set(symbols_of(e)) <= {"h", "w"}


def from_json(form: Any, values: dict[str, int]) -> int:
    if isinstance(form, int):
        return form
    if isinstance(form, str):
        return values[form]
    op, *parts = form
    found = [from_json(p, values) for p in parts]
    if op == "+":
        return sum(found)
    if op == "*":
        product = 1
        for f in found:
            product *= f
        return product
    return {"//": lambda a, b: a // b, "min": min, "max": max}[op](*found)  # type: ignore[operator,no-any-return]


@pytest.mark.parametrize(
    ("e", "text"),
    [
        (H + 0, "h"),
        (H - 2, "h-2"),
        (H * W + H, "h+h*w"),
        (H - H, "0"),
        (H * 2 // 2, "h"),
        ((H * 4 + 3) // 4, "h"),
        (H // 2, "(h)//2"),
        ((H + 1) // (W + 1), "(h+1)//(w+1)"),
        (maximum(H, 1), "h"),
        (maximum(H, W), "max(h, w)"),
        (minimum(H, H + 1), "h"),
    ],
)
def test_normal_form_and_text(e: Extent, text: str) -> None:
    assert str(e) == text


def test_symbols_are_at_least_one_unless_told() -> None:
    assert nonnegative(H - 1) and not nonnegative(H - 2) and nonnegative(H - 8, {"h": 8}) and not nonnegative(H - 1, {"h": 0})
    assert nonnegative(H * W - H) and not nonnegative(H - W)


def test_quotients_are_compared_by_how_far_apart_they_are() -> None:
    for d, by, less in product((2, 3), (2, 3, 4), range(8)):
        e = (H - 3) // d - by * ((H - 3 - less) // (by * d)) - 1
        assert nonnegative(e) is all(evaluate(e, {"h": h}) >= 0 for h in range(1, 60)), (d, by, less)
    shorter = (W + H - 1) // 2 - W // 2
    assert nonnegative(shorter) and not nonnegative(shorter, {"h": 0})


def test_a_missing_symbol_is_named() -> None:
    with pytest.raises(KeyError, match="w"):
        evaluate(H + W, {"h": 1})
