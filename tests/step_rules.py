"""Programs in whose steps stand functions with derivatives of their own, which are right ones: `of` says whether they are used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np

Array = np.ndarray[Any, Any]
T, N = 5, 3


def ruled(fn: Callable[..., Any], residuals: Callable[..., Any], backward: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return fl.custom_vjp(fn, lambda *args: ((y := fn(*args)), residuals(y, *args)), backward)


def derived(fn: Callable[..., Any], *_: Any) -> Callable[..., Any]:
    return fn


def tanh(of: Any) -> Any:
    return of(fl.tanh, lambda y, x: y, lambda y, g: (g * (1 - y * y),))


def affine(of: Any) -> Any:
    return of(lambda c, w: c @ w, lambda y, c, w: {"c": c, "w": w}, lambda r, g: (g @ r["w"].T, fl.outer(r["c"], g)))


def split(of: Any) -> Any:
    """Two results, of which one does not depend on the carry; a number and a view among what the derivative needs."""

    def fn(c: Any, w: Any) -> Any:
        return {"a": fl.sin(c), "b": 2 * w[0]}

    def backward(kept: Any, g: Any) -> Any:
        c, number, zero = kept
        return g["a"] * fl.cos(c), fl.concatenate([(number * g["b"])[None], fl.broadcast_to(zero, (N - 1, N))])

    return of(fn, lambda y, c, w: (c[::-1][::-1], 2, w[1:2] * 0), backward)


def recurrent(of: Any, x: Any, w: Any) -> Any:
    act, times = tanh(of), affine(of)

    def step(c: Any, xt: Any) -> Any:
        n = act(times(c, w) + xt)
        return n, act(n * xt)

    last, ys = fl.scan(step, fl.zeros(N, dtype="float64"), x)
    return fl.sum(last * last) + fl.sum(fl.sin(ys))


def reversed_and_stacked(of: Any, x: Any, w: Any) -> Any:
    act = tanh(of)

    def step(c: Any, xt: Any) -> Any:
        a, b = c
        return (b, act(a + w[0]) * xt), act(xt)

    (a, b), ys = fl.scan(step, (x[0], x[1] * 2), x, reverse=True)
    return fl.sum(a * b) + fl.sum(ys * ys * x)


def results_apart(of: Any, x: Any, w: Any) -> Any:
    both = split(of)

    def step(c: Any, xt: Any) -> Any:
        r = both(c, w)
        return r["a"] * fl.exp(r["b"]) + xt, r["b"] * c

    last, ys = fl.scan(step, x[0], x)
    return fl.sum(last) + fl.sum(ys * ys)


def in_branches(of: Any, x: Any, w: Any) -> Any:
    act, times = tanh(of), affine(of)

    def step(c: Any, xt: Any) -> Any:
        n = fl.cond(fl.sum(xt) > 0, lambda: act(times(c, w)) + xt, lambda: times(c, w) * 0.5)
        return n, None

    return fl.sum(fl.scan(step, x[0], x)[0] ** 2)


def around_branches(of: Any, x: Any, w: Any) -> Any:
    return fl.cond(fl.sum(x) > -100, lambda: recurrent(of, x, w), lambda: fl.sum(x))


def with_lengths(of: Any, x: Any, w: Any) -> Any:
    act = tanh(of)
    lengths = fl.asarray(np.array([0, 2, T], np.int32))
    last, ys = fl.scan(lambda c, xt: ((n := act(c + xt)), n * n), w[0], x, lengths=lengths)
    return fl.sum(last * w[1]) + fl.sum(ys)


def inside_a_step(of: Any, x: Any, w: Any) -> Any:
    """A scan in the step of a scan: neither what the inner one walks over nor the weights are the same everywhere."""
    act, times = tanh(of), affine(of)

    def outer(c: Any, xt: Any) -> Any:
        last, ys = fl.scan(lambda k, v: (act(k * v + xt[0]), act(times(xt * v, w))), fl.sum(xt), xt)
        return c, last + fl.sum(ys)

    return fl.sum(fl.scan(outer, fl.zeros((), dtype="float64"), x)[1])


def for_each_example(of: Any, x: Any, w: Any) -> Any:
    act, times = tanh(of), affine(of)
    return fl.sum(fl.vmap(lambda v, k: act(times(v, k)), in_axes=(0, None))(x, w) ** 2) + fl.sum(fl.vmap(act, 1, 1)(w))


def axes_of_the_clock_s_name(of: Any, x: Any, w: Any) -> Any:
    """The steps' axis is called as an axis of what the rule makes."""
    square = of(lambda c: c * c, lambda y, c: c, lambda c, g: (fl.stage(lambda t: 2 * c[t] * g[t]),))
    y = fl.stage(lambda t, i: x[t, i] * 0.5)
    return fl.sum(fl.scan(lambda c, v: (square(c) * 0.3 + v, None), w[0], y)[0])


PROGRAMS = [
    recurrent, reversed_and_stacked, results_apart, in_branches, around_branches, with_lengths, inside_a_step, for_each_example,
    axes_of_the_clock_s_name,
]  # fmt: skip


def graph(program: Any, of: Any, steps: Any = T) -> fl.Graph:
    def fn(x: Any, w: Any) -> Any:
        return fl.value_and_grad(lambda x, w: program(of, x, w), (0, 1))(x, w)

    return fl.trace(fn, inputs={"x": fl.f64(steps, N), "w": fl.f64(N, N)})


def inputs(steps: int = T) -> tuple[Array, Array]:
    rng = np.random.default_rng(steps)
    return rng.standard_normal((steps, N)) * 0.7, rng.standard_normal((N, N)) * 0.7
