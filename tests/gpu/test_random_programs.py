"""Random programs under the default GPU schedule, serially and by PoCL, equal the oracle."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from fluorite.algo.errors import FluoriteError
from fluorite.algo.extent import evaluate
from fluorite.algo.graph import Graph
from fluorite.codegen.driver import lower_variants, prepared
from fluorite.codegen.gpu import pocl, serial
from fluorite.codegen.lowered import Lowered
from fluorite.codegen.target import CodeTarget, resolve_target
from fluorite.schedule import ExecutionPlan
from fuzz.programs import program
from fuzz.run import values

from .comparing import OPENCL, same

Drawn = tuple[Graph, Lowered, CodeTarget, list[tuple[Any, ...]]]


def drawn(seed: int) -> Drawn | None:
    try:
        g, sizes = program(random.Random(seed))
    except FluoriteError:  # what is drawn is not always a program
        return None
    if len(g.methods) > 1:
        return None
    chosen, _ = prepared(ExecutionPlan(target=OPENCL), g)
    target = resolve_target(chosen.target)
    (kernels,) = lower_variants(g, chosen, target)
    numbers, method = np.random.default_rng(seed), g.methods[0]
    cases = []
    for given in (sizes, {name: int(numbers.integers(1, 70)) for name in sizes}):
        shapes = [[evaluate(n, given) for n in g[i].shape] for i in method.inputs]
        cases.append(tuple(values(seed, g[i].dtype, shape) for i, shape in zip(method.inputs, shapes, strict=True)))
    return g, kernels, target, cases


@pytest.mark.parametrize("seed", range(32))
def test_serially(seed: int) -> None:
    if (made := drawn(seed)) is not None:
        g, kernels, _, cases = made
        same(g, kernels, serial.serial_functions(kernels), cases, tolerance=1e-4)


@pytest.mark.slow
@pytest.mark.skipif(not pocl.available(), reason="needs pyopencl and PoCL, which .ci/run installs")
@pytest.mark.parametrize("seed", range(100, 110))
def test_by_pocl(seed: int) -> None:
    if (made := drawn(seed)) is not None:
        g, kernels, target, cases = made
        functions, _ = pocl.pocl_functions(kernels, target)
        same(g, kernels, functions, cases, pocl.Device(), tolerance=1e-4)
