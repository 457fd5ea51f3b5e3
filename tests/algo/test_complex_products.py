"""Products, convolutions and norms of complex numbers against NumPy's, and the stages that they are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from operator_running import complex_numbers as z
from operator_running import graph_of, near, run

PRODUCTS: list[tuple[str, Callable[[Any, Any, Any], Any], tuple[int, ...], tuple[int, ...]]] = [
    ("matmul", lambda np, a, b: a @ b, (3, 5), (5, 2)),
    ("batch", lambda np, a, b: np.matmul(a, b), (2, 1, 3, 5), (4, 5, 2)),
    ("vector", lambda np, a, b: a @ b, (5,), (5, 2)),
    ("dot", lambda np, a, b: np.dot(a, b), (7,), (7,)),
    ("outer", lambda np, a, b: np.outer(a, b), (3,), (1,)),
    ("vecdot", lambda np, a, b: np.vecdot(a, b), (3, 5), (5,)),
    ("tensordot", lambda np, a, b: np.tensordot(a, b, 1), (2, 3), (3, 2, 2)),
    ("einsum", lambda np, a, b: np.einsum("ij,jk->ki", a, b), (3, 5), (5, 2)),
    ("kron", lambda np, a, b: np.kron(a, b), (2, 3), (3, 2)),
    ("einsum of three", lambda np, a, b: np.einsum("ij,jk,kl->il", a, b, a), (3, 5), (5, 3)),
    ("cross", lambda np, a, b: np.cross(a, b), (4, 3), (3,)),
]


@pytest.mark.parametrize(("name", "fn", "left", "right"), PRODUCTS, ids=[p[0] for p in PRODUCTS])
def test_products(name: str, fn: Any, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    for p, q in [("complex64", "complex64"), ("complex64", "float32"), ("float32", "complex64"), ("complex128", "complex64")]:
        a, b = z(*left, dtype=p), z(*right, seed=1, dtype=q)
        want = fn(np, a, b)
        got = run(lambda x, y: fn(fl, x, y), a, b)
        assert got.dtype == want.dtype
        near(got, want, 1e-5)


def test_sums_inside_a_stage_are_made_once_for_both_parts() -> None:
    a, b = z(4, 5), z(5, seed=1)
    graph = graph_of(lambda x, y: fl.stage(lambda i: y[i] * fl.sum(lambda k: x[k, i] * 2j) / fl.mean(lambda k: y[k]), name="s"), a, b)
    near(graph.run(a, b), b * (a * 2j).sum(0) / b.mean(), 1e-5)
    assert [s.path.split("/", 1)[1] for s in graph.stages if "sum" in s.path] == [
        "s/real/sum",
        "s/real/sum_2",
        "s/real/sum_3",
        "s/real/sum_4",
    ]
    near(run(lambda x: fl.stage(lambda i: fl.sum(lambda k: x[i, k])), a), a.sum(1), 1e-5)


def correlated(x: Any, w: Any) -> Any:
    """What conv2d of one image is, without padding."""
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    return np.einsum("ncyxij,ocij->noyx", windows, w)


def test_convolutions() -> None:
    x, w, b = z(2, 3, 5, 6), z(4, 3, 2, 3, seed=1), z(4, seed=2)
    want = correlated(x, w)
    near(run(lambda x, w: fl.conv2d(x, w), x, w), want, 1e-5)
    near(run(lambda x, w, b: fl.conv2d(x, w, b), x, w, b), want + b[:, None, None], 1e-5)
    near(run(lambda x, w, b: fl.conv2d(x, w, b), x.real, w, b.real), correlated(x.real, w) + b.real[:, None, None], 1e-5)
    near(run(lambda x, w, b: fl.conv2d(x, w, b, stride=(2, 1)), x, w.real, b), (correlated(x, w.real) + b[:, None, None])[:, :, ::2], 1e-5)
    line, taps = x[:, :, 0], w[:, :, 0]
    near(run(lambda x, w: fl.conv1d(x, w), line, taps), correlated(line[:, :, None], taps[:, :, None])[:, :, 0], 1e-5)
    volume = run(lambda x, w: fl.conv3d(x, w), x[:, :, None], w[:, :, None])
    near(volume[:, :, 0], want, 1e-5)
    spread = run(lambda x, w: fl.conv_transpose1d(x, w), line, z(3, 2, 2))  # with a dual: <conv(y), x> = <y, transposed(x)>
    y = z(2, 2, 7, seed=5)
    near((run(lambda y, w: fl.conv1d(y, w), y, z(3, 2, 2)) * line).sum(), (y * spread).sum(), 1e-4)
    near(run(lambda x: fl.fold(fl.unfold(x, 2, stride=2), (4, 6), stride=2), x[:, :, :4]), x[:, :, :4])
    names = [s.path.split("/", 1)[1] for s in graph_of(lambda x, w, b: fl.conv2d(x, w, b), x, w, b).stages]
    assert {"conv2d/product/real_imag", "conv2d/product/real", "conv2d/bias/imag"} <= set(names)


def test_norms_and_layers() -> None:
    c, w, b = z(3, 4), z(4, 2, seed=1), z(2, seed=2)
    near(run(lambda x: fl.vector_norm(x), c), np.linalg.norm(c.reshape(-1)))
    near(run(lambda x: fl.matrix_norm(x, ord=1), c), np.linalg.norm(c, 1))
    near(run(lambda x, y, s: fl.linear(x, y, s), c, w, b), c @ w + b, 1e-5)


def test_parts_that_nobody_reads_are_not_computed() -> None:
    graph = graph_of(lambda x: fl.real(fl.exp(x * x)), z(3))
    assert [s.path.split("/", 1)[1] for s in graph.stages] == ["multiply/real", "multiply/imag", "exp/real"]
    assert len(graph_of(lambda x: fl.real(x * 2), z(3)).stages) == 1


def test_moments_and_powers_of_matrices() -> None:
    c, square = z(4, 5), z(3, 3)
    near(run(lambda a: fl.var(a, 0, correction=1), c), np.var(c, 0, ddof=1))
    near(run(lambda a: fl.std(a), c), np.std(c))
    for n in (0, 1, 5):
        near(run(lambda a, n=n: fl.matrix_power(a, n), square), np.linalg.matrix_power(square, n), 1e-5)


def test_products_load_whole_vectors() -> None:
    """Parts that lie side by side are taken apart once, before they are read many times; those of stages are apart already."""
    paths = [s.path.split("/", 1)[1] for s in graph_of(lambda a: a @ fl.conj(a.T), z(3, 4)).stages]
    assert paths[:3] == ["conj", "matmul/real_part", "matmul/imag_part"] and "matmul/real_part_2" in paths
    assert not any("part" in s.path for s in graph_of(lambda a: (a * 2) @ (a + 1).T, z(3, 3)).stages)
