"""Fourier transforms against NumPy's, with the error that the arithmetic of their stages can make."""

from __future__ import annotations

import math
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.ops.fourier import circle, factors
from operator_running import numbers, refusal, run

LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 30, 49, 60, 97, 128, 210]
NORMS = ["backward", "ortho", "forward"]


def numbers_of(pairs: Any) -> Any:
    return pairs[..., 0] + 1j * pairs[..., 1]


def within(got: Any, want: Any, magnitudes: Any, n: int, terms: int) -> None:
    """An element is a sum of numbers of these magnitudes, turned. Each stage adds r of them, rounding at most 2 r times, and its table
    once, in each part; then there is one product with the scale, and where the norm divides its rounding. NumPy's own error is as large."""
    unit = np.finfo(got.dtype).eps / 2
    roundings = sum(2 * r + 1 for r in factors(n)) + 2
    bound = 2 * math.sqrt(2) * roundings * unit * magnitudes * (1 + 1e-3)
    assert got.shape[: got.ndim - terms] == want.shape
    apart = np.abs((numbers_of(got) if terms else got) - want)
    assert (apart <= bound).all(), float((apart / bound).max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n: int, dtype: str) -> None:
    x = numbers(3, n, 2, dtype=dtype)
    c = numbers_of(x.astype(float))
    size = np.abs(c).sum(-1, keepdims=True)
    for norm in NORMS:
        scale = {"backward": 1, "ortho": 1 / math.sqrt(n), "forward": 1 / n}[norm]
        within(run(lambda x, k=norm: fl.fft(x, norm=k), x), np.fft.fft(c, norm=norm), size * scale, n, 1)
        within(run(lambda x, k=norm: fl.ifft(x, norm=k), x), np.fft.ifft(c, norm=norm), size / n / scale, n, 1)
        line = x[..., 0]
        real = np.abs(line).sum(-1, keepdims=True)
        within(run(lambda x, k=norm: fl.rfft(x, norm=k), line), np.fft.rfft(line.astype(float), norm=norm), real * scale, n, 1)
        for m in (2 * n - 2, 2 * n - 1):
            if m:
                shares = {"backward": 1 / m, "ortho": 1 / math.sqrt(m), "forward": 1}[norm]
                want = np.fft.irfft(c, m, norm=norm)
                within(run(lambda x, m=m, k=norm: fl.irfft(x, m, norm=k), x), want, 2 * size * shares, m, 0)


@pytest.mark.parametrize("axis", [0, 1, -1, "b"])
def test_axes_and_lengths_that_are_cut_or_filled_up(axis: Any) -> None:
    x = numbers(6, 5, 4, 2)
    c, at = numbers_of(x.astype(float)), 1 if axis == "b" else axis
    for n in (None, 3, 8):
        size = np.abs(c).sum(at, keepdims=True)
        m = n or c.shape[at]
        for shape in ((6, 5, 4), ("a", "b", "c")):
            if n is None and shape[0] == "a":
                continue

            def on(fn: Any, *rest: int, shape: Any = shape) -> Any:
                named = [f"{name}={e}" if isinstance(e, int) else e for name, e in zip("abc", shape, strict=True)]
                return fl.trace(fn, inputs={"x": fl.f32(*named, *rest)}).run(x if rest else x[..., 0])

            within(on(lambda x, n=n: fl.fft(x, n, axis), 2), np.fft.fft(c, n, at), size, m, 1)
            within(on(lambda x, n=n: fl.rfft(x, n, axis)), np.fft.rfft(c.real, n, at), size, m, 1)
            if n is not None:
                within(on(lambda x, n=n: fl.irfft(x, n, axis), 2), np.fft.irfft(c, n, at), 2 * size / n, n, 0)


def test_planes_and_round_trips() -> None:
    x = numbers(2, 6, 10, 2, dtype="float64")
    c = numbers_of(x)
    size = np.abs(c).sum((1, 2), keepdims=True)
    within(run(lambda x: fl.fft2(x), x), np.fft.fft2(c), size, 60, 1)
    within(run(lambda x: fl.ifft2(x, norm="ortho"), x), np.fft.ifft2(c, norm="ortho"), size / math.sqrt(60), 60, 1)
    np.testing.assert_allclose(run(lambda x: fl.ifft2(fl.fft2(x)), x), x, atol=1e-13)
    np.testing.assert_allclose(run(lambda x: fl.irfft(fl.rfft(x, axis=2), axis=2), x), x, atol=1e-13)


def test_factors_and_tables() -> None:
    assert [factors(n) for n in (1, 2, 8, 60, 97, 98)] == [[1], [2], [4, 2], [4, 3, 5], [97], [2, 7, 7]]
    for n in (1, 2, 3, 4, 8, 12, 97, 1000):
        cosines, sines = circle(n)
        k = np.arange(n)
        angles = k * (2 * np.arccos(np.longdouble(-1)) / n)
        assert np.abs(cosines - np.cos(angles)).max() <= 2e-16 and np.abs(sines - np.sin(angles)).max() <= 2e-16
        assert (np.abs(cosines**2 + sines**2 - 1) <= 4e-16).all()
        assert (cosines[(4 * k) % n == 0] == np.rint(cosines[(4 * k) % n == 0])).all()
    eight = circle(8)
    assert abs(eight[0][1]) == abs(eight[1][1]) == abs(eight[0][3])


def test_large_tables_are_read_off_one_circle(monkeypatch: pytest.MonkeyPatch) -> None:
    x = numbers(2, 33, 2)
    whole = run(lambda x: fl.fft(x), x)
    monkeypatch.setattr("fluorite.algo.ops.fourier._TABLE", 1)
    np.testing.assert_array_equal(run(lambda x: fl.fft(x), x), whole)


def test_known_transforms() -> None:
    line = np.zeros((12, 2), np.float32)
    line[0, 0] = 1
    np.testing.assert_array_equal(run(lambda x: fl.fft(x), line), np.tile(np.float32([1, 0]), (12, 1)))
    ones = np.ones(16, np.float32)
    found = run(lambda x: fl.rfft(x), ones)
    assert found.dtype == np.float32 and found[0].tolist() == [16, 0] and np.abs(found[1:]).max() <= 16 * np.finfo(np.float32).eps


def test_refusals() -> None:
    x = numbers(3, 4, 2)
    for call, code, why in [
        (lambda x: fl.fft(x[..., 0]), "A301", "real and imaginary parts"),
        (lambda x: fl.fft(fl.cast(x, fl.f16)), "A306", "products with sines"),
        (lambda x: fl.fft(x, 0), "A304", "one element at least"),
        (lambda x: fl.fft(x, 2.0), "A304", "an integer"),
        (lambda x: fl.fft(x, norm="half"), "A304", "one of these"),
        (lambda x: fl.fft(x, axis=2), "A302", "axes run from -2 to 1"),
        (lambda x: fl.irfft(x[:, :1]), "A304", "one element at least"),
        (lambda x: fl.fft2(x[0]), "A307", "y and x"),
    ]:
        problem = refusal(call, x)
        assert problem.code == code and why in problem.why, problem
    free = refusal(lambda x: fl.rfft(x), np.ones((3, 4), np.float32), symbolic=True)
    assert free.code == "A304" and "must be known" in free.why
