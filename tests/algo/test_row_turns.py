"""Scans whose steps wait for an fl.while_loop of the step before are loops: each step writes one row of what it stacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.ordering import Turns, turns, units
from fluorite.algo.stages import Stage

Vector = fl.f32[fl.Tensor, 3]
Steps = fl.f32[fl.Tensor, "t", 3]
Both = fl.f32[fl.Tensor, "n", "t", 3]


def newton(h: Any, v: Any) -> Any:
    """y with y ** 3 + y = v + h, from h on."""

    def error(y: Any) -> Any:
        return y * y * y + y - v - h

    return fl.while_loop(lambda y: fl.max(fl.abs(error(y))) > 1e-3, lambda y: y - error(y) / (3 * y * y + 1), h)


def step(h: Any, v: Any) -> Any:
    y = newton(h, v)
    return y, y * 2


def plain(x: Steps) -> Any:
    return fl.scan(step, fl.zeros((3,)), x)


def backward(x: Steps) -> Any:
    def one(h: Any, v: Any) -> Any:
        y = newton(h["y"], v["x"])
        return {"y": y, "n": h["n"] + 1}, {"y": y, "sum": fl.sum(y), "n": h["n"]}

    return fl.scan(one, {"y": fl.zeros((3,)), "n": 0}, {"x": x}, reverse=True)


def short(x: fl.f32[fl.Tensor, "t", "n", 3], lengths: fl.i32[fl.Tensor, "n"]) -> Any:
    return fl.scan(lambda h, v: step(h, v), fl.zeros_like(x[0]), x, lengths=lengths)


def nested(x: Both) -> Any:
    """The inner scan begins with what the outer one carries."""

    def outer(h: Any, row: Any) -> Any:
        last, every = fl.scan(step, h, row)
        return last, every

    return fl.scan(outer, fl.zeros((3,)), x)


def apart(x: Both) -> Any:
    """Each inner scan begins anew: all run at once, as long as one of them does."""
    return fl.scan(lambda h, row: (h + 1, fl.scan(step, fl.zeros((3,)), row)[1]), fl.zeros(()), x)


def mapped(x: Both) -> Any:
    return fl.vmap(lambda row: fl.scan(step, fl.zeros((3,)), row))(x)


def branched(x: Steps) -> Any:
    """A branch in the loop in the step, and a loop in a branch of the step."""

    def one(h: Any, v: Any) -> Any:
        def turn(y: Any) -> Any:
            return fl.cond(fl.sum(y) > 1, lambda: y * 0.5, lambda: y * 0.25)

        y = fl.while_loop(lambda y: fl.max(fl.abs(y)) > 2, turn, h + v)
        z = fl.cond(fl.sum(v) > 0, lambda: newton(y, v), lambda: y)
        return z, fl.sum(z)

    return fl.scan(one, fl.zeros((3,)), x)


def around(x: Steps, first: Vector) -> Any:
    """A scan in a loop in a scan."""

    def one(h: Any, v: Any) -> Any:
        def turn(c: Any) -> Any:
            last, every = fl.scan(step, c["y"], x[:2])
            return {"y": last, "n": c["n"] + 1, "sum": fl.sum(every)}

        done = fl.while_loop(lambda c: (c["n"] < 2) & (fl.max(c["y"]) < 50), turn, {"y": h + v, "n": 0, "sum": 0.0})
        return done["y"], done["sum"]

    return fl.scan(one, first, x)


def chosen(x: Steps) -> Any:
    """The whole scan in a branch."""
    return fl.cond(fl.sum(x) > 0, lambda: fl.scan(step, fl.zeros((3,)), x)[1], lambda: x * 1)


def data(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")


CASES: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    "plain": (plain, [(data(1, 3),), (data(7, 3),), (data(17, 3),)]),
    "backward": (backward, [(data(5, 3),)]),
    "short": (short, [(data(5, 2, 3), np.array([2, 5], np.int32))]),
    "nested": (nested, [(data(3, 4, 3),)]),
    "apart": (apart, [(data(1, 4, 3),), (data(3, 5, 3),)]),
    "mapped": (mapped, [(data(3, 5, 3),)]),
    "branched": (branched, [(data(7, 3) * 3,)]),
    "around": (around, [(data(3, 3), data(3))]),
    "chosen": (chosen, [(np.abs(data(5, 3)),), (-np.abs(data(5, 3)),)]),
}


def loops(unit: Sequence[Stage]) -> Iterator[Turns]:
    """A loop and those inside it."""
    found = turns(unit)
    yield found
    for part in (*found.asking, *found.doing):
        if part[0].turn is not None:
            yield from loops(part)


@pytest.mark.parametrize("name", CASES)
def test_compiled_as_interpreted_and_one_row_a_step(name: str) -> None:
    fn, inputs = CASES[name]
    graph = fl.trace(fn)
    every = [
        (s, found)
        for unit in units(graph.stages)
        if unit[0].turn is not None
        for found in loops(unit)
        for s in found.carries
        if "every" in (graph.by_id[found.becomes[s.id]].name, *(graph.by_id[i].name for i in graph.by_id[found.becomes[s.id]].sources))
    ]
    assert every and all(s.id in found.rows for s, found in every)
    model = fl.compile(fn)
    for given in inputs:
        made, meant = model(*given), graph.run(*given)
        for a, b in zip(flat(made), flat(meant), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def flat(x: Any) -> list[Any]:
    return [a for part in (x.values() if isinstance(x, dict) else x) for a in flat(part)] if isinstance(x, dict | tuple | list) else [x]


def test_steps_follow_one_another() -> None:
    """Step by step in NumPy: no step begins before the one before it is done."""
    x = data(9, 3)
    h, every = np.zeros(3, np.float32), []
    for v in x:
        y = h
        while np.abs(y**3 + y - v - h).max() > 1e-3:
            y = y - (y**3 + y - v - h) / (3 * y * y + 1)
        h = y
        every.append(y * 2)
    np.testing.assert_allclose(fl.trace(plain).run(x)[1], every, rtol=1e-5)


def test_what_is_no_row_is_computed_whole() -> None:
    """The old value is read elsewhere, or more than one position is written; and a position outside writes nothing."""

    def run(x: fl.f32[fl.Tensor, 4], at: fl.i32[fl.Tensor]) -> Any:
        def put(c: Any, value: Any, test: Any) -> Any:
            return fl.stage(lambda t: fl.where(test(t), value(t), c[t]), extents={"t": 4})

        def turn(c: Any) -> Any:
            n = c["n"]
            one = put(c["one"], lambda t: x[t] + fl.cast(n, fl.f32), lambda t: t == n + at)
            read = put(c["read"], lambda t: c["read"][3 - t] + x[t], lambda t: t == n)
            some = put(c["some"], lambda t: x[t], lambda t: t <= n)
            return {"n": n + 1, "one": one, "read": read, "some": some}

        return fl.while_loop(lambda c: c["n"] < 3, turn, {"n": 0, "one": x, "read": x, "some": x * 0})

    graph, model = fl.trace(run), fl.compile(run)
    (found,) = (turns(u) for u in units(graph.stages) if u[0].turn is not None)
    names = [graph.by_id[found.becomes[i]].path for i in found.rows]
    assert len(names) == 1
    for at in (0, 2, -1, -5):
        x = data(4)
        made, meant = model(x, np.int32(at)), graph.run(x, np.int32(at))
        expected = x.copy()
        for n in range(3):
            if 0 <= n + at < 4:
                expected[n + at] = x[n + at] + n
        np.testing.assert_allclose(meant["one"], expected)
        for key in meant:
            np.testing.assert_allclose(made[key], meant[key])


def test_its_derivative() -> None:
    """Refused with what to do; a rule of one's own, and stop_gradient, stand in its place."""

    def of(f: Any) -> Any:
        def gradient(x: Steps) -> Any:
            return fl.grad(f)(x)

        return fl.trace(gradient)

    def loss(x: Any) -> Any:
        return fl.sum(plain(x)[1])

    with pytest.raises(fl.AlgorithmError, match="A421") as caught:
        of(loss)
    assert "fl.custom_vjp" in str(caught.value)

    def forward(x: Any) -> Any:
        every = plain(x)[1]
        return every, every

    def pull(every: Any, g: Any) -> Any:
        """By the implicit function theorem: (3 y ** 2 + 1) dy = dx + dh, from the last step to the first."""

        def one(later: Any, at: Any) -> Any:
            slope = (2 * at["g"] + later) / (3 * (at["every"] / 2) ** 2 + 1)
            return slope, slope

        return (fl.scan(one, fl.zeros((3,)), {"every": every, "g": g}, reverse=True)[1],)

    solved = fl.custom_vjp(lambda x: plain(x)[1], forward, pull)

    def ruled(x: Any) -> Any:
        return fl.sum(solved(x))

    def stopped(x: Any) -> Any:
        return fl.sum(fl.stop_gradient(plain(x)[1]) * x)

    x = data(4, 3)
    np.testing.assert_allclose(of(stopped).run(x), fl.trace(plain).run(x)[1], rtol=1e-5)
    slopes, e = of(ruled).run(x), np.zeros_like(x)
    e[1, 2] = 1e-2
    high, low = (fl.trace(plain).run(x + d)[1].astype(np.float64).sum() for d in (e, -e))
    np.testing.assert_allclose(slopes[1, 2], (high - low) / 2e-2, rtol=2e-2)


