"""A GPU plan's kernels against the oracle, run serially on this CPU or by PoCL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
from fluorite.codegen.driver import as_plan, lower_variants, prepared
from fluorite.codegen.gpu import execution, pocl, serial
from fluorite.codegen.lowered import Lowered
from fluorite.codegen.target import CodeTarget, resolve_target
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.sections import Target

OPENCL = Target(kind="opencl")


def lowered(
    model: Callable[..., Any] | fl.Graph, plan: ExecutionPlan | str | Path | None = None, machine: Target = OPENCL
) -> tuple[fl.Graph, Lowered, CodeTarget]:
    """One variant of the model for OpenCL, whose kernels are those of CUDA save for what only CUDA has."""
    g = model if isinstance(model, fl.Graph) else fl.trace(model)
    chosen, _ = prepared(as_plan(plan).replace(target=machine), g)
    target = resolve_target(chosen.target)
    (found,) = lower_variants(g, chosen, target)
    return g, found, target


def same(
    g: fl.Graph,
    kernels: Lowered,
    functions: Any,
    cases: Sequence[tuple[Any, ...]],
    host: execution.Host | None = None,
    *,
    method: str | None = None,
    tolerance: float = 2e-5,
    parameters: Mapping[str, Any] | None = None,
) -> None:
    """Every case's results equal the oracle's, up to the order of sums."""
    for inputs in cases:
        got = execution.run(kernels, functions, *inputs, method=method, host=host, parameters=parameters)
        compare(got, g.run(*inputs, method=method, parameters=parameters), [np.shape(x) for x in inputs], tolerance)


def compare(got: Any, want: Any, shapes: object, tolerance: float = 2e-5) -> None:
    if isinstance(want, dict):
        assert list(got) == list(want)
        for k in want:
            compare(got[k], want[k], (k, shapes), tolerance)
        return
    if isinstance(want, tuple | list):
        for n, (a, b) in enumerate(zip(got, want, strict=True)):
            compare(a, b, (n, shapes), tolerance)
        return
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype, shapes
    if want.dtype.kind == "f":
        scale = max(1.0, float(np.abs(want).max(initial=0)))
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance / 10 * scale, err_msg=str(shapes))
    else:
        np.testing.assert_array_equal(got, want, err_msg=str(shapes))


def serially(model: Callable[..., Any], plan: Any, cases: Sequence[tuple[Any, ...]]) -> Lowered:
    g, kernels, _ = lowered(model, plan)
    same(g, kernels, serial.serial_functions(kernels), cases)
    return kernels


def by_pocl(model: Callable[..., Any], plan: Any, cases: Sequence[tuple[Any, ...]]) -> str:
    g, kernels, target = lowered(model, plan)
    functions, source = pocl.pocl_functions(kernels, target)
    same(g, kernels, functions, cases, pocl.Device())
    return source
