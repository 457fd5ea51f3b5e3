"""Fourier transforms against NumPy's, with the error that the arithmetic of their stages can make."""

from __future__ import annotations

import math
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.ops.fourier_stages import circle, factors
from operator_running import numbers, refusal, run

LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 30, 49, 60, 97, 128, 210]
NORMS = ["backward", "ortho", "forward"]


def within(got: Any, want: Any, magnitudes: Any, n: int) -> None:
    """An element is a sum of numbers of these magnitudes, turned. Each stage adds r of them, rounding at most 2 r times, and its table
    once, in each part; then there is one product with the scale, and where the norm divides its rounding. NumPy's own error is as large."""
    unit = np.finfo(got.dtype).eps / 2
    roundings = sum(2 * r + 1 for r in factors(n)) + 2
    bound = 2 * math.sqrt(2) * roundings * unit * magnitudes * (1 + 1e-3)
    assert got.shape == want.shape and (got.dtype.kind == "c") == (want.dtype.kind == "c")
    apart = np.abs(got - want)
    assert (apart <= bound).all(), float((apart / bound).max())


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n: int, dtype: str) -> None:
    x = numbers(3, n, dtype=dtype)
    c = x.astype(complex)
    size = np.abs(c).sum(-1, keepdims=True)
    for norm in NORMS:
        scale = {"backward": 1, "ortho": 1 / math.sqrt(n), "forward": 1 / n}[norm]
        within(run(lambda x, k=norm: fl.fft(x, norm=k), x), np.fft.fft(c, norm=norm), size * scale, n)
        within(run(lambda x, k=norm: fl.ifft(x, norm=k), x), np.fft.ifft(c, norm=norm), size / n / scale, n)
        line = x.real.copy()
        real = np.abs(line).sum(-1, keepdims=True)
        within(run(lambda x, k=norm: fl.rfft(x, norm=k), line), np.fft.rfft(line.astype(float), norm=norm), real * scale, n)
        for m in (2 * n - 2, 2 * n - 1):
            if m:
                shares = {"backward": 1 / m, "ortho": 1 / math.sqrt(m), "forward": 1}[norm]
                want = np.fft.irfft(c, m, norm=norm)
                within(run(lambda x, m=m, k=norm: fl.irfft(x, m, norm=k), x), want, 2 * size * shares, m)


@pytest.mark.parametrize("axis", [0, 1, -1, "b"])
def test_axes_and_lengths_that_are_cut_or_filled_up(axis: Any) -> None:
    x = numbers(6, 5, 4, dtype="complex64")
    c, at = x.astype(complex), 1 if axis == "b" else axis
    for n in (None, 3, 8):
        size = np.abs(c).sum(at, keepdims=True)
        m = n or c.shape[at]
        for shape in ((6, 5, 4), ("a", "b", "c")):
            if n is None and shape[0] == "a":
                continue

            def on(fn: Any, x: Any = x, shape: Any = shape) -> Any:
                named = [f"{name}={e}" if isinstance(e, int) else e for name, e in zip("abc", shape, strict=True)]
                return fl.trace(fn, inputs={"x": (fl.c64 if x.dtype.kind == "c" else fl.f32)(*named)}).run(x)

            within(on(lambda x, n=n: fl.fft(x, n, axis)), np.fft.fft(c, n, at), size, m)
            within(on(lambda x, n=n: fl.fft(x, n, axis), x.real.copy()), np.fft.fft(c.real, n, at), size, m)
            within(on(lambda x, n=n: fl.rfft(x, n, axis), x.real.copy()), np.fft.rfft(c.real, n, at), size, m)
            if n is not None:
                within(on(lambda x, n=n: fl.irfft(x, n, axis)), np.fft.irfft(c, n, at), 2 * size / n, n)


def test_planes_and_round_trips() -> None:
    x = c = numbers(2, 6, 10, dtype="complex128")
    size = np.abs(c).sum((1, 2), keepdims=True)
    within(run(lambda x: fl.fft2(x), x), np.fft.fft2(c), size, 60)
    within(run(lambda x: fl.ifft2(x, norm="ortho"), x), np.fft.ifft2(c, norm="ortho"), size / math.sqrt(60), 60)
    np.testing.assert_allclose(run(lambda x: fl.ifft2(fl.fft2(x)), x), x, atol=1e-13)
    np.testing.assert_allclose(run(lambda x: fl.irfft(fl.rfft(x, axis=2), axis=2), x.real.copy()), x.real, atol=1e-13)


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
    x = numbers(2, 33, dtype="complex64")
    whole = run(lambda x: fl.fft(x), x)
    monkeypatch.setattr("fluorite.algo.ops.fourier_stages._TABLE", 1)
    np.testing.assert_array_equal(run(lambda x: fl.fft(x), x), whole)


