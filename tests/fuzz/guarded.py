"""Memory that shows what a kernel reads before it is written, or reads and writes beside what it should."""

from __future__ import annotations

from typing import Any

import numpy as np
from fluorite.codegen.runtime import memory, native

GUARD = 512
"""Bytes before and after every block."""
_NOTHING = 0xFF  # a NaN of every float type, a number far out of place of every other

_blocks: list[tuple[np.ndarray[Any, Any], int, int]] = []


def poison() -> None:
    """From now on memory that a model takes is not a number until something is written there, and it lies between guards; so do results,
    and the arrays of `placed`."""

    def guarded(nbytes: int) -> tuple[Any, int]:
        block = np.full(nbytes + memory.ALIGNMENT + 2 * GUARD, _NOTHING, np.uint8)
        inside = block[GUARD : GUARD + nbytes + memory.ALIGNMENT]
        start = GUARD + -inside.ctypes.data % memory.ALIGNMENT
        _blocks.append((block, start, start + nbytes))
        return inside, memory.ALIGNMENT

    memory._raw = guarded
    native._FROM_NUMPY = -1  # results too


def placed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy between guards."""
    made = memory.aligned(array.shape, array.dtype)
    made[...] = array
    return made


def beside() -> str:
    """What was written outside of all blocks that were taken since the last time, in words; empty if nothing was."""
    wrong = []
    for block, start, end in _blocks:
        if (block[:start] != _NOTHING).any() or (block[end:] != _NOTHING).any():
            places = [*(np.flatnonzero(block[:start] != _NOTHING) - start), *(end - start + np.flatnonzero(block[end:] != _NOTHING))]
            wrong.append(f"{len(places)} bytes beside a block of {end - start}, the first at {places[0]}")
    _blocks.clear()
    return "; ".join(wrong)


__all__ = ["GUARD", "beside", "placed", "poison"]
