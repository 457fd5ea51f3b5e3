"""fl.linalg under PyTorch's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl

from .left_out import unless, without


def inverse(x: Any) -> Any:
    return fl.linalg.inv(x)


def solve(a: Any, b: Any, *, left: bool = True) -> Any:
    unless(left, "x @ a == b")
    unless(b.ndim == 1 or b.ndim == a.ndim, "a batch of vectors")
    return fl.linalg.solve(a, b)


def cholesky(x: Any, *, upper: bool = False) -> Any:
    return fl.linalg.cholesky(x, upper=upper)


def eigvalsh(x: Any, UPLO: str = "L") -> Any:
    unless(UPLO.upper() == "L", "the upper triangle")
    return fl.linalg.eigvalsh(x)


def pinv(x: Any, rcond: Any = None, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    without(atol=atol, hermitian=hermitian)
    unless(all(c is None or isinstance(c, int | float) for c in (rcond, rtol)), "a tolerance for each matrix, or a product")
    return fl.linalg.pinv(x, rtol=rcond if rtol is None else rtol)


def slogdet(x: Any) -> Any:
    return tuple(fl.linalg.slogdet(x))


def matrix_rank(x: Any, tol: Any = None, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    without(tol=tol, atol=atol, hermitian=hermitian)
    unless(rtol is None or isinstance(rtol, int | float), "a tolerance for each matrix")
    return fl.linalg.matrix_rank(x, rtol=rtol)


FACTORISATIONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "linalg.inv": ("linalg.inv", inverse), "linalg.solve": ("linalg.solve", solve), "linalg.cholesky": ("linalg.cholesky", cholesky),
    "linalg.det": ("linalg.det", fl.linalg.det), "linalg.slogdet": ("linalg.slogdet", slogdet),
    "linalg.eigvalsh": ("linalg.eigvalsh", eigvalsh), "linalg.svdvals": ("linalg.svdvals", fl.linalg.svdvals),
    "linalg.pinv": ("linalg.pinv", pinv), "linalg.matrix_rank": ("linalg.matrix_rank", matrix_rank),
}  # fmt: skip
