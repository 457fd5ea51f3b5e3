"""Memory of a call: aligned blocks, one arena for temporaries that do not live at the same time, results that are reused."""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from .ffi import Tensor
from .tensors import ALIGNMENT, bits_of, borrow

HUGE_PAGE = 2 << 20


def allocate(nbytes: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A block of `nbytes` bytes that starts at a multiple of 64; from 2 MiB on at a huge page, which is 8 times cheaper to touch first.

    Raises MemoryError.
    """
    whole, alignment = _raw(nbytes)
    return _from(np.frombuffer(whole, np.uint8), alignment, nbytes)


def _raw(nbytes: int) -> tuple[Any, int]:
    """Memory in which a block of `nbytes` bytes can start at a multiple of what is returned too."""
    if nbytes < HUGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.empty(nbytes + ALIGNMENT, np.uint8), ALIGNMENT
    try:
        pages = mmap.mmap(-1, nbytes + HUGE_PAGE)
    except OSError as error:
        raise MemoryError(f"{nbytes} bytes") from error
    with suppress(OSError):  # a kernel without huge pages
        pages.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(pages), HUGE_PAGE


def _from(raw: np.ndarray[Any, np.dtype[np.uint8]], alignment: int, nbytes: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    start = -raw.ctypes.data % alignment
    return np.ndarray((nbytes,), np.uint8, raw.data, start)


def aligned(
    shape: tuple[int, ...], dtype: np.dtype[Any], within: np.ndarray[Any, Any] | None = None, offset: int = 0
) -> np.ndarray[Any, Any]:
    """An uninitialised aligned array, of its own or at an offset within a block."""
    nbytes = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    if within is None:
        within = allocate(max(nbytes, 1))
    return np.ndarray(shape, dtype, within.data, offset)


def own(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An uninitialised aligned array whose `base` is the memory itself, so that whoever has the memory is seen. Raises MemoryError."""
    nbytes = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    whole, alignment = _raw(max(nbytes, 1))
    start = -np.frombuffer(whole, np.uint8, 1).ctypes.data % alignment
    return np.ndarray(shape, dtype, whole, start)


def plan(sizes: Sequence[int], lifetimes: Sequence[tuple[int, int]]) -> tuple[list[int], int]:
    """Offsets in one arena, and its size in bytes, such that blocks whose lifetimes (first, last step) meet do not overlap.

    The largest is placed first, each in the lowest gap that holds it. Offsets are multiples of 64.
    """
    offsets = [0] * len(sizes)
    placed: list[int] = []
    for i in sorted(range(len(sizes)), key=lambda i: (-sizes[i], lifetimes[i])):
        first, last = lifetimes[i]
        size, at = _round(sizes[i]), 0
        for j in sorted((j for j in placed if lifetimes[j][0] <= last and first <= lifetimes[j][1]), key=offsets.__getitem__):
            if at + size <= offsets[j]:
                break
            at = max(at, offsets[j] + _round(sizes[j]))
        offsets[i] = at
        placed.append(i)
    return offsets, max((offsets[i] + _round(sizes[i]) for i in placed), default=0)


def _round(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


class ResultPool:
    """Memory for one result of one shape. What the caller drops is used again: fresh pages cost up to 14 times as much."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], keep: int = 4) -> None:
        self.shape, self.dtype = shape, dtype
        self.free: deque[Block] = deque(maxlen=keep)

    def take(self) -> Block:
        try:
            return self.free.pop()
        except IndexError:
            return Block(self)


class Block:
    """One piece of a pool's memory, as kernels see it."""

    __slots__ = ("array", "interface", "pool", "tensor")

    def __init__(self, pool: ResultPool) -> None:
        self.pool = pool
        self.array = aligned(pool.shape, pool.dtype)
        tensor = borrow(self.array)
        assert tensor is not None
        self.tensor: Tensor = tensor
        self.interface = dict(bits_of(self.array).__array_interface__)

    def lend(self) -> np.ndarray[Any, Any]:
        """The block as an array; when the array and every view of it are gone, the block is free again."""
        array = np.asarray(_Lease(self))
        return array if array.dtype == self.pool.dtype else array.view(self.pool.dtype)


class _Lease:
    __slots__ = ("__array_interface__", "block")

    def __init__(self, block: Block) -> None:
        self.block, self.__array_interface__ = block, block.interface

    def __del__(self) -> None:
        self.block.pool.free.append(self.block)
