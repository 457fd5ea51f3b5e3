"""fl.reduce: what it means, which combiners are refused and with which numbers, what is found out about them, graphs and bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.cost import cost
from fluorite.algo.numerics import compare, tolerance
from fluorite.codegen.lowered import structure_hash
from fluorite.codegen.tuning.graph_text import graph_data, graph_of
from operator_running import both, near, numbers, refusal, run, same

INFINITY = float("inf")


def either(a: Any, b: Any) -> Any:
    """The chance that one of two independent events happens."""
    return a + b - a * b


def last(a: Any, b: Any) -> Any:
    """The last that is not 0."""
    return fl.where(b != 0, b, a)


def rows(combine: Callable[[Any, Any], Any], identity: Any) -> Callable[[Any], Any]:
    return lambda x: fl.stage(lambda i: fl.reduce(combine, identity, lambda k: x[i, k]), name="rows")


# ---------------------------------------------------------------- elements of several parts
def welford(a: Any, b: Any) -> Any:
    """Count, mean and sum of squared distances of two samples together (T. F. Chan, G. H. Golub and R. J. LeVeque, 1979)."""
    n, apart = a[0] + b[0], b[1] - a[1]
    share = fl.where(n > 0, b[0] / fl.maximum(n, 1.0), 0.0)
    return n, a[1] + apart * share, a[2] + b[2] + apart * apart * a[0] * share


def variance(x: Any) -> Any:
    def of_row(i: Any) -> Any:
        n, _, squares = fl.reduce(welford, (0.0, 0.0, 0.0), lambda k: (1.0, x[i, k], 0.0))
        return squares / n

    return fl.stage(of_row, name="variance")


def better(a: Any, b: Any) -> Any:
    """The larger value, of equal ones the first position."""
    later = (b[0] > a[0]) | ((b[0] == a[0]) & (b[1] < a[1]))
    return fl.where(later, b[0], a[0]), fl.where(later, b[1], a[1])


def argmax(x: Any, combine: Any = better) -> Any:
    return fl.stage(lambda i: fl.reduce(combine, (-INFINITY, 2**31 - 1), lambda k: (x[i, k], k))[1], name="argmax")


def compose(a: Any, b: Any) -> Any:
    """The steps y = a y + b of two recurrences in turn."""
    return b[0] * a[0], b[0] * a[1] + b[1]


def decayed(x: Any) -> Any:
    return fl.stage(lambda i: fl.reduce(compose, (1.0, 0.0), lambda k: (fl.sin(x[i, k]) / 2, x[i, k]))[1], name="decayed")


SHAPES = [(1, 1), (3, 2), (5, 7), (2, 64), (4, 129)]


@pytest.mark.parametrize("shape", [*SHAPES, (3, 0)])
def test_values_beside_numpy(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).random(shape).astype(np.float32)
    near(both(rows(either, 0.0), x), 1 - np.prod(1 - x.astype(float), 1), 1e-6)
    near(both(rows(fl.minimum, INFINITY), x), x.min(1, initial=np.inf))
    bits = numbers(*shape, dtype="int32")
    same(both(rows(lambda a, b: a ^ b, 0), bits), np.bitwise_xor.reduce(bits, 1))
    same(both(rows(lambda a, b: a | b, False), bits > 0), (bits > 0).any(1))
    near(both(rows(lambda a, b: fl.logaddexp(a, b), -1e30), x), np.logaddexp.reduce(x, 1, initial=-1e30), 1e-5)


def test_the_order_is_that_of_the_axes() -> None:
    x = numbers(5, 7, dtype="int32") * (numbers(5, 7, seed=1) > 0.5)
    found = run(lambda x: fl.stage(lambda: fl.reduce(last, 0, lambda j, k: x[j, k])), x)
    assert found == x[x != 0][-1]


def test_inside_an_expression_over_given_axes_in_wider_types() -> None:
    x = np.random.default_rng(0).random((4, 9)).astype(np.float32)
    found = run(lambda x: fl.stage(lambda i: 2 * fl.reduce(either, 0.0, lambda k: x[i, k + 1], over={"k": (0, 3)})), x)
    near(found, 2 - 2 * np.prod(1 - x[:, 1:4], 1))
    narrow = fl.trace(rows(either, 0.0), inputs={"x": fl.bf16("n", "m")})
    reduced, rounded = narrow.stages
    assert (reduced.dtype, rounded.dtype) == ("float32", "bfloat16")
    assert refusal(rows(lambda a, b: a + b, 0.0), numbers(3, 4, dtype="int32")).code == "A104"
    typed = fl.stage
    wide = fl.trace(lambda x: typed(lambda i: fl.reduce(either, 0.0, lambda k: x[i, k]), dtype="float64"), inputs={"x": fl.f32("n", "m")})
    assert [s.dtype for s in wide.stages] == ["float32", "float64"]


@pytest.mark.parametrize(
    "combine, identity, shown",
    [
        (lambda a, b: (a + b) / 2, 0.0, "combine(0, "),
        (lambda a, b: a - b, 0.0, "combine(0, "),
        (lambda a, b: a + b, 1.0, "combine(1, 1) is 2"),
        (fl.maximum, 0.0, "combine(0, -"),
        (lambda a, b: a + b + a * a * b, 0.0, "combine(combine("),
        (lambda a, b: fl.where(b != 0, b, a), 1.0, "combine("),
        (lambda a, b: a * b / (a + b), 0.0, "is nan"),
    ],
)
def test_what_breaks_a_law_is_refused_with_numbers(combine: Any, identity: float, shown: str) -> None:
    problem = refusal(rows(combine, identity), numbers(3, 4))
    assert problem.code == "A208" and shown in problem.why and "fl.recurrence" in problem.try_[0]


def test_laws_need_only_hold_for_elements_that_there_are() -> None:
    """A largest value with the identity 0, of squares."""
    x = numbers(3, 4)
    near(run(lambda x: fl.stage(lambda i: fl.reduce(fl.maximum, 0.0, lambda k: x[i, k] * x[i, k])), x), (x * x).max(1))


@pytest.mark.parametrize(
    "combine, identity, said",
    [
        (lambda a: a, 0.0, "a function of two elements"),
        (lambda a, b: a < b, 0.0, "makes bool of float32"),
        (lambda a, b: a + b, "none", "the identity 'none'"),
        (None, 0.0, "a function of two elements"),
    ],
)
def test_what_is_no_combiner(combine: Any, identity: Any, said: str) -> None:
    problem = refusal(rows(combine, identity), numbers(3, 4))
    assert problem.code == "A207" and said in problem.asked + problem.why


def test_a_combiner_sees_nothing_else() -> None:
    problem = refusal(lambda x: fl.stage(lambda i: fl.reduce(lambda a, b: a + b * x[i, 0], 0.0, lambda k: x[i, k])), numbers(3, 4))
    assert problem.code == "A207" and "something else than its arguments" in problem.asked
    assert refusal(lambda x: fl.reduce(either, 0.0, lambda k: x[k]), numbers(3)).code == "A115"


def test_what_is_known_of_a_combiner() -> None:
    (s,) = fl.trace(rows(either, 0.0), inputs={"x": fl.f32("n", "m")}).stages
    assert s.reduction is not None and not s.reduction.in_order and s.facts["kind"] == "reduction"
    assert "reduce[a, b: a + b - a * b; 0.0](k:m | " in s.text()
    (s,) = fl.trace(rows(last, 0), inputs={"x": fl.i32("n", "m")}).stages
    assert s.reduction is not None and s.reduction.in_order


def test_cost_and_bounds() -> None:
    g = fl.trace(rows(either, 0.0), inputs={"x": fl.f32("n", "m")})
    assert str(cost(g, g.stages[0]).flops) == "3*m*n"
    (short,), (long,) = (tolerance(g, lengths={"n": 2, "m": m}) for m in (10, 1000))
    assert 90 * short.relative < long.relative < 110 * short.relative
    for m in (1, 9, 5000):
        x = np.random.default_rng(m).random((2, m)).astype(np.float32) / m
        serial = np.zeros(2, np.float32)
        for k in range(m):
            serial = serial + x[:, k] - serial * x[:, k]
        assert compare(g, None, (x,), serial)[0].ok and compare(g, None, (x,), g.run(x))[0].ok
        assert not compare(g, None, (x,), serial + np.float32(1e-3))[0].ok


def test_graphs_with_combiners_travel() -> None:
    g = fl.trace(rows(last, 0), inputs={"x": fl.i32("n", "m")})
    again = graph_of(graph_data(g))
    assert structure_hash(again) == structure_hash(g) and again.text() == g.text()
    x = numbers(3, 5, dtype="int32")
    same(again.run(x), g.run(x))


def test_elements_of_several_parts() -> None:
    for shape in SHAPES:
        x = numbers(*shape)
        near(both(variance, x), x.var(1), 1e-6)
        ties = np.round(x)
        same(both(argmax, ties), ties.argmax(1).astype(np.int32))
        wanted = np.zeros(shape[0])
        for k in range(shape[1]):
            wanted = np.sin(x[:, k]) / 2 * wanted + x[:, k]
        near(both(decayed, x), wanted, 1e-5)


def test_parts_are_one_stage_in_a_type_that_holds_all_their_numbers() -> None:
    found = {fn: fl.trace(fn, inputs={"x": fl.f32("n", "m")}).stages[0] for fn in (variance, argmax, decayed)}
    assert {s.dtype for s in (found[variance], found[decayed])} == {"float32"} and found[argmax].dtype == "float64"
    assert [s.reduction is not None and s.reduction.in_order for s in found.values()] == [False, False, True]
    s = found[argmax]
    assert s.axis_names == ("part", "i") and s.of_elements.axis_names == ("i",) and "[i, k], int32(k))[part]" in s.text()
    whole = fl.trace(lambda x: fl.stage(lambda part: fl.reduce(better, (-9, 9), lambda k: (x[part, k], k))[1]), inputs={"x": fl.i32(3, 4)})
    assert whole.stages[0].dtype == "int32" and whole.stages[0].axis_names == ("part_2", "part")


def test_what_two_parts_show_is_one_stage() -> None:
    def spread(x: Any) -> Any:
        def of_row(i: Any) -> Any:
            low, high = fl.reduce(
                lambda a, b: (fl.minimum(a[0], b[0]), fl.maximum(a[1], b[1])), (INFINITY, -INFINITY), lambda k: (x[i, k],) * 2
            )
            return high - low

        return fl.stage(of_row)

    x = numbers(3, 9)
    assert len(fl.trace(spread, inputs={"x": fl.f32("n", "m")}).stages) == 2
    near(both(spread, x), np.ptp(x, 1))


@pytest.mark.parametrize(
    "combine, identity, element, code, said",
    [
        (better, (0.0, 0), lambda k: (k * 1.0, k, k), "A207", "fl.reduce of 3 parts"),
        (better, 0.0, lambda k: (k * 1.0, k), "A207", "fl.reduce of 2 parts"),
        (lambda a, b: a[0] + b[0], (0.0, 0), lambda k: (k * 1.0, k), "A207", "makes one number of 2 parts"),
        (better, (-INFINITY, 0), lambda k: (k * 1.0, fl.cast(k, "int64")), "A207", "parts of float32 and int64"),
        (lambda a, b: (a[0] + b[0], a[1] / b[1]), (0.0, 1.0), lambda k: (k * 1.0, k + 1.0), "A208", "combine((0, 1), ("),
    ],
)
def test_parts_that_do_not_fit(combine: Any, identity: Any, element: Any, code: str, said: str) -> None:
    problem = refusal(lambda x: fl.stage(lambda i: x[i] + fl.reduce(combine, identity, element, over={"k": 4})[0]), numbers(3))
    assert problem.code == code and said in problem.asked + problem.why


def test_bounds_of_parts() -> None:
    g = fl.trace(variance, inputs={"x": fl.f32("n", "m")})
    for m in (2, 200):
        x = numbers(3, m)
        assert compare(g, None, (x,), x.var(1))[0].ok
        assert not compare(g, None, (x,), x.var(1) * np.float32(1.001))[0].ok
