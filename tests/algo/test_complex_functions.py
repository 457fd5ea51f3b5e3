"""Functions of complex numbers against NumPy's, on both sides of every branch cut; choices and equality."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from gradient_checks import check_gradient
from operator_running import both, near, run
from operator_running import complex_numbers as z

SHAPES = [(), (1,), (7,), (0,), (3, 5), (2, 3, 4)]
INVERSE: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (fl.acos, np.arccos),
    (fl.acosh, np.arccosh),
    (fl.asin, np.arcsin),
    (fl.asinh, np.arcsinh),
    (fl.atan, np.arctan),
    (fl.atanh, np.arctanh),
]

FUNCTIONS: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (fl.abs, np.abs),
    (fl.angle, np.angle),
    (fl.conj, np.conj),
    (fl.real, np.real),
    (fl.imag, np.imag),
    (fl.exp, np.exp),
    (fl.log, np.log),
    (fl.log2, np.log2),
    (fl.log10, np.log10),
    (fl.sqrt, np.sqrt),
    (fl.sin, np.sin),
    (fl.cos, np.cos),
    (fl.tan, np.tan),
    (fl.sinh, np.sinh),
    (fl.cosh, np.cosh),
    (fl.tanh, np.tanh),
    *INVERSE,
    (fl.exp2, np.exp2),
    (fl.expm1, np.expm1),
    (fl.log1p, np.log1p),
    (fl.rsqrt, lambda c: 1 / np.sqrt(c)),
    (fl.positive, np.positive),
    (fl.square, np.square),
    (fl.reciprocal, np.reciprocal),
    (fl.negative, np.negative),
    (fl.sign, lambda c: c / np.abs(c)),
    (lambda c: +c, np.positive),
    (lambda c: c.conj(), np.conj),
]


@pytest.mark.parametrize(("ours", "theirs"), FUNCTIONS, ids=[t.__name__ for _, t in FUNCTIONS])
def test_functions(ours: Any, theirs: Any) -> None:
    for shape in SHAPES:
        for dtype, tolerance in (("complex64", 4e-6), ("complex128", 1e-13)):
            c = z(*shape, dtype=dtype) * 2
            want = theirs(c.astype(np.complex128))
            got = both(lambda a: ours(a), c)
            assert got.dtype == theirs(c).dtype
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
            inside = run(lambda a: fl.stage(lambda *, a=a: ours(a)) if a.ndim == 0 else fl.stage(lambda i: ours(a[i])), c.reshape(-1)[:1])
            np.testing.assert_allclose(inside, want.reshape(-1)[:1], rtol=tolerance, atol=tolerance)


def test_branches_of_roots_and_logarithms() -> None:
    edge = np.complex64([1, -1, complex(-1, -0.0), 1j, -1j, 4, -4, 0, complex(0, -0.0), -1e-30, 1e30j])
    for ours, theirs in ((fl.sqrt, np.sqrt), (fl.angle, np.angle)):
        near(run(lambda a, f=ours: f(a), edge), theirs(edge), 1e-6)
    near(run(lambda a: fl.log(a), edge[edge != 0]), np.log(edge[edge != 0]), 1e-6)
    close = np.complex64([1 + 1e-4j, -1 + 1e-6j, 1e-5 + 1j, 1 + 1e-7, 1 - 1e-5j])
    np.testing.assert_allclose(run(lambda a: fl.log(a), close).real, np.log(np.complex128(close)).real, rtol=1e-5, atol=1e-16)
    assert np.isneginf(run(lambda a: fl.log(a), np.complex64([0]))[0].real)
    far = np.complex64([100 + 1j, -100 - 2j, 1 + 50j])
    near(run(lambda a: fl.tanh(a), far), np.tanh(np.complex128(far)), 1e-6)


@pytest.mark.parametrize(("ours", "theirs"), INVERSE, ids=[t.__name__ for _, t in INVERSE])
def test_inverse_functions_of_all_sizes(ours: Any, theirs: Any) -> None:
    """On both sides of every branch cut, next to branch points, of tiny and of huge numbers, each part for itself."""
    sizes = [1e-30, 1e-18, 1e-8, 1e-3, 0.3, 1.001, 3, 1e3, 1e10, 1e18, 1e30]
    lines = [0.0, *sizes]
    cells = [(x, y) for x in sizes for y in lines] + [(y, x) for x in sizes for y in lines] + [(1 + 1e-5, y) for y in lines]
    points = np.array([complex(s * x, t * y) for x, y in cells for s in (1, -1) for t in (1, -1)])
    for dtype, tolerance in (("complex64", 1e-6), ("complex128", 2e-15)):
        given = points.astype(dtype)
        want, got = theirs(given.astype(np.complex128)), run(lambda a: ours(a), given)
        for part in (np.real, np.imag):
            least = 1e-37 if dtype == "complex64" else 1e-300  # below, numbers lose digits
            np.testing.assert_allclose(part(got), part(want), rtol=tolerance, atol=least)


def test_what_is_accurate_near_zero() -> None:
    small = np.complex64([1e-6 + 2e-6j, -3e-7j, 1e-12, -1e-3 + 1e-3j])
    wide = small.astype(np.complex128)
    logarithm = sum((-1) ** (n + 1) * wide**n / n for n in range(1, 8))  # NumPy's own loses digits
    for ours, want in ((fl.expm1, np.expm1(wide)), (fl.log1p, logarithm)):
        got = run(lambda a, f=ours: f(a), small)
        for part in (np.real, np.imag):
            np.testing.assert_allclose(part(got), part(want), rtol=1e-6, atol=1e-37)
    near(run(lambda a: fl.expm1(a), np.complex64([50 + 1j])), np.expm1(np.complex128([50 + 1j])), 1e-6)


def slope_of(fn: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda a, b: [p for w in [fn(fl.complex(a, b))] for p in (fl.real(w), fl.imag(w))]


@pytest.mark.parametrize("fn", [f for f, _ in INVERSE] + [fl.expm1, fl.log1p, fl.rsqrt, lambda c: fl.cumulative_prod(c)])
def test_derivatives_of_functions(fn: Any) -> None:
    """In all quadrants, and on the axes where there is no cut."""
    check_gradient(slope_of(fn), np.array([0.3, -0.4, 1.7, -2.1, 0.2]), np.array([0.5, 0.9, -1.1, -0.3, 0.01]))
    cut_along = {fl.acosh: [], fl.asinh: [0.7, -2.5], fl.atan: [0.7, -2.5], fl.rsqrt: [0.7, 2.5], fl.log1p: [0.7, -0.2, 3]}
    real = np.array(cut_along.get(fn, [0.7, -0.6]), np.float64)
    if real.size:
        check_gradient(slope_of(fn), real, np.zeros_like(real))


def test_choices_and_equality() -> None:
    a, b = z(3, 4), z(3, 4, seed=1)
    b[0] = a[0]
    assert np.array_equal(both(lambda x, y: x == y, a, b), a == b) and np.array_equal(both(lambda x, y: fl.not_equal(x, y), a, b), a != b)
    assert np.array_equal(run(lambda x: x == 0, a * 0), a * 0 == 0) and np.array_equal(run(lambda x: x == 1j, a), a == 1j)
    np.testing.assert_array_equal(both(lambda x, y: fl.where(fl.real(x) > 0, x, y), a, b), np.where(a.real > 0, a, b))
    np.testing.assert_array_equal(run(lambda x: fl.where(fl.abs(x) > 1, x, 0.0), a), np.where(np.abs(a) > 1, a, 0))
    np.testing.assert_array_equal(run(lambda x: fl.where(fl.abs(x) > 1, 1.0, x), a), np.where(np.abs(a) > 1, 1, a))
