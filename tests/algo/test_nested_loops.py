"""Loops of unknown length inside loops, scans, branches and batches, on the interpreter; and their derivatives, which are refused."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from nested_loops import CASES, flat
from operator_running import numbers, refusal


@pytest.mark.parametrize("name", CASES)
def test_means_what_python_means(name: str) -> None:
    case = CASES[name]
    g = fl.trace(case.program, inputs=case.given)
    for n in case.sizes:
        args = case.inputs(n)
        for got, want in zip(flat(g.run(*args)), case.meant(*args), strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


def grows(h: Any) -> Any:
    return fl.while_loop(lambda k: fl.sum(k) < 9, lambda k: k * 2 + 1, h)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: fl.grad(lambda x: fl.sum(fl.vmap(grows)(x)))(x),
        lambda x: fl.grad(lambda x: fl.scan(lambda c, e: (c + grows(e), None), 0.0, x)[0])(x),
        lambda x: fl.grad(lambda x: fl.scan(lambda c, e: (grows(c) * e, None), 1.0, x)[0])(x),
        lambda x: fl.grad(lambda x: fl.sum(fl.while_loop(lambda h: fl.sum(h) < 9, lambda h: grows(h) + 1, x)))(x),
        lambda x: fl.jvp(fl.vmap(grows), [x], [x])[1],
    ],
)
def test_no_derivative_goes_through(fn: Any) -> None:
    found = refusal(fn, numbers(4))
    assert found.code == "A421" and "fl.scan" in found.text()
