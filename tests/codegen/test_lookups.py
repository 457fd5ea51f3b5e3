"""Vectors looked up in tables that fit into registers."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.codegen.driver import host_target, lower_variants
from fluorite.codegen.emit import emit
from fluorite.codegen.lookups import definition
from fluorite.codegen.tvm_adapter import compile_functions
from fluorite.schedule import ExecutionPlan, Vectorize

LENGTHS = {1: (1, 63, 64, 65, 128, 129, 300, 1000, 1024, 1025), 2: (1, 31, 64, 65, 255, 256, 257), 4: (2, 16, 17, 33, 128, 129)}


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "float16", "float32", "int32"])
def test_tables_of_all_lengths(dtype: str) -> None:
    rng, size = np.random.default_rng(1), np.dtype(dtype).itemsize
    tables = [rng.integers(-100 if "u" not in dtype else 0, 127, n).astype(dtype) for n in LENGTHS[size]]

    def look(at: Any) -> Any:
        kept = [fl.asarray(t) for t in tables]
        return {f"o{k}": fl.stage(lambda i, t=t: t[at[i]], name=f"o{k}") for k, t in enumerate(kept)}

    g, lanes = fl.trace(look, inputs={"at": fl.i32("m")}), 64 // size
    widths = {f"o{k}": [Vectorize("i", width=lanes // (1 + k % 2), tail="guard")] for k in range(len(tables))}
    made = fl.compile(g, ExecutionPlan(schedule=widths))
    for m in (1, 3 * lanes + 5):
        at = rng.integers(-3, max(LENGTHS[size]) + 3, m).astype(np.int32)  # what is outside is clamped
        found, meant = made(at), g.run(at)
        for k in range(len(tables)):
            np.testing.assert_array_equal(found[f"o{k}"], meant[f"o{k}"])


def test_permutes_are_used_where_the_processor_has_them() -> None:
    g = fl.trace(lambda t, at: fl.stage(lambda i: t[at[i]], name="o"), inputs={"t": fl.u8(200), "at": fl.i32("m")})
    plan = ExecutionPlan(schedule={"o": [Vectorize("i", width=64)]})
    (only,) = lower_variants(g, plan, host_target(plan))
    (kernel,) = only.kernels
    code = {
        cpu: compile_functions({kernel.name: emit(kernel)}, {"kind": "llvm", "mcpu": cpu}).mod.inspect_source("s")
        for cpu in ("sapphirerapids", "skylake-avx512")
    }
    picks = {cpu: text.count("vpermt2b") + text.count("vpermi2b") for cpu, text in code.items()}
    assert picks["sapphirerapids"] > 0 and picks["skylake-avx512"] == 0


def test_no_byte_beyond_the_table_is_read() -> None:
    text = definition("uint8", 64, 100)
    assert text.count("load <64 x i8>") == 1 and text.count("call <64 x i8> @llvm.masked.load") == 1
    assert text.count("i1 true") == 100 - 64
