"""Random programs: one or two methods, each a small graph of stages of every kind, over symbolic, fixed and mixed extents and all types."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import fluorite as fl
from fluorite.algo.dtypes import kind
from fluorite.algo.graph import Graph
from fluorite.algo.program import trace

Step = Callable[[random.Random, list[Any], str], Any]
FLOATS = (fl.f32, fl.f32, fl.f32, fl.f32, fl.f64)
OTHERS = (fl.i32, fl.i64, fl.i16, fl.i8, fl.u8, fl.u32, fl.boolean)
REDUCTIONS = ("sum", "prod", "max", "min", "argmax", "argmin")


def program(rng: random.Random) -> tuple[Graph, dict[str, int]]:
    """A random graph and values for its symbols."""
    sizes = {"h": rng.choice([1, 2, 5, 7, 16, 17, 33, 40]), "w": rng.choice([1, 3, 8, 16, 19, 32, 35, 50])}
    symbolic = rng.choice([(), (), ("h", "w"), ("h", "w"), ("h",), ("w",)])
    shape = tuple(n if n in symbolic else sizes[n] for n in sizes)
    count = 2 if rng.random() < 0.1 else 1
    methods = {f"m{n}": _method(rng, f"m{n}", shape) for n in range(count)}
    made = type("Fuzz", (fl.Program,), dict(methods))
    return trace(made()), {n: sizes[n] for n in symbolic}


def _method(rng: random.Random, name: str, shape: tuple[Any, ...]) -> Any:
    dtype = rng.choice(FLOATS if rng.random() < 0.7 else OTHERS)
    steps = [rng.choice(STEPS) for _ in range(rng.choice([1, 1, 2, 2, 3]))]
    seeds = [rng.randrange(1 << 30) for _ in steps]
    several = rng.random() < 0.3

    def run(self: Any, x: Any, y: Any) -> Any:
        values = [x, y]
        for n, (step, seed) in enumerate(zip(steps, seeds, strict=True)):
            values.append(step(random.Random(seed), values, f"s{n}"))
        return {"out": values[-1], "mid": values[-2]} if several and len(steps) > 1 else values[-1]

    run.__annotations__ = {"x": dtype(*shape), "y": dtype(*shape)}
    run.__name__ = name
    return fl.method(run)


# ---------------------------------------------------------------- what a step starts from
def _pick(rng: random.Random, values: Sequence[Any], dtypes: str = "bool int float") -> Any:
    """A matrix among the latest values, of one of these kinds of type."""
    matrices = [v for v in values if v.ndim == 2]
    found = [v for v in matrices if kind(v.dtype) in dtypes]
    return rng.choice(found[-2:]) if found else fl.cast(rng.choice(matrices[-2:]), fl.f32 if "float" in dtypes else fl.i32)


def _like(rng: random.Random, values: Sequence[Any], a: Any) -> Any:
    return rng.choice([v for v in values if tuple(map(str, v.shape)) == tuple(map(str, a.shape)) and v.dtype == a.dtype] or [a])


# ---------------------------------------------------------------- steps
def _elementwise(rng: random.Random, values: list[Any], name: str) -> Any:
    a = _pick(rng, values)
    b = _like(rng, values, a)
    return fl.stage(lambda i, j: rng.choice(POINTWISE[kind(a.dtype)])(a[i, j], b[i, j], i, j), name=name)


POINTWISE: dict[str, list[Callable[..., Any]]] = {
    "float": [
        lambda a, b, i, j: a * 2 + b,
        lambda a, b, i, j: fl.where(a > 0.25, a, b - 1),
        lambda a, b, i, j: fl.maximum(a, 0) + i * 0.5 - j,
        lambda a, b, i, j: abs(a) / (1 + abs(b)),
        lambda a, b, i, j: fl.exp(fl.minimum(a, 1)) - fl.sqrt(abs(b)),
        lambda a, b, i, j: fl.where((i + j) % 3 == 0, a, -b),
    ],
    "int": [
        lambda a, b, i, j: a * 3 + b,
        lambda a, b, i, j: a // b - a % b,
        lambda a, b, i, j: (a >> 1) ^ (b << 2),
        lambda a, b, i, j: fl.where(a > b, fl.maximum(a, 2), b & 7),
        lambda a, b, i, j: fl.minimum(a, b) + i - j,
    ],
    "bool": [
        lambda a, b, i, j: (a & b) | (i < j),
        lambda a, b, i, j: a ^ b,
        lambda a, b, i, j: ~a | b,
    ],
}


def _cast(rng: random.Random, values: list[Any], name: str) -> Any:
    a = _pick(rng, values)
    to = rng.choice([t for t in (*FLOATS, *OTHERS) if t.dtype_name != a.dtype])
    return fl.stage(lambda i, j: fl.cast(a[i, j], to), name=name)


def _stencil(rng: random.Random, values: list[Any], name: str) -> Any:
    a = _pick(rng, values, "int float")
    view = rng.choice([fl.edge, fl.reflect, fl.wrap, lambda t: fl.constant(t, 1)])(a)
    dy, dx = rng.randint(0, 2), rng.randint(1, 3)
    if rng.random() < 0.4:
        over = {"p": (-dy, dy + 1), "q": (-dx, dx + 1)}
        reduce = rng.choice([fl.sum, fl.max])
        return fl.stage(lambda i, j: reduce(lambda p, q: view[i + p, j + q], over=over), name=name)
    return fl.stage(lambda i, j: view[i - dy, j] + view[i, j - dx] - view[i + 1, j + dx], name=name)


def _reduction(rng: random.Random, values: list[Any], name: str) -> Any:
    """A reduction over rows, columns or all, and a stage that reads it."""
    a = _pick(rng, values, "int float")
    reduce: Callable[..., Any] = getattr(fl, rng.choice(REDUCTIONS))
    over = rng.randrange(3)
    if over == 2:
        total = fl.stage(lambda: reduce(lambda p, q: a[p, q]), name=name)
        return fl.stage(lambda i, j: a[i, j] - fl.cast(total[()], a.dtype), name=name + "b")
    result = fl.stage(lambda i: reduce(lambda k: a[i, k] if over else a[k, i]), name=name)
    return fl.stage(lambda i, j: a[i, j] - fl.cast(result[i if over else j], a.dtype), name=name + "b")


def _truth(rng: random.Random, values: list[Any], name: str) -> Any:
    a = _pick(rng, values, "int float")
    reduce: Callable[..., Any] = rng.choice([fl.any, fl.all])
    limit = rng.choice([0, 1])
    result = fl.stage(lambda i: reduce(lambda k: a[i, k] < limit), name=name)
    return fl.stage(lambda i, j: fl.where(result[i], a[i, j], 1), name=name + "b")


def _matmul(rng: random.Random, values: list[Any], name: str) -> Any:
    a = _pick(rng, values, "int float")
    found = [v for v in values if v.ndim == 2 and v.dtype == a.dtype]
    b = rng.choice(found[-2:] or [a])
    if rng.random() < 0.5:
        return fl.stage(lambda i, j: fl.sum(lambda k: a[i, k] * b[j, k]), name=name)
    return fl.stage(lambda i, j: fl.sum(lambda k: a[k, i] * b[k, j]), name=name)


def _moved(rng: random.Random, values: list[Any], name: str) -> Any:
    a = _pick(rng, values, "int float")
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


def _gather(rng: random.Random, values: list[Any], name: str) -> Any:
    a, b = _pick(rng, values), _pick(rng, values, "int float")
    rows = fl.stage(lambda i, j: fl.cast(b[i, j] * 5, fl.i32), name=name)
    return fl.stage(lambda i, j: a[rows[i, j], j] if rng.random() < 0.5 else a[j // 2, rows[i, j]], name=name + "b", extents=None)


def _operator(rng: random.Random, values: list[Any], name: str) -> Any:
    a = _pick(rng, values, "float")
    return rng.choice(
        [lambda t: fl.softmax(t), lambda t: fl.softmax(t, axis=0), fl.relu, fl.sigmoid, lambda t: fl.mean(t, axis=1, keepdims=True) + t]
    )(a)


STEPS: list[Step] = [
    _elementwise, _elementwise, _elementwise, _stencil, _stencil, _stencil, _reduction, _reduction, _truth, _matmul, _moved, _cast,
    _gather, _operator,
]  # fmt: skip
