"""The instructions that tensorize knows: each multiplies two small matrices and adds the product to a third, in one step.

    c[m, n] += sum over k: a[m, k] * b[k, n]        for `rows` m, `columns` n and `depth` k

In memory k runs along a, and `group` of k lie side by side in b: b[k // group, n, k mod group]. On processors that is 4 bytes together,
and on GPUs 1: there b is a matrix like a.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np

from .sections import NumericsClass

Array = np.ndarray[Any, Any]
Fragment = Literal["vector", "tile", "warp"]
"""Where a c is kept between two steps: in a vector register, in a tile register of AMX, or in the registers of the 32 threads of a warp."""


@dataclass(frozen=True)
class Intrinsic:
    """`operands` are the pairs of types of a and b that it takes, `result` the type of c; `features` those of the processor, by their names
    in /proc/cpuinfo, or `arch` the number of the first NVIDIA architecture that has it; `most` how many c there may be at a time; `says`
    what the help says of it."""

    name: str
    rows: int
    columns: int
    depth: int
    group: int
    operands: tuple[tuple[str, str], ...]
    result: str
    features: tuple[str, ...]
    fragment: Fragment
    most: int
    numerics: NumericsClass
    says: str
    arch: int = 0

    def sizes(self) -> dict[str, int]:
        """Iterations by role, without what has only one."""
        return {role: n for role, n in (("m", self.rows), ("n", self.columns), ("k", self.depth)) if n > 1}

    def meaning(self, c: Array, a: Array, b: Array) -> Array:
        """c + a @ b for a[m, k] and b[k, n] as the instruction computes it: integers wrap; of floats the sums are float32, in the
        instruction's order (that of a tensor core is not known), and subnormal numbers count as 0 (not there)."""
        if self.numerics == "exact":
            with np.errstate(over="ignore"):
                return np.asarray(c + a.astype(self.result) @ b.astype(self.result))
        if self.fragment == "warp":
            return np.asarray(c + a.astype(np.float32) @ b.astype(np.float32))
        x, y = (_flushed(np.asarray(v, ml_dtypes.bfloat16).astype(np.float32)) for v in (a, b))
        return _in_tiles(c, x, y) if self.fragment == "tile" else _in_vectors(c, x, y)


def _flushed(x: Array) -> Array:
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x).astype(np.float32)


def _step(c: Array, x: Array, y: Array) -> Array:
    """One multiply-add, rounded once: float64 holds the product of two bfloat16, and nearly always the sum."""
    return _flushed((c.astype(np.float64) + x.astype(np.float64) * y).astype(np.float32))


def _in_vectors(c: Array, x: Array, y: Array) -> Array:
    c = _flushed(c)
    for k in range(0, x.shape[1], 2):
        for odd in (1, 0):
            c = _step(c, x[:, k + odd, None], y[None, k + odd])
    return c


def _in_tiles(c: Array, x: Array, y: Array) -> Array:
    halves = [np.zeros_like(c), np.zeros_like(c)]
    for k in range(x.shape[1]):
        halves[k % 2] = _step(halves[k % 2], x[:, k, None], y[None, k])
    return _flushed(_flushed(c) + _flushed(halves[0] + halves[1]))


_MIXED = (("uint8", "int8"), ("int8", "uint8"))
_BYTES = (*_MIXED, ("int8", "int8"), ("uint8", "uint8"))
_BF16 = (("bfloat16", "bfloat16"),)

INTRINSICS: dict[str, Intrinsic] = {
    i.name: i
    for i in (
        Intrinsic(
            "amx_int8", 16, 16, 64, 4, _BYTES, "int32", ("amx_tile", "amx_int8"), "tile", 4, "exact",
            "tdpbusd and its like, of AMX: 16,384 products of bytes added to int32",
        ),
        Intrinsic(
            "amx_bf16", 16, 16, 32, 2, _BF16, "float32", ("amx_tile", "amx_bf16"), "tile", 4, "precision",
            "tdpbf16ps, of AMX: 8,192 products of bfloat16 added to float32",
        ),
        Intrinsic(
            "avx512_vnni", 1, 16, 4, 4, _MIXED, "int32", ("avx512_vnni",), "vector", 32, "exact",
            "vpdpbusd: 64 products of uint8 and int8 added to int32",
        ),
        Intrinsic(
            "avx512_vnni_i16", 1, 16, 2, 2, (("int16", "int16"),), "int32", ("avx512_vnni",), "vector", 32, "exact",
            "vpdpwssd: 32 products of int16 added to int32",
        ),
        Intrinsic(
            "avx512_bf16", 1, 16, 2, 2, _BF16, "float32", ("avx512_bf16",), "vector", 32, "precision",
            "vdpbf16ps: 32 products of bfloat16 added to float32",
        ),
        Intrinsic(
            "wmma_f16", 16, 16, 16, 1, (("float16", "float16"),), "float32", (), "warp", 8, "precision",
            "mma of NVIDIA's tensor cores by a warp: 4,096 products of float16 added to float32", 70,
        ),
        Intrinsic(
            "wmma_bf16", 16, 16, 16, 1, _BF16, "float32", (), "warp", 8, "precision",
            "mma of NVIDIA's tensor cores by a warp: 4,096 products of bfloat16 added to float32", 80,
        ),
    )
}  # fmt: skip
"""By name; `auto` takes the first that fits."""


WARP = 32
"""Threads that compute an instruction of a tensor core together."""


def available(features: Iterable[str], arch: int = 0) -> list[Intrinsic]:
    """Those that a processor with these features has, or a GPU of this architecture."""
    there = frozenset(features)
    return [i for i in INTRINSICS.values() if (0 < i.arch <= arch if i.arch else there.issuperset(i.features) and not arch)]


__all__ = ["INTRINSICS", "WARP", "Intrinsic", "available"]
