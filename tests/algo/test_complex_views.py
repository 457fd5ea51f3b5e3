"""Views, joins, moves, reductions and makers of complex numbers against NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from operator_running import complex_numbers as z
from operator_running import near, numbers, run

VIEWS: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("T", lambda np, c: c.T),
    ("transpose", lambda np, c: c.transpose((1, 2, 0))),
    ("reshape", lambda np, c: c.reshape(4, -1)),
    ("moveaxis", lambda np, c: np.moveaxis(c, -1, 0)),
    ("expand_dims", lambda np, c: np.expand_dims(c, -1)),
    ("flip", lambda np, c: np.flip(c, -2)),
    ("roll", lambda np, c: np.roll(c, 2, -1)),
    ("tile", lambda np, c: np.tile(c, (2, 1, 2))),
    ("slice", lambda np, c: c[1:, ::-1, None, ..., -1]),
    ("index", lambda np, c: c[0]),
    ("rows", lambda np, c: c[:, [2, 0, 0]]),
    ("broadcast", lambda np, c: np.broadcast_to(c, (5, 2, 3, 4))),
    ("concatenate", lambda np, c: np.concatenate([c, c * 2, c[:1]], axis=0)),
    ("stack", lambda np, c: np.stack([c, c], axis=-1)),
    ("sum", lambda np, c: np.sum(c)),
    ("sum of", lambda np, c: c.sum(axis=(0, -1))),
    ("sum kept", lambda np, c: np.sum(c, axis=1, keepdims=True)),
    ("mean", lambda np, c: np.mean(c, axis=-1)),
    ("prod", lambda np, c: np.prod(c, axis=1)),
    ("prod of all", lambda np, c: np.prod(c)),
    ("prod kept", lambda np, c: np.prod(c, axis=(0, 2), keepdims=True)),
    ("diff", lambda np, c: np.diff(c, axis=1)),
    ("triu", lambda np, c: np.triu(c)),
    ("trace", lambda np, c: np.linalg.trace(c) if hasattr(np, "linalg") else np.matrix_trace(c)),
    ("pad", lambda np, c: np.pad(c, ((1, 0), (0, 2), (0, 0)))),
]


@pytest.mark.parametrize(("name", "fn"), VIEWS, ids=[n for n, _ in VIEWS])
def test_views_joins_and_reductions(name: str, fn: Any) -> None:
    for dtype in ("complex64", "complex128"):
        c = z(2, 3, 4, dtype=dtype)
        want = fn(np, c)
        got = run(lambda x: fn(fl, x), c)
        assert got.dtype == want.dtype
        near(got, want, 3e-6)


def test_cumulative_products_and_tests_of_zero() -> None:
    for shape, axis in [((5,), 0), ((3, 4), 1), ((3, 4), 0), ((2, 0), 1)]:
        for dtype, tolerance in (("complex64", 3e-6), ("complex128", 1e-13)):
            c = z(*shape, dtype=dtype)
            near(run(lambda a, d=axis: fl.cumulative_prod(a, d), c), np.cumulative_prod(c, axis=axis), tolerance)
            want = np.cumulative_prod(c, axis=axis, include_initial=True)
            near(run(lambda a, d=axis: fl.cumulative_prod(a, d, include_initial=True), c), want, tolerance)
            back = np.flip(np.cumulative_prod(np.flip(c, axis), axis=axis), axis)
            near(run(lambda a, d=axis: fl.cumulative_prod(a, d, reverse=True), c), back, tolerance)
    assert run(lambda a: fl.cumulative_prod(a, dtype=fl.c128), z(3)).dtype == np.complex128
    c = np.complex64([[0, 1j, 0], [2, 0, 1 + 1j]])
    for ours, theirs in ((fl.any, np.any), (fl.all, np.all), (fl.count_nonzero, np.count_nonzero)):
        np.testing.assert_array_equal(run(lambda a, f=ours: f(a, axis=1), c), theirs(c, axis=1))
    found = run(lambda a: fl.nonzero(a, 6), c)
    np.testing.assert_array_equal(np.stack(found[0])[:, :3], np.nonzero(c))
    np.testing.assert_array_equal(run(lambda a: fl.isin(a, np.complex64([1j, 2])), c), np.isin(c, [1j, 2]))
    np.testing.assert_array_equal(run(lambda a: fl.linspace(1, 1j, 5) + a[0, 0], c), np.linspace(1, 1j, 5, dtype="c8"))
    assert run(lambda a: fl.linspace(0, 2, 3, dtype=fl.c128), c).dtype == np.complex128
    assert run(lambda a: fl.asarray([1 + 2j], fl.c128), c) == [1 + 2j]


def test_empty_axes() -> None:
    c = z(0, 3)
    np.testing.assert_array_equal(run(lambda x: fl.sum(x, 0), c), np.zeros(3, np.complex64))
    np.testing.assert_array_equal(run(lambda x: fl.prod(x, 0), c), np.ones(3, np.complex64))
    assert run(lambda x: x * 1j, c).shape == (0, 3) and run(lambda x: x.T @ x, c).tolist() == np.zeros((3, 3)).tolist()


def _padded(view: Any) -> Any:
    return fl.stage(lambda i: view[i - 1], extents={"i": 5})


def test_real_ones_beside_complex_ones() -> None:
    c, x = z(3), numbers(3)
    np.testing.assert_array_equal(run(lambda a, b: fl.concatenate([b, a, b]), c, x), np.concatenate([x, c, x]))
    np.testing.assert_array_equal(run(lambda a: fl.pad(a, 1, value=2.0), c), np.pad(c, 1, constant_values=2))
    np.testing.assert_array_equal(run(lambda a: fl.pad(a, 1, value=2j), c), np.pad(c, 1, constant_values=2j))
    np.testing.assert_array_equal(run(lambda a, f=fl.constant: _padded(f(a, 1j)), c), np.pad(c, 1, constant_values=1j))
    np.testing.assert_array_equal(run(lambda a: _padded(fl.wrap(a)), c), np.pad(c, 1, mode="wrap"))
    np.testing.assert_array_equal(run(lambda a: a[[0, 2]] + np.array([1j, 2]), c), c[[0, 2]] + np.array([1j, 2]))
    np.testing.assert_array_equal(run(lambda a, more=[1j, 2, 3]: a + more, c), c + np.complex64([1j, 2, 3]))
    ids = np.int32([1, 1, 0])
    np.testing.assert_allclose(run(lambda a, i: fl.segment_sum(a, i, 2), c, ids), [c[2], c[0] + c[1]])
    np.testing.assert_array_equal(run(lambda a, i: fl.take(a, i), c, ids), c[ids])


def test_made_of_nothing() -> None:
    x = numbers(2, 3)
    for ours, want in [
        (lambda a: fl.zeros((2, 3), dtype=fl.c64), np.zeros((2, 3), "c8")),
        (lambda a: fl.full((2,), 1 + 2j), np.full(2, 1 + 2j, "c8")),
        (lambda a: fl.ones_like(fl.cast(a, fl.c128)), np.ones((2, 3), "c16")),
        (lambda a: fl.eye(3, dtype=fl.c64), np.eye(3, dtype="c8")),
        (lambda a: fl.complex(a, 2.0), x + np.complex64(2j)),
        (lambda a: fl.complex(a, -a), x - 1j * x),
        (lambda a: fl.cast(a, complex), x.astype("c8")),
        (lambda a: fl.asarray([1j, 2]), np.array([1j, 2], "c8")),
        (lambda a: fl.asarray(np.array([[1j]])), np.array([[1j]])),
        (lambda a: fl.complex(a[0, 0], 1.0), np.complex64(x[0, 0] + 1j)),
        (lambda a: fl.imag(a), x * 0),
        (lambda a: fl.real(a), x),
        (lambda a: fl.conj(a), x),
        (lambda a: fl.angle(a), np.angle(x)),
        (lambda a: fl.stage(lambda i, j: a[i, j], dtype=fl.c64), x.astype("c8")),
    ]:
        got = run(ours, x)
        assert got.dtype == want.dtype
        near(got, want, 1e-7)
