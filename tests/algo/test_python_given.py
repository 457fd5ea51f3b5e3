"""Python's control flow in functions that are handed to others: to fl.grad and its kin, fl.scan, fl.while_loop, fl.cond; and numbers of
loops over symbolic ranges, which are as weak as Python's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from gradient_checks import check_gradient
from operator_running import graph_of, near, numbers, refusal, run


def loss(x: Any, scale: float = 2.0) -> Any:
    """Undecorated: an if, a loop over a symbolic range, and a chain of comparisons on tensors."""
    total = 0.0
    for i in range(x.shape[0]):
        part = -scale * x[i]
        if -1 < x[i] < 1:
            part = x[i] * x[i] * i
        total = total + part
    return total


def of_numpy(x: Any) -> Any:
    return np.where(np.abs(x) < 1, 2 * x * np.arange(len(x)), -2).astype(np.float32)


class Scaled:
    """A method, and a private attribute that a lambda reads."""

    def __init__(self) -> None:
        self.__by = 3.0

    def loss(self, x: Any) -> Any:
        return fl.max(x) if fl.sum(x) > 1e6 else self.__by * fl.sum(x) if fl.sum(x) > -1e6 else 0.0

    def slope(self, x: Any) -> Any:
        return fl.grad(lambda y: self.__by * fl.sum(y) if fl.sum(y) > -1e6 else fl.sum(y))(x)


def test_of_functions_that_are_differentiated() -> None:
    x = numbers(7)
    ways: list[Callable[[Any], Any]] = [
        lambda x: fl.grad(loss)(x),
        lambda x: fl.value_and_grad(loss)(x)[1],
        lambda x: fl.vjp(loss, x)[1](1.0)[0],
        lambda x: fl.grad(functools.partial(loss, scale=2.0))(x),
        lambda x: fl.stack([fl.jvp(loss, [x], [fl.eye(7)[k]])[1] for k in range(7)]),
    ]
    for n, way in enumerate(ways):
        near(run(way, x, symbolic=n < 4), of_numpy(x))
    near(run(fl.vmap(lambda row: loss(row) if False else fl.grad(loss)(row)), np.stack([x, -x])), np.stack([of_numpy(x), of_numpy(-x)]))
    near(run(lambda x: fl.grad(Scaled().loss)(x), x), np.full(7, 3.0))
    near(run(lambda x: Scaled().slope(x), x), np.full(7, 3.0))


def test_lambdas_of_one_line_are_told_apart() -> None:
    x, y = np.float32(2), np.float32(-2)
    both = (lambda x: (x * 2 if x > 0 else x * 3), lambda x: x * 5 if not x > 0 else (lambda y: y * 7)(x))
    for fn, ahead, behind in zip(both, (2, 7), (3, 5), strict=True):
        found = run(lambda x, fn=fn: fl.grad(fn)(x), x), run(lambda x, fn=fn: fl.grad(fn)(x), y)
        assert found == (ahead, behind)


def test_of_steps_branches_and_rules() -> None:
    def step(c: Any, row: Any) -> Any:
        if fl.sum(row) > 0:
            c = c + row
        return c, (c if fl.max(row) > 1 else c * 0)

    def turn(c: Any) -> Any:
        if c < 10:
            return c * 3
        return c + 1

    def branch(v: Any) -> Any:
        return v * 2 if fl.max(v) > 0 else v

    rule = fl.custom_vjp(lambda x: x, lambda x: (x, x), lambda x, g: (g * 2 if fl.sum(x) > -1e6 else g,))
    x = numbers(6, 3)
    last, every, n, two, slope = run(
        lambda x: (
            *fl.scan(step, fl.zeros((3,)), x),
            fl.while_loop(lambda c: not c >= 20, turn, 1.0),
            fl.cond(fl.sum(x) > -1e6, branch, lambda v: v, x),
            fl.grad(lambda x: fl.sum(rule(x)))(x),
        ),
        x,
    )
    c = np.zeros(3, np.float32)
    for k, row in enumerate(x):
        c = c + row if row.sum() > 0 else c
        near(every[k], c if row.max() > 1 else c * 0)
    near(last, c)
    assert n == 27
    near(two, x * 2)
    near(slope, np.full_like(x, 2))


def test_the_derivative_of_a_decorated_function_is_no_function_of_it() -> None:
    x = numbers(5)
    near(fl.trace(fl.grad(fl.function(loss)), inputs={"x": fl.Spec("float32", ("n",), (5,))}).run(x), of_numpy(x))


def test_without_source_what_was_refused_is_refused() -> None:
    made: dict[str, Any] = {}
    exec("def unseen(x):\n    return x if x > 0 else -x\n", {}, made)
    assert refusal(lambda x: fl.grad(made["unseen"])(x), np.float32(1)).code == "A102"


# ---------------------------------------------------------------- numbers of steps
def weak(x: Any, d: Any, k: Any) -> Any:
    a, b, c, e = x[0] * 0, d[0] * 0, 0, k
    for i in range(1, x.shape[0]):
        a = a + x[i] * (i * 0.5) - 2**i / (i + 1)
        b = b + d[i - 1] * (i * 0.1)
        c = c + i // 2 - (i if i % 2 == 1 else -1)
        e = e + i
    for i, v in enumerate(x):
        a = fl.maximum(a, i) + v * (x.shape[0] - i)
    return a, b, c, e


@pytest.mark.parametrize("n", [1, 2, 7])
def test_the_variable_of_a_symbolic_range_is_weak(n: int) -> None:
    """It means what Python's integers mean in the loop of a known length."""
    given = numbers(n), numbers(n, seed=1).astype(np.float64), np.int64(2**40)
    found, meant = run(fl.function(weak), *given, symbolic=True), run(weak, *given)
    for got, want in zip(found, meant, strict=True):
        assert np.asarray(got).dtype == np.asarray(want).dtype or n == 1
        np.testing.assert_allclose(got, want, rtol=1e-6 if np.asarray(got).dtype == np.float32 else 1e-15)


def test_weak_numbers_elsewhere() -> None:
    def fn(x: Any) -> Any:
        total = x[0] * 0
        for i in range(x.shape[0]):
            assert fl.result_type(i, fl.f64) == fl.f64 and fl.result_type(i, fl.i64) == fl.i64
            total = total + fl.sum(fl.stage(lambda j, i=i: fl.where(j == i, x[j] * i, 0))) + x[x.shape[0] - 1 - i] + fl.cast(i, fl.f32)
        return total

    x = numbers(5)
    near(run(fl.function(fn), x, symbolic=True), (x * np.arange(5)).sum() + x.sum() + 10, 1e-5)
    check_gradient(fl.function(fn), np.random.default_rng(0).normal(size=5))
    assert graph_of(fl.function(fn), x, symbolic=True).stages
