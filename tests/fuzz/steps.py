"""What random programs are made of: each step makes new stages from the tensors so far, of every kind that the language has."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import fluorite as fl
from fluorite.algo.dtypes import kind

from . import control

Step = Callable[[random.Random, list[Any], str], Any]
FLOATS = (fl.f32, fl.f32, fl.f32, fl.f32, fl.f64)
NARROW = (fl.f16, fl.bf16, fl.f8e4m3, fl.f8e5m2)
OTHERS = (fl.i32, fl.i64, fl.i16, fl.i8, fl.u8, fl.u16, fl.u32, fl.u64, fl.boolean)
REDUCTIONS = ("sum", "prod", "max", "min", "argmax", "argmin")


# ---------------------------------------------------------------- what a step starts from
def _pick(rng: random.Random, values: Sequence[Any], dtypes: str = "bool int float") -> Any:
    """A matrix among the latest values, of one of these kinds of type."""
    matrices = [v for v in values if v.ndim == 2]
    found = [v for v in matrices if kind(v.dtype) in dtypes]
    return rng.choice(found[-2:]) if found else fl.cast(rng.choice(matrices[-2:]), fl.f32 if "float" in dtypes else fl.i32)


def _like(rng: random.Random, values: Sequence[Any], a: Any) -> Any:
    return rng.choice([v for v in values if tuple(map(str, v.shape)) == tuple(map(str, a.shape)) and v.dtype == a.dtype] or [a])


# ---------------------------------------------------------------- one element from one element
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
    to = rng.choice([t for t in (*FLOATS, *OTHERS, *NARROW) if t.dtype_name != a.dtype])
    return fl.stage(lambda i, j: fl.cast(a[i, j], to), name=name)


def _operator(rng: random.Random, values: list[Any], name: str) -> Any:
    a = _pick(rng, values, "float")
    return rng.choice(
        [lambda t: fl.softmax(t), lambda t: fl.softmax(t, axis=0), fl.relu, fl.sigmoid, lambda t: fl.mean(t, axis=1, keepdims=True) + t]
    )(a)


# ---------------------------------------------------------------- neighbours and views
def _stencil(rng: random.Random, values: list[Any], name: str) -> Any:
    a = _pick(rng, values, "int float")
    view = rng.choice([fl.edge, fl.reflect, fl.wrap, lambda t: fl.constant(t, 1)])(a)
    dy, dx = rng.randint(0, 2), rng.randint(1, 3)
    if rng.random() < 0.4:
        over = {"p": (-dy, dy + 1), "q": (-dx, dx + 1)}
        reduce = rng.choice([fl.sum, fl.max])
        return fl.stage(lambda i, j: reduce(lambda p, q: view[i + p, j + q], over=over), name=name)
    return fl.stage(lambda i, j: view[i - dy, j] + view[i, j - dx] - view[i + 1, j + dx], name=name)


def _moved(rng: random.Random, values: list[Any], name: str) -> Any:
    a = _pick(rng, values, "int float")
    view = rng.choice(
        [
            lambda: a.T,
            lambda: fl.flip(a, 0),
            lambda: fl.flip(a, 1),
            lambda: fl.concatenate([a, a], axis=1),
            lambda: fl.reshape(fl.reshape(a, (-1,)), a.shape),
            lambda: fl.roll(a, 3, rng.randrange(2)),
            lambda: fl.pad(a, ((1, 0), (0, 2))),
            lambda: fl.tile(a, (2, 1)),
            lambda: a[::2],
            lambda: fl.flip(a, 1)[:, ::-1],
        ]
    )()
    return fl.stage(lambda i, j: view[i, j] + 1, name=name)


def _resampled(rng: random.Random, values: list[Any], name: str) -> Any:
    """Half or twice the size: strides in what is read, quotients in what is written."""
    a = fl.edge(_pick(rng, values, "int float"))
    h, w = a.shape
    if rng.random() < 0.5:
        low = fl.stage(lambda i, j: a[2 * i, 2 * j] + a[2 * i + 1, 2 * j], name=name, extents={"i": (h + 1) // 2, "j": (w + 1) // 2})
        twice = fl.edge(low)
        return fl.stage(lambda i, j: twice[i // 2, j // 2] + a[i, j], name=name + "b", extents={"i": h, "j": w})
    return fl.stage(lambda i, j: fl.where(j % 2 == 0, a[i, j // 2], a[i // 2, j]), name=name, extents={"i": h, "j": 2 * w})


def _solid(rng: random.Random, values: list[Any], name: str) -> Any:
    """Three axes, and back to two."""
    a = _pick(rng, values, "int float")
    wide = fl.edge(a)
    solid = fl.stage(lambda c, i, j: wide[i, j + c] * (c + 1), name=name, extents={"c": 3, **dict(zip("ij", a.shape, strict=True))})
    if rng.random() < 0.5:
        return fl.stage(lambda i, j: fl.sum(lambda c: solid[c, i, j]), name=name + "b")
    return fl.stage(lambda i, j: solid[0, i, j] - solid[2, i, j], name=name + "b")


def _gather(rng: random.Random, values: list[Any], name: str) -> Any:
    a, b = _pick(rng, values), _pick(rng, values, "int float")
    rows = fl.stage(lambda i, j: fl.cast(b[i, j] * 5, fl.i32), name=name)
    return fl.stage(lambda i, j: a[rows[i, j], j] if rng.random() < 0.5 else a[j // 2, rows[i, j]], name=name + "b", extents=None)


# ---------------------------------------------------------------- reductions
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


# ---------------------------------------------------------------- order: recurrences, scatters, sorts
def _recurrence(rng: random.Random, values: list[Any], name: str) -> Any:
    a = _pick(rng, values, "int float")
    axis, reverse = rng.randrange(2), rng.random() < 0.3
    real = kind(a.dtype) == "float"
    return rng.choice(
        [
            lambda: fl.cumulative_sum(a, axis, reverse=reverse),
            lambda: fl.cumulative_max(a, axis, reverse=reverse),
            lambda: fl.lfilter([0.5, 0.25], [1.0, -0.5], a, axis) if real else fl.cumulative_min(a, axis),
            lambda: fl.linear_recurrence(0.5, a, axis, reverse=reverse) if real else fl.cumulative_sum(a, axis),
            lambda: _stepped(a, axis, reverse),
        ]
    )()


def _stepped(a: Any, axis: int, reverse: bool) -> Any:
    """A scan whose carry is mixed across its own axis in every step."""

    def step(h: Any, x: Any) -> tuple[Any, Any]:
        near = fl.edge(h)
        new = fl.stage(lambda j: fl.maximum(near[j - 1], near[j + 1]) + x[j], name="mixed")
        return new, new

    return fl.scan(step, fl.zeros((a.shape[1 - axis],), dtype=a.dtype), a, axis=axis, reverse=reverse)[1]


def _scatter(rng: random.Random, values: list[Any], name: str) -> Any:
    a = _pick(rng, values, "int float")
    at = fl.stage(lambda j: fl.cast(a[0, j] * 3, fl.i32) if rng.random() < 0.7 else j // 2, name=name, extents={"j": a.shape[1]})
    into = rng.choice([fl.scatter_add, fl.scatter_max, fl.scatter_min, fl.scatter])
    return into(a, at, fl.stage(lambda i, j: a[i, j] + 1, name=name + "b"), axis=1)


def _sorted(rng: random.Random, values: list[Any], name: str) -> Any:
    a = _pick(rng, values, "int float")
    axis, descending = rng.randrange(2), rng.random() < 0.4
    return rng.choice(
        [
            lambda: fl.sort(a, axis, descending=descending),
            lambda: fl.argsort(a, axis, descending=descending),
            lambda: fl.top_k(a, 1, axis)[0] + a,
        ]
    )()


def _controlled(rng: random.Random, values: list[Any], name: str) -> Any:
    return rng.choice(control.STEPS)(rng, _pick(rng, values, "float"), name)


STEPS: list[Step] = [
    _elementwise, _elementwise, _elementwise, _stencil, _stencil, _stencil, _reduction, _reduction, _truth, _matmul, _moved, _moved,
    _resampled, _solid, _cast, _gather, _operator, _recurrence, _recurrence, _scatter, _sorted,
    _controlled, _controlled, _controlled,
]  # fmt: skip
