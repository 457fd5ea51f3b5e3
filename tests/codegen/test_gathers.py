"""Vector reads of elements that do not lie in a row: gathered, or picked out of whole vectors."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.codegen.driver import host_target, lower_variants
from fluorite.codegen.emit import emit
from fluorite.codegen.tvm_adapter import compile_functions
from fluorite.schedule import ExecutionPlan, Vectorize

TYPES = ("float32", "int32", "uint32", "float64", "int64", "uint64", "float16", "uint8", "bool")


def plan(width: int, tail: str = "guard") -> ExecutionPlan:
    return ExecutionPlan(schedule={"o": [Vectorize("i", width=width, tail=tail)]})


def lowered(g: fl.Graph, width: int) -> Any:
    chosen = plan(width)
    (only,) = lower_variants(g, chosen, host_target(chosen))
    (kernel,) = only.kernels
    return kernel


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("width", [4, 8, 16])
def test_a_table_is_looked_up(dtype: str, width: int) -> None:
    def look(table: Any, at: Any) -> Any:
        return fl.stage(lambda i: table[1, at[i]], name="o")

    g = fl.trace(look, inputs={"table": fl.Spec(dtype, ("k", "n"), (2, fl.extent("n"))), "at": fl.i32("m")})
    made = fl.compile(g, plan(width))
    rng = np.random.default_rng(width)
    for n, m in ((1, 1), (300, 5), (300, 67), (7, 160)):
        table = rng.integers(0, 2 if dtype == "bool" else 100, (2, n)).astype(dtype)
        at = rng.integers(-3, n + 3, m).astype(np.int32)  # what is outside is clamped
        np.testing.assert_array_equal(made(table, at), g.run(table, at))


def test_instructions_that_gather_are_used_where_the_processor_has_them() -> None:
    g = fl.trace(lambda table, at: fl.stage(lambda i: table[at[i]], name="o"), inputs={"table": fl.f32("n"), "at": fl.i32("m")})
    kernel = lowered(g, 16)
    fast = compile_functions({kernel.name: emit(kernel)}, {"kind": "llvm", "mcpu": "sapphirerapids"}).mod.inspect_source("s")
    slow = compile_functions({kernel.name: emit(kernel)}, {"kind": "llvm", "mcpu": "nehalem"}).mod.inspect_source("s")
    assert "vgather" in fast and "vgather" not in slow


def test_what_lies_near_is_loaded_as_a_row() -> None:
    g = fl.trace(lambda x: fl.stage(lambda i: x[i // 4], name="o", extents={"i": 4 * x.shape[0]}), inputs={"x": fl.f32("n")})
    assert "= elements 0 0 0 0 1 1 1 1 of x[" in lowered(g, 8).text()
    g = fl.trace(lambda x: fl.stage(lambda i: x[3 * i], name="o", extents={"i": 4}), inputs={"x": fl.f32(12)})
    assert "= every 3 of x[" in lowered(g, 4).text()


@pytest.mark.parametrize("step", ["i // 2", "i // 3 * 2", "(i + 4) // 8", "3 * i"])
@pytest.mark.parametrize("dtype", ["float32", "int16", "float64"])
def test_neighbours_are_picked_out_of_whole_vectors(step: str, dtype: str) -> None:
    index = eval(f"lambda i: {step}")

    def near(x: Any, y: Any) -> Any:
        x = fl.edge(x)
        return fl.stage(lambda i: x[index(i)] + x[index(i) + 1], name="o", extents={"i": y.shape[0]})

    g = fl.trace(near, inputs={"x": fl.Spec(dtype, ("k",), (fl.extent("k"),)), "y": fl.f32("n")})
    made = fl.compile(g, plan(8))
    for size in (1, 7, 8, 40, 101):
        x, y = np.random.default_rng(size).integers(0, 100, 2 * size + 2).astype(dtype), np.zeros(size, np.float32)
        np.testing.assert_array_equal(made(x, y), g.run(x, y))
