"""Derivatives of scans that are loops, inside steps of scans and in batches: against slopes of the interpreter's values, in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from operator_running import refusal
from test_turning import F64, doubles, inner, newton

Array = np.ndarray[Any, Any]


def turning(rows: Any, w: Any, start: Any) -> Any:
    """A loop: every step of the outer scan begins with what the inner one left."""
    return fl.scan(lambda d, r: (inner(d, r, w), d * 2), start, rows)


def ones() -> Any:
    return fl.ones((2,), dtype=F64)


def captured(x: Any, w: Any) -> Any:
    """In a step that has a carry: what the loop reads of that step, beside the carry and from outside, and twice by another name."""
    double = w * 2

    def step(c: Any, planes: Any) -> Any:
        m, start = fl.mean(planes[0]), c * planes[0, 1]
        last, every = fl.scan(lambda d, r: (inner(d, r, w * m + double) * planes[0, 0] + w[0], d), start, planes)
        w_ = fl.sum(every)
        return fl.tanh(c + planes[0, 0]), last + w_

    last, every = fl.scan(step, ones(), x, reverse=True)
    return fl.sum(last) + fl.sum(every * every)


def batched(x: Any, w: Any) -> Any:
    """In a batch of batches."""

    def one(planes: Any) -> Any:
        q = fl.sum(planes)
        return fl.vmap(lambda rows: turning(fl.stack([rows, rows + q]), w * q, ones()), in_axes=1)(planes)

    last, every = fl.vmap(one)(x)
    return fl.sum(fl.sin(last)) + fl.sum(every * every)


def chosen(x: Any, w: Any) -> Any:
    """In a branch that some steps take."""

    def step(c: Any, planes: Any) -> Any:
        v = planes[0, 0] * 2
        found = fl.cond(planes[0, 0, 0] > 0, lambda: turning(planes, w, ones() * v)[0] * v, lambda: v)
        return c + fl.sum(found), found

    last, every = fl.scan(step, fl.zeros((), dtype=F64), x)
    return last + fl.sum(every * every)


def nests(x: Any, w: Any) -> Any:
    """Dicts and lists, numbers that count, several lengths, from the last step."""

    def step(c: Any, planes: Any) -> Any:
        def again(d: Any, rows: Any) -> Any:
            h = fl.scan(lambda e, r: (fl.tanh(e * w[0] + r), None), d["h"], fl.stack([rows, rows * 2]))[0]
            return {"h": h * (c["n"] + 1), "k": [d["k"][0] + 1]}, {"y": h * fl.cast(d["k"][0], F64)[:, None], "k": (d["k"][0],)}

        init = {"h": fl.ones((2, 2), dtype=F64), "k": [fl.zeros((2,), dtype=fl.i32)]}
        last, every = fl.scan(again, init, planes, reverse=True, lengths=fl.cast(fl.arange(1, 3), fl.i32))
        return {"n": c["n"] * 0.9, "s": c["s"] + fl.sum(last["h"] * fl.cast(last["k"][0], F64)[:, None])}, every["y"]

    last, every = fl.scan(step, {"n": fl.ones((), dtype=F64), "s": fl.zeros((), dtype=F64)}, x)
    return last["s"] + fl.sum(every * every)


def ruled(x: Any, w: Any) -> Any:
    """A while_loop that has a rule, in the step of a loop, in that of a scan."""
    every = fl.scan(lambda c, p: (c, fl.scan(lambda h, r: (y := newton(h, r * w[0, 0]), y), fl.zeros((2, 2), dtype=F64), p)[1]), (), x)[1]
    return fl.sum(fl.sin(every))


def stepped(x: Any, w: Any) -> Any:
    """A gradient in each step, of which there is one again."""

    def step(w: Any, planes: Any) -> Any:
        return w - 0.1 * fl.grad(lambda w: fl.sum(turning(planes, w, ones())[0]))(w), None

    return fl.sum(fl.square(fl.scan(step, w, x)[0]))


@fl.function
def python(x: Any, w: Any) -> Any:
    """Python's own loops, whose variables are others after the loop."""
    total = fl.zeros((), dtype=F64)
    for planes in x:
        d = ones()
        for rows in planes:
            for r in rows:
                d = fl.tanh(d @ w + r * planes[0, 0])
            d = fl.sin(d)
        total = total + fl.sum(d)
    w = w * 0
    return total + fl.sum(w)


def declared(fn: Callable[..., Any], x: Array, w: Array) -> fl.Graph:
    specs = {n: fl.Spec("float64", tuple(f"{n}{d}" for d in range(a.ndim)), a.shape) for n, a in (("x", x), ("w", w))}
    return fl.trace(fn, inputs=specs)


