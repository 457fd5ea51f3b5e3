"""Products, and tensors made of nothing."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
from operator_case import EXTENTS, FLOATS, Array, Case, Chooser, Shape, axis, filled, matrices, one, shape, vector

EINSUMS: dict[str, tuple[Shape, ...]] = {
    "ij,jk->ik": ((3, 5), (5, 2)), "ij,jk": ((2, 7), (7, 3)), "ji": ((2, 3),), "ii->i": ((5, 5),), "ii": ((3, 3),), "ij->": ((3, 5),),
    "iij->ji": ((3, 3, 2),), "ij,jk,kl->il": ((2, 3), (3, 5), (5, 2)), "...ij,...jk->...ik": ((2, 1, 3, 4), (3, 4, 2)),
    "i,j->ij": ((3,), (0,)),
    "ij,j->i": ((3, 5), (5,)), "i...->...": ((3, 2, 5),), "ij,kj->ik": ((3, 5), (2, 1)), "i,i,i->i": ((5,), (5,), (5,)), ",->": ((), ()),
    "b...,...->b...": ((2, 3, 4), (3, 4)), "...i,...i": ((2, 3), (3,)), "Ab,bA->": ((2, 3), (3, 2)), "i,j,k,l->": ((2,), (3,), (4,), (5,)),
    "ijk,ilm,njm,nlk->": ((2, 3, 4), (2, 5, 3), (4, 3, 3), (4, 5, 4)),
}  # fmt: skip


def _widest(a: Array) -> Array:
    """More digits than the operands: NumPy multiplies out what the language sums first, and loses more of them."""
    return a.astype(np.longdouble) if a.dtype == np.float64 else a


def products() -> list[Case]:
    def pair(c: Chooser) -> tuple[Shape, ...]:
        n, k, m = c.of(EXTENTS), c.of(EXTENTS), c.of(EXTENTS)
        lead = [shape(c, 0, 1, (2,)), shape(c, 0, 2, (1,))]
        return c.of([((*lead[0], n, k), (*lead[1], k, m)), ((k,), (*lead[0], k, m)), ((*lead[0], n, k), (k,)), ((k,), (k,))])

    def same_vectors(c: Chooser) -> tuple[Shape, ...]:
        return (shape(c, 1, 3),) * 2

    def contracted(c: Chooser) -> tuple[Shape, ...]:
        a, b, k, m = (c.of(EXTENTS) for _ in range(4))
        return (a, k, m), (m, b, k)

    wide = ("float32", "float64", "int32", "int64", "uint32")
    cases = [
        Case("matmul", fl.matmul, np.matmul, pair, dtypes=wide, values="small"),
        Case("vecdot", fl.vecdot, lambda x, y, axis: (x * y).sum(axis), same_vectors, axis, wide, "small"),
        Case(
            "tensordot",
            lambda x, y: fl.tensordot(x, y, ([1, 2], [-1, 0])),
            lambda x, y: np.tensordot(x, y, ([1, 2], [2, 0])),
            contracted,
            dtypes=wide,
            values="small",
        ),
        Case("outer", fl.outer, np.outer, lambda c: (*vector(c), *vector(c)), dtypes=wide, values="small"),
        Case("dot", fl.dot, np.dot, lambda c: vector(c) * 2, dtypes=wide, values="small"),
        Case("kron", fl.kron, np.kron, lambda c: (*filled(c, 1, 3), *filled(c, 1, 2)), dtypes=wide, values="small"),
        Case("cross", fl.cross, np.cross, lambda c: ((*shape(c, 0, 2), 3),) * 2, dtypes=("float32", "float64", "int32"), values="small"),
        Case(
            "matrix_trace",
            fl.matrix_trace,
            lambda x, offset: np.trace(x, offset, -2, -1),
            matrices,
            lambda c, s: {"offset": c.number(-3, 3)},
            values="small",
        ),
        Case(
            "matrix_power",
            fl.matrix_power,
            lambda x, n: np.linalg.matrix_power(x, n),
            lambda c: ((*shape(c, 0, 2), 3, 3),),
            lambda c, s: {"n": c.number(0, 5)},
            wide,
            "unit",
        ),
        Case(
            "matrix_norm",
            fl.matrix_norm,
            lambda x, ord, keepdims: np.linalg.norm(x, ord, (-2, -1), keepdims),
            lambda c: filled(c, 2, 4),
            lambda c, s: {"ord": c.of(("fro", 1, -1, np.inf, -np.inf)), "keepdims": c.of((True, False))},
            FLOATS,
            "small",
        ),
    ]
    for text, shapes in EINSUMS.items():
        cases.append(
            Case(
                f"einsum {text}",
                lambda *t, s=text: fl.einsum(s, *t),
                lambda *t, s=text: np.einsum(s, *map(_widest, t)),
                lambda c, s=shapes: s,
                dtypes=wide,
                values="small",
            )
        )
    return cases


# ---------------------------------------------------------------- out of nothing
def created() -> list[Case]:
    def bounds(c: Chooser, _: Any) -> dict[str, Any]:
        return {"start": c.number(-5, 5), "stop": c.number(-5, 9), "step": c.of((1, 2, 3, -1, -2))}

    def none(c: Chooser) -> tuple[Shape, ...]:
        return ()

    return [
        Case("arange", lambda **k: fl.arange(*k.values()), lambda **k: np.arange(*k.values(), dtype=np.int32), none, bounds),
        Case(
            "linspace",
            lambda **k: fl.linspace(-1.5, 2, k["num"], endpoint=k["endpoint"]),
            lambda **k: np.linspace(-1.5, 2, k["num"], endpoint=k["endpoint"]),
            none,
            lambda c, s: {"num": c.number(0, 9), "endpoint": c.of((True, False))},
        ),
        Case(
            "eye",
            lambda **k: fl.eye(k["n"], k["m"], k=k["k"]),
            lambda **k: np.eye(k["n"], k["m"], k["k"]),
            none,
            lambda c, s: {"n": c.number(0, 4), "m": c.number(0, 5), "k": c.number(-3, 3)},
        ),
        Case("full_like", lambda x: fl.full_like(x, 3), lambda x: np.full_like(x, 3), one),
        Case("zeros_like", fl.zeros_like, np.zeros_like, one),
        Case("ones_like", fl.ones_like, np.ones_like, one),
    ]
