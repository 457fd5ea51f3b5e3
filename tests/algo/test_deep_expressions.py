"""Expressions thousands of operations deep, and ones that are small only because they share their parts."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import AlgorithmError
from fluorite.algo.expr import Axis, Const, Expr, as_expr, axis
from fluorite.algo.numerics import bounds
from fluorite.algo.printing import show
from fluorite.algo.rewriting import landings, rewrite, substitute, unwound, walk
from fluorite.codegen.lowered import structure_hash

V = fl.f32[fl.Tensor, "n"]
X = np.array([-1.5, 0.25, 3.0, float("nan")], np.float32)


def chain(step: Any, times: int) -> Any:
    """One stage whose expression is `step` of `step` of ... of an element."""

    def f(x: V) -> Any:
        def body(i: Any) -> Any:
            e = x[i]
            for _ in range(times):
                e = step(e)
            return e

        return fl.stage(body)

    return f


def in_numpy(step: Any, times: int) -> Any:
    e = X
    for _ in range(times):
        e = step(e)
    return e


@pytest.mark.parametrize(
    ("step", "times"),
    [
        (lambda e: e * np.float32(0.5) + np.float32(0.25), 1000),
        (lambda e: -e, 2000),
        (lambda e: np.float32(0.5) * e + np.float32(0.25) * e, 10),
    ],
    ids=["scaled", "negated", "shared"],
)
def test_a_thousand_steps_mean_what_they_say(step: Any, times: int) -> None:
    traced = fl.trace(chain(lambda e: step(e), times))
    np.testing.assert_array_equal(traced.run(X), in_numpy(step, times))
    assert structure_hash(traced) == structure_hash(fl.trace(chain(lambda e: step(e), times)))
    assert len(traced.text()) < 200 * times


def test_the_bounds_of_a_thousand_steps_hold() -> None:
    traced = fl.trace(chain(lambda e: e * 0.5 + 0.25, 900))
    found = next(iter(bounds(traced, (X,)).values()))
    assert np.isfinite(found.value[:3]).all()


def test_choices_inside_choices_are_resolved_once() -> None:
    """Each step has its operand in the condition and in both branches: as a tree that is 3 ** 300 nodes."""
    traced = fl.trace(chain(lambda e: fl.where(e > 0.0, e * 0.5, e * 0.25 + 1.0), 8))
    expected = in_numpy(lambda e: np.where(e > 0, e * np.float32(0.5), e * np.float32(0.25) + np.float32(1)), 8)
    np.testing.assert_array_equal(traced.run(X), expected)


def test_reads_inside_reads() -> None:
    def f(x: fl.i32[fl.Tensor, "n"]) -> Any:
        def body(i: Any) -> Any:
            e = x[i]
            for _ in range(600):
                e = x[e]
            return e

        return fl.stage(body)

    turn = np.array([1, 2, 3, 4, 0], np.int32)
    expected = turn
    for _ in range(600):
        expected = turn[expected]
    np.testing.assert_array_equal(fl.trace(f).run(turn), expected)


def test_views_of_views() -> None:
    def f(x: V) -> Any:
        seen = x
        for _ in range(1501):
            seen = fl.flip(seen, 0)
        return fl.stage(lambda i: seen[i])

    np.testing.assert_array_equal(fl.trace(f).run(X), X[::-1])


@pytest.mark.parametrize("times", [2600, 40000])
def test_too_deep_is_a_sentence(times: int) -> None:
    with pytest.raises(AlgorithmError) as refused:
        fl.trace(chain(lambda e: e + 1.5, times))
    (problem,) = refused.value.problems
    assert problem.code == "A132" and "2,500 deep" in problem.why


@pytest.mark.parametrize(
    "step", [lambda i: (i + 1) // 2, lambda i: i % 7 + 1, lambda i: fl.minimum(i, 5) * 2], ids=["halved", "rest", "least"]
)
def test_positions_may_be_deep_too(step: Any) -> None:
    def f(times: int) -> Any:
        def g(x: V) -> Any:
            def body(i: Any) -> Any:
                for _ in range(times):
                    i = step(i)
                return i

            return fl.stage(body, extents={"i": x.shape[0]})

        return g

    traced = fl.trace(f(60))
    assert len(traced.run(X)) == len(X)
    with pytest.raises(AlgorithmError) as refused:
        fl.trace(f(1000))
    assert refused.value.problems[0].code == "A132" and "positions" in refused.value.problems[0].why


# ---------------------------------------------------------------- what walks them
def deep(levels: int) -> tuple[Axis, Expr]:
    i = axis("i")
    e: Expr = i
    for n in range(levels):
        e = Const(float(n), "float32", False) - e * e
    return i, e


def test_walks_and_rewrites_go_as_deep_as_expressions() -> None:
    i, e = deep(5000)
    seen: set[Expr] = set()
    for n in walk(e):
        assert all(c in seen for c in getattr(n, "args", ()))
        seen.add(n)
    j = axis("j")
    assert rewrite(e, lambda n: None) is e
    moved = substitute(e, {i: j})
    assert moved is not e and substitute(moved, {j: i}) is e
    assert e.depth == 1 + 2 * 5000 + 1  # a product and a cast of the axis, then a product and a difference per level


def test_between_landings_the_way_down_is_short() -> None:
    _, e = deep(400)
    stops = list(landings(e))
    levels: dict[Expr, int] = {}
    for n in walk(e):
        levels[n] = 0 if n in set(stops) else 1 + max((levels[c] for c in getattr(n, "args", ())), default=0)
    assert stops and max(levels.values()) <= 40
    assert not list(landings(as_expr(1)))


def test_a_recursive_function_on_a_stack_of_our_own() -> None:
    def step(n: int) -> Any:
        return 0 if n == 0 else (yield n - 1) + n

    assert unwound(step, 50_000) == 50_000 * 50_001 // 2


# ---------------------------------------------------------------- text
def test_shared_parts_of_large_expressions_have_names() -> None:
    i, e = deep(12)
    text = show(e)
    assert len(text) < 1500 and "$0 = " in text
    assert show(deep(2)[1]).count("i") > 1 and "$" not in show(deep(2)[1])
    other = substitute(e, {i: axis("k")})
    assert show(other) != text and show(other).replace("k", "i") == text


def test_different_shared_expressions_have_different_hashes() -> None:
    def graph(last: float) -> Any:
        def f(x: V) -> Any:
            def body(i: Any) -> Any:
                e = x[i] + last
                for _ in range(8):
                    e = e + e * e * 0.5
                return e

            return fl.stage(body)

        return fl.trace(f)

    assert len({structure_hash(graph(c)) for c in (1.0, 2.0, 3.0)}) == 3
