"""A shuffled order that needs no memory: which row stands at a position is computed from (seed, epoch, position) alone."""

from __future__ import annotations

from math import isqrt
from typing import Any

import numpy as np

Numbers = np.ndarray[Any, np.dtype[np.int64]]
ROUNDS, SMALL_ROUNDS = 8, 32  # of a few cells a round moves little
_WORD = 0xFFFF_FFFF_FFFF_FFFF


def permuted(seed: int, epoch: int, count: int, positions: Numbers) -> Numbers:
    """The rows at these positions of the order of an epoch; over all positions each of `count` rows comes once.

    A Feistel network (Luby and Rackoff, 1988) over a grid of a little more than `count` cells; where it leaves the rows it is applied
    again, as often as it takes (Black and Rogaway, 2002).
    """
    if count < 2:
        return positions.copy()
    high = isqrt(count - 1) + 1
    low = -(-count // high)
    keys = _keys(seed, epoch, ROUNDS if count > 256 else SMALL_ROUNDS)
    found = positions.astype(np.uint64)
    walking = np.arange(len(found))
    while len(walking):
        found[walking] = _network(found[walking], high, low, keys)
        walking = walking[found[walking] >= count]
    return found.astype(np.int64)


def _network(cells: Any, high: int, low: int, keys: list[int]) -> Any:
    left, right = cells // np.uint64(low), cells % np.uint64(low)
    for n, key in enumerate(keys):
        if n % 2:
            right = (right + _mixed(left ^ np.uint64(key)) % np.uint64(low)) % np.uint64(low)
        else:
            left = (left + _mixed(right ^ np.uint64(key)) % np.uint64(high)) % np.uint64(high)
    return left * np.uint64(low) + right


def _mixed(words: Any) -> Any:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return words ^ (words >> np.uint64(31))


def _keys(seed: int, epoch: int, rounds: int) -> list[int]:
    """A key for each round, from SplitMix64 begun at the seed and the epoch."""
    begun = int(_mixed(np.array([(seed & _WORD) ^ 0x6A09_E667_F3BC_C908], np.uint64))[0])
    state = (begun + epoch * 0xD1B5_4A32_D192_ED03) & _WORD
    steps = [(state + (n + 1) * 0x9E37_79B9_7F4A_7C15) & _WORD for n in range(rounds)]
    return [int(k) for k in _mixed(np.array(steps, np.uint64))]


__all__ = ["permuted"]