def test_what_is_added_to_one_row() -> None:
    """Beside 0 elsewhere; a position outside adds nothing, and one that comes twice adds twice."""

    def run(x: fl.f32[fl.Tensor, 5, 2], at: fl.i32[fl.Tensor, "n"]) -> Any:
        def more(n: Any) -> Any:
            p = at[n]
            return fl.stage(lambda t, i: fl.where((t == p) & (x[n, i] > -1), x[n, i] * 2, 0), extents={"t": 5, "i": 2})

        def turn(c: Any) -> Any:
            n, two = c["n"], more(c["n"])
            return {"n": n + 1, "one": c["one"] + more(n), "other": more(n) + c["other"], "two": c["two"] + two + two}

        start = fl.ones((5, 2))
        return fl.while_loop(lambda c: c["n"] < at.shape[0], turn, {"n": 0, "one": start, "other": start, "two": start})

    x = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    graph, model = fl.trace(run), fl.compile(run)
    (found,) = (turns(u) for u in units(graph.stages) if u[0].turn is not None)
    assert len(found.rows) == 2
    for at in ([3], [0, 4, 0, 7, -1]):
        expected = np.ones((5, 2), np.float32)
        for n, p in enumerate(at):
            if 0 <= p < 5:
                expected[p] += np.where(x[n] > -1, x[n] * 2, 0)
        for made in (model(x, np.array(at, np.int32)), graph.run(x, np.array(at, np.int32))):
            for key, wanted in (("one", expected), ("other", expected), ("two", expected * 2 - 1)):
                np.testing.assert_allclose(made[key], wanted, rtol=1e-5, atol=1e-6)


