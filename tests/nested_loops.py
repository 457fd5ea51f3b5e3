"""Programs whose loops of unknown length stand in loops, scans, branches and batches, each beside what it means in Python and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import fluorite as fl
import numpy as np

Array = np.ndarray[Any, Any]
F = np.float32


@dataclass(frozen=True)
class Case:
    """`meant(*arrays)` is what `program` gives, as a flat list; `given` are the declarations of inputs, of extents `n`."""

    program: Callable[..., Any]
    meant: Callable[..., list[Any]]
    given: dict[str, Any]
    sizes: tuple[int, ...] = (1, 2, 5, 8)

    def inputs(self, n: int) -> list[Array]:
        rng = np.random.default_rng(n)
        out = []
        for s in self.given.values():
            shape = tuple(e if isinstance(e, int) else n for e in s.shape)
            whole = s.dtype.startswith("int")
            out.append(rng.integers(1, 40, shape).astype(s.dtype) if whole else (rng.random(shape) * 4).astype(s.dtype))
        return out


def collatz(v: Any, x: Any) -> Any:
    """Halving as often as it goes is a loop inside a turn; what becomes of an odd number is a branch."""

    def body(c: Any) -> Any:
        r = fl.while_loop(lambda d: (d[0] % 2 == 0) & (d[0] > 0), lambda d: (d[0] // 2, d[1] + 1), (c["v"], c["k"]))
        odd = fl.cond(r[0] > 1, lambda: 3 * r[0] + 1, lambda: r[0])
        how = fl.switch(r[1] % 3, [lambda: x * 0.5, lambda: fl.sin(c["x"]), lambda: c["x"] + 1])
        return {"v": odd, "k": r[1] + 1, "x": how}

    r = fl.while_loop(lambda c: c["v"] > 1, body, {"v": v, "k": 0, "x": x})
    return r["v"], r["k"], r["x"]


def collatz_meant(v: Any, x: Array) -> list[Any]:
    v, k, y = int(v), 0, x
    while v > 1:
        while v % 2 == 0 and v > 0:
            v, k = v // 2, k + 1
        y = (x * F(0.5), np.sin(y), y + F(1))[k % 3]
        v, k = 3 * v + 1 if v > 1 else v, k + 1
    return [v, k, y]


def each(meant: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """The meaning for every example of a batch."""
    return lambda *arrays: [np.array(r) for r in zip(*(meant(*parts) for parts in zip(*arrays, strict=True)), strict=True)]


def three_deep(n: Any, x: Any) -> Any:
    def middle(c: Any, top: Any) -> Any:
        inner = fl.while_loop(lambda k: k[0] < c[0], lambda k: (k[0] + 1, k[1] * 0.5 + x), (0, c[1]))
        return c[0] + top, inner[1]

    def outer(c: Any) -> Any:
        return (c[0] + 1, fl.while_loop(lambda m: m[0] < 6, lambda m: middle(m, c[0] + 1), (0, c[1]))[1])

    return fl.while_loop(lambda c: c[0] < n[0] % 4, outer, (0, x))


def three_deep_meant(n: Array, x: Array) -> list[Any]:
    a, v = 0, x
    while a < n[0] % 4:
        b, top = 0, a + 1
        while b < 6:
            for _ in range(b):
                v = v * F(0.5) + x
            b += top
        a += 1
    return [a, v]


def asks_with_a_loop(n: Any, x: Any) -> Any:
    """A condition that runs a loop, and a scan and a matrix product inside a turn."""

    def going(c: Any) -> Any:
        return fl.while_loop(lambda k: k * k < c[0], lambda k: k + 1, 0) < 5

    def body(c: Any) -> Any:
        total = fl.scan(lambda s, e: (s * 0.5 + e, None), 0.0, c[1])[0]
        return c[0] + n[0], fl.tanh(c[1] * 0.3 + total)

    return fl.while_loop(going, body, (0, x))


def asks_with_a_loop_meant(n: Array, x: Array) -> list[Any]:
    a, v = 0, x
    while np.ceil(np.sqrt(a)) < 5:
        s = F(0)
        for e in v:
            s = s * F(0.5) + e
        a, v = a + n[0], np.tanh(v * F(0.3) + s)
    return [a, v]


def beside_a_scan(x: Any, k: Any) -> Any:
    """Each step has turns of its own, and no step waits for them; its carry goes on."""

    def step(c: Any, e: Any) -> Any:
        r = fl.while_loop(lambda d: d[0] < e["x"], lambda d: (d[0] * 1.5 + 0.25, d[1] + e["k"]), (0.0, 0))
        return c + r[0], (r[1], c)

    last, (turns, before) = fl.scan(step, 0.0, {"x": x, "k": k})
    return last, turns, before


def beside_a_scan_meant(x: Array, k: Array) -> list[Any]:
    c, turns, before = F(0), [], []
    for e, m in zip(x, k, strict=True):
        a, t = F(0), np.int32(0)
        while a < e:
            a, t = a * F(1.5) + F(0.25), t + m
        turns.append(t)
        before.append(c)
        c = c + a
    return [c, np.array(turns), np.array(before)]


def waiting(reverse: bool, lengths: bool) -> Callable[..., Any]:
    """The loop of a step starts where that of the step before ended."""

    def program(x: Any, m: Any, until: Any) -> Any:
        def step(c: Any, e: Any) -> Any:
            r = fl.while_loop(lambda d: fl.any(d[0] < e), lambda d: (d[0] * 1.5 + 0.25, d[1] + 1), (c, 0))
            return r[0] * 0.25, {"v": r[0] * m, "n": fl.broadcast_to(r[1], (3,))}

        last, ys = fl.scan(step, fl.zeros(3), x, axis=1, reverse=reverse, lengths=until if lengths else None)
        return last, ys["v"], ys["n"]

    return program


def waiting_meant(reverse: bool, lengths: bool) -> Callable[..., list[Any]]:
    def meant(x: Array, m: Array, until: Array) -> list[Any]:
        steps = x.shape[1]
        c, vs, ns = np.zeros(3, F), np.zeros((3, steps), F), np.zeros((3, steps), np.int32)
        for t in reversed(range(steps)) if reverse else range(steps):
            a, n = c, 0
            while np.any(a < x[:, t]):
                a, n = a * F(1.5) + F(0.25), n + 1
            live = t < until if lengths else np.ones(3, bool)
            vs[:, t], ns[:, t] = np.where(live, a * m, 0), np.where(live, n, 0)
            c = np.where(live, a * F(0.25), c)
        return [c, vs, ns]

    return meant


def batched_in_a_branch(v: Any, x: Any) -> Any:
    """Examples that do not take the branch would turn for ever."""

    def one(v: Any, x: Any) -> Any:
        def grow() -> Any:
            return fl.while_loop(lambda c: c[0] != 0, lambda c: (c[0] - 2, c[1] + x), (v, x))[1]

        return fl.cond(v % 2 == 0, grow, lambda: x - 1)

    return fl.vmap(one)(v, x)


def batched_in_a_branch_meant(v: Array, x: Array) -> list[Any]:
    out = []
    for n, e in zip(v, x, strict=True):
        c = e
        if n % 2 == 0:
            for _ in range(int(n) // 2):
                c = c + e
        out.append(c if n % 2 == 0 else e - F(1))
    return [np.array(out)]


CASES: dict[str, Case] = {
    "a loop in a loop": Case(collatz, collatz_meant, {"v": fl.i32(), "x": fl.f32("n")}),
    "three loops": Case(three_deep, three_deep_meant, {"n": fl.i32(1), "x": fl.f32("n")}),
    "a loop in a condition": Case(asks_with_a_loop, asks_with_a_loop_meant, {"n": fl.i32(1), "x": fl.f32("n")}),
    "a batch of loops in loops": Case(lambda v, x: fl.vmap(collatz)(v, x), each(collatz_meant), {"v": fl.i32("n"), "x": fl.f32("n", 3)}),
    "a batch along other axes": Case(
        lambda v, x: fl.vmap(lambda v, x: collatz(v, x)[2], (0, 1), 1)(v, x),
        lambda v, x: [each(collatz_meant)(v, x.T)[2].T],
        {"v": fl.i32("n"), "x": fl.f32(3, "n")},
    ),
    "a batch of batches": Case(
        lambda v, x: fl.vmap(lambda v: fl.vmap(lambda x: collatz(v, x)[2])(x))(v),
        lambda v, x: [np.array([[collatz_meant(n, e)[2] for e in x] for n in v])],
        {"v": fl.i32("n"), "x": fl.f32(2, 3)},
    ),
    "a batch of three loops": Case(
        lambda n, x: fl.vmap(lambda n, x: three_deep(n[None], x))(n, x),
        each(lambda n, x: three_deep_meant(n[None], x)),
        {"n": fl.i32("n"), "x": fl.f32("n", 2)},
    ),
    "a batch of conditions with loops": Case(
        lambda n, x: fl.vmap(lambda n, x: asks_with_a_loop(n[None], x))(n, x),
        each(lambda n, x: asks_with_a_loop_meant(n[None], x)),
        {"n": fl.i32("n"), "x": fl.f32("n", 2)},
    ),
    "a batch in a branch": Case(batched_in_a_branch, batched_in_a_branch_meant, {"v": fl.i32("n"), "x": fl.f32("n")}),
    "beside a scan": Case(beside_a_scan, beside_a_scan_meant, {"x": fl.f32("n"), "k": fl.i32("n")}),
    **{
        f"a scan that waits{', reversed' * r}{', of lengths' * k}": Case(
            waiting(r, k), waiting_meant(r, k), {"x": fl.f32(3, "n"), "m": fl.f32(3), "until": fl.i32(3)}, (1, 4)
        )
        for r in (False, True)
        for k in (False, True)
    },
}


def flat(found: Any) -> list[Any]:
    return list(found) if isinstance(found, list | tuple) else [found]
