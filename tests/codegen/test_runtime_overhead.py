"""What a call costs beside its kernels."""

from __future__ import annotations

import timeit
from pathlib import Path

import numpy as np
import runtime_kernels as hand
from fluorite.codegen import artifact
from fluorite.codegen.runtime import load


def test_adding_sixteen_floats_takes_under_five_microseconds(tmp_path: Path) -> None:
    add = load(artifact.write(hand.manifest("add", add=hand.add16()), hand.library(), {}, tmp_path / "add_built")).run
    a, b = np.ones(16, np.float32), np.arange(16, dtype=np.float32)
    assert add(a, b).tolist() == (a + b).tolist()
    numpy_add = min(timeit.repeat(lambda: a + b, number=2000, repeat=9)) / 2000
    call = min(timeit.repeat(lambda: add(a, b), number=2000, repeat=9)) / 2000
    # NumPy's own addition, 0.35 us on an idle core, says how much slower this machine is just now
    assert call < 5e-6 * max(1.0, numpy_add / 0.35e-6), f"{call * 1e6:.2f} us, NumPy {numpy_add * 1e6:.2f} us"
