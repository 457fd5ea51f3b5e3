"""fl.linalg of complex matrices beside NumPy, and its derivatives beside finite differences of both parts."""

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
    r = np.random.default_rng(seed)
    return r.standard_normal(shape) + 1j * r.standard_normal(shape)


def turned(x: Array) -> Array:
    return np.conj(np.swapaxes(x, -1, -2))


def positive(*shape: int) -> Array:
    x = general(*shape)
    return x @ turned(x) + np.eye(shape[-1])


@pytest.mark.parametrize("shape", [(1, 1), (2, 0, 0), (2, 3, 3)])
@pytest.mark.parametrize("symbolic", [False, True])
def test_values_of_square_matrices(shape: tuple[int, ...], symbolic: bool) -> None:
    x, p = general(*shape), positive(*shape)
    near(run(L.inv, x, symbolic=symbolic), np.linalg.inv(x), 1e-12)
    near(run(L.det, x, symbolic=symbolic), np.linalg.det(x), 1e-12)
    near(run(L.cholesky, p, symbolic=symbolic), np.linalg.cholesky(p), 1e-12)
    near(run(lambda x: L.cholesky(x, upper=True), p, symbolic=symbolic), turned(np.linalg.cholesky(p)), 1e-12)
    near(run(L.eigvalsh, p, symbolic=symbolic), np.linalg.eigvalsh(p), 1e-12)
    for got, want in zip(run(L.slogdet, x, symbolic=symbolic), np.linalg.slogdet(x), strict=True):
        assert got.dtype == want.dtype
        near(got, want, 1e-12)
    w, v = run(L.eigh, p, symbolic=symbolic)
    near(v @ (w[..., None] * turned(v)), p, 1e-9)


@pytest.mark.parametrize("shape", [(1, 1), (2, 0, 3), (5, 3), (2, 3, 5)])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_values_of_other_matrices(shape: tuple[int, ...], dtype: str) -> None:
    x = general(*shape).astype(dtype)
    tolerance = 1e-4 if dtype == "complex64" else 1e-11
    q, r = run(L.qr, x)
    near(q @ r, x, tolerance)
    assert q.dtype == r.dtype == x.dtype and not np.tril(r, -1).any()
    for full in (False, True):
        u, s, vh = run(lambda x, full=full: L.svd(x, full_matrices=full), x, symbolic=True)
        k = s.shape[-1]
        near(u[..., :k] * s[..., None, :] @ vh[..., :k, :], x, tolerance)
        assert s.dtype == x.real.dtype and u.shape == np.linalg.svd(x, full)[0].shape
    near(run(L.pinv, x), np.linalg.pinv(x), tolerance)
    np.testing.assert_array_equal(run(L.matrix_rank, x), np.linalg.matrix_rank(x))
    for order in (2, -2, "nuc") if x.size else ():
        near(run(lambda x, order=order: fl.matrix_norm(x, ord=order), x), np.linalg.norm(x, order, (-2, -1)), tolerance)


def test_solve_takes_real_ones_too() -> None:
    a, b = positive(2, 1, 3, 3), general(4, 3, 2)
    near(run(L.solve, a, b), np.linalg.solve(a, b), 1e-12)
    near(run(L.solve, a, b.real), np.linalg.solve(a, b.real), 1e-12)
    near(run(L.solve, a.real, b), np.linalg.solve(a.real, b), 1e-12)
    near(run(L.solve, a, b[0, :, 0]), np.linalg.solve(a, b[0, :, :1])[..., 0], 1e-12)
    assert refusal(L.solve, a, b.astype(np.complex64)).code == "A301"


