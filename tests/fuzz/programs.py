"""Random programs: small graphs of stages of every kind, each with symbolic or fixed extents."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import fluorite as fl
from fluorite.algo.graph import Graph
from fluorite.algo.program import trace


def program(rng: random.Random) -> tuple[Graph, dict[str, int]]:
    """A random graph and values for its symbols."""
    symbolic = rng.random() < 0.5
    h, w = rng.choice([1, 2, 5, 7, 16, 17, 33, 40]), rng.choice([1, 3, 8, 16, 19, 32, 35, 50])
    shape: tuple[Any, Any] = ("h", "w") if symbolic else (h, w)
    steps = [rng.choice(STEPS) for _ in range(rng.randint(1, 4))]
    several = rng.random() < 0.3
    seeds = [rng.randrange(1 << 30) for _ in steps]

    def model(x: Any, y: Any) -> Any:
        values = [x, y]
        for n, (step, seed) in enumerate(zip(steps, seeds, strict=True)):
            values.append(step(random.Random(seed), values, f"s{n}"))
        return {"out": values[-1], "mid": values[-2]} if several and len(steps) > 1 else values[-1]

    g = trace(model, None, {"x": fl.f32(*shape), "y": fl.f32(*shape)})
    return g, {"h": h, "w": w} if symbolic else {}


def _pick(rng: random.Random, values: list[Any], rank: int = 2) -> Any:
    found = [v for v in values if v.ndim == rank]
    return rng.choice(found[-2:]) if found else rng.choice(values[:2])


def _elementwise(rng: random.Random, values: list[Any], name: str) -> Any:
    a = _pick(rng, values)
    b = rng.choice([v for v in values if v.shape == a.shape])
    kind = rng.randrange(4)
    if kind == 0:
        return fl.stage(lambda i, j: a[i, j] * 2 + b[i, j], name=name)
    if kind == 1:
        return fl.stage(lambda i, j: fl.where(a[i, j] > 0.25, a[i, j], b[i, j] - 1), name=name)
    if kind == 2:
        return fl.stage(lambda i, j: fl.maximum(a[i, j], 0) + i * 0.5 - j, name=name)
    return fl.stage(lambda i, j: abs(a[i, j]) / (1 + abs(b[i, j])), name=name)


def _stencil(rng: random.Random, values: list[Any], name: str) -> Any:
    a = _pick(rng, values)
    view = rng.choice([fl.edge, fl.reflect, fl.wrap, lambda t: fl.constant(t, 0.5)])(a)
    dy, dx = rng.randint(0, 2), rng.randint(1, 3)
    if rng.random() < 0.4:
        return fl.stage(lambda i, j: fl.sum(lambda p, q: view[i + p, j + q], over={"p": (-dy, dy + 1), "q": (-dx, dx + 1)}), name=name)
    return fl.stage(lambda i, j: (view[i - dy, j] + view[i, j - dx] + view[i + 1, j + dx]) / 3, name=name)


def _reduction(rng: random.Random, values: list[Any], name: str) -> Any:
    a = _pick(rng, values)
    kind = rng.choice(["sum", "max", "min", "argmax", "any"])
    reduce: Callable[..., Any] = getattr(fl, kind)
    if kind == "any":
        result = fl.stage(lambda i: reduce(lambda k: a[i, k] > 0.9), name=name)
        return fl.stage(lambda i, j: fl.where(result[i], a[i, j], 1.0), name=name + "b")
    axis = rng.randrange(2)
    result = fl.stage(lambda i: reduce(lambda k: a[i, k] if axis else a[k, i]), name=name)
    if kind == "argmax":
        return fl.stage(lambda i, j: a[i, j] + fl.cast(result[i if axis else j], fl.f32), name=name + "b")
    return fl.stage(lambda i, j: a[i, j] - result[i if axis else j], name=name + "b")


def _matmul(rng: random.Random, values: list[Any], name: str) -> Any:
    a, b = _pick(rng, values), _pick(rng, values)
    if rng.random() < 0.5:
        return fl.stage(lambda i, j: fl.sum(lambda k: a[i, k] * b[j, k]) / 8, name=name)
    return fl.stage(lambda i, j: fl.sum(lambda k: a[k, i] * b[k, j]) / 8, name=name)


def _moved(rng: random.Random, values: list[Any], name: str) -> Any:
    a = _pick(rng, values)
    view = rng.choice(
        [
            lambda: a.T,
            lambda: fl.flip(a, 0),
            lambda: fl.flip(a, 1),
            lambda: fl.concatenate([a, a], axis=1),
            lambda: fl.reshape(fl.reshape(a, (-1,)), a.shape),
        ]
    )()
    return fl.stage(lambda i, j: view[i, j] + 1, name=name)


STEPS = [_elementwise, _elementwise, _stencil, _stencil, _reduction, _matmul, _moved]
