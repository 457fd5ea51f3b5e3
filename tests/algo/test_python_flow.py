"""if, for, while, and, or, not and conditional expressions of Python on tensors, in functions that fluorite traces."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.python import converted
from gradient_checks import check_gradient
from operator_running import graph_of, near, numbers, refusal, run, same

Array = np.ndarray[Any, Any]


def doubles(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


# ---------------------------------------------------------------- if
def chosen(x: Any) -> Any:
    scale = 2.0
    if fl.sum(x) > 0:
        y = fl.exp(x)
        z = scale
    elif fl.max(x) > 0:
        y = x * scale
        z = 3
    else:
        y = x
        z = scale
    return y * z


@pytest.mark.parametrize("x", [[1, 1, 1], [-5, 1, 0], [-1, -2, -3]])
def test_if_elif_else(x: list[int]) -> None:
    v = np.array(x, np.float32)
    wanted = np.exp(v) * 2 if v.sum() > 0 else v * 2 * 3 if v.max() > 0 else v * 2
    near(run(chosen, v), wanted)
    check_gradient(fl.function(chosen), v.astype(np.float64))
    g = graph_of(chosen, v)
    assert sum(s.when is not None for s in g.stages) >= 3


def early(x: Any, deep: bool = True) -> Any:
    if deep is False:
        return x
    if fl.sum(x) > 10:
        return fl.exp(x)
    y = x + 1
    if fl.max(y) > 2:
        if fl.min(y) > 0:
            return y * 2
        y = y * 3
    else:
        y = y - 1
    return y / 2


@pytest.mark.parametrize("x", [[5, 5, 5], [3, 1, 0], [3, 1, -4], [0, 0, 0]])
def test_returns_in_branches(x: list[int]) -> None:
    v = np.array(x, np.float32)
    y = v + 1
    if v.sum() > 10:
        wanted = np.exp(v)
    elif y.max() > 2:
        wanted = y * 2 if y.min() > 0 else y * 3 / 2
    else:
        wanted = (y - 1) / 2
    near(run(early, v), wanted)
    same(run(lambda x: early(x, False), v), v)


def test_the_line_of_a_stage_is_the_users() -> None:
    g = graph_of(chosen, numbers(3))
    first = chosen.__code__.co_firstlineno
    lines = {s.path.rsplit("/", 1)[1]: s.source for s in g.stages}
    assert lines["exp"] == f"test_python_flow.py:{first + 3}"
    assert {s.source for s in g.stages if s.path.endswith("cond/result")} == {f"test_python_flow.py:{first + k}" for k in (2, 5)}


def test_expressions() -> None:
    def fn(x: Any, p: Any, q: Any) -> Any:
        a = x if p else x + 1
        b = 1 if p and not q else 2
        c = x * 2 if (p or q) and fl.sum(x) > -100 else x * 3
        d = 5 if -100 < fl.sum(x) < 0 < 1 else 7
        e = "text" if x.ndim == 1 else None
        nothing, zero = None, 0
        assert e == "text" and (nothing or "x") == "x" and (zero and p) == 0
        return a, b, c, d

    x = numbers(3)
    for p in (True, False):
        for q in (True, False):
            a, b, c, d = run(fn, x, np.array(p), np.array(q))
            near(a, x if p else x + 1)
            near(c, x * 2 if p or q else x * 3)
            assert b == (1 if p and not q else 2) and d == (5 if x.sum() < 0 else 7)


# ---------------------------------------------------------------- for
def rows(x: Any) -> Any:
    total = 0
    largest = fl.zeros(x.shape[1], dtype=x.dtype)
    count = 0
    for row in x:
        part = row * row
        total = total + part
        if fl.sum(row) > 0:
            largest = fl.maximum(largest, part)
            count += 1
    return total, largest, count


@pytest.mark.parametrize("n", [1, 2, 7])
def test_for_over_a_tensor_is_a_scan(n: int) -> None:
    x = numbers(n, 3)
    total, largest, count = run(rows, x)
    taken = [row * row for row in x if row.sum() > 0]
    near(total, (x * x).sum(0), 1e-5)
    near(largest, np.max([np.zeros(3, np.float32), *taken], 0))
    assert count == len(taken)
    assert n == 1 or any(s.clock is not None for s in graph_of(rows, x).stages)
    check_gradient(lambda x: fl.function(rows)(x)[:2], doubles(n, 3))


def test_for_over_ranges_of_symbolic_extents_enumerate_and_zip() -> None:
    def fn(x: Any, y: Any) -> Any:
        a = 0
        for i in range(x.shape[0]):
            a = a + fl.cast(i, x.dtype) * x[i]
        b = 0.0
        for i in range(1, x.shape[0]):
            b = b + x[i] * x[i - 1]
        c = 0
        for i, (u, v) in enumerate(zip(x, y)):  # noqa: B905
            c = c + u * v + fl.cast(i, x.dtype)
        d = 0
        for k, row in enumerate([x, y]):
            d = d + row * (k + 1)
        return a, b, c, d

    x, y = numbers(5), numbers(5, seed=1)
    a, b, c, d = run(fn, x, y, symbolic=True)
    near(a, (np.arange(5) * x).sum(), 1e-5)
    near(b, (x[1:] * x[:-1]).sum(), 1e-5)
    near(c, (x * y).sum() + 10, 1e-5)
    near(d, x + 2 * y, 1e-5)


def test_python_loops_unroll() -> None:
    def fn(x: Any) -> Any:
        parts = []
        for k in range(10):
            if k == 5:
                break
            if k % 2:
                continue
            parts.append(x * k)
        else:
            parts.append(None)
        n = 0
        while n < 3:
            n += 1
            x = x + 1
        for name in ("a", "b"):
            if name == "b":
                return parts, x, n

    parts, x, n = run(fn, numbers(3))
    assert len(parts) == 3 and n == 3
    near(parts[2], numbers(3) * 4)
    near(x, numbers(3) + 3)


# ---------------------------------------------------------------- how functions are built
def around(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return call


class Base(fl.Program):
    def scaled(self, x: Any) -> Any:
        return x * self.factor

    factor = 2.0


class Model(Base):
    """A private attribute, super(), defaults, keyword-only arguments, and a function inside."""

    def __init__(self) -> None:
        self.__secret = 3.0
        self.w = fl.param(n=3, init=np.ones(3, np.float32))

    def scaled(self, x: Any) -> Any:
        return x

    @fl.method
    def run(self, x: fl.f32[fl.Tensor, 3], *, k: Any = 2) -> Any:
        total: Any = 0

        def twice(v: Any, by: float = 2.0) -> Any:
            nonlocal total
            if fl.sum(v) > 0:
                v = v * by
                total = total + 1
            return v

        y = x
        if fl.sum(x) > -100:
            y = super().scaled(x) * self.__secret + self.w
        z = fl.stage(lambda i: fl.where(y[i] > 0, y[i], 0))
        return twice(z) * k, total


def test_methods_closures_defaults_super_and_private_names() -> None:
    x = np.array([1, -1, 0.5], np.float32)
    got, total = fl.trace(Model()).run(x)
    near(got, np.maximum(x * 6 + 1, 0) * 4)
    assert total == 1


def test_what_needs_no_rewriting_is_left_alone() -> None:
    def plain(x: Any) -> Any:
        return fl.stage(lambda i: x[i] if True else 0)

    assert converted(plain) is plain
    assert converted(len) is len
    made: dict[str, Any] = {}
    exec("def unseen(x):\n    if x.ndim == 1:\n        return x + 1\n    return x\n", {}, made)
    assert converted(made["unseen"]) is made["unseen"]
    near(run(made["unseen"], numbers(3)), numbers(3) + 1)
    fn = around(chosen)
    near(run(lambda x: fl.function(chosen)(x), np.ones(3, np.float32)), np.exp(np.ones(3)) * 2)
    assert converted(fn).__name__ == "chosen"


def test_recursion_and_globals() -> None:
    near(run(lambda x: fl.function(power)(x, 5), numbers(3)), numbers(3) ** 5, 1e-5)


def power(x: Any, n: int) -> Any:
    if n == 0:
        return 1.0
    half = power(x, n // 2)
    return half * half * (x if n % 2 else 1)


def test_functions_that_decorated_ones_call_are_not_rewritten_unless_decorated() -> None:
    def helper(x: Any) -> Any:
        if fl.sum(x) > 0:
            return x
        return -x

    def fn(x: Any) -> Any:
        return helper(x)

    assert refusal(fn, numbers(3)).code == "A102"
    near(run(lambda x: fl.function(helper)(x), -np.ones(3, np.float32)), np.ones(3))


# ---------------------------------------------------------------- refusals
def one_branch(x: Any) -> Any:
    if fl.sum(x) > 0:
        y = x
    return y + 1  # type: ignore[possibly-undefined]


def after_loop(x: Any) -> Any:
    for row in x:
        y = row
    return y * 2  # type: ignore[possibly-undefined]


def in_a_with(x: Any) -> Any:
    with fl.scope("a"):
        if fl.sum(x) > 0:
            return x
    return x + 1


def grows(x: Any) -> Any:
    y = x[:1]
    for _ in x:
        y = fl.concatenate([y, y])
    return y


def objects(x: Any) -> Any:
    layer = "a"
    if fl.sum(x) > 0:
        layer = "b"
    return x, layer


def appended(x: Any) -> Any:
    out = []
    for row in x:
        out.append(row * 2)
    return out


def nested_types(x: Any) -> Any:
    mode: Any = "first"
    for row in x:
        mode = row
    return mode


def many(x: Any) -> Any:
    if x > 0:
        return x
    return -x


def in_a_comprehension(x: Any) -> Any:
    return [x for _ in range(3) if fl.sum(x) > 0]


def by_tensor(x: Any) -> Any:
    for _ in range(fl.argmax(x)):
        pass
    return x


@pytest.mark.parametrize(
    ("code", "fn", "line", "rank"),
    [
        ("A413", one_branch, 3, 1),
        ("A413", after_loop, 3, 2),
        ("A411", in_a_with, 2, 1),
        ("A415", grows, 3, 1),
        ("A412", objects, 2, 1),
        ("A163", appended, None, 2),
        ("A415", nested_types, 3, 2),
        ("A401", many, 1, 1),
        ("A102", in_a_comprehension, 1, 1),
        ("A414", by_tensor, 1, 1),
    ],
)
def test_refusals(code: str, fn: Callable[..., Any], line: int | None, rank: int) -> None:
    found = refusal(fn, numbers(*[4] * rank))
    assert found.code == code and found.why, found.text()
    if line is not None:
        place = fn.__code__.co_firstlineno + line
        assert found.source in (f"test_python_flow.py:{place}", f"test_python_flow.py:{place - 1}", f"test_python_flow.py:{place - 2}"), (
            found.text()
        )
