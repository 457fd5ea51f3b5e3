"""fl.cond and fl.switch: what is computed, what comes out, in loops and in one another, their gradients, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.interpreter import evaluate_stages
from gradient_checks import check_gradient
from operator_running import graph_of, near, numbers, refusal, run, same

Array = np.ndarray[Any, Any]


def either(x: Any, w: Any) -> Any:
    return fl.cond(fl.sum(x) > 0, lambda x: fl.tanh(x @ w), lambda x: (x * 2) @ (w * 3), x)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("n", [1, 2, 5, 17])
def test_the_branch_that_is_taken(n: int, sign: int) -> None:
    x, w = sign * np.abs(numbers(n, 7)), numbers(7, 3)
    wanted = np.tanh(x @ w) if sign > 0 else (x * 2) @ (w * 3)
    near(run(either, x, w), wanted, 1e-5)
    near(run(either, x, w, symbolic=True), wanted, 1e-5)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_other_branch_is_not_computed(sign: int) -> None:
    x, w = sign * np.abs(numbers(4, 7)), numbers(7, 3)
    g = graph_of(either, x, w)
    found = evaluate_stages(g, (x, w))
    for s in g.stages:
        if s.when is not None:
            assert ("/then/" in s.path) != ("/otherwise/" in s.path)
            assert found[s.id].any() == (("/then/" in s.path) == (sign > 0)), s.path


def test_nests_numbers_and_what_both_return_alike() -> None:
    def fn(x: Any) -> Any:
        return fl.cond(fl.all(x > 0), lambda: {"a": (x, 1.5), "b": [x, 2]}, lambda: {"a": (x + 1, 3), "b": [x, 2]})

    g = graph_of(fn, numbers(3))
    assert sum("result" in s.path for s in g.stages) == 3  # x and 2 come from both, but a method returns 2 as a tensor
    for x in (np.abs(numbers(3)), -np.abs(numbers(3))):
        found = run(fn, x)
        near(found["a"][0], x if x[0] > 0 else x + 1)
        assert found["a"][1] == (1.5 if x[0] > 0 else 3) and found["b"][1] == 2
        same(found["b"][0], x)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float64"])
def test_types(dtype: str) -> None:
    x = np.array([0, 1, 1, 0, 1]).astype(dtype)
    for n in (0, 4):
        p = np.array(n, np.int32)
        same(run(lambda x, p: fl.cond(p > 2, lambda: x[1:], lambda: x[:-1]), x, p), x[1:] if n else x[:-1])


def test_python_values_decide_at_once() -> None:
    g = graph_of(lambda x: fl.cond(True, lambda x: x + 1, lambda x: x[0], x), numbers(3))
    assert [s.path.rsplit("/", 1)[1] for s in g.stages] == ["add"]
    g = graph_of(lambda x: fl.switch(7, [lambda x: x, lambda x: x + 1], x), numbers(3))
    assert [s.path.rsplit("/", 1)[1] for s in g.stages] == ["add"]


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 3, 9])
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_switch(index: int, dtype: str) -> None:
    if index < 0 and dtype == "uint8":
        return
    x = numbers(4)

    def fn(x: Any, i: Any) -> Any:
        return fl.switch(i, [lambda x: x + 1, lambda x: x * x, fl.exp, fl.negative], x)

    wanted = [x + 1, x * x, np.exp(x), -x][min(max(index, 0), 3)]
    near(run(fn, x, np.array(index, dtype)), wanted)
    one = fl.trace(lambda x, i: fl.switch(i, [fl.exp], x), inputs={"x": fl.f32(4), "i": fl.i32()})
    assert not any(s.when is not None for s in one.stages)


def nested(x: Any) -> Any:
    def outer(x: Any) -> Any:
        y = fl.exp(x)
        return fl.cond(fl.sum(y) > 4, lambda: y * fl.log(y), lambda: y + x)

    return fl.cond(fl.max(x) > 0, outer, lambda x: fl.cond(fl.min(x) < -1, lambda: x * 3, lambda: x * x), x)


NESTED = [np.array(v, np.float32) for v in ([2, 1, 0], [0.1, -1, -1], [-0.5, -2, -1], [-0.5, -0.1, -0.2])]


@pytest.mark.parametrize("x", NESTED)
def test_branches_in_branches(x: Array) -> None:
    y = np.exp(x)
    wanted = (y * np.log(y) if y.sum() > 4 else y + x) if x.max() > 0 else (x * 3 if x.min() < -1 else x * x)
    near(run(nested, x), wanted, 1e-6)
    g = graph_of(nested, x)
    inner = next(s for s in g.stages if "then/cond/then" in s.path)
    assert len({r.source for r in inner.reads}) >= 3 and "&" in inner.text()


def in_a_scan(x: Any) -> Any:
    def step(h: Any, e: Any) -> Any:
        big = fl.sum(h * e) > 0
        h = fl.cond(big, lambda: fl.tanh(h + e), lambda: h * 0.5 - fl.exp(e))
        return h, fl.cond(fl.sum(e) > 0, lambda: fl.exp(e), lambda: h)

    return fl.scan(step, fl.ones((x.shape[1],), dtype=x.dtype), x)


def scanned(x: Array) -> tuple[Array, Array]:
    h, every = np.ones(x.shape[1], x.dtype), []
    for e in x:
        h = np.tanh(h + e) if (h * e).sum() > 0 else h * x.dtype.type(0.5) - np.exp(e)
        every.append(np.exp(e) if e.sum() > 0 else h)
    return h, np.array(every)


@pytest.mark.parametrize("steps", [1, 2, 9])
def test_in_the_step_of_a_scan(steps: int) -> None:
    x = numbers(steps, 3)
    last, every = run(in_a_scan, x)
    near(last, scanned(x)[0], 1e-5)
    near(every, scanned(x)[1], 1e-5)


def around_a_scan(x: Any) -> Any:
    def walk(x: Any) -> Any:
        return fl.scan(lambda h, e: (fl.tanh(h * 0.5 + e), h), fl.zeros(x.shape[1], dtype=x.dtype), x)

    return fl.cond(fl.sum(x) > 0, walk, lambda x: (fl.sum(x, 0), fl.exp(x)), x)


@pytest.mark.parametrize("sign", [1, -1])
def test_around_a_scan(sign: int) -> None:
    x = sign * np.abs(numbers(5, 3))
    last, every = run(around_a_scan, x)
    if sign < 0:
        near(last, x.sum(0))
        near(every, np.exp(x))
    else:
        h = np.zeros(3, np.float32)
        for t in range(5):
            near(every[t], h, 1e-6)
            h = np.tanh(h * np.float32(0.5) + x[t])
        near(last, h, 1e-6)


# ---------------------------------------------------------------- gradients
def doubles(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("sign", [1, -1])
def test_gradients_are_conditional_too(sign: int) -> None:
    x, w = sign * np.abs(doubles(4, 3)), doubles(3, 3, seed=1)
    g = check_gradient(either, x, w)
    derived = [s for s in g.stages if s.role == "gradient"]
    assert any(s.when is not None and s.reduction is not None for s in derived)
    assert all(s.when is not None for s in derived if s.reduction is not None), g.text()
    assert all(n.find("/from/") < 0 or s.when is not None for s in derived for n in [s.path])


def test_no_nan_comes_from_the_other_branch() -> None:
    def fn(x: Any) -> Any:
        return fl.cond(fl.min(x) > 0, lambda: fl.log(x), lambda: x * 2)

    g = fl.trace(fl.grad(lambda x: fl.sum(fn(x))), inputs={"x": fl.f32(3)})
    near(g.run(np.array([-1, 2, 0], np.float32)), np.full(3, 2))
    near(g.run(np.array([1, 2, 4], np.float32)), [1, 0.5, 0.25])


@pytest.mark.parametrize("x", NESTED)
def test_gradients_of_branches_in_branches(x: Array) -> None:
    check_gradient(nested, x.astype(np.float64))


def test_gradients_in_and_around_scans() -> None:
    for seed in range(3):
        check_gradient(in_a_scan, doubles(6, 3, seed=seed))
    for sign in (1, -1):
        check_gradient(around_a_scan, sign * np.abs(doubles(5, 3)))


def test_gradient_of_switch_and_of_a_gradient() -> None:
    def fn(x: Any, i: Any) -> Any:
        return fl.switch(i, [lambda x: x**3, lambda x: fl.sum(x) * fl.exp(x), lambda x: x], x)

    for k in range(3):
        check_gradient(fn, doubles(4), np.array(k, np.int32))
        check_gradient(fl.grad(lambda x, i: fl.sum(fn(x, i) ** 2)), doubles(4), np.array(k, np.int32))
    for sign in (1, -1):
        x, w = sign * np.abs(doubles(3, 3)), doubles(3, 3, seed=1)
        check_gradient(fl.grad(lambda x, w: fl.sum(either(x, w) ** 2), (0, 1)), x, w)


def test_a_gradient_inside_a_branch() -> None:
    def fn(x: Any) -> Any:
        return fl.cond(fl.sum(x) > 0, fl.grad(lambda x: fl.sum(fl.exp(x) * x)), lambda x: x, x)

    g = graph_of(fn, numbers(3))
    assert all(s.when is not None for s in g.stages if s.role == "gradient")
    for x in (np.abs(numbers(3)), -np.abs(numbers(3))):
        near(run(fn, x), np.exp(x) * (1 + x) if x[0] > 0 else x, 1e-5)
        check_gradient(fn, x.astype(np.float64))


@pytest.mark.parametrize("sign", [1, -1])
def test_tangents_and_batches(sign: int) -> None:
    x, w = sign * np.abs(doubles(4, 3)), doubles(3, 3, seed=1)
    dx, dw = doubles(4, 3, seed=2), doubles(3, 3, seed=3)
    g = fl.trace(
        lambda x, w, dx, dw: fl.jvp(either, (x, w), (dx, dw))[1],
        inputs={k: fl.Spec("float64", (None, None), v.shape) for k, v in {"x": x, "w": w, "dx": dx, "dw": dw}.items()},
    )
    assert any(s.when is not None and "/tangent/" in s.path for s in g.stages)
    f, step = graph_of(either, x, w), 1e-6
    numeric = (f.run(x + step * dx, w + step * dw) - f.run(x - step * dx, w - step * dw)) / (2 * step)
    near(g.run(x, w, dx, dw), numeric, 1e-6)

    def one(x: Any) -> Any:
        return fl.cond(fl.sum(x) > 0, lambda: fl.exp(x), lambda: x * 2)

    many = doubles(5, 3)
    near(run(lambda x: fl.vmap(one)(x), many), np.where(many.sum(1, keepdims=True) > 0, np.exp(many), many * 2))
    check_gradient(fl.vmap(one), many)


def test_a_rule_of_ones_own_inside_a_branch() -> None:
    twice = fl.custom_vjp(lambda x: x * 2, lambda x: (x * 2, x), lambda x, g: (g * fl.exp(x),))

    def fn(x: Any) -> Any:
        return fl.sum(fl.cond(fl.sum(x) > 0, lambda x: twice(x * 3), lambda x: x, x))

    g = fl.trace(fl.grad(fn), inputs={"x": fl.f32(3)})
    for x in (np.abs(numbers(3)), -np.abs(numbers(3))):
        near(g.run(x), 3 * np.exp(3 * x) if x[0] > 0 else np.ones(3), 1e-5)


# ---------------------------------------------------------------- refusals
def escaping(x: Any) -> Any:
    kept = []
    fl.cond(fl.sum(x) > 0, lambda: kept.append(fl.exp(x)) or x, lambda: x)  # type: ignore[func-returns-value]
    return kept[0] + 1


@pytest.mark.parametrize(
    ("code", "fn"),
    [
        ("A401", lambda x: fl.cond(x > 0, lambda: x, lambda: x)),
        ("A401", lambda x: fl.cond(fl.sum(x), lambda: x, lambda: x)),
        ("A401", lambda x: fl.switch(fl.sum(x), [lambda: x, lambda: x])),
        ("A401", lambda x: fl.switch(fl.sum(x), [])),
        ("A401", lambda x: fl.stage(lambda i: fl.cond(x[i] > 0, lambda: x[i], lambda: 0))),
        ("A402", lambda x: fl.cond(fl.sum(x) > 0, lambda: x, lambda: x[1:])),
        ("A402", lambda x: fl.cond(fl.sum(x) > 0, lambda: x, lambda: fl.cast(x, fl.f64))),
        ("A402", lambda x: fl.cond(fl.sum(x) > 0, lambda: x, lambda: 0.0)),
        ("A402", lambda x: fl.cond(fl.sum(x) > 0, lambda: (x, x), lambda: [x, x])),
        ("A402", lambda x: fl.cond(fl.sum(x) > 0, lambda: x, lambda: None)),
        ("A402", lambda x: fl.cond(fl.sum(x) > 0, lambda: fl.edge(x), lambda: x)),
        ("A311", lambda x: fl.cond(fl.sum(x) > 0, lambda: "x", lambda: x)),
        ("A403", escaping),
    ],
)
def test_refusals(code: str, fn: Callable[..., Any]) -> None:
    found = refusal(fn, numbers(3))
    assert found.code == code and found.why and found.source, found.text()
    assert found.source.startswith("test_cond.py:")
