"""Arithmetic at its edges, compiled: what the processor traps on, what the code generator takes for granted, what has no elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.schedule import ExecutionPlan

Array = np.ndarray[Any, Any]
INTEGERS = {"int32": fl.i32, "int64": fl.i64, "uint32": fl.u32, "uint64": fl.u64, "int8": fl.i8, "uint8": fl.u8}


def same(f: Callable[..., Any], *inputs: Array, plan: ExecutionPlan | None = None) -> None:
    """What is compiled gives what the interpreter gives."""
    wanted, found = fl.trace(f).run(*inputs), fl.compile(f, plan)(*inputs)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def edges(dtype: str) -> Array:
    info = np.iinfo(dtype)
    few = [0, 1, 2, 3, 7, 100, info.max, info.max - 1, info.min, info.min + 1, info.max // 2, info.max // 2 + 1]
    return np.array(few + ([-1, -2, -7] if info.min else []), dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap_and_division_by_zero_is_zero(dtype: str) -> None:
    a, b = (np.ascontiguousarray(x.ravel()) for x in np.meshgrid(edges(dtype), edges(dtype)))
    vector = INTEGERS[dtype][fl.Tensor, "n"]

    def f(x: fl.Tensor, y: fl.Tensor) -> dict[str, Any]:
        return {
            "sum": fl.stage(lambda i: x[i] + y[i]),
            "difference": fl.stage(lambda i: x[i] - y[i]),
            "product": fl.stage(lambda i: x[i] * y[i]),
            "doubled": fl.stage(lambda i: (x[i] * 2) // 2),
            "wraps": fl.stage(lambda i: x[i] + 1 < x[i]),
            "below": fl.stage(lambda i: x[i] - 1 > x[i]),
            "quotient": fl.stage(lambda i: x[i] // y[i]),
            "remainder": fl.stage(lambda i: x[i] % y[i]),
            "by a number": fl.stage(lambda i: x[i] // 7 + x[i] % 5),
            "by nothing": fl.stage(lambda i: x[i] // 0 + x[i] % 0),
            "by the place": fl.stage(lambda i: x[i] // fl.cast(i, dtype) + x[i] % fl.cast(i, dtype)),
            "tested": fl.stage(lambda i: fl.where(y[i] != 0, x[i] // y[i], x[i])),
            "negated": fl.stage(lambda i: -x[i] + abs(x[i])),
            "total": fl.sum(x),
        }

    f.__annotations__ |= {"x": vector, "y": vector}
    wanted, found = fl.trace(f).run(a, b), fl.compile(f)(a, b)
    for name in wanted:
        np.testing.assert_array_equal(found[name], wanted[name], name)


@pytest.mark.parametrize("by", ["-2", "n - 5", "3 - n", "-n", "0", "3", "x[0]"])
def test_indices_divided_by_anything(by: str) -> None:
    def f(x: fl.i32[fl.Tensor, "n"]) -> Any:
        edge, wrap, reflect, n = fl.edge(x), fl.wrap(x), fl.reflect(x), fl.extent("n")

        def divided(i: Any) -> Any:
            d = x[0] if by == "x[0]" else eval(by, {"n": n})
            return edge[i // d] + wrap[i % d] + reflect[i - i // d] + x[i]

        return fl.stage(divided)

    model, graph = fl.compile(f), fl.trace(f)
    for n in (1, 2, 5, 7, 16, 33):
        x = np.arange(n, dtype=np.int32) * 3 - 4
        np.testing.assert_array_equal(model(x), graph.run(x), f"n = {n}")


NOT_NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "equal": lambda p, q: p == q,
    "unequal": lambda p, q: p != q,
    "below": lambda p, q: p < q,
    "at most": lambda p, q: p <= q,
    "not below": lambda p, q: ~(p < q),
    "not at most": lambda p, q: ~(p <= q),
    "not equal": lambda p, q: ~(p == q),
    "not unequal": lambda p, q: ~(p != q),
    "equal to itself": lambda p, q: p == p,
    "unequal to itself": lambda p, q: p != p,
    "at most itself": lambda p, q: p <= p,
    "not at most itself": lambda p, q: ~(p <= p),
    "less than one more": lambda p, q: p + 1 > p,
    "more than a sum": lambda p, q: p + q < p,
    "difference below zero": lambda p, q: (p - q) < 0,
    "not both": lambda p, q: ~((p < q) & (q < 1)),
    "one of both": lambda p, q: (p < q) ^ (q < p),
    "chosen": lambda p, q: fl.where(p != q, p, 1),
    "chosen by not": lambda p, q: fl.where(~(p < q), p, q),
    "isnan": lambda p, q: fl.isnan(p),
    "isnan of a sum": lambda p, q: fl.isnan(p + q),
    "not finite": lambda p, q: ~fl.isfinite(p),
    "not infinite": lambda p, q: ~fl.isinf(p),
    "maximum": fl.maximum,
    "minimum": fl.minimum,
    "at least 1": lambda p, q: fl.maximum(p, 1),
    "1 at least": lambda p, q: fl.maximum(1, p),
    "no more than 1": lambda p, q: fl.minimum(p, 1),
    "less itself": lambda p, q: p - p,
    "times zero": lambda p, q: p * 0,
    "times minus zero": lambda p, q: -0.0 * p,
    "by itself": lambda p, q: p / p,
    "sign": lambda p, q: fl.sign(p),
    "quotient": lambda p, q: p // q,
    "remainder": lambda p, q: p % q,
    "rounded": lambda p, q: fl.round(p),
    "truth": lambda p, q: fl.cast(p, "bool"),
    "whole": lambda p, q: fl.cast(p, "int32"),
    "sum less a part": lambda p, q: (p + q) - q,
    "relu": lambda p, q: fl.relu(p),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_and_infinities_are_no_real_numbers(dtype: str) -> None:
    few = np.array([-np.inf, -1, -0.0, 0, 1, np.inf, np.nan, 2], dtype)
    a, b = map(np.ravel, np.meshgrid(few, few))

    def f(x: fl.Tensor, y: fl.Tensor) -> dict[str, Any]:
        rows = fl.reshape(x, (8, 8))
        reduced = {k: getattr(fl, k)(rows, axis) for k in ("max", "min", "argmax", "argmin", "any", "all", "sum") for axis in (0, 1)}
        return {k: fl.stage(lambda i, g=g: g(x[i], y[i])) for k, g in NOT_NUMBERS.items()} | reduced

    f.__annotations__ |= {"x": fl.Spec(dtype, (None,), (64,)), "y": fl.Spec(dtype, (None,), (64,))}
    wanted, found = fl.trace(f).run(a, b), fl.compile(f)(a, b)
    for name in wanted:
        np.testing.assert_array_equal(found[name], wanted[name], name)
        if wanted[name].dtype == dtype and name not in ("sign", "remainder", "quotient"):  # whose zeros have any sign
            zero = wanted[name] == 0
            np.testing.assert_array_equal(np.signbit(found[name][zero]), np.signbit(wanted[name][zero]), f"zeros of {name}")


def test_division_by_a_number_that_is_zero() -> None:
    def f(x: fl.f32[fl.Tensor, "n"]) -> Any:
        return fl.stage(lambda i: fl.where(x[i] > 5, x[i] / 0, x[i] / -0.0))

    with np.errstate(all="ignore"):
        same(f, np.array([-1, 0, 3, 6, np.inf, np.nan], np.float32))


def test_numbers_larger_than_their_type() -> None:
    def f(x: fl.f32[fl.Tensor, "n"]) -> Any:
        return fl.stage(lambda i: x[i] + fl.cast(1e300, fl.f32) * fl.cast(-1e300, fl.f32))

    with np.errstate(all="ignore"):
        same(f, np.ones(3, np.float32))


def test_constants_of_foreign_byte_order() -> None:
    table = np.arange(5, dtype=">f4")

    def f(x: fl.f32[fl.Tensor, 5]) -> Any:
        return x * table

    same(f, np.arange(5, dtype=np.float32))


@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (4, 0), (1, 1), (3, 2)])
def test_symbolic_extents_of_zero(shape: tuple[int, int]) -> None:
    plan = ExecutionPlan.from_yaml("version: 1\nextents: {n: {between: [0, 99]}, m: {max: 99}}\n")
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)

    def smooth(x: fl.f32[fl.Tensor, "n", "m"]) -> Any:
        view = fl.edge(x)
        return fl.stage(lambda i, j: view[i - 1, j] + view[i, j + 1])

    def total(x: fl.f32[fl.Tensor, "n", "m"]) -> Any:
        return fl.sum(x, axis=1)

    same(smooth, x, plan=plan)
    same(total, x, plan=plan)


def refusals(f: Callable[..., Any], *inputs: Array) -> tuple[str, str]:
    """The codes with which the interpreter and the built model refuse a call."""
    codes = []
    for call in (fl.trace(f).run, fl.compile(f)):
        with pytest.raises(fl.RunError) as caught:
            call(*inputs)
        codes.append(caught.value.problems[0].code)
    return codes[0], codes[1]


def test_built_models_refuse_what_the_interpreter_refuses() -> None:
    n = fl.extent("n")

    def negative(x: fl.f32[fl.Tensor, "n"]) -> Any:
        return fl.stage(lambda i: x[i] + fl.sum(lambda k: x[k], over={"k": n - 5}))

    def within(x: fl.f32[fl.Tensor, "n"]) -> Any:
        part = fl.stage(lambda i: x[i] * 2, extents={"i": n - 5})
        return fl.stage(lambda j: x[j] + fl.sum(lambda k: part[k]))

    def nothing(x: fl.f32[fl.Tensor, "n"]) -> Any:
        return fl.stage(lambda i: x[i] + fl.max(lambda k: x[k], over={"k": n - 5}))

    def empty(x: fl.f32[fl.Tensor, "n"]) -> Any:
        part = fl.edge(fl.stage(lambda i: x[i] * 2, extents={"i": n - 5}))
        return fl.stage(lambda j: x[j] + part[j - 1])

    four, five, six = (np.ones(n, np.float32) for n in (4, 5, 6))
    assert refusals(negative, four) == refusals(within, four) == ("R120", "R120")
    assert refusals(nothing, five) == ("R121", "R121")
    assert refusals(empty, five) == ("R122", "R122")
    for f in (negative, within, nothing, empty):
        same(f, six)
