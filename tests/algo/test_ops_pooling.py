"""Pooling over windows, parts and whole images, against the definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from operator_running import both, graph_of, near, numbers, refusal, run


def windowed(x: np.ndarray, taps: int, stride: int, pad: int, dilation: int, ceil: bool, how: Callable[[np.ndarray, int], float]) -> Any:
    """`how` of each window of the last axis (a list of elements that are there) and of the number that its padding would hold."""
    reach = (taps - 1) * dilation + 1
    room = x.shape[-1] + 2 * pad - reach
    count = (-(-room // stride) if ceil else room // stride) + 1
    if ceil and (count - 1) * stride >= x.shape[-1] + pad:
        count -= 1
    out = np.zeros((*x.shape[:-1], count))
    for place in np.ndindex(*x.shape[:-1]):
        for i in range(count):
            reads = [i * stride - pad + k * dilation for k in range(taps)]
            there = x[place][[r for r in reads if 0 <= r < x.shape[-1]]].astype(float)
            out[(*place, i)] = how(there, sum(r < x.shape[-1] + pad for r in reads))
    return out


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize(("taps", "stride", "pad", "dilation"), [(2, 2, 0, 1), (3, 2, 1, 1), (3, 4, 1, 1), (2, 3, 1, 2), (3, 1, 1, 2)])
def test_pools_over_a_line(taps: int, stride: int, pad: int, dilation: int, ceil: bool) -> None:
    for size in (7, 8, 10):
        x = numbers(2, 3, size)
        want = windowed(x, taps, stride, pad, dilation, ceil, lambda v, n: v.max())
        near(both(lambda x: fl.max_pool1d(x, taps, stride=stride, padding=pad, dilation=dilation, ceil=ceil), x), want)
        if dilation == 1:
            mean = windowed(x, taps, stride, pad, 1, ceil, lambda v, n: v.mean())
            near(both(lambda x: fl.avg_pool1d(x, taps, stride=stride, padding=pad, ceil=ceil), x), mean, 1e-5)
            filled = windowed(x, taps, stride, pad, 1, ceil, lambda v, n: v.sum() / n)
            near(both(lambda x: fl.avg_pool1d(x, taps, stride=stride, padding=pad, include_padding=True, ceil=ceil), x), filled, 1e-5)
        if dilation == 1 and not pad:
            power = windowed(x, taps, stride, 0, 1, ceil, lambda v, n: (np.abs(v) ** 3).sum() ** (1 / 3))
            near(both(lambda x: fl.lp_pool1d(x, taps, p=3, stride=stride, ceil=ceil), x), power, 1e-5)


def test_pools_over_planes_and_volumes_take_an_axis_at_a_time() -> None:
    x = numbers(1, 2, 5, 7, 6)

    def along(x: np.ndarray, axis: int, taps: int, stride: int, ceil: bool) -> np.ndarray:
        moved = windowed(np.moveaxis(x, axis, -1), taps, stride, 1, 1, ceil, lambda v, n: v.max())
        return np.moveaxis(moved, -1, axis)

    want = along(along(along(x, 2, 2, 3, True), 3, 3, 2, True), 4, 2, 2, True)
    near(both(lambda x: fl.max_pool3d(x, (2, 3, 2), stride=(3, 2, 2), padding=1, ceil=True), x), want)
    plane = x[:, :, 0]
    near(both(lambda x: fl.max_pool2d(x, 3, stride=2, padding=1, ceil=True), plane), along(along(plane, 2, 3, 2, True), 3, 3, 2, True))
    near(both(lambda x: fl.avg_pool3d(x, (5, 7, 3)), x), x.reshape(1, 2, 5, 7, 2, 3).mean((2, 3, 5))[:, :, None, None], 1e-5)
    squares = (plane[:, :, :6, :].astype(float) ** 2).reshape(1, 2, 3, 2, 3, 2).sum((3, 5))
    near(both(lambda x: fl.lp_pool2d(x, 2), plane[:, :, :6]), np.sqrt(squares), 1e-5)
    near(both(lambda x: fl.lp_pool2d(x, 2, p=1), plane[:, :, :6]), np.abs(plane[:, :, :6]).reshape(1, 2, 3, 2, 3, 2).sum((3, 5)), 1e-5)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11])
def test_adaptive_pools(size: int) -> None:
    x = numbers(2, 3, 7)

    def parts(x: np.ndarray, m: int, how: Any) -> np.ndarray:
        n = x.shape[-1]
        return np.stack([how(x[..., i * n // m : -(-(i + 1) * n // m)].astype(float), -1) for i in range(m)], -1)

    near(both(lambda x: fl.adaptive_avg_pool1d(x, size), x), parts(x, size, np.mean), 1e-5)
    near(both(lambda x: fl.adaptive_max_pool1d(x, size), x), parts(x, size, np.max))
    plane = numbers(2, 3, 8, 7)
    both_axes = np.moveaxis(parts(np.moveaxis(parts(plane, size, np.mean), 2, -1), 4, np.mean), -1, 2)
    near(both(lambda x: fl.adaptive_avg_pool2d(x, (4, size)), plane), both_axes, 1e-5)
    largest = np.moveaxis(parts(np.moveaxis(parts(plane, size, np.max), 2, -1), 3, np.max), -1, 2)
    near(both(lambda x: fl.adaptive_max_pool2d(x, (3, size)), plane), largest)


def test_adaptive_pools_keep_an_axis() -> None:
    plane = numbers(2, 3, 8, 7)
    near(both(lambda x: fl.adaptive_avg_pool2d(x, (None, 1)), plane), plane.mean(3, keepdims=True), 1e-5)
    near(both(lambda x: fl.adaptive_max_pool2d(x, [4, None]), plane), plane.reshape(2, 3, 4, 2, 7).max(3))
    near(both(lambda x: fl.adaptive_max_pool2d(x, None), plane), plane)
    pooled = graph_of(lambda x: fl.adaptive_avg_pool2d(x, (None, 1)), plane, symbolic=True)
    assert [str(n) for n in pooled.stages[-1].extents] == ["s2", "s3", "s8", "1"]


def test_pools_of_volumes_and_lines_as_a_whole() -> None:
    line, volume = numbers(2, 3, 5), numbers(2, 3, 4, 3, 5)
    near(both(lambda x: fl.global_avg_pool1d(x), line), line.mean(2), 1e-5)
    near(both(lambda x: fl.global_max_pool1d(x), line), line.max(2))
    near(both(lambda x: fl.global_avg_pool3d(x), volume), volume.mean((2, 3, 4)), 1e-5)
    near(both(lambda x: fl.global_max_pool3d(x), volume), volume.max((2, 3, 4)))
    near(both(lambda x: fl.adaptive_avg_pool3d(x, 1), volume)[:, :, 0, 0, 0], volume.mean((2, 3, 4)), 1e-5)
    near(both(lambda x: fl.adaptive_max_pool3d(x, (2, 1, 1)), volume)[:, :, :, 0, 0], volume.reshape(2, 3, 2, 2, 15).max((3, 4)))


def test_pools_of_integers() -> None:
    x = -np.arange(1, 8, dtype=np.int8).reshape(1, 1, 7)
    assert run(lambda x: fl.max_pool1d(x, 3, stride=2, padding=1), x).tolist() == [[[-1, -2, -4, -6]]]
    assert run(lambda x: fl.adaptive_max_pool1d(x, 3), x).tolist() == [[[-1, -3, -5]]]
    averaged = run(lambda x: fl.adaptive_avg_pool1d(x, 3), x)
    assert averaged.dtype == np.float32 and averaged.tolist() == [[[-2, -4, -6]]]


def test_refusals() -> None:
    x = numbers(1, 4, 6)
    for wrong, code, said in [
        (lambda x: fl.max_pool1d(x, 7), "A301", "reaches over 7 elements"),
        (lambda x: fl.max_pool1d(x, 0), "A304", "at least 1"),
        (lambda x: fl.lp_pool1d(x, 2, p=0), "A304", "above 0"),
        (lambda x: fl.adaptive_avg_pool1d(x, 0), "A304", "at least 1"),
        (lambda x: fl.adaptive_avg_pool1d(x, (None, None)), "A304", "at least 1"),
        (lambda x: fl.adaptive_max_pool2d(x, 2), "A307", "four axes"),
        (lambda x: fl.global_max_pool3d(x), "A307", "five axes"),
    ]:
        problem = refusal(wrong, x)
        assert problem.code == code and said in problem.why, (problem.asked, problem.why)
