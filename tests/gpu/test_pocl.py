"""The same kernels as OpenCL C, with real work groups, local memory and barriers, equal the oracle."""

from __future__ import annotations

import pytest
from fluorite.codegen.gpu import pocl

from .comparing import by_pocl
from .gpu_algorithms import DEFAULTS, HAND_MADE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not pocl.available(), reason="needs pyopencl and PoCL, which .ci/run installs"),
]


@pytest.mark.parametrize("name", HAND_MADE)
def test_a_hand_made_plan(name: str) -> None:
    source = by_pocl(*HAND_MADE[name])
    assert "__local" in source and "barrier(CLK_LOCAL_MEM_FENCE)" in source


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_default_schedule(name: str) -> None:
    model, cases = DEFAULTS[name]
    before = len(pocl.launches())
    by_pocl(model, None, cases)
    launched = pocl.launches()[before:]
    assert len(launched) >= len(cases)
    assert max(x * y * z for _, _, (x, y, z) in launched) >= (1 if name == "total" else 64)
