"""Whole examples under the default GPU schedule: a classifier's methods and a transformer block."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.codegen.driver import lower_variants, prepared
from fluorite.codegen.gpu import pocl, serial
from fluorite.codegen.target import resolve_target
from fluorite.schedule import ExecutionPlan

from .comparing import OPENCL, same
from .gpu_algorithms import example


def program(name: str) -> Any:
    return next(v for v in vars(example(name)).values() if isinstance(v, type) and issubclass(v, fl.Program) and v is not fl.Program)


def inputs(g: fl.Graph, ids: tuple[int, ...]) -> tuple[Any, ...]:
    numbers = np.random.default_rng(0)
    return tuple(numbers.standard_normal([n if isinstance(n, int) else 5 for n in g[i].shape], dtype=np.float32) for i in ids)


@pytest.mark.parametrize("name", ["digits", "attention"])
@pytest.mark.parametrize("way", ["serial", pytest.param("pocl", marks=pytest.mark.slow)])
def test_an_example(name: str, way: str) -> None:
    if way == "pocl" and not pocl.available():
        pytest.skip("needs pyopencl and PoCL, which .ci/run installs")
    g = fl.trace(program(name))
    chosen, _ = prepared(ExecutionPlan(target=OPENCL), g)
    target = resolve_target(chosen.target)
    (kernels,) = lower_variants(g, chosen, target)
    functions, host = (
        (serial.serial_functions(kernels), None) if way == "serial" else (pocl.pocl_functions(kernels, target)[0], pocl.Device())
    )
    for method in g.methods:
        same(g, kernels, functions, [inputs(g, method.inputs)], host, method=method.name, tolerance=1e-4)
