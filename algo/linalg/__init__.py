"""``fl.linalg``: linear algebra as in the array API standard's extension of that name.

Products, norms and diagonals are stages like any other. Factorisations and what is solved by them are LAPACK's, called through NumPy by
`fl.extern`: on the CPU, in float32, float64 or complex numbers of them, of matrices or batches, with derivatives in reverse mode of any
order.
"""

from __future__ import annotations

from ..ops import cross, diagonal, matmul, matrix_norm, matrix_power, matrix_transpose, outer, tensordot, vecdot, vector_norm
from ..ops import matrix_trace as trace
from .determinants import Slogdet, det, slogdet
from .factorisations import Eigh, Qr, cholesky, eigh, eigvalsh, qr
from .singular import Svd, matrix_rank, pinv, svd, svdvals
from .solving import inv, solve

__all__ = [
    "Eigh", "Qr", "Slogdet", "Svd", "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace",
    "vecdot", "vector_norm",
]  # fmt: skip