def test_known_transforms() -> None:
    line = np.zeros(12, np.complex64)
    line[0] = 1
    np.testing.assert_array_equal(run(lambda x: fl.fft(x), line), np.ones(12, np.complex64))
    ones = np.ones(16, np.float32)
    found = run(lambda x: fl.rfft(x), ones)
    assert found.dtype == np.complex64 and found[0] == 16 and np.abs(found[1:]).max() <= 16 * np.finfo(np.float32).eps


def test_refusals() -> None:
    x = numbers(3, 4, dtype="complex64")
    for call, code, why in [
        (lambda x: fl.rfft(x), "A211", "leaves out half"),
        (lambda x: fl.fft(fl.cast(fl.real(x), fl.f16)), "A306", "products with sines"),
        (lambda x: fl.fftn(x, s=(3, 4, 5)), "A302", "axes run from"),
        (lambda x: fl.fftn(x, s=(3,), axes=(0, 1)), "A304", "one for each"),
        (lambda x: fl.fftn(x[0, 0]), "A307", "one at least"),
        (lambda x: fl.fftfreq(0) * x, "A304", "one at least"),
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


SHAPES: list[tuple[Any, Any]] = [(None, None), (None, (0, 2)), ((4, 3), None), ((8, 2, 5), (1, 0, 2)), (None, (1,))]


@pytest.mark.parametrize(("s", "axes"), SHAPES)
def test_several_axes(s: Any, axes: Any) -> None:
    for dtype, tolerance in (("complex64", 1e-5), ("complex128", 1e-13)):
        z = numbers(2, 6, 5, dtype=dtype)
        x, over = z.real.copy(), axes if axes is not None else tuple(range(3))[-len(s or "abc") :]
        for norm in NORMS:
            given = {"s": s, "axes": over, "norm": norm}
            for ours, theirs, a in [
                (fl.fftn, np.fft.fftn, z), (fl.ifftn, np.fft.ifftn, z), (fl.fftn, np.fft.fftn, x), (fl.rfftn, np.fft.rfftn, x),
                (fl.irfftn, np.fft.irfftn, z),
            ]:  # fmt: skip
                want = theirs(a, **given)
                got = run(lambda a, f=ours, k=norm: f(a, s, axes, norm=k), a)
                np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * np.abs(want).max())
    for ours, theirs in ((fl.fft2, np.fft.fft2), (fl.ifft2, np.fft.ifft2)):
        np.testing.assert_allclose(run(lambda a, f=ours: f(a, axes=(0, 1), s=(3, 4)), z), theirs(z, axes=(0, 1), s=(3, 4)), atol=1e-13)


def test_where_frequencies_lie() -> None:
    z = numbers(4, 5, dtype="complex64")
    for axes in (None, 0, (1,), (0, -1)):
        np.testing.assert_array_equal(run(lambda z, a=axes: fl.fftshift(z, a), z, symbolic=True), np.fft.fftshift(z, axes))
        np.testing.assert_array_equal(run(lambda z, a=axes: fl.ifftshift(z.real, a), z), np.fft.ifftshift(z.real, axes))
    for n in (1, 2, 7, 10):
        np.testing.assert_array_equal(run(lambda n=n: fl.fftfreq(n, 0.1)), np.fft.fftfreq(n, 0.1).astype(np.float32))
        np.testing.assert_allclose(run(lambda n=n: fl.rfftfreq(n, 3.0, fl.f64)), np.fft.rfftfreq(n, 3.0), rtol=1e-15)


def test_adjoints_are_the_transforms_themselves() -> None:
    """What arrives at z from fft(z) is the unnormalised inverse of what arrives at the frequencies: it is linear, and unitary up to n."""
    z, c, x, half = numbers(6, dtype="complex64"), numbers(6, seed=1, dtype="complex64"), numbers(6), numbers(4, seed=2, dtype="complex64")
    np.testing.assert_allclose(run(lambda z, c: fl.vjp(fl.fft, z)[1](c)[0], z, c), np.fft.ifft(c) * 6, rtol=1e-5, atol=1e-6)
    pulled = run(lambda x, c: fl.vjp(fl.rfft, x)[1](c)[0], x, half)
    np.testing.assert_allclose(pulled, np.fft.ifft(half, 6).real * 6, rtol=1e-5, atol=1e-6)
    power = run(lambda x: fl.grad(lambda x: fl.sum(fl.abs(fl.fft(x)) ** 2))(x), x)
    np.testing.assert_allclose(power, 12 * x, rtol=1e-5)
