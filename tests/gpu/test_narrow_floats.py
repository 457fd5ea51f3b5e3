"""float16, bfloat16 and the float8 types in GPU kernels: the bits of the interpreter, by functions in the device's own C."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import ml_dtypes
import numpy as np
import pytest
from fluorite.codegen.gpu import cross_build, execution, pocl, serial
from fluorite.codegen.gpu.building import nvcc
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.sections import Target

from .comparing import lowered
from .test_lockstep import Lockstep

TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}


def widened(dtype: str) -> Callable[..., Any]:
    return lambda x: {"wide": fl.cast(x, fl.f32), "more": x * x + x, "least": fl.maximum(-x, x[0])}


def narrowed(dtype: str) -> Callable[..., Any]:
    return lambda x: fl.cast(x, getattr(fl, dtype))


def every(dtype: str) -> Any:
    """All numbers of the type."""
    kind = np.dtype(TYPES[dtype])
    return np.arange(1 << 8 * kind.itemsize, dtype=f"uint{8 * kind.itemsize}").view(kind)


def awkward(kind: type[np.floating[Any]]) -> Any:
    """Numbers between those of narrow types, halfway and next to it, and what is beyond them."""
    with np.errstate(all="ignore"):
        near = np.concatenate([*(every(t).astype(np.float64) for t in ("f8e4m3", "f8e5m2")), every("bf16")[::37].astype(np.float64)])
        near = near[np.isfinite(near)]
        between = (near[:-1] + near[1:]) / 2
        some = [near, between, between * (1 + 2.0**-22), between * (1 - 2.0**-22), between * (1 + 2.0**-40)]
        return np.concatenate([*some, np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 1e38])]).astype(kind)


def traced(model: Callable[..., Any], plan: ExecutionPlan | None = None, **inputs: Any) -> tuple[Any, Any, Any]:
    return lowered(fl.trace(model, inputs=inputs), plan)


def exactly(g: Any, kernels: Any, functions: Any, *inputs: Any, host: Any = None) -> None:
    got, want = execution.run(kernels, functions, *inputs, host=host), g.run(*inputs)
    pairs = [(got[k], want[k]) for k in want] if isinstance(want, dict) else [(got, want)]
    for a, b in pairs:
        a, b = np.asarray(a), np.asarray(b)
        if a.dtype != b.dtype:  # devices hold bits
            a = a.view(b.dtype)
        with np.errstate(all="ignore"):
            x, y = a.astype(np.float32), b.astype(np.float32)
        np.testing.assert_array_equal(x, y)
        np.testing.assert_array_equal(np.signbit(x)[y == y], np.signbit(y)[y == y])


class Bits(pocl.Device):
    """What a device holds of narrow floats."""

    def put(self, array: Any) -> Any:
        return super().put(serial.bits_of(np.asarray(array)))



@pytest.mark.parametrize("dtype", TYPES)
def test_serially(dtype: str) -> None:
    g, kernels, _ = traced(widened(dtype), x=getattr(fl, dtype)("n"))
    exactly(g, kernels, serial.serial_functions(kernels), every(dtype))


@pytest.mark.skipif(not pocl.available(), reason="needs pyopencl and PoCL, which .ci/run installs")
@pytest.mark.parametrize("dtype", TYPES)
def test_all_numbers_by_pocl(dtype: str) -> None:
    g, kernels, target = traced(widened(dtype), x=getattr(fl, dtype)("n"))
    exactly(g, kernels, pocl.pocl_functions(kernels, target)[0], every(dtype), host=Bits())
    for wide, kind in (("f32", np.float32), ("f64", np.float64)):
        g, kernels, target = traced(narrowed(dtype), x=getattr(fl, wide)("n"))
        exactly(g, kernels, pocl.pocl_functions(kernels, target)[0], awkward(kind), host=Bits())


def mixed(a: fl.bf16[fl.Tensor, "n", 32], b: fl.f8e4m3[fl.Tensor, 32, "m"], c: fl.f16[fl.Tensor, "m"]) -> Any:
    """Products, sums by blocks, and vectors of four."""
    product = fl.matmul(a, fl.cast(b, fl.bf16))
    return {"soft": fl.softmax(fl.cast(product, fl.f16) + c, 1), "product": product}


def scaled(x: fl.bf16[fl.Tensor, "n", 64]) -> fl.Tensor:
    return fl.stage(lambda i, j: x[i, j] * 3 + 1, name="scaled")


VECTORS = "schedule: {scaled: [{split: {axis: j, factors: [~, 4], into: [t, v]}}, {gpu_blocks: [i]}, {gpu_threads: [t]}, {vectorize: v}]}"


def operands(n: int, m: int) -> tuple[Any, ...]:
    numbers = np.random.default_rng(n).standard_normal((3, max(n, m, 32), max(m, 32))).astype(np.float32)
    return numbers[0, :n, :32].astype(TYPES["bf16"]), numbers[1, :32, :m].astype(TYPES["f8e4m3"]), numbers[2, 0, :m].astype(np.float16)


@pytest.mark.skipif(not pocl.available(), reason="needs pyopencl and PoCL, which .ci/run installs")
def test_products_and_vectors_by_pocl() -> None:
    for model, plan, cases in (
        (mixed, None, [operands(5, 70), operands(1, 1)]),
        (scaled, ExecutionPlan.from_yaml(VECTORS), [(every("bf16")[:640].reshape(10, 64),)]),
    ):
        g, kernels, target = lowered(model, plan)
        functions, source = pocl.pocl_functions(kernels, target)
        assert plan is None or ("fluorite_to_bfloat16((fluorite_from" not in source and "ushort4" in source)
        for inputs in cases:
            got, want = execution.run(kernels, functions, *inputs, host=Bits()), g.run(*inputs)
            for name in want if isinstance(want, dict) else [None]:
                a, b = (got, want) if name is None else (got[name], want[name])
                close(np.asarray(a).view(b.dtype), b)


def close(a: Any, b: Any) -> None:
    """Up to one place of the type, for sums in another order are rounded to its neighbours."""
    place = 2.0 ** -(7 if b.dtype == TYPES["bf16"] else 10)
    np.testing.assert_allclose(a.astype(np.float32), b.astype(np.float32), rtol=place, atol=place / 1000)


def test_in_lock_step() -> None:
    faults = Lockstep(scaled, ExecutionPlan.from_yaml(VECTORS))
    x = every("bf16")[:128].reshape(2, 64)
    faults.faults = []
    got = execution.run(faults.kernels, faults.functions, x)
    close(np.asarray(got), scaled_by_hand(x))
    assert faults.faults == []


def scaled_by_hand(x: Any) -> Any:
    return (x.astype(np.float32) * 3).astype(x.dtype) + np.float32(1).astype(x.dtype)


@pytest.mark.skipif(nvcc() is None, reason="needs nvcc")
@pytest.mark.slow
def test_cubins() -> None:
    cuda = Target(kind="cuda", arch=("sm_80",))
    for model, plan in ((mixed, ExecutionPlan()), (scaled, ExecutionPlan.from_yaml(VECTORS))):
        built = cross_build(fl.trace(model), plan.replace(target=cuda))
        assert built.cubins["sm_80"] and all(f.spill_stores == 0 for f in built.stats)
        assert "static __device__ __forceinline__ unsigned short fluorite_to_bfloat16(float x)" in built.source
