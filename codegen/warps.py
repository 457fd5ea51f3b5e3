"""Instructions of tensor cores, by the threads of a warp: calls of functions of our own in CUDA C, around nvcuda::wmma.

Each of the 32 threads holds 8 of the 256 elements of a result; which, only the two functions know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import prod
from typing import Any

from fluorite.schedule.intrinsics import Intrinsic

from .intrinsics import INTRINSICS as OPERATIONS
from .statements import Matrix, MultiplyFragments, StartFragments, StoreFragments, Tensors
from .tvm_adapter import element_address, external, tirx

MULTIPLY, STORE = "fluorite_multiply", "fluorite_store"
SOURCE = """#include <mma.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
template <typename T>
static __device__ __forceinline__ void fluorite_multiply(float* c, const void* a, int rows_a, const void* b, int rows_b) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, T, row_major> x;
  fragment<matrix_b, 16, 16, 16, T, row_major> y;
  fragment<accumulator, 16, 16, 16, float> z;
  load_matrix_sync(x, (const T*)a, rows_a);
  load_matrix_sync(y, (const T*)b, rows_b);
#pragma unroll
  for (int i = 0; i < 8; ++i) z.x[i] = c[i];
  mma_sync(z, x, y, z);
#pragma unroll
  for (int i = 0; i < 8; ++i) c[i] = z.x[i];
}
static __device__ __forceinline__ void fluorite_store(float* to, int rows, const float* c) {
  using namespace nvcuda::wmma;
  fragment<accumulator, 16, 16, 16, float> z;
#pragma unroll
  for (int i = 0; i < 8; ++i) z.x[i] = c[i];
  store_matrix_sync(to, z, rows, mem_row_major);
}
"""
_TYPES = {"float16": "half", "bfloat16": "__nv_bfloat16"}

At = Callable[[Matrix, int], list[Any]]
"""The index of a matrix's first element at a point of the grid."""


def emitted(
    i: Intrinsic, s: Tensors, buffers: Mapping[int, Any], dtypes: Mapping[int, str], at: At, row: Callable[[Matrix], Any]
) -> Iterator[Any]:
    """The statements of one thread."""
    sums = buffers[s.fragments]
    match s:
        case StartFragments():
            for number in range(s.count):
                for n in range(8):
                    yield tirx.BufferStore(sums, tirx.const(0.0, i.result), [_number(number), _number(n)])
        case MultiplyFragments():
            name = f"{MULTIPLY}<{_TYPES[dtypes[s.a.buffer]]}>"
            for number in range(_count(s)):
                pair = (x for m in (s.a, s.b) for x in (element_address(buffers[m.buffer], at(m, number)), _int(row(m))))
                yield external(name, element_address(sums, [_number(number), _number(0)]), *pair)
        case StoreFragments():
            for number in range(_count(s)):
                to = element_address(buffers[s.to.buffer], at(s.to, number))
                yield external(STORE, to, _int(row(s.to)), element_address(sums, [_number(number), _number(0)]))


def serial(
    i: Intrinsic, s: Tensors, buffers: Mapping[int, Any], dtypes: Mapping[int, str], at: At, row: Callable[[Matrix], Any]
) -> Iterator[Any]:
    """The same for one thread that is a warp by itself, and holds all of a result."""
    sums = buffers[s.fragments]

    def loops(body: Callable[..., Any], *extents: int) -> Any:
        variables = [tirx.Var(name, "int64") for name, _ in zip("mjk", extents, strict=False)]
        made = body(*variables)
        for var, extent in reversed(list(zip(variables, extents, strict=True))):
            made = tirx.For(var, _number(0), _number(extent), tirx.ForKind.SERIAL, made)
        return made

    def element(x: Matrix, number: int, r: Any, c: Any) -> list[Any]:
        *outer, last = at(x, number)
        return [*outer, last + r * row(x) + c]

    def value(x: Matrix, number: int, r: Any, c: Any) -> Any:
        dtype = dtypes[x.buffer]
        return OPERATIONS[f"from_{dtype}"](dtype, tirx.BufferLoad(buffers[x.buffer], element(x, number, r, c)))

    def own(number: int, m: Any, j: Any) -> list[Any]:
        return [_number(number), m * _number(i.columns) + j]

    def product(number: int, x: Matrix, y: Matrix, m: Any, j: Any, k: Any) -> Any:
        here = own(number, m, j)
        return tirx.BufferStore(sums, tirx.BufferLoad(sums, here) + value(x, number, m, k) * value(y, number, k, j), here)

    match s:
        case StartFragments():
            zero = tirx.const(0.0, i.result)
            yield loops(lambda m, j: tirx.BufferStore(sums, zero, [m, j]), s.count, i.rows * i.columns)
        case MultiplyFragments():
            for number in range(_count(s)):
                yield loops(partial(product, number, s.a, s.b), i.rows, i.columns, i.depth)
        case StoreFragments():
            for number in range(_count(s)):

                def stored(m: Any, j: Any, number: int = number, to: Matrix = s.to) -> Any:
                    return tirx.BufferStore(buffers[to.buffer], tirx.BufferLoad(sums, own(number, m, j)), element(to, number, m, j))

                yield loops(stored, i.rows, i.columns)


def _count(s: MultiplyFragments | StoreFragments) -> int:
    return prod(n for _, n in s.grid)


def _int(value: Any) -> Any:
    return value.astype("int32")


def _number(n: int) -> Any:
    return tirx.IntImm("int64", n)


__all__ = ["MULTIPLY", "SOURCE", "emitted", "serial"]
