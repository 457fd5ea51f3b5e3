"""fl.scan: carries and slices of every shape, what stays outside the recurrence, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from operator_running import graph_of, near, numbers, refusal, run, same


def cumsum(x: Any) -> Any:
    return fl.scan(lambda c, e: (c + e, c + e), fl.zeros((x.shape[1],)), x)


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_a_running_sum(steps: int) -> None:
    x = numbers(steps, 3)
    last, every = run(cumsum, x)
    near(every, np.cumsum(x, 0))
    near(last, x.sum(0))
    if steps:
        last, every = run(cumsum, x, symbolic=True)
        near(every, np.cumsum(x, 0))


def test_nests_of_carries_and_slices() -> None:
    def fibonacci(x: Any, y: Any) -> Any:
        def step(carry: Any, slices: Any) -> Any:
            a, b = carry["a"], carry["pair"][0]
            return {"a": b, "pair": [a + b + slices["x"] * slices["y"][0], carry["pair"][1]]}, (a, [b])

        return fl.scan(step, {"a": 0.0, "pair": [1.0, 5.0]}, {"x": x, "y": (y,)})

    x, y = numbers(6), numbers(6, seed=1)
    a, b, wanted = np.float32(0), np.float32(1), []
    for t in range(6):
        wanted.append((a, b))
        a, b = b, a + b + x[t] * y[t]
    last, (first, (second,)) = run(fibonacci, x, y)
    near(first, [w[0] for w in wanted])
    near(second, [w[1] for w in wanted])
    near(last["a"], a)
    near(last["pair"][0], b)
    near(last["pair"][1], np.float32(5))


def test_backward_and_along_another_axis() -> None:
    x = numbers(4, 6, 3)
    last, every = run(lambda x: fl.scan(lambda c, e: (c * 0.5 + e, c), fl.zeros((4, 3)), x, axis=1, reverse=True), x)
    c, wanted = np.zeros((4, 3), np.float32), np.zeros_like(x)
    for t in reversed(range(6)):
        wanted[:, t] = c
        c = c * np.float32(0.5) + x[:, t]
    near(every, wanted)
    near(last, c)
    last, every = run(lambda x: fl.scan(lambda c, e: (c + fl.sum(e), c), 0.0, x, axis=-1), x)
    near(last, x.sum(), 1e-5)
    assert every.shape == (3,)


def test_no_slices() -> None:
    def fn(x: Any) -> Any:
        last, every = fl.scan(lambda c, _: (c * 2, None), x, length=5)
        assert every is None
        return last

    near(run(fn, numbers(3)), numbers(3) * 32)


def test_what_depends_on_the_slices_only_is_outside_the_recurrence() -> None:
    def fn(x: Any, w: Any, u: Any) -> Any:
        def step(h: Any, e: Any) -> Any:
            h = fl.tanh(e @ w + h @ (u * 2))
            return h, fl.exp(h)

        return fl.scan(step, fl.zeros((3, 8)), x)

    g = graph_of(fn, numbers(5, 3, 4), numbers(4, 8), numbers(8, 8))
    stages = {s.path.split("/", 1)[1]: s for s in g.stages}
    assert {n for n, s in stages.items() if s.clock} == {"scan/matmul_2", "scan/add", "scan/tanh"}
    assert stages["scan/matmul"].axis_names == ("a", "i", "j") and stages["scan/exp"].axis_names[0] == "a"
    assert stages["scan/multiply"].axis_names == ("a", "b") and len(stages["scan/multiply"].axes) == 2  # u * 2, once
    x, w, u = numbers(5, 3, 4), numbers(4, 8), numbers(8, 8, seed=2)
    h, wanted = np.zeros((3, 8), np.float32), []
    for t in range(5):
        h = np.tanh(x[t] @ w + h @ (u * 2))
        wanted.append(np.exp(h))
    near(run(fn, x, w, u)[1], wanted, 1e-4)


def test_carries_that_do_not_meet_are_recurrences_of_their_own() -> None:
    def fn(x: Any) -> Any:
        return fl.scan(lambda c, e: ((c[0] + e, fl.maximum(c[1], e)), None), (fl.zeros(3), fl.zeros(3)), x)[0]

    g = graph_of(fn, numbers(5, 3))
    assert len({s.clock.group for s in g.stages if s.clock}) == 2
    total, most = run(fn, numbers(5, 3))
    near(total, numbers(5, 3).sum(0))
    same(most, np.maximum(numbers(5, 3).max(0), 0))


def test_carries_and_slices_as_they_are_and_constants() -> None:
    def fn(x: Any) -> Any:
        def step(carry: Any, e: Any) -> Any:
            kept, last, one = carry
            return (kept, e, fl.ones(3)), (e, last, kept, one, fl.ones(3) * 4)

        return fl.scan(step, (fl.full((3,), 7.0), fl.zeros(3), fl.zeros(3)), x)

    x = numbers(4, 3)
    (kept, last, one), (same_x, before, sevens, ones, fours) = run(fn, x)
    near(kept, np.full(3, 7))
    same(last, x[-1])
    near(one, np.ones(3))
    same(same_x, x)
    near(before, np.concatenate([np.zeros((1, 3)), x[:-1]]))
    near(sevens, np.full((4, 3), 7))
    near(ones, np.concatenate([np.zeros((1, 3)), np.ones((3, 3))]))
    near(fours, np.full((4, 3), 4))


def test_scans_inside_steps() -> None:
    def inner_over_slices(x: Any) -> Any:
        def step(c: Any, row: Any) -> Any:
            _, sums = fl.scan(lambda d, e: (d + e, d + e), 0.0, row)
            return c + sums, None

        return fl.scan(step, fl.zeros((4,)), x)[0]

    x = numbers(5, 4)
    near(run(inner_over_slices, x), np.cumsum(x, 1).sum(0), 1e-5)

    def inner_over_carry(x: Any) -> Any:
        return fl.scan(lambda c, e: (fl.scan(lambda d, k: (d + k, d), 0.0, c)[1] + e, None), fl.zeros((4,)), x)[0]

    c = np.zeros(4, np.float32)
    for row in x:
        c = np.cumsum(c, dtype=np.float32) - c + row
    near(run(inner_over_carry, x), c, 1e-5)


def test_loops_in_loops_carry_on() -> None:
    """The inner loop begins with what the outer step before it left, and the other way round."""

    def both(x: Any) -> Any:
        c, most = x[0, 0] * 0, 0.0
        for rows in x:
            for row in rows:
                c = c * 0.5 + row
                if fl.sum(c) > most:
                    most = fl.sum(c)
            c = fl.sin(c) * 2
        return c, most

    x = numbers(4, 3, 2)
    c, most = np.zeros(2, np.float32), np.float32(0)
    for rows in x:
        for row in rows:
            c = c * np.float32(0.5) + row
            most = max(most, c.sum())
        c = np.sin(c) * 2
    for symbolic in (False, True):
        got = run(both, x, symbolic=symbolic)
        near(got[0], c, 1e-5)
        near(got[1], most, 1e-5)
    model = fl.compile(fl.function(both), inputs={"x": fl.f32("n", "k", 2)})
    near(model(x)[0], c, 1e-5)


@pytest.mark.parametrize("reverse", [False, True])
def test_lengths(reverse: bool) -> None:
    def fn(x: Any, lengths: Any) -> Any:
        return fl.scan(lambda c, e: (c * 0.5 + e, c + 1), fl.zeros((3, 2)), x, reverse=reverse, lengths=lengths)

    x, lengths = numbers(5, 3, 2), np.array([5, 0, 3], np.int32)
    last, every = run(fn, x, lengths)
    for n, count in enumerate(lengths):
        c, wanted = np.zeros(2, np.float32), np.zeros((5, 2), np.float32)
        for t in reversed(range(count)) if reverse else range(count):
            wanted[t] = c + 1
            c = c * np.float32(0.5) + x[t, n]
        near(every[:, n], wanted)
        near(last[n], c)


@pytest.mark.parametrize(
    ("code", "fn"),
    [
        ("A164", lambda x: fl.scan(lambda c, e: c + e, fl.zeros(3), x)),
        ("A164", lambda x: fl.scan(lambda c, e: (c + fl.sum(e), None), fl.zeros(()), fl.cast(x, fl.f64))),
        ("A164", lambda x: fl.scan(lambda c, e: (e, None), 0.0, x)),
        ("A164", lambda x: fl.scan(lambda c, e: ((c, c), None), fl.zeros(3), x)),
        ("A165", lambda x: fl.scan(lambda c, e: (c, None), 0.0)),
        ("A165", lambda x: fl.scan(lambda c, e: (c, None), 0.0, [x, x[1:]])),
        ("A165", lambda x: fl.scan(lambda c, e: (c, None), 0.0, x, length=9)),
        ("A165", lambda x: fl.scan(lambda c, e: (c, None), 0.0, x, lengths=x)),
        ("A165", lambda x: fl.scan(lambda c, e: (c + 1, None), 0.0, x, lengths=[1, 2, 3])),
        ("A302", lambda x: fl.scan(lambda c, e: (c, None), 0.0, x, axis=2)),
    ],
)
def test_refusals(code: str, fn: Callable[..., Any]) -> None:
    problem = refusal(fn, numbers(5, 3))
    assert problem.code == code and problem.source.startswith("test_scan.py"), problem.text()


def test_tensors_of_a_step_do_not_leave_it() -> None:
    def leaks(what: str) -> Callable[..., Any]:
        def fn(x: Any) -> Any:
            held: dict[str, Any] = {}

            def step(c: Any, e: Any) -> Any:
                held.update(carry=c, slice=e, made=fl.exp(e), constant=fl.ones(3))
                return c + held["made"], None

            fl.scan(step, fl.zeros(3), x)
            return held[what] + 1

        return fn

    for what in ("carry", "slice", "made"):
        assert refusal(leaks(what), numbers(5, 3)).code == "A163"
    near(run(leaks("constant"), numbers(5, 3)), np.full(3, 2))


def test_paths() -> None:
    g = graph_of(lambda x: (cumsum(x), cumsum(x)), numbers(5, 3))
    assert {s.path.split("/", 1)[1] for s in g.stages} >= {"scan/add", "scan_2/add"}
