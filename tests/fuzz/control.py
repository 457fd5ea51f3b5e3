"""What random programs do in an order that numbers decide, or leave to NumPy: branches, loops in one another, functions of arrays."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np

Array = np.ndarray[Any, Any]
Step = Callable[[random.Random, Any, str], Any]


def _sorted_rows(x: Array) -> Array:
    return np.sort(x, axis=-1)


def _mirrored(x: Array) -> Array:
    return x[:, ::-1] + x


def _parts(x: Array) -> tuple[Array, Array]:
    return x[::-1].copy(), np.flip(x, 1).copy()


def extern(rng: random.Random, a: Any, name: str) -> Any:
    """A function of NumPy's between kernels, of one or two arrays."""
    if rng.random() < 0.3:
        one, two = fl.extern(_parts, [a.shape, a.shape], a.dtype, a, name=name)
        return fl.stage(lambda i, j: fl.maximum(one[i, j], two[i, j]), name=name + "b")
    return fl.extern(rng.choice([_sorted_rows, _mirrored]), a.shape, a.dtype, a, name=name)


def branch(rng: random.Random, a: Any, name: str) -> Any:
    """One of two, each of which may be a branch or a loop itself."""
    test = rng.choice([lambda: a[0, 0] > 0, lambda: fl.any(fl.stage(lambda i: a[i, 0] > 0, name=name))])()
    inner = rng.choice([_plain, _plain, turns, scanned, branch]) if rng.random() < 0.6 else _plain
    seed = rng.randrange(1 << 30)
    return fl.cond(test, lambda: inner(random.Random(seed), a, name + "t"), lambda: _plain(random.Random(seed + 1), a, name + "o"))


def turns(rng: random.Random, a: Any, name: str) -> Any:
    """A loop that ends when a sum is large enough, or after some turns; a turn may be a loop or a scan."""
    most = rng.choice([0, 1, 3, 5])
    inner = rng.choice([_plain, _neighbours, scanned, _inner_turns])
    seed = rng.randrange(1 << 30)

    def body(c: Any) -> Any:
        return {"a": inner(random.Random(seed), c["a"], name), "n": c["n"] + 1}

    return fl.while_loop(lambda c: c["n"] < most, body, {"a": a, "n": 0})["a"]


def _inner_turns(rng: random.Random, a: Any, name: str) -> Any:
    """As many turns as a number of the tensor says."""
    last = fl.cast(fl.minimum(abs(a[0, 0]) * 4, 3), fl.i32)
    return fl.while_loop(lambda c: c["k"] < last, lambda c: {"a": _plain(rng, c["a"], name + "k"), "k": c["k"] + 1}, {"a": a, "k": 0})["a"]


def scanned(rng: random.Random, a: Any, name: str) -> Any:
    """A scan over rows, whose step may be a branch or a loop over the carry."""
    way = rng.randrange(3)
    seed = rng.randrange(1 << 30)

    def step(h: Any, x: Any) -> tuple[Any, Any]:
        new = fl.stage(lambda j: fl.minimum(h[j], 4) + x[j], name=name)
        match way:
            case 0:
                new = fl.cond(fl.sum(x) > 0, lambda: fl.stage(lambda j: new[j] - h[j], name=name + "t"), lambda: new)
            case 1:
                scale = random.Random(seed).choice([1, 2])
                over = fl.scan(lambda g, v: (fl.maximum(g, v * scale), g), fl.zeros((), dtype=a.dtype), new)[1]
                new = fl.stage(lambda j: over[j] + new[j], name=name + "s")
        return new, new

    return fl.scan(step, fl.zeros((a.shape[1],), dtype=a.dtype), a)[1]


def _plain(rng: random.Random, a: Any, name: str) -> Any:
    body = rng.choice([lambda v, i, j: v * 0.5 + 1, lambda v, i, j: fl.maximum(v, 0) - i, lambda v, i, j: fl.where(i < j, v, -v)])
    return fl.stage(lambda i, j: body(a[i, j], i, j), name=name)


def _neighbours(rng: random.Random, a: Any, name: str) -> Any:
    near = fl.edge(a)
    return fl.stage(lambda i, j: (near[i, j - 1] + near[i, j + 1]) * 0.5, name=name)


def together(rng: random.Random, a: Any, name: str) -> Any:
    """A tuple of reductions in one pass, and one of the two read again."""
    pairs = fl.stage(lambda i: fl.max(lambda k: a[i, k]), name=name)
    sums = fl.stage(lambda i: fl.sum(lambda k: a[i, k]), name=name + "s")
    return fl.stage(lambda i, j: a[i, j] * 0.25 + pairs[i] - sums[i], name=name + "b")


STEPS: list[Step] = [extern, branch, turns, scanned, together]