def hermitian(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: fn((x + fl.conj(fl.matrix_transpose(x))) * 0.5)


def sizes(*results: Any) -> list[Any]:
    """What does not depend on the phases of vectors, which are arbitrary."""
    return [fl.square(fl.abs(r)) for r in results]


def vectors_of_svd(x: Any) -> list[Any]:
    u, s, vh = L.svd(x, full_matrices=False)
    return [*sizes(u, vh), s, u[..., :1] @ vh[..., :1, :]]


GRADIENTS: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
    "inv": (L.inv, (general(2, 3, 3),)),
    "solve": (L.solve, (positive(2, 3, 3), general(3, 2))),
    "det": (L.det, (general(2, 3, 3),)),
    "det_singular": (L.det, (np.outer(general(3), general(3, seed=1)) + 1j * np.eye(3)[:, :1] * np.eye(3)[:1],)),
    "slogdet": (L.slogdet, (general(2, 3, 3),)),
    "cholesky": (hermitian(L.cholesky), (positive(2, 3, 3),)),
    "eigh": (hermitian(lambda x: [L.eigh(x).eigenvalues, *sizes(L.eigh(x).eigenvectors)]), (general(2, 3, 3),)),
    "qr_tall": (L.qr, (general(2, 4, 3),)),
    "qr_wide": (L.qr, (general(2, 3, 4),)),
    "svd_tall": (vectors_of_svd, (general(2, 4, 3),)),
    "svd_wide": (vectors_of_svd, (general(3, 4),)),
    "pinv_tall": (L.pinv, (general(2, 4, 3),)),
    "pinv_wide": (L.pinv, (general(2, 3, 4),)),
    "nuclear": (lambda x: fl.matrix_norm(x, ord="nuc"), (general(4, 3),)),
}


def by_parts(fn: Callable[..., Any], count: int) -> Callable[..., Any]:
    """fn as a function of all real parts, then of all imaginary ones, with the parts of its results."""

    def of(*parts: Any) -> list[Any]:
        made = fn(*(fl.complex(a, b) for a, b in zip(parts[:count], parts[count:], strict=True)))
        results = made if isinstance(made, list | tuple) else [made]
        return [p for r in results for p in (fl.real(r), *([fl.imag(r)] if "complex" in r.dtype else []))]

    if count == 1:
        return lambda a, b: of(a, b)
    return lambda a, b, c, d: of(a, b, c, d)


@pytest.mark.parametrize("name", GRADIENTS)
def test_first_derivatives(name: str) -> None:
    fn, arrays = GRADIENTS[name]
    check_gradient(by_parts(fn, len(arrays)), *(x.real for x in arrays), *(x.imag for x in arrays))


@pytest.mark.parametrize("name", ["inv", "det", "cholesky", "qr_tall"])
def test_second_derivatives(name: str) -> None:
    fn, (x,) = GRADIENTS[name]

    def slope(a: Any, b: Any) -> Any:
        return fl.grad(lambda a, b: sum(fl.sum(fl.sin(r)) for r in by_parts(fn, 1)(a, b)), argnums=(0, 1))(a, b)

    check_gradient(slope, x.real, x.imag)


def test_functions_of_complex_arrays() -> None:
    """fl.extern gives complex arrays and takes them, several of one precision as well."""
    x = general(3, 3).astype(np.complex64)
    got = run(lambda z: fl.extern(np.linalg.inv, z.shape, fl.c64, z, name="inv"), x)
    near(got, np.linalg.inv(x), 1e-6)
    w, v = run(lambda z: fl.extern(np.linalg.eig, [z.shape[:1], z.shape], fl.c64, z, name="eig"), x)
    near(x @ v, v * w, 1e-5)
    values = run(lambda z: fl.extern(np.linalg.eigh, [z.shape[:1], z.shape], [fl.f32, fl.c64], z, name="eigh")[0], x)
    near(values, np.linalg.eigh(x)[0], 1e-5)
    with pytest.raises(fl.RunError, match=r"R123.*returned complex64\[3, 3\](.|\n)*complex64\[3\]"):
        run(lambda z: fl.extern(np.linalg.inv, z.shape[:1], fl.c64, z, name="inv"), x)
    assert refusal(lambda z: fl.extern(np.linalg.eigh, [z.shape[:1], z.shape], [fl.f64, fl.c64], z, name="eigh"), x).code == "A431"


def everything(z: fl.c64[fl.Tensor, 3, 3], p: fl.c128[fl.Tensor, "n", 2, 2]) -> Any:
    return {
        "inverse": L.inv(z), "determinant": L.slogdet(p), "values": L.eigvalsh(p),
        "slope": fl.grad(lambda z: fl.sum(fl.abs(L.inv(z * 2))))(z),
    }  # fmt: skip


def test_compiled() -> None:
    z, p = general(3, 3).astype(np.complex64), positive(4, 2, 2)
    got, want = fl.compile(everything)(z, p), fl.trace(everything).run(z, p)
    for name in ("inverse", "values", "slope"):
        assert got[name].dtype == want[name].dtype
        np.testing.assert_allclose(got[name], want[name], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got["determinant"][0], np.linalg.slogdet(p)[0], rtol=1e-12)
