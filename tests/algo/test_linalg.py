"""fl.linalg beside NumPy and finite differences: batches, symbolic and empty extents, first and second derivatives, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from gradient_checks import check_gradient
from operator_running import near, refusal, run

Array = np.ndarray[Any, Any]
L = fl.linalg


def general(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def positive(*shape: int, seed: int = 0) -> Array:
    x = general(*shape, seed=seed)
    return x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1])


def symmetric(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """fn of the symmetric part, so that every direction is one in which it is defined."""
    return lambda x: fn((x + fl.matrix_transpose(x)) * 0.5)


def unsigned(fn: Callable[[Any], Any], *vectors: int) -> Callable[[Any], Any]:
    """fn with the results that have an arbitrary sign squared."""
    return lambda x: [r * r if k in vectors else r for k, r in enumerate(fn(x))]


SQUARE = [(1, 1), (3, 3), (2, 0, 0), (0, 2, 2), (2, 3, 4, 4)]
ANY = [(1, 1), (2, 0, 3), (5, 3), (3, 5), (2, 4, 4), (2, 3, 1)]


@pytest.mark.parametrize("shape", SQUARE)
@pytest.mark.parametrize("symbolic", [False, True])
def test_values_of_square_matrices(shape: tuple[int, ...], symbolic: bool) -> None:
    x, p = general(*shape), positive(*shape)
    near(run(L.inv, x, symbolic=symbolic), np.linalg.inv(x), 1e-12)
    near(run(L.det, x, symbolic=symbolic), np.linalg.det(x), 1e-12)
    near(run(L.cholesky, p, symbolic=symbolic), np.linalg.cholesky(p), 1e-12)
    near(run(lambda x: L.cholesky(x, upper=True), p, symbolic=symbolic), np.swapaxes(np.linalg.cholesky(p), -1, -2), 1e-12)
    near(run(L.eigvalsh, p, symbolic=symbolic), np.linalg.eigvalsh(p), 1e-12)
    for got, want in zip(run(L.slogdet, x, symbolic=symbolic), np.linalg.slogdet(x), strict=True):
        near(got, want, 1e-12)
    w, v = run(L.eigh, p, symbolic=symbolic)
    near(v @ (w[..., None] * np.swapaxes(v, -1, -2)), p, 1e-9)


@pytest.mark.parametrize("shape", ANY)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_of_other_matrices(shape: tuple[int, ...], dtype: str) -> None:
    x = general(*shape).astype(dtype)
    tolerance = 1e-4 if dtype == "float32" else 1e-11
    for symbolic in (False, True):
        q, r = run(L.qr, x, symbolic=symbolic)
        near(q @ r, x, tolerance)
        assert q.dtype == r.dtype == x.dtype and not np.tril(r, -1).any()
        for full in (False, True):
            u, s, vh = run(lambda x, full=full: L.svd(x, full_matrices=full), x, symbolic=symbolic)
            k = s.shape[-1]
            near(u[..., :k] * s[..., None, :] @ vh[..., :k, :], x, tolerance)
            assert u.shape == np.linalg.svd(x, full)[0].shape and vh.shape == np.linalg.svd(x, full)[2].shape
        near(run(L.pinv, x, symbolic=symbolic), np.linalg.pinv(x), tolerance)
        near(run(L.svdvals, x, symbolic=symbolic), np.linalg.svd(x, compute_uv=False), tolerance)
        np.testing.assert_array_equal(run(L.matrix_rank, x, symbolic=symbolic), np.linalg.matrix_rank(x))


def test_solve_broadcasts_and_takes_vectors() -> None:
    a = positive(2, 1, 3, 3)
    for b in (general(4, 3, 2), general(2, 4, 3, 1), general(3, 5)):
        near(run(L.solve, a, b), np.linalg.solve(a, b), 1e-12)
    b = general(3)
    near(run(L.solve, a, b), np.linalg.solve(a, b[:, None])[..., 0], 1e-12)


def test_ranks_and_norms_follow_the_singular_values() -> None:
    x = np.outer(general(4), general(3)) + 1e-9 * general(4, 3, seed=1)
    assert int(run(lambda x: L.matrix_rank(x, rtol=1e-6), x)) == 1 and int(run(L.matrix_rank, x)) == 3
    near(run(lambda x: L.pinv(x, rtol=1e-6), x), np.linalg.pinv(x, 1e-6), 1e-12)
    y = general(2, 4, 3)
    for order in (2, -2, "nuc"):
        near(run(lambda y, order=order: fl.matrix_norm(y, ord=order), y), np.linalg.norm(y, order, (-2, -1)), 1e-12)


GRADIENTS: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
    "inv": (L.inv, (general(2, 4, 4),)),
    "solve": (L.solve, (positive(2, 4, 4), general(4, 3))),
    "solve_vector": (L.solve, (positive(3, 3), general(3))),
    "det": (L.det, (general(2, 4, 4),)),
    "det_singular": (L.det, (np.array([[1.0, 2, 3], [2, 4, 6], [1, 0, 5]]),)),
    "slogdet": (L.slogdet, (general(2, 4, 4),)),
    "cholesky": (symmetric(L.cholesky), (positive(2, 4, 4),)),
    "eigh": (symmetric(unsigned(L.eigh, 1)), (general(2, 4, 4),)),
    "eigvalsh_of_equal": (symmetric(lambda x: fl.sum(L.eigvalsh(x))), (np.eye(3),)),
    "qr_tall": (L.qr, (general(2, 5, 3),)),
    "qr_wide": (L.qr, (general(2, 3, 5),)),
    "svd_tall": (unsigned(lambda x: L.svd(x, full_matrices=False), 0, 2), (general(2, 5, 3),)),
    "svd_wide": (unsigned(lambda x: L.svd(x, full_matrices=False), 0, 2), (general(2, 3, 5),)),
    "svd_square": (unsigned(L.svd, 0, 2), (general(4, 4),)),
    "pinv_tall": (L.pinv, (general(2, 5, 3),)),
    "pinv_wide": (L.pinv, (general(2, 3, 5),)),
    "nuclear": (lambda x: fl.matrix_norm(x, ord="nuc"), (general(4, 3),)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_first_derivatives(name: str) -> None:
    fn, arrays = GRADIENTS[name]
    check_gradient(fn, *arrays)


@pytest.mark.parametrize("name", ["inv", "solve", "det", "slogdet", "cholesky", "eigh", "qr_tall", "svd_square"])
def test_second_derivatives(name: str) -> None:
    fn, arrays = GRADIENTS[name]

    def slope(x: Any, *rest: Any) -> Any:
        def loss(x: Any) -> Any:
            made = fn(x, *rest)
            return sum(fl.sum(fl.sin(r)) for r in (made if isinstance(made, list | tuple) else [made]))

        return fl.grad(loss)(x)

    if len(arrays) == 2:
        check_gradient(lambda x, b: slope(x, b), *arrays)
    else:
        check_gradient(lambda x: slope(x), *arrays)


def test_what_has_no_answer_is_an_error_when_it_runs() -> None:
    for fn, x in ((L.inv, np.zeros((2, 2))), (L.cholesky, -np.eye(2)), (fl.grad(lambda x: L.slogdet(x)[1]), np.zeros((2, 2)))):
        with pytest.raises(fl.RunError) as error:
            run(fn, x)
        assert error.value.problems[0].code == "R123" and "LinAlgError" in str(error.value)


REFUSED: list[tuple[Callable[..., Any], tuple[Array, ...], str, str]] = [
    (L.inv, (general(3, 2),), "A307", "a square matrix"),
    (L.svd, (general(3),), "A307", "a matrix"),
    (L.det, (np.eye(2, dtype=np.int32),), "A103", "float32 and float64"),
    (L.cholesky, (np.eye(2, dtype=np.float16),), "A103", "fl.linalg.cholesky(fl.cast(x, fl.f32))"),
    (L.solve, (np.eye(3), general(2, 2)), "A301", "3 equations"),
    (L.solve, (np.eye(2), general(2, 2).astype(np.float32)), "A301", "of one type"),
    (lambda x: L.pinv(x, rtol=-1), (general(2, 2),), "A304", "0 or more"),
    (fl.grad(lambda x: fl.sum(L.svd(x)[0])), (general(3, 2),), "A171", "full_matrices=False"),
    (lambda x: fl.vmap(L.inv)(x), (general(3, 2, 2),), "A433", "fl.vmap"),
]


@pytest.mark.parametrize(("fn", "arrays", "code", "sentence"), REFUSED)
def test_refusals(fn: Callable[..., Any], arrays: tuple[Array, ...], code: str, sentence: str) -> None:
    problem = refusal(fn, *arrays)
    assert problem.code == code and sentence in " ".join([problem.asked, problem.why, *problem.try_])
