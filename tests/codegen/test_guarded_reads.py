"""Choices of which both sides are computed read within bounds on both: next to an input that ends where its memory ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import fluorite
import pytest

PROGRAM = """
import ctypes, mmap
import fluorite as fl
import numpy as np

rows, columns = 64, 4096
size = 4 * rows * columns
whole = np.frombuffer(mmap.mmap(-1, 3 * size), np.float32)
x = whole[: rows * columns].reshape(rows, columns)
x[:] = np.random.default_rng(0).random(x.shape)
assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(whole.ctypes.data + size), ctypes.c_size_t(2 * size), 0) == 0

def f(x: fl.f32[fl.Tensor, rows, columns], w: fl.f32[fl.Tensor, 4]):
    # the loops of p, r and q become one, so that r is a remainder: r = task // 4 % 64 where p = task // 4 // 64
    return fl.stage(
        lambda p, r, q, c: fl.where(p > 0, 0.0, x[r, c]) + fl.where(p > 0, -w[q], w[q]) * x[r, c + 1024],
        extents={"p": 2, "q": 4, "c": 1024},
    )

graph, w = fl.trace(f), np.ones(4, np.float32)
np.testing.assert_array_equal(fl.compile(graph)(x, w), graph.run(x.copy(), w))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mprotect of an anonymous mapping")
def test_reads_stay_in_bounds_where_their_value_is_not_chosen(tmp_path: Path) -> None:
    home = str(Path(fluorite.__file__).parents[1])
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**os.environ, "PYTHONPATH": home, "FLUORITE_CACHE": str(tmp_path)},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr[-2000:]
