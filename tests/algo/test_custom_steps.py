"""Derivatives that the user gives, inside steps: of scans, where they are part of the recurrence or stand beside it, and of vmap.

What a rule says is right here, so the gradient must be the derived one of the same function, and that of finite differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from step_rules import PROGRAMS, N, T, derived, graph, in_branches, inputs, recurrent, results_apart, ruled

Array = np.ndarray[Any, Any]


def differences(fn: Callable[[Array], Array], at: Array) -> Array:
    """Central ones, element by element."""
    out, h = np.zeros_like(at), 1e-6
    for i in np.ndindex(at.shape):
        d = np.zeros_like(at)
        d[i] = h
        out[i] = (fn(at + d) - fn(at - d)) / (2 * h)
    return out


@pytest.mark.parametrize("program", PROGRAMS)
def test_is_the_derived_gradient_and_that_of_differences(program: Any) -> None:
    x, w = inputs()
    g = graph(program, ruled)
    value, (dx, dw) = g.run(x, w)
    same, (ex, ew) = graph(program, derived).run(x, w)
    np.testing.assert_allclose(value, same, rtol=1e-13)
    np.testing.assert_allclose(dx, ex, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(dw, ew, rtol=1e-11, atol=1e-12)
    plain = fl.trace(lambda x, w: program(derived, x, w), inputs={"x": fl.f64(T, N), "w": fl.f64(N, N)})
    np.testing.assert_allclose(dx, differences(lambda a: plain.run(a, w), x), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(dw, differences(lambda a: plain.run(x, a), w), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("program", [recurrent, results_apart, in_branches])
def test_steps_of_any_number(program: Any) -> None:
    rule, plain = graph(program, ruled, "steps"), graph(program, derived, "steps")
    for steps in (1, 2, 7):
        args = inputs(steps)
        for a, b in zip(rule.run(*args)[1], plain.run(*args)[1], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def test_what_the_rule_says_counts_and_not_what_is_right() -> None:
    """Five times what arrives, at each step; and a result that does not depend on the carry at all, with a derivative by it."""
    double = fl.custom_vjp(lambda x: 2 * x, lambda x: (2 * x, None), lambda kept, g: (5 * g,))
    x = np.arange(4.0)

    def gradient(step: Any) -> Any:
        fn = fl.grad(lambda x: fl.sum(fl.scan(step, fl.zeros((), dtype="float64"), x)[0]))
        return fl.trace(fn, inputs={"x": fl.f64(4)}).run(x)

    np.testing.assert_array_equal(gradient(lambda c, x: (double(c) + x, c)), [125, 25, 5, 1])
    np.testing.assert_array_equal(gradient(lambda c, x: (c + double(x), c)), [5, 5, 5, 5])
    through = fl.custom_vjp(lambda c, x: x, lambda c, x: (x * 1, None), lambda kept, g: (3 * g, g))
    np.testing.assert_array_equal(gradient(lambda c, x: (through(c, x), None)), [27, 9, 3, 1])


def test_second_derivatives() -> None:
    x, w = inputs()

    def second(of: Any) -> Any:
        inner = fl.grad(lambda x, w: recurrent(of, x, w))
        fn = fl.grad(lambda x, w: fl.sum(inner(x, w) * fl.cos(x)))
        return fl.trace(lambda x, w: fn(x, w), inputs={"x": fl.f64(T, N), "w": fl.f64(N, N)}).run(x, w)

    np.testing.assert_allclose(second(ruled), second(derived), rtol=1e-10, atol=1e-11)
