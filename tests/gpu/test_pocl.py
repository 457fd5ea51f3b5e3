"""The same kernels as OpenCL C, with real work groups, local memory and barriers, equal the oracle."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.codegen.gpu import execution, pocl

from .comparing import by_pocl, lowered
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


def test_random_numbers_are_those_of_the_interpreter_to_the_bit() -> None:
    def draws(key: fl.u32[fl.Tensor, 2]) -> Any:
        return fl.random.uniform(key, (1000,)), fl.random.bits(key, (100,)), fl.random.permutation(key, 50)

    graph, kernels, target = lowered(draws)
    key = np.array([1, 2], np.uint32)
    found = execution.run(kernels, pocl.pocl_functions(kernels, target)[0], key, host=pocl.Device())
    for a, b in zip(found, graph.run(key), strict=True):
        np.testing.assert_array_equal(a, b)
