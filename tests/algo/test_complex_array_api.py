"""Every function of the array API standard that accepts complex numbers (2024.12), on complex64 beside NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from operator_running import near, numbers, run

M = np.ndarray[Any, Any]
A, B = (numbers(4, 5, seed=s, dtype="complex64") for s in (0, 1))
V, SQUARE = numbers(7, dtype="complex64"), numbers(3, 3, dtype="complex64")
HERMITIAN = (SQUARE @ SQUARE.conj().T + 3 * np.eye(3)).astype(np.complex64)

UNARY = """abs acos acosh asin asinh atan atanh conj cos cosh exp expm1 imag isfinite isinf isnan log log1p log2 log10 negative positive
    real reciprocal sign sin sinh square sqrt tan tanh sum prod mean var std cumulative_sum cumulative_prod all any count_nonzero
    matrix_transpose tril triu zeros_like ones_like"""
BINARY = "add subtract multiply divide equal not_equal pow vecdot"
ALONG = {"sum", "prod", "mean", "var", "std", "cumulative_sum", "cumulative_prod", "all", "any", "count_nonzero"}

OTHER: dict[str, tuple[Callable[..., Any], tuple[M, ...]]] = {
    "astype": (lambda m, x: m.astype(x, np.complex128), (A,)),
    "broadcast_to": (lambda m, x: m.broadcast_to(x, (3, 4, 5)), (A,)),
    "concat": (lambda m, x, y: m.concat([x, y], axis=1), (A, B)),
    "diff": (lambda m, x: m.diff(x, axis=1), (A,)),
    "expand_dims": (lambda m, x: m.expand_dims(x, axis=1), (A,)),
    "flip": (lambda m, x: m.flip(x, axis=1), (A,)),
    "full_like": (lambda m, x: m.full_like(x, 2j), (A,)),
    "isin": (lambda m, x: m.isin(x, x[:3]), (V,)),
    "linspace": (lambda m, x: m.linspace(1, 2j, 4, dtype=fl.c64 if m is fl else np.complex64) + x[:, 0], (A,)),
    "matmul": (lambda m, x, y: x @ y, (A, B.T.copy())),
    "meshgrid": (lambda m, x: m.meshgrid(x, x)[0], (V,)),
    "moveaxis": (lambda m, x: m.moveaxis(x, 0, 1), (A,)),
    "permute_dims": (lambda m, x: m.permute_dims(x, (1, 0)), (A,)),
    "repeat": (lambda m, x: m.repeat(x, 2, axis=1), (A,)),
    "reshape": (lambda m, x: m.reshape(x, (20,)), (A,)),
    "roll": (lambda m, x: m.roll(x, 2, axis=1), (A,)),
    "squeeze": (lambda m, x: m.squeeze(x[:1], axis=0), (A,)),
    "stack": (lambda m, x, y: m.stack([x, y]), (A, B)),
    "take": (lambda m, x: m.take(x, np.int32([1, 0]), axis=1), (A,)),
    "take_along_axis": (lambda m, x: m.take_along_axis(x, np.int64([[1, 0]] * 4), axis=1), (A,)),
    "tensordot": (lambda m, x, y: m.tensordot(x, y, 1), (A, B.T.copy())),
    "tile": (lambda m, x: m.tile(x, (2, 1)), (A,)),
    "unstack": (lambda m, x: m.unstack(x)[1], (A,)),
    "where": (lambda m, x: m.where(m.real(x) > 0, x, 2j), (A,)),
    "cholesky": (lambda m, x: m.linalg.cholesky(x), (HERMITIAN,)),
    "cross": (lambda m, x: m.linalg.cross(x, x[::-1]), (SQUARE,)),
    "det": (lambda m, x: m.linalg.det(x), (SQUARE,)),
    "diagonal": (lambda m, x: m.linalg.diagonal(x), (SQUARE,)),
    "eigh": (lambda m, x: m.abs(m.linalg.eigh(x)[1]), (HERMITIAN,)),
    "eigvalsh": (lambda m, x: m.linalg.eigvalsh(x), (HERMITIAN,)),
    "inv": (lambda m, x: m.linalg.inv(x), (SQUARE,)),
    "matrix_norm": (lambda m, x: m.linalg.matrix_norm(x, ord="nuc"), (A,)),
    "matrix_power": (lambda m, x: m.linalg.matrix_power(x, 3) + m.linalg.matrix_power(x, -2), (SQUARE,)),
    "matrix_rank": (lambda m, x: m.linalg.matrix_rank(x), (A,)),
    "outer": (lambda m, x: m.linalg.outer(x, x), (V,)),
    "pinv": (lambda m, x: m.linalg.pinv(x), (A,)),
    "qr": (lambda m, x: m.linalg.qr(x)[0] @ m.linalg.qr(x)[1], (A,)),
    "slogdet": (lambda m, x: m.linalg.slogdet(x)[0], (SQUARE,)),
    "solve": (lambda m, x, y: m.linalg.solve(x, y), (SQUARE, HERMITIAN)),
    "svd": (lambda m, x: m.abs(m.linalg.svd(x)[0]), (A,)),
    "svdvals": (lambda m, x: m.linalg.svdvals(x), (A,)),
    "trace": (lambda m, x: m.linalg.trace(x), (SQUARE,)),
    "vector_norm": (lambda m, x: m.linalg.vector_norm(x), (V,)),
}
NUMPY = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atanh": "arctanh", "pow": "power"}


def named(m: Any, name: str) -> Callable[..., Any]:
    return getattr(m, name if m is fl else NUMPY.get(name, name))  # type: ignore[no-any-return]


CASES = {
    **{n: (lambda m, x, n=n: named(m, n)(x, axis=1) if n in ALONG else named(m, n)(x), (A,)) for n in UNARY.split()},
    **{n: (lambda m, x, y, n=n: named(m, n)(x, y), (A, B)) for n in BINARY.split()},
    **OTHER,
}


@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name: str) -> None:
    fn, arrays = CASES[name]
    want = np.asarray(fn(np, *arrays))
    got = run((lambda x: fn(fl, x)) if len(arrays) == 1 else (lambda x, y: fn(fl, x, y)), *arrays)
    assert got.dtype == want.dtype or {got.dtype, want.dtype} == {np.dtype("int32"), np.dtype("int64")}
    near(got, want, 2e-5)
