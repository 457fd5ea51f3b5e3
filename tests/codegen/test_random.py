"""fl.random: the same numbers in the interpreter and compiled, pure functions of key and index, with the distributions they claim."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.numerics import compare


def draws(seed: int, n: int) -> Any:
    def f(step: fl.i32[fl.Tensor]) -> dict[str, Any]:
        a, b = fl.random.split(fl.random.fold_in(fl.random.key(seed), step))
        return {
            "bits": fl.random.bits(a, n),
            "uniform": fl.random.uniform(a, n),
            "double": fl.random.uniform(a, n, "float64"),
            "normal": fl.random.normal(b, n),
            "bernoulli": fl.random.bernoulli(b, 0.3, n),
            "randint": fl.random.randint(b, -3, 4, n),
        }

    return f


def test_compiled_draws_are_the_interpreters() -> None:
    graph = fl.trace(draws(7, 33))
    step = np.int32(5)
    wanted, found = graph.run(step), fl.compile(graph)(step)
    for name in set(wanted) - {"normal"}:
        np.testing.assert_array_equal(found[name], wanted[name], name)
    np.testing.assert_array_max_ulp(found["normal"], wanted["normal"], 2)
    assert all(c.ok for c in compare(graph, None, (step,), found))


def test_distributions() -> None:
    n = 200_000
    got = fl.trace(draws(1, n)).run(np.int32(0))
    u, z = got["uniform"].astype(float), got["normal"].astype(float)
    near = 5 / np.sqrt(n)  # five standard errors of a mean of unit deviation
    assert u.min() >= 0 and u.max() < 1 and abs(u.mean() - 0.5) < near and abs(u.var() - 1 / 12) < near
    assert abs(z.mean()) < near and abs(z.var() - 1) < 2 * near and abs((z**3).mean()) < 4 * near and abs((z**4).mean() - 3) < 10 * near
    assert abs(got["bernoulli"].mean() - 0.3) < near
    assert set(np.unique(got["randint"])) == set(range(-3, 4)) and abs(got["randint"].mean()) < 2 * near
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < near and abs(np.corrcoef(u, z)[0, 1]) < near


def test_elements_depend_on_key_and_index_alone() -> None:
    short, long = (fl.trace(draws(3, n)).run(np.int32(1)) for n in (5, 50))
    for name in short:
        np.testing.assert_array_equal(short[name], long[name][:5])
    other = fl.trace(draws(3, 50)).run(np.int32(2))
    assert not np.any(other["bits"] == long["bits"])


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda k: fl.random.key(1.5), "a seed is an integer"),
        (lambda k: fl.random.uniform(np.zeros(2, np.float32)), "a key is uint32"),
        (lambda k: fl.random.bernoulli(k, 1.5), "from 0 to 1"),
        (lambda k: fl.random.randint(k, 3, 3), "low is below high"),
        (lambda k: fl.random.normal(k, 3, "int32"), "float32 or float64"),
        (lambda k: fl.random.fold_in(k, 1.5), "one whole number"),
    ],
)
def test_mistakes_are_told(call: Any, why: str) -> None:
    with pytest.raises(fl.AlgorithmError) as caught:
        fl.trace(lambda: call(fl.random.key(0)))
    assert why in caught.value.problems[0].why
