"""Threefry-2x32 with 20 rounds: the vectors of the Random123 distribution, and the same bits in the interpreter and compiled."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
from fluorite.algo.ops.threefry import blocks

# key, counter, block (Random123, kat_vectors: threefry2x32, 20 rounds)
VECTORS = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]


def test_known_blocks_and_equal_bits() -> None:
    def f(key: fl.u32[fl.Tensor, 2], counter: fl.u32[fl.Tensor, "n", 2]) -> Any:
        return blocks(key, ["i"], {"i": counter.shape[0]}, lambda i: (counter[i, 0], counter[i, 1]))

    graph, model = fl.trace(f), fl.compile(f)
    for key, counter, (low, high) in VECTORS:
        k, c = np.array(key, np.uint32), np.array([counter], np.uint32)
        assert graph.run(k, c).tolist() == model(k, c).tolist() == [high << 32 | low]
    many = np.random.default_rng(0).integers(0, 2**32, (101, 2), dtype=np.uint32)
    np.testing.assert_array_equal(model(many[0], many), graph.run(many[0], many))
