"""Operations on every type, in vectors and in loops, on awkward extents and on none."""

# ruff: noqa: E501 (one case a line)
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import fluorite as fl
import pytest
from lowering import AWKWARD, Zoo

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
TYPES = {t.dtype_name: t for t in (fl.boolean, fl.i8, fl.i16, fl.i32, fl.i64, fl.u8, fl.u16, fl.u32, fl.u64, fl.f32, fl.f64)}


def integers(x: Any, y: Any) -> dict[str, Any]:
    return {
        "sum": x + y * 3, "difference": x - y, "quotient": x // y, "remainder": x % y, "bits": (x & y) | (x ^ 5), "inverse": ~x, "left": x << y,
        "right": x >> y, "least": fl.minimum(x, y), "most": fl.maximum(x, y), "size": abs(x), "sign": fl.sign(x), "negative": -x,
        "chosen": fl.where(x > y, x, y), "less": x <= y, "equal": x == y, "different": x != y,
    }  # fmt: skip


def floats(x: Any, y: Any) -> dict[str, Any]:
    return {
        "sum": x + y * 3, "quotient": x / (y + 5), "floor_quotient": x // (abs(y) + 1), "remainder": x % (abs(y) + 1), "root": fl.sqrt(abs(x)),
        "least": fl.minimum(x, y), "most": fl.maximum(x, y), "size": abs(x), "sign": fl.sign(x), "floor": fl.floor(x), "ceiling": fl.ceil(x),
        "rounded": fl.round(x), "whole": fl.trunc(x), "chosen": fl.where(x > y, x, y), "less": x < y, "exp": fl.exp(x), "tanh": fl.tanh(x),
    }  # fmt: skip


def truths(x: Any, y: Any) -> dict[str, Any]:
    return {"and": x & y, "or": x | y, "xor": x ^ y, "not": ~x, "equal": x == y, "chosen": fl.where(x, y, ~y)}


def reductions(x: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        f"{name}_{axis}": getattr(fl, name)(x, axis=axis) for name in ("sum", "max", "argmax", "argmin") for axis in (0, 1)
    }
    return made | {"min": fl.min(x), "prod": fl.prod(x, axis=1)}


def stencils(x: Any, y: Any) -> dict[str, Any]:
    def beside(v: Any) -> Any:
        return fl.stage(lambda i, j: v[i - 2, j + 1] - v[i + 1, j - 3])

    views = {"edge": fl.edge(x), "reflect": fl.reflect(x), "wrap": fl.wrap(x), "constant": fl.constant(x, 3)}
    return {name: beside(v) for name, v in views.items()} | {
        "product": fl.stage(lambda i, j: fl.sum(lambda k: x[i, k] * y[j, k])),
        "joined": fl.concatenate([x, y, x], axis=1),
        "gathered": fl.stage(lambda i, j: x[fl.cast(y[i, j], fl.i32), j]),
        "turned": x.T,
    }


def casts(x: Any) -> dict[str, Any]:
    return {name: fl.cast(x, t) for name, t in TYPES.items()}


def methods_of(
    types: list[str], reduced: list[str], read: list[str], cast: list[str]
) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    methods: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {}
    for name in types:
        one, two = {"x": TYPES[name]("n", "m")}, {"x": TYPES[name]("n", "m"), "y": TYPES[name]("n", "m")}
        methods[f"elements_{name}"] = (truths if name == "bool" else integers if name in INTEGERS else floats, two)
        if name in cast:
            methods[f"casts_{name}"] = (casts, one)
        if name in reduced:
            methods[f"reductions_{name}"] = (settled if name == "bool" else reductions, one)
        if name in read:
            methods[f"reads_{name}"] = (stencils, two)
    return methods


def settled(x: Any) -> dict[str, Any]:
    return {"any": fl.any(x, axis=0), "all": fl.all(x, axis=1), "sum": fl.sum(x)}


_FAST = ["bool", "int32", "uint8", "float32"]
IN_VECTORS = methods_of(_FAST, ["bool", "int32", "float32"], ["uint8", "float32"], ["bool", "float32"])
_PLAIN = ["int8", "int16", "int64", "uint16", "uint32", "uint64", "float64"]
IN_LOOPS = methods_of(_PLAIN, _PLAIN, _PLAIN, ["int8", "int64", "uint32", "float64"])


@pytest.fixture(scope="module")
def in_vectors() -> Iterator[Zoo]:
    yield Zoo(IN_VECTORS)


@pytest.fixture(scope="module")
def in_loops() -> Iterator[Zoo]:
    """As written, which compiles faster: what differs between types is in the scalar operations."""
    yield Zoo(IN_LOOPS, "schedule: {'**': [compute_root]}\nfusion: {rest: none}")


@pytest.mark.parametrize("method", IN_VECTORS)
def test_types_in_vectors(in_vectors: Zoo, method: str) -> None:
    for n, m in AWKWARD:
        in_vectors.agrees(method, {"n": n, "m": m})


@pytest.mark.parametrize("method", IN_LOOPS)
def test_types_in_loops(in_loops: Zoo, method: str) -> None:
    for n, m in AWKWARD:
        in_loops.agrees(method, {"n": n, "m": m})


def test_empty_extents() -> None:
    def model(x: Any) -> Any:
        return {"out": x * 2, "sum": fl.sum(x, axis=0), "joined": fl.concatenate([x, x], axis=0)}

    made = Zoo({"run": (model, {"x": fl.f32("n", 5)})}, "extents: {n: {max: 64}}")
    for n in (0, 1, 64):
        made.agrees("run", {"n": n})
