"""Derivatives of scans that are loops over their steps: against slopes of NumPy's loops, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
from fluorite.algo.autodiff.pullbacks import Derivative, derivative
from fluorite.algo.autodiff.slopes import Point

Array = np.ndarray[Any, Any]
F64 = fl.f64


def slopes(fn: Callable[..., Any], args: tuple[Array, ...], k: int) -> Array:
    found = np.zeros_like(args[k])
    for i in np.ndindex(*found.shape):
        sides = []
        for h in (1e-6, -1e-6):
            given = [a.copy() for a in args]
            given[k][i] += h
            sides.append(fn(*given))
        found[i] = (sides[0] - sides[1]) / 2e-6
    return found


def doubles(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(size=shape)


def inner(c: Any, rows: Any, w: Any) -> Any:
    return fl.scan(lambda d, r: (fl.tanh(d @ w + r), None), c, rows)[0]


def stacked(x: fl.f64[fl.Tensor, 4, "k", 2], w: fl.f64[fl.Tensor, 2, 2]) -> Any:
    """The inner scan begins with what the outer one carries; what it stacks counts, and weights are read from outside."""

    def outer(c: Any, rows: Any) -> Any:
        c = fl.sin(inner(c, rows, w)) * 2
        return c, c * c

    last, every = fl.scan(outer, fl.zeros_like(x[0, 0]), x)
    return fl.sum(last) + fl.sum(every * fl.cast(fl.arange(1, 5), F64)[:, None])


def stacked_by_numpy(x: Array, w: Array) -> Any:
    c, total = np.zeros(2), 0.0
    for n, rows in enumerate(x):
        for row in rows:
            c = np.tanh(c @ w + row)
        c = np.sin(c) * 2
        total += (c * c).sum() * (n + 1)
    return c.sum() + total


def test_by_what_is_walked_and_by_weights() -> None:
    x, w = doubles(4, 3, 2), doubles(2, 2)
    g = fl.trace(fl.grad(stacked, argnums=(0, 1)))
    model = fl.compile(g)
    for size in (1, 3):
        args = (x[:, :size], w)
        found, compiled = g.run(*args), model(*args)
        for k in range(2):
            np.testing.assert_allclose(found[k], slopes(stacked_by_numpy, args, k), rtol=1e-6, atol=1e-7)
            np.testing.assert_allclose(compiled[k], found[k], rtol=1e-12, atol=1e-13)


def ragged(x: fl.f64[fl.Tensor, 3, "t", "k", 2], w: fl.f64[fl.Tensor, 2], lengths: fl.i32[fl.Tensor, 3]) -> Any:
    """From the last step, a batch of several lengths, and a carry that counts."""

    def outer(c: Any, rows: Any) -> Any:
        d, _ = fl.scan(lambda d, r: (fl.tanh(d * w + r), None), c["h"], rows, axis=1)
        return {"h": fl.sin(d) * 2, "n": c["n"] + 1}, {"y": d * d, "n": c["n"]}

    init = {"h": fl.zeros((3, 2), dtype=F64), "n": fl.zeros((3,), dtype=fl.i32)}
    last, every = fl.scan(outer, init, x, axis=1, reverse=True, lengths=lengths)
    return fl.sum(last["h"]) + fl.sum(every["y"] * fl.cast(every["n"] + 1, F64)[..., None])


def ragged_by_numpy(x: Array, w: Array, lengths: Array) -> Any:
    total = 0.0
    for rows, length in zip(x, lengths, strict=True):
        h, n = np.zeros(2), 0
        for t in reversed(range(length)):
            for row in rows[t]:
                h = np.tanh(h * w + row)
            total += (h * h).sum() * (n + 1)
            h, n = np.sin(h) * 2, n + 1
        total += h.sum()
    return total


def test_lengths_the_other_way_and_carries_that_are_no_floats() -> None:
    args = doubles(3, 4, 2, 2), doubles(2), np.array([4, 0, 2], np.int32)
    np.testing.assert_allclose(fl.trace(ragged).run(*args), ragged_by_numpy(*args))
    found = fl.trace(fl.grad(ragged, argnums=(0, 1))).run(*args)
    for k in range(2):
        np.testing.assert_allclose(found[k], slopes(ragged_by_numpy, args, k), rtol=1e-6, atol=1e-7)


def newton(h: Any, v: Any) -> Any:
    """y with y ** 3 + y = v + h, from h on; its derivative by that of the equation."""

    def forward(h: Any, v: Any) -> Any:
        def error(y: Any) -> Any:
            return y * y * y + y - v - h

        y = fl.while_loop(lambda y: fl.max(fl.abs(error(y))) > 1e-12, lambda y: y - error(y) / (3 * y * y + 1), h)
        return y, y

    def backward(y: Any, g: Any) -> Any:
        return g / (3 * y * y + 1), g / (3 * y * y + 1)

    return fl.custom_vjp(lambda h, v: forward(h, v)[0], forward, backward)(h, v)


def implicit(x: fl.f64[fl.Tensor, "t", 3]) -> Any:
    last, every = fl.scan(lambda h, v: (y := newton(h, v), y * 2), fl.zeros((3,), dtype=F64), x)
    return fl.sum(last) + fl.sum(every * every)


def implicit_by_numpy(x: Array) -> Any:
    h, total = np.zeros(3), 0.0
    for v in x:
        y = h
        for _ in range(60):
            y = y - (y**3 + y - v - h) / (3 * y * y + 1)
        h = y
        total += 4 * (h * h).sum()
    return h.sum() + total


def test_a_rule_for_the_inner_loop_is_enough() -> None:
    x = doubles(5, 3)
    found = fl.trace(fl.grad(implicit)).run(x)
    np.testing.assert_allclose(found, slopes(implicit_by_numpy, (x,), 0), rtol=1e-6, atol=1e-7)


def test_slopes_are_measured_through_loops() -> None:
    for fn, args in ((stacked, (doubles(4, 3, 2), doubles(2, 2))), (implicit, (doubles(5, 3),))):
        d = derivative(fn, fn.__name__)
        assert isinstance(d, Derivative) and len(d.claims) == 2  # of the function, and of the scan alone
        point = Point(d, args, {})
        assert all(s.verdict == "right" for c in d.claims for s in point.judge(c, 2))
