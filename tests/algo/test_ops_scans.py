"""Running sums, products and extremes, linear recurrences and filters, against NumPy and SciPy."""

from __future__ import annotations

import fluorite as fl
import numpy as np
import pytest
from operator_running import both, near, numbers, refusal, same
from scipy import signal

SHAPES = [(1,), (7,), (0,), (5, 3), (1, 17), (17, 1), (3, 4, 5), (2, 0, 3)]


def axes(shape: tuple[int, ...]) -> list[int]:
    return [*range(len(shape)), -1]


@pytest.mark.parametrize("shape", SHAPES)
def test_running_sums_products_and_extremes(shape: tuple[int, ...]) -> None:
    x = numbers(*shape)
    for axis in axes(shape):
        same(both(lambda x: fl.cumulative_sum(x, axis), x), np.cumsum(x, axis))  # noqa: B023
        same(both(lambda x: fl.cumulative_prod(x, axis), x), np.cumprod(x, axis))  # noqa: B023
        same(both(lambda x: fl.cumulative_max(x, axis), x), np.maximum.accumulate(x, axis))  # noqa: B023
        same(both(lambda x: fl.cumulative_min(x, axis), x), np.minimum.accumulate(x, axis))  # noqa: B023
        backward = np.flip(np.cumsum(np.flip(x, axis), axis), axis)
        same(both(lambda x: fl.cumulative_sum(x, axis, reverse=True), x), backward)  # noqa: B023


@pytest.mark.parametrize("shape", SHAPES)
def test_the_initial_element(shape: tuple[int, ...]) -> None:
    x = numbers(*shape)
    for axis in axes(shape):
        edge = np.zeros([1 if d == axis % len(shape) else n for d, n in enumerate(shape)], np.float32)
        wanted = np.concatenate([edge, np.cumsum(x, axis)], axis)
        same(both(lambda x: fl.cumulative_sum(x, axis, include_initial=True), x), wanted)  # noqa: B023
        wanted = np.concatenate([np.flip(np.cumprod(np.flip(x, axis), axis), axis), edge + 1], axis)
        same(both(lambda x: fl.cumulative_prod(x, axis, include_initial=True, reverse=True), x), wanted)  # noqa: B023


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int32", "int64", "float64"])
def test_types(dtype: str) -> None:
    x = numbers(9, dtype=dtype)
    wide = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32"}.get(dtype, dtype)
    same(both(lambda x: fl.cumulative_sum(x), x), np.cumsum(x, dtype=wide))
    same(both(lambda x: fl.cumulative_sum(x, dtype=fl.f64), x), np.cumsum(x, dtype="float64"))
    same(both(lambda x: fl.cumulative_max(x), x), np.maximum.accumulate(x))


def test_nan_and_infinity_stay() -> None:
    x = np.array([1, np.nan, 2, np.inf, -np.inf, 3], np.float32)
    same(both(lambda x: fl.cumulative_max(x), x), np.maximum.accumulate(x))
    same(both(lambda x: fl.cumulative_min(x, reverse=True), x), np.minimum.accumulate(x[::-1])[::-1])
    y = np.array([-np.inf, -np.inf, 2, 3, np.inf, -4], np.float32)
    near(both(lambda y: fl.logcumsumexp(y), y), np.logaddexp.accumulate(y))


@pytest.mark.parametrize("shape", SHAPES)
def test_logcumsumexp(shape: tuple[int, ...]) -> None:
    x = 50 * numbers(*shape)
    for axis in axes(shape):
        near(both(lambda x: fl.logcumsumexp(x, axis), x), np.logaddexp.accumulate(x, axis), 1e-5)  # noqa: B023


FILTERS = [([1.0], [1.0]), ([0.2, 0.3, 0.1], [2.0, -0.5, 0.25]), ([1.0, -1.0], [1.0, -0.9]), ([0.5], [1, 0, -0.3])]


@pytest.mark.parametrize(("b", "a"), FILTERS)
def test_filters(b: list[float], a: list[float]) -> None:
    for shape in [(1,), (2,), (40,), (5, 9), (3, 1), (0, 4)]:
        x = numbers(*shape)
        for axis in axes(shape):
            got = both(lambda x: fl.lfilter(b, a, x, axis), x)  # noqa: B023
            if x.size:
                near(got, signal.lfilter(b, a, x.astype(np.float64), axis).astype(np.float32), 1e-5)
                got = both(lambda x: fl.lfilter(np.array(b), a, x, axis, reverse=True), x)  # noqa: B023
                near(got, np.flip(signal.lfilter(b, a, np.flip(x, axis).astype(np.float64), axis), axis).astype(np.float32), 1e-5)


def test_linear_recurrences_and_averages() -> None:
    a, x = numbers(6, 11), numbers(6, 11, seed=1)
    wanted, h = np.zeros((6, 11)), np.full(6, 0.5)
    for t in range(11):
        h = wanted[:, t] = a[:, t] * h + x[:, t]
    near(both(lambda a, x: fl.linear_recurrence(a, x, initial=0.5), a, x), wanted.astype(np.float32), 1e-4)
    near(both(lambda x: fl.linear_recurrence(0.5, x, 0), x), signal.lfilter([1], [1, -0.5], x, 0).astype(np.float32), 1e-5)
    h = wanted[:, 0] = x[:, 0]
    for t in range(1, 11):
        h = wanted[:, t] = h + 0.3 * (x[:, t] - h)
    near(both(lambda x: fl.exponential_moving_average(x, 0.3), x), wanted.astype(np.float32), 1e-5)


@pytest.mark.parametrize(
    ("code", "fn"),
    [
        ("A302", lambda x: fl.cumulative_sum(x)),
        ("A302", lambda x: fl.cumulative_sum(x, 2)),
        ("A304", lambda x: fl.lfilter([], [1.0], x)),
        ("A304", lambda x: fl.lfilter([1.0], [0.0, 1.0], x)),
        ("A304", lambda x: fl.lfilter([1.0], ["a"], x)),
        ("A304", lambda x: fl.exponential_moving_average(x, 2.0)),
        ("A301", lambda x: fl.linear_recurrence(np.ones(3, np.float32), x)),
        ("A306", lambda x: fl.lfilter([1.0], [1.0], fl.cast(x, fl.i32))),
    ],
)
def test_refusals(code: str, fn: object) -> None:
    assert refusal(fn, numbers(3, 4)).code == code  # type: ignore[arg-type]
