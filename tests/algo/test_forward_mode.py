"""Tangents and batches: fl.jvp beside fl.grad and finite differences, fl.vmap beside a loop."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from gradient_cases import OPERATORS, STATIC, normal
from gradient_checks import floats_of, traced

STEP = 1e-6


@pytest.mark.parametrize("name", OPERATORS)
def test_tangent(name: str) -> None:
    fn, arrays = OPERATORS[name]
    g = np.random.default_rng(1)
    places = [k for k, a in enumerate(arrays) if a.dtype.kind == "f"]
    directions = [g.standard_normal(arrays[k].shape) for k in places]

    def model(*args: Any) -> Any:
        given, along = args[: len(arrays)], args[len(arrays) :]

        def moved(*floats: Any) -> Any:
            each = dict(zip(places, floats, strict=True))
            return fn(*(each.get(k, a) for k, a in enumerate(given)))

        return fl.jvp(moved, [given[k] for k in places], list(along))

    operands = [*arrays, *directions]
    _, tangent = traced(model, operands).run(*operands)
    forward = traced(fn, arrays)

    def at(t: float) -> Any:
        moved = list(arrays)
        for k, d in zip(places, directions, strict=True):
            moved[k] = arrays[k] + t * d
        return floats_of(forward.run(*moved))

    for after, before, found in zip(at(STEP), at(-STEP), floats_of(tangent), strict=True):
        wanted = (after - before) / (2 * STEP)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * (1 + np.abs(wanted).max(initial=0)))


BATCHED = [n for n in OPERATORS if n not in STATIC and n not in ("scan of lengths", "recurrence of two delays")]


@pytest.mark.parametrize("name", BATCHED)
def test_a_batch_is_its_examples(name: str) -> None:
    fn, arrays = OPERATORS[name]
    batch = [np.stack([a, a[..., ::-1] if a.dtype.kind == "f" else a, a * 2 if a.dtype.kind == "f" else a], 0) for a in arrays]
    found = traced(lambda *x: fl.vmap(fn)(*x), batch).run(*batch)
    one = traced(fn, arrays)
    for n in range(3):
        wanted = one.run(*(b[n] for b in batch))
        for f, w in zip(floats_of(found), floats_of(wanted), strict=True):
            np.testing.assert_allclose(f[n], w, rtol=1e-12, atol=1e-12)


def test_axes_of_a_batch() -> None:
    x, w = normal(3, 4, 2), normal(2, 5)
    found = traced(lambda x, w: fl.vmap(lambda x, w: x @ w, in_axes=(1, None), out_axes=-1)(x, w), (x, w)).run(x, w)
    np.testing.assert_allclose(found, np.moveaxis(np.moveaxis(x, 1, 0) @ w, 0, -1))


def test_gradients_of_each_example() -> None:
    x, w = normal(4, 3), normal(3)
    each = traced(lambda x, w: fl.vmap(fl.grad(lambda w, x: fl.square(fl.sum(w * x))), in_axes=(None, 0))(w, x), (x, w)).run(x, w)
    np.testing.assert_allclose(each, 2 * (x @ w)[:, None] * x)


def test_a_hessian_is_forward_over_reverse() -> None:
    x, v = normal(4), normal(4)

    def product(x: Any, v: Any) -> Any:
        return fl.jvp(fl.grad(lambda x: fl.sum(x * x * x)), [x], [v])[1]

    np.testing.assert_allclose(traced(product, (x, v)).run(x, v), 6 * x * v)


def test_what_does_not_move_has_the_tangent_0() -> None:
    x = normal(3)
    out, tangent = traced(lambda x: fl.jvp(lambda x: (fl.stop_gradient(x) * 2, fl.argmax(x)), [x], [x]), (x,)).run(x)
    np.testing.assert_array_equal(out[0], 2 * x)
    np.testing.assert_array_equal(tangent[0], np.zeros(3))
    assert tangent[1] == 0


@pytest.mark.parametrize(
    "code,fn",
    [
        ("A174", lambda x: fl.jvp(lambda x: x * 2, [x], [])),
        ("A174", lambda x: fl.jvp(lambda x: x * 2, [x], [fl.sum(x)])),
        ("A171", lambda x: fl.jvp(fl.custom_vjp(lambda x: x, lambda x: (x * 1, None), lambda r, g: (g,)), [x], [x])),
        ("A173", lambda x: fl.vmap(lambda x: x, in_axes=(0, 0))(x)),
        ("A173", lambda x: fl.vmap(lambda x: x, in_axes=None)(x)),
        ("A302", lambda x: fl.vmap(lambda x: x, in_axes=3)(x)),
    ],
)
def test_refusals(code: str, fn: Any) -> None:
    with pytest.raises(fl.AlgorithmError) as caught:
        traced(fn, (normal(3),))
    (problem,) = caught.value.problems
    assert problem.code == code and problem.source and problem.asked


def test_the_tangent_of_a_reduction_inside_the_steps_of_a_scan() -> None:
    """By pairs of affine maps, of what the scan carries."""

    def compose(a: Any, b: Any) -> Any:
        return b[0] * a[0], b[0] * a[1] + b[1]

    def states(x: Any) -> Any:
        def step(c: Any, e: Any) -> Any:
            y = c * 0.5 + e * fl.stage(lambda: fl.reduce(compose, (1.0, 0.0), lambda i: (c[i] / 2, e[i]))[1])
            return y, y

        return fl.scan(step, fl.zeros((3,), dtype="float64"), x)[1]

    x, along = normal(4, 3), normal(4, 3) / 2
    _, found = traced(lambda x, t: fl.jvp(states, [x], [t]), [x, along]).run(x, along)
    forward = traced(states, [x])
    wanted = (forward.run(x + STEP * along) - forward.run(x - STEP * along)) / (2 * STEP)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
