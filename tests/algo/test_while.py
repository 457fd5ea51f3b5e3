"""fl.while_loop and while on tensors: what is carried, what stands inside and around, what is refused; and scans of very many steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from operator_running import graph_of, near, numbers, refusal, run, same

Array = np.ndarray[Any, Any]


def newton(x: Any) -> Any:
    """Square roots, to a tolerance."""

    def body(c: Any) -> Any:
        return {"r": (c["r"] + x / c["r"]) * 0.5, "n": [c["n"][0] + 1]}

    return fl.while_loop(lambda c: fl.max(fl.abs(c["r"] * c["r"] - x)) > 1e-3, body, {"r": fl.ones_like(x), "n": [0]})


@pytest.mark.parametrize("n", [1, 2, 5])
def test_as_many_turns_as_it_takes(n: int) -> None:
    x = np.abs(numbers(n)) * 50 + 1
    found = run(newton, x)
    near(found["r"], np.sqrt(x), 1e-4)
    r, turns = np.ones_like(x), 0
    while np.max(np.abs(r * r - x)) > 1e-3:
        r, turns = (r + x / r) * np.float32(0.5), turns + 1
    assert found["n"][0] == turns > 2
    near(run(newton, x, symbolic=True)["r"], np.sqrt(x), 1e-4)


def test_no_turn_at_all_and_a_condition_that_is_data() -> None:
    def fn(x: Any, n: Any) -> Any:
        return fl.while_loop(lambda c: c[1] < n, lambda c: (c[0] * 2, c[1] + 1), (x, 0))

    for n in (0, 1, 20):
        last, count = run(fn, numbers(3), np.array(n, np.int32))
        near(last, numbers(3) * 2.0**n)
        assert count == n


def test_carries_change_places_and_stay_as_they_are() -> None:
    def fn(x: Any, y: Any, n: Any) -> Any:
        return fl.while_loop(lambda c: c[3] < n, lambda c: (c[1], c[0], c[2], c[3] + 1, x[::-1]), (x, y, x + y, 0, x))

    x, y = numbers(4), numbers(4, seed=1)
    for n in (0, 1, 2, 5):
        a, b, c, _, d = run(fn, x, y, np.array(n, np.int32))
        same(a, y if n % 2 else x)
        same(b, x if n % 2 else y)
        near(c, x + y)
        same(d, x[::-1] if n else x)


def test_what_no_turn_changes_is_computed_before_the_loop() -> None:
    def fn(x: Any, w: Any) -> Any:
        return fl.while_loop(lambda h: fl.sum(h) < 100, lambda h: h + fl.exp(x @ w), fl.zeros(3))

    g = graph_of(fn, numbers(3), numbers(3, 3))
    turned = {s.path.rsplit("/", 1)[1] for s in g.stages if s.turn is not None}
    assert turned == {"carry", "sum", "less", "add"}
    x, w, h = numbers(3), numbers(3, 3), np.zeros(3, np.float32)
    while h.sum() < 100:
        h = h + np.exp(x @ w)
    near(run(fn, x, w), h, 1e-5)


def branching(x: Any) -> Any:
    """A branch and a scan at each turn."""

    def body(c: Any) -> Any:
        x, n = c
        even = fl.cond(n % 2 == 0, lambda: x * 0.5, lambda: fl.sin(x))
        walked = fl.scan(lambda h, e: (h * 0.5 + e, h), fl.zeros(()), even)[1]
        return walked + even, n + 1

    return fl.while_loop(lambda c: (fl.sum(fl.abs(c[0])) > 0.5) & (c[1] < 9), body, (x, 0))


def branched(x: Array) -> tuple[Array, int]:
    n = 0
    while np.abs(x).sum() > 0.5 and n < 9:
        even = x * np.float32(0.5) if n % 2 == 0 else np.sin(x)
        h, walked = np.float32(0), []
        for e in even:
            walked.append(h)
            h = h * np.float32(0.5) + e
        x, n = np.array(walked, np.float32) + even, n + 1
    return x, n


@pytest.mark.parametrize("n", [1, 4])
def test_branches_and_scans_inside(n: int) -> None:
    x = numbers(n)
    found, turns = run(branching, x)
    wanted, count = branched(x)
    near(found, wanted, 1e-5)
    assert turns == count


def test_inside_a_branch() -> None:
    def fn(x: Any) -> Any:
        return fl.cond(fl.sum(x) > 0, lambda: newton(x)["r"], lambda: x * 2)

    for x in (np.abs(numbers(3)) + 1, -np.abs(numbers(3))):
        near(run(fn, x), np.sqrt(x) if x[0] > 0 else x * 2, 1e-4)


def written(x: Any) -> Any:
    n, total = 0, 0
    while fl.sum(x) > 1 and n < 30:
        if fl.max(x) > 3:
            x = x * 0.25
            n = n + 0
        else:
            x = x - 0.25
        total = total + x
        n += 1
    return x, total, n


def test_while_as_python_writes_it() -> None:
    for seed in range(3):
        x = np.abs(numbers(4, seed=seed)) * 3
        got = run(written, x)
        total, n = np.zeros(4, np.float32), 0
        while x.sum() > 1 and n < 30:
            x = x * np.float32(0.25) if x.max() > 3 else x - np.float32(0.25)
            total, n = total + x, n + 1
        near(got[0], x, 1e-5)
        near(got[1], total, 1e-5)
        assert got[2] == n


# ---------------------------------------------------------------- refusals
def leaking(x: Any) -> Any:
    kept = []
    fl.while_loop(lambda h: fl.sum(h) < 9, lambda h: kept.append(fl.exp(h)) or h + 1, x)  # type: ignore[func-returns-value]
    return kept[0] * 2


def differentiated(x: Any) -> Any:
    return fl.grad(lambda x: fl.sum(fl.while_loop(lambda h: fl.sum(h) < 9, lambda h: h + fl.exp(x), fl.zeros(4))))(x)


class Assigning(fl.Program):
    def __init__(self) -> None:
        self.n = fl.state(init=0, dtype=fl.i32)

    @fl.method
    def run(self, x: fl.f32[fl.Tensor, 3]) -> Any:
        def body(h: Any) -> Any:
            self.n = self.n + 1
            return h + 1

        return fl.while_loop(lambda h: fl.sum(h) < 9, body, x)


@pytest.mark.parametrize(
    ("code", "fn"),
    [
        ("A423", lambda x: fl.while_loop(lambda h: fl.sum(h) < 9, lambda h: h[1:], x)),
        ("A423", lambda x: fl.while_loop(lambda h: fl.sum(h) < 9, lambda h: (h, h), x)),
        ("A423", lambda x: fl.while_loop(lambda h: fl.sum(x) < 9, lambda h: h, ())),
        ("A423", lambda x: fl.while_loop(lambda h: fl.sum(h) < 9, lambda h: fl.cast(h, fl.f64), x)),
        ("A423", lambda x: fl.while_loop(lambda h: fl.sum(x) < 9, lambda h: h, fl.edge(x))),
        ("A401", lambda x: fl.while_loop(lambda h: h < 9, lambda h: h + 1, x)),
        ("A401", lambda x: fl.while_loop(lambda h: fl.sum(h), lambda h: h + 1, x)),
        ("A163", leaking),
        ("A421", differentiated),
        ("A421", lambda x: fl.jvp(lambda x: fl.while_loop(lambda h: fl.sum(h) < 9, lambda h: h * 2, x), (x,), (x,))[1]),
    ],
)
def test_refusals(code: str, fn: Callable[..., Any]) -> None:
    found = refusal(fn, numbers(4))
    assert found.code == code and found.why and found.source, found.text()
    assert found.source.startswith("test_while.py:")
    if code == "A421":
        assert "fl.scan" in found.text() and "length" in found.text()


def test_state_is_assigned_after_the_loop() -> None:
    with pytest.raises(fl.AlgorithmError) as caught:
        fl.trace(Assigning())
    assert caught.value.problems[0].code == "A423"


# ---------------------------------------------------------------- very many steps
def walked(x: Any, a: Any) -> Any:
    return fl.scan(lambda h, e: (fl.tanh(h * a + e), None), fl.zeros(()), x)[0]


def test_twenty_thousand_steps() -> None:
    """Nothing recurses over steps. (The gradient, which walks them back, is run compiled.)"""
    x, a = numbers(20_000), np.array(0.5, np.float32)
    h = 0.0
    for e in x.astype(np.float64):
        h = np.tanh(h * 0.5 + e)
    near(run(walked, x, a), h, 1e-5)
    assert len(graph_of(lambda x, a: fl.grad(walked, 1)(x, a), x, a).stages) < 20
