"""break and continue in loops of functions that fluorite traces, decided by tensors: what the same source does with NumPy's arrays."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from gradient_checks import check_gradient
from operator_running import graph_of, near, numbers, refusal, run

F32 = np.float32


def first_rows(x: Any, xp: Any = fl) -> Any:
    """Rows until one has a negative sum."""
    total = x[0] * 0
    for row in x:
        if xp.sum(row) < 0:
            break
        total = total + row
    return total


def positive_rows(x: Any, xp: Any = fl) -> Any:
    total = x[0] * 0
    for row in x:
        if xp.sum(row) < 0:
            continue
        scaled = row * 2
        total = total + scaled
    return total


def both(x: Any, xp: Any = fl) -> Any:
    total, seen = x[0] * 0, x[0, 0] * 0
    for row in x:
        seen = seen + 1
        if xp.max(row) > 0.9:
            if xp.min(row) < 0:
                continue
            total = total + 1
        elif xp.min(row) < -0.9:
            total = total - row
            if xp.sum(row) > 0:
                break
            total = total * 2
        else:
            continue
        total = total + row
    return total * seen


def otherwise(x: Any, xp: Any = fl) -> Any:
    total = x[0] * 0
    for row in x:
        if xp.sum(row) > -1:
            total = total + row
        else:
            break
        total = total * 0.5
    return total


def unrolled(x: Any, xp: Any = fl) -> Any:
    y = x
    for n in range(5):
        if xp.sum(y) > 3:
            break
        y = y + n
    return y


def nested(x: Any, xp: Any = fl) -> Any:
    count = x[0, 0] * 0
    for row in x:
        for value in row:
            if value < 0:
                break
            if value > 0.8:
                continue
            count = count + value
        if count > 2:
            break
    return count


def newton(x: Any, xp: Any = fl) -> Any:
    y, n = x, 0
    while n < 50:
        step = (y * y - 2) / (2 * y)
        y = y - step
        n = n + 1
        if xp.abs(step) < 1e-3:
            break
    return y, n


def for_ever(x: Any, xp: Any = fl) -> Any:
    y = x
    while True:
        y = y * 2
        if xp.sum(y) > 100:
            break
        y = y + 1
    return y


def counted(x: Any, xp: Any = fl) -> Any:
    y = x
    for n in itertools.count():
        if n == 3:
            break
        if n % 2:
            continue
        y = y + n + 1
    return y


def skipping(x: Any, xp: Any = fl) -> Any:
    y, n = x, 0
    while n < 6:
        n = n + 1
        if xp.sum(y) > n:
            continue
        y = y + 0.5
    return y


CASES: list[tuple[Callable[..., Any], int]] = [
    (first_rows, 2), (positive_rows, 2), (both, 2), (otherwise, 2), (unrolled, 1), (nested, 2), (newton, 0), (for_ever, 1), (counted, 1),
    (skipping, 1),
]  # fmt: skip


@pytest.mark.parametrize(("fn", "rank"), CASES, ids=[fn.__name__ for fn, _ in CASES])
def test_loops_are_left_as_python_leaves_them(fn: Callable[..., Any], rank: int) -> None:
    for seed in range(6):
        x = np.random.default_rng(seed).uniform(-1, 1.5, (7, 3, 1)[:rank] if rank < 2 else (6, 3)).astype(F32)
        x = np.abs(x) + F32(0.1) if rank < 2 else x
        wanted = fn(x, np)
        got = run(fn, x)
        for a, b in zip(*((v if isinstance(v, tuple) else (v,)) for v in (got, wanted)), strict=True):
            near(a, np.asarray(b, F32) if np.asarray(b).dtype.kind == "f" else np.asarray(b))


@pytest.mark.parametrize("fn", [first_rows, positive_rows, otherwise])
def test_what_is_left_out_has_no_derivative(fn: Callable[..., Any]) -> None:
    check_gradient(fl.function(fn), np.random.default_rng(4).uniform(-1, 1.5, (4, 3)))


def test_compiled() -> None:
    x = np.random.default_rng(1).uniform(-1, 1.5, (6, 3)).astype(F32)
    model = fl.compile(fl.function(both), inputs={"x": fl.f32("n", 3)})
    np.testing.assert_allclose(model(x), both(x, np), rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- return, with and else
def found_row(x: Any, xp: Any = fl) -> Any:
    total = 0.0
    for row in x:
        total = total + xp.sum(row)
        if xp.max(row) > 1:
            return row * 2 + total
    return x[0] * 0 - 1


def in_pairs(x: Any, xp: Any = fl) -> Any:
    for i, row in enumerate(x):
        if xp.max(row) > 0.5:
            if xp.min(row) < 0:
                return row, i
            row = row + 1
        if xp.sum(row) > 4:
            return row * 3, i + 100
    last = x[0]
    return last, -1


def out_of_two(x: Any, xp: Any = fl) -> Any:
    total = x[0, 0] * 0
    for row in x:
        for v in row:
            if v > 1.4:
                return total + v
            total = total + v
        if total > 5:
            return total * 10
    return total


def endless(x: Any, xp: Any = fl) -> Any:
    h = x[0] + 0
    while True:
        h = h * 1.5 + 0.1
        if xp.max(h) > 30:
            return h
        if xp.min(h) < -30:
            return h * 0


def unrolled(x: Any, xp: Any = fl) -> Any:
    for k in range(5):
        if xp.sum(x) * k > 3:
            return x * k
        if k == 3:
            return x - 1
    return x


def in_branches(x: Any, xp: Any = fl) -> Any:
    if xp.sum(x) > 3:
        for row in x:
            if xp.max(row) > 1:
                return row
        y = x[0] + 1
    else:
        y = x[0] + 2
    return y * 2


def in_withs(x: Any, xp: Any = fl) -> Any:
    total = x[0] * 0
    for row in x:
        with contextlib.nullcontext():
            if xp.sum(row) < 0:
                continue
            with contextlib.nullcontext():
                if xp.max(row) > 1.3:
                    break
                total = total + row
            total = total + 1
            if xp.sum(total) > 12:
                return total * 2
        total = total + 0.5
    return total


def with_else(x: Any, xp: Any = fl) -> Any:
    total = x[0] * 0
    for row in x:
        if xp.max(row) > 1.4:
            break
        if xp.min(row) < -0.9:
            return row
        total = total + row
    else:
        total = total * 10
    while xp.sum(total) < 8:
        total = total + 1
    else:
        total = total - 1
    return total


RETURNING = [found_row, in_pairs, out_of_two, endless, unrolled, in_branches, in_withs, with_else]


@pytest.mark.parametrize("fn", RETURNING, ids=lambda f: f.__name__)
def test_returns_withs_and_elses(fn: Callable[..., Any]) -> None:
    graphs = [graph_of(fn, np.ones((5, 3), F32), symbolic=symbolic) for symbolic in (False, True)]
    for seed in range(8):
        x = np.random.default_rng(seed).uniform(-1 + seed / 8, 1.5, (5, 3)).astype(F32)
        wanted = fn(x, np)
        for g in graphs:
            got = g.run(x)
            for a, b in zip(*((v if isinstance(v, tuple) else (v,)) for v in (got, wanted)), strict=True):
                near(np.asarray(a, np.float64), np.asarray(b, np.float64), 1e-5)


def test_returns_compiled_and_their_derivatives() -> None:
    def found(x: Any) -> Any:
        return fl.function(found_row)(x), fl.function(in_withs)(x)

    model = fl.compile(found, inputs={"x": fl.f32("n", 3)})
    for seed in range(3):
        x = np.random.default_rng(seed).uniform(-1, 1.5, (6, 3)).astype(F32)
        for got, wanted in zip(model(x), (found_row(x, np), in_withs(x, np)), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    check_gradient(fl.function(found_row), np.random.default_rng(4).uniform(-1, 1.5, (4, 3)))


# ---------------------------------------------------------------- refusals
def in_a_try(x: Any) -> Any:
    for row in x:
        try:
            if fl.sum(row) > 0:
                break
        finally:
            pass
    return x


def returned_in_a_try(x: Any) -> Any:
    for row in x:
        try:
            if fl.sum(row) > 0:
                return row
        finally:
            pass
    return x


def from_an_else(x: Any) -> Any:
    for row in x:
        for v in row:
            if v > 0:
                break
        else:
            break
    return x


def of_other_shapes(x: Any) -> Any:
    for row in x:
        if fl.sum(row) > 0:
            return row
    return x


def without_end(x: Any) -> Any:
    for _ in itertools.count():
        if fl.sum(x) > 0:
            break
    return x


@pytest.mark.parametrize(
    ("fn", "code"), [(in_a_try, "A411"), (returned_in_a_try, "A411"), (from_an_else, "A411"), (of_other_shapes, "A402")]
)
def test_what_cannot_be_told_is_refused(fn: Callable[..., Any], code: str) -> None:
    found = refusal(fn, numbers(4, 3))
    assert found.code == code and found.source.startswith("test_python_leaving.py:")


def test_an_endless_loop_that_only_a_tensor_leaves_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluorite.algo.python.flow._ENDLESS", 5)
    found = refusal(without_end, numbers(4))
    assert found.code == "A411" and "while True" in found.text()