def agree(value: Callable[..., Any], found: Sequence[Array], args: tuple[Array, ...]) -> None:
    """Slopes along some directions of each argument are what the derivatives say."""
    generator = np.random.default_rng(0)
    for k, g in enumerate(found):
        assert np.abs(g).max() > 1e-3
        for _ in range(2):
            u = generator.normal(size=g.shape)
            ahead, behind = (value(*(a + h * u if n == k else a for n, a in enumerate(args))) for h in (1e-5, -1e-5))
            np.testing.assert_allclose(np.sum(g * u), (ahead - behind) / 2e-5, rtol=1e-5, atol=1e-6 * np.abs(g).max())


@pytest.mark.parametrize("fn", [captured, batched, chosen, nests, ruled, stepped, python], ids=lambda f: f.__name__)
def test_by_what_is_walked_and_by_weights(fn: Any) -> None:
    x, w = doubles(2, 3, 2, 2), doubles(2, 2)
    x[1, 0, 0, 0] = 0.3  # one example above 0, and one below
    value, g = declared(lambda x, w: fn(x, w), x, w), declared(fl.grad(lambda x, w: fn(x, w), argnums=(0, 1)), x, w)
    agree(value.run, g.run(x, w), (x, w))


@pytest.mark.parametrize("fn", [chosen, batched], ids=lambda f: f.__name__)
def test_of_a_derivative(fn: Any) -> None:
    x, w = doubles(2, 2, 2, 2) / 2, doubles(2, 2) / 2
    x[1, 0, 0, 0] = 0.3

    def size(x: Any, w: Any) -> Any:
        return sum(fl.sum(fl.sin(g)) for g in fl.grad(fn, argnums=(0, 1))(x, w))

    value, g = declared(size, x, w), declared(fl.grad(size, argnums=(0, 1)), x, w)
    agree(value.run, g.run(x, w), (x, w))


def test_compiled() -> None:
    """Of an example that takes no branch there is nothing in what arrives."""
    x, w = doubles(2, 3, 2, 2), doubles(2, 2)
    x[1, 0, 0, 0] = 0.3

    def both(x: Any, w: Any) -> Any:
        return chosen(x, w) + captured(x, w)

    g = declared(fl.grad(both, argnums=(0, 1)), x, w)
    for found, meant in zip(fl.compile(g)(x, w), g.run(x, w), strict=True):
        np.testing.assert_allclose(found, meant, rtol=1e-11, atol=1e-12 * np.abs(meant).max())


class Held(fl.Program):
    """Parameters are read in the step, and random numbers drawn."""

    def __init__(self) -> None:
        self.w = fl.param(shape=(2,), dtype=F64, init=1.3)

    def loss(self, x: Any, noise: bool) -> Any:
        def outer(c: Any, rows: Any) -> Any:
            d, _ = fl.scan(lambda d, r: (fl.tanh(d * self.w + r), None), c, rows)
            return (d * fl.cast(fl.random.normal((2,)), F64) if noise else fl.sin(d)), None

        return fl.sum(fl.scan(outer, ones(), x)[0])

    @fl.method
    def by_weights(self, x: fl.f64[fl.Tensor, 3, 2, 2]) -> Any:
        return fl.value_and_grad(lambda p: p.loss(x, False))(self)

    @fl.method
    def drawing(self, x: fl.f64[fl.Tensor, 3, 2, 2]) -> Any:
        return fl.value_and_grad(lambda x: self.loss(x, True))(x)


def test_the_steps_once_more_mean_what_they_meant() -> None:
    """The parameters by which is derived, and the random numbers of the way forward."""
    x = doubles(3, 2, 2)
    g = fl.trace(Held())
    weights = {"w": np.full(2, 1.3), "random/key": np.array([3, 4], np.uint32), "random/calls": np.int32(0)}

    def value(method: str, x: Array, w: Array) -> Any:
        return g.run(x, method=method, parameters={**weights, "w": w})[0]

    found = g.run(x, method="by_weights", parameters=weights)[1]["w"]
    agree(lambda w: value("by_weights", x, w), [found], (weights["w"],))
    found = g.run(x, method="drawing", parameters=weights)[1]
    agree(lambda x: value("drawing", x, weights["w"]), [found], (x,))


def test_forward_mode_is_refused_with_what_has_one() -> None:
    def tangent(x: Any) -> Any:
        return fl.jvp(lambda x: fl.scan(lambda c, r: (inner(c, r, fl.eye(2)), None), fl.zeros((2,)), x)[0], (x,), (x,))[1]

    found = refusal(tangent, doubles(3, 2, 2).astype(np.float32))
    assert found.code == "A171" and "fl.scan" in found.text() and "fl.vjp" in found.text() and found.source
