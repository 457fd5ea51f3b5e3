"""fl.extern on the interpreter: what functions are given and asked for, where an extern may stand, its derivative, and refusals."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.numerics import bounds, compare
from operator_running import graph_of, near, numbers, refusal, run, same

Array = np.ndarray[Any, Any]


def sorted_rows(x: Array) -> Array:
    return np.sort(x, axis=-1)


def scaled(x: Array, k: Array) -> Array:
    return x * k


def squares(x: Any) -> Any:
    """x ** 2 by NumPy, with a derivative that NumPy computes as well."""

    def pull(inputs: tuple[Any, ...], g: Any) -> Any:
        (x,) = inputs
        return (fl.extern(lambda x, g: 2 * x * g, x.shape, x.dtype, x, g, name="pulled", vjp=second),)

    def second(inputs: tuple[Any, ...], g: Any) -> Any:
        return (2 * inputs[1] * g, 2 * inputs[0] * g)

    return fl.extern(np.square, x.shape, x.dtype, x, vjp=pull, name="squares")


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (5, 0), (0, 4)])
def test_a_function_gets_whole_arrays(shape: tuple[int, ...]) -> None:
    x = numbers(*shape)

    def fn(x: Any) -> Any:
        y = x * 2
        return fl.extern(sorted_rows, x.shape, x.dtype, y, name="rows") + 1

    same(run(fn, x), np.sort(x * np.float32(2), axis=-1) + np.float32(1))
    same(run(fn, x, symbolic=True), np.sort(x * np.float32(2), axis=-1) + np.float32(1))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"])
def test_every_type_comes_and_goes_as_it_is(dtype: str) -> None:
    x = (numbers(6) * 3).astype(dtype)
    seen: list[Any] = []

    def turn(x: Array) -> Array:
        seen.append((x.dtype.name, x.shape, x.flags.writeable))
        return x[::-1]

    same(run(lambda x: fl.extern(turn, x.shape, x.dtype, x, name="turned"), x), x[::-1])
    assert seen == [(dtype, (6,), False)]


def test_views_numbers_arrays_and_other_shapes() -> None:
    x = numbers(3, 4)

    def fn(x: Any) -> Any:
        many = fl.extern(lambda a, b, c: np.concatenate([a.ravel(), b.ravel()]) * c, (24,), fl.f32, x.T, x[::-1], 2.0, name="many")
        one = fl.extern(lambda a: np.float64(a.sum()), (), fl.f64, x, name="one")
        return many, one, fl.extern(lambda: np.arange(3), (3,), fl.i64, name="none")

    many, one, none = run(fn, x)
    same(many, np.concatenate([x.T.ravel(), x[::-1].ravel()]) * np.float32(2))
    same(one, np.float64(x.sum()))
    same(none, np.arange(3))


def test_extents_follow_the_inputs() -> None:
    g = fl.trace(lambda x: fl.extern(lambda x: np.repeat(x, 2), (x.shape[0] * 2,), x.dtype, x, name="twice"), inputs={"x": fl.f32("n")})
    for n in (1, 5):
        same(g.run(numbers(n)), np.repeat(numbers(n), 2))
    assert "twice(i0:2*n): float32" in g.text() and "<lambda>(" in g.text()


def test_a_branch_calls_only_where_it_is_taken() -> None:
    calls: list[int] = []

    def counted(x: Array) -> Array:
        calls.append(len(x))
        return -x

    def fn(x: Any, p: Any) -> Any:
        return fl.cond(p > 0, lambda: fl.extern(counted, x.shape, x.dtype, x, name="negative"), lambda: x)

    same(run(fn, numbers(3), np.int32(0)), numbers(3))
    assert not calls
    same(run(fn, numbers(3), np.int32(1)), -numbers(3))
    assert calls == [3]


def test_what_no_step_changes_may_stand_in_a_loop() -> None:
    def fn(x: Any, k: Any) -> Any:
        def step(c: Any, y: Any) -> Any:
            return c + y * fl.extern(np.sort, k.shape, k.dtype, k, name="inside"), None

        def turn(c: Any) -> Any:
            return c[0] + fl.extern(np.sort, k.shape, k.dtype, k, name="again"), c[1] + 1

        return fl.scan(step, fl.zeros_like(k), x)[0], fl.while_loop(lambda c: c[1] < 3, turn, (k, 0))[0]

    x, k = numbers(4, 5), numbers(5, seed=1)
    a, b = run(fn, x, k)
    near(a, (x * np.sort(k)).sum(0))
    near(b, k + 3 * np.sort(k))


def test_derivatives_of_first_and_second_order() -> None:
    x = numbers(5)
    first = run(fl.grad(lambda x: fl.sum(fl.sin(squares(x)))), x)
    near(first, np.cos(x**2) * 2 * x)
    second = run(fl.grad(lambda x: fl.sum(fl.grad(lambda x: fl.sum(squares(x) * x))(x))), x)
    near(second, 6 * x)
    inside = run(fl.grad(lambda x: fl.sum(fl.cond(fl.sum(x) > -100, squares, lambda x: x, x))), x)
    near(inside, 2 * x)
    same(run(fl.grad(lambda x: fl.sum(x * fl.stop_gradient(fl.extern(np.sort, x.shape, x.dtype, x, name="s")))), x), np.sort(x))
    same(
        run(fl.grad(lambda x: fl.sum(x * fl.cast(fl.extern(np.argsort, x.shape, fl.i64, x, name="s"), fl.f32))), x),
        np.argsort(x).astype(np.float32),
    )


def test_the_oracle_is_exact_for_exact_inputs_and_samples_else() -> None:
    x = numbers(40)
    g = graph_of(lambda x: fl.extern(np.sort, x.shape, x.dtype, x, name="s"), x)
    (exact,) = bounds(g, (x,)).values()
    assert exact.error is None
    g = graph_of(lambda x: fl.extern(np.sort, x.shape, x.dtype, fl.exp(x), name="s"), x)
    (found,) = bounds(g, (x,)).values()
    assert found.error is not None and 0 < found.error.max() < 4e-5
    got = g.run(x)
    assert compare(g, None, (x,), got)[0].ok
    assert not compare(g, None, (x,), got * np.float32(1.001))[0].ok
    g = graph_of(lambda x: fl.extern(lambda y: np.argsort(y), x.shape, fl.i64, fl.exp(x) * 0 + 1, name="s"), x)
    (order,) = bounds(g, (x,)).values()
    assert order.undecided is not None and order.undecided.any()


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        (lambda x: x[:-1], "returned float32[2]"),
        (lambda x: x.astype(np.float64), "returned float64[3]"),
        (lambda x: x[:, None], "returned float32[3, 1]"),
        (lambda x: 1 // 0, "raised ZeroDivisionError"),
        (lambda x: x.__setitem__(0, 1), "raised ValueError"),
    ],
)
def test_what_a_function_returns_is_checked(returned: Any, sentence: str) -> None:
    with pytest.raises(fl.RunError) as error:
        run(lambda x: fl.extern(returned, x.shape, x.dtype, x, name="wrong"), numbers(3))
    (problem,) = error.value.problems
    assert problem.code == "R123" and sentence in problem.asked and "/wrong " in problem.asked


def pulled_wrongly(x: Any) -> Any:
    return fl.extern(np.sort, x.shape, x.dtype, x, vjp=lambda inputs, g: g, name="s")


def sorted_(x: Any) -> Any:
    return fl.extern(np.sort, x.shape, x.dtype, x, name="s")


def edge_given(x: Any) -> Any:
    return fl.extern(np.sort, x.shape, x.dtype, fl.edge(x), name="s")


def scanned(x: Any) -> Any:
    return fl.scan(lambda c, y: (c + fl.extern(np.exp, (), fl.f32, y, name="s"), None), 0.0, x)[0]


def turned(x: Any) -> Any:
    return fl.while_loop(lambda c: fl.sum(c) > 0, lambda c: sorted_(c) - 1, x)


REFUSED: list[tuple[Any, str, str]] = [
    (lambda x: fl.extern(3, x.shape, x.dtype, x, name="s"), "A431", "calls a function"),
    (lambda x: fl.extern(np.sort, 3, x.dtype, x, name="s"), "A431", "tuple of extents"),
    (lambda x: fl.extern(np.sort, (-1,), x.dtype, x, name="s"), "A116", "0 to 2**48"),
    (lambda x: fl.extern(np.sort, x.shape, x.dtype, x, name="a b"), "A117", "names stand in plans"),
    (lambda x: fl.stage(lambda i: fl.extern(np.sort, x.shape, x.dtype, x, name="s")[i]), "A431", "one element"),
    (edge_given, "A402", "way to read"),
    (scanned, "A433", "between kernels"),
    (lambda x: fl.vmap(lambda y: fl.extern(np.exp, (), fl.f32, y, name="s"))(x), "A433", "fl.vmap"),
    (turned, "A433", "fl.while_loop"),
    (fl.grad(lambda x: fl.sum(sorted_(x))), "A171", "fl.extern s"),
    (lambda x: fl.jvp(lambda x: sorted_(x), [x], [x]), "A171", "fl.extern s"),
    (lambda x: fl.jvp(squares, [x], [x]), "A171", "reverse mode only"),
    (fl.grad(lambda x: fl.sum(pulled_wrongly(x))), "A174", "returns"),
]


@pytest.mark.parametrize(("fn", "code", "sentence"), REFUSED)
def test_refusals(fn: Any, code: str, sentence: str) -> None:
    problem = refusal(fn, numbers(3))
    assert problem.code == code and sentence in f"{problem.asked} {problem.why}"