def test_the_derivative_by_rows_that_steps_read_takes_time_by_steps() -> None:
    """What arrives at x is written row by row, although every step might read any of it."""

    def loss(x: fl.f64[fl.Tensor, "t", 2, 3], w: fl.f64[fl.Tensor, 3]) -> Any:
        def step(c: Any, t: Any) -> Any:
            return fl.sin(fl.scan(lambda d, r: (fl.tanh(d * w + r), None), c, x[t])[0]), None

        return fl.sum(fl.scan(step, fl.zeros((3,), dtype=fl.f64), fl.arange(x.shape[0]))[0])

    graph = fl.trace(fl.grad(loss, argnums=(0, 1)))
    loops = [turns(u) for u in units(graph.stages) if u[0].turn is not None]
    rows = {graph.by_id[i].shape for loop in loops for i in loop.rows}
    assert any(len(shape) == 3 for shape in rows)
    x, w = np.random.default_rng(0).normal(size=(4, 2, 3)), np.full(3, 0.5)
    model = fl.compile(graph)
    found, meant = model(x, w), graph.run(x, w)
    value = fl.trace(loss)
    for k in np.ndindex(4, 2, 3):
        u = np.zeros_like(x)
        u[k] = 1e-6
        np.testing.assert_allclose(meant[0][k], (value.run(x + u, w) - value.run(x - u, w)) / 2e-6, rtol=1e-5, atol=1e-8)
    for a, b in zip(found, meant, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
