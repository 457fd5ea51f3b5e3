"""Statements to TVM's loop IR: signatures, loop kinds, constants, and code for every operation of the language."""

# ruff: noqa: E501 (one case a line)
from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo import expr
from fluorite.codegen import driver
from fluorite.codegen.emit import constant, emit
from fluorite.codegen.intrinsics import INTRINSICS
from fluorite.codegen.statements import Allocate, Kernel, walk
from fluorite.codegen.target import CodeTarget, resolve_target
from fluorite.codegen.tvm_adapter import compile_functions, tirx, tvm
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.sections import Target

HERE = resolve_target(Target())


def kernel(plan: str, target: CodeTarget = HERE) -> Kernel:
    def model(x: Any, y: Any) -> Any:
        return fl.stage(lambda i, j: x[i, j] + y[j], name="out")

    g = fl.trace(model, None, inputs={"x": fl.f32("h", "w"), "y": fl.f32("w")})
    chosen, _ = driver.prepared(ExecutionPlan.from_yaml(plan), g)
    return driver.lower_variants(g, chosen, target)[0].kernels[0]


def test_arguments_are_inputs_outputs_symbols() -> None:
    k = kernel("schedule: {out: [compute_root]}")
    f = emit(k)
    assert [p.name for p in f.params] == ["x", "y", "out", *k.symbols] and set(k.symbols) == {"h", "w"}
    assert all(str(p.ty.dtype) == "int64" for p in f.params[3:])
    assert str(f.attrs["global_symbol"]) == k.name and bool(f.attrs["tirx.noalias"])


def test_loop_kinds() -> None:
    text = str(emit(kernel("schedule: {out: [{parallel: i}, {vectorize: {axis: j, width: 8}}]}")))
    assert "T.parallel(" in text and "T.vectorized(T.int64(8))" in text
    assert "T.unroll(T.int64(4))" in str(emit(kernel("schedule: {out: [{unroll: {axis: i, factor: 4}}]}")))


def test_loops_of_a_gpu_made_serial() -> None:
    gpu = resolve_target(Target(kind="cuda", arch="sm_90"))
    k = kernel("target: {kind: cuda, arch: sm_90}\nschedule: {out: [{split: {axis: j, factor: 32}}, {gpu_blocks: [i, j_outer]}, {gpu_threads: [j_inner]}]}", gpu)
    assert "threadIdx.x" in str(emit(k)) and "threadIdx" not in str(emit(k, serial=True))


@pytest.mark.parametrize("n", [64, 100])
def test_local_memory_is_on_the_stack(n: int) -> None:
    """A reduction's partial results and its running value are never asked of the heap: that would happen in every row."""

    def model(x: Any) -> Any:
        return fl.sum(x, axis=1)

    g = fl.trace(model, None, inputs={"x": fl.f32("h", n)})
    chosen, _ = driver.prepared(None, g)
    kernels = driver.lower_variants(g, chosen, HERE)[0].kernels
    assert any(isinstance(x, Allocate) and x.buffer.memory == "local" for k in kernels for x in walk(k.body))
    text = str(compile_functions({k.name: emit(k) for k in kernels}, HERE.dict()).mod.inspect_source("ll"))
    assert "AllocWorkspace" not in text


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (True, "bool"), (-128, "int8"), (2**63 - 1, "int64"), (-(2**63), "int64"), (2**63, "uint64"), (2**64 - 1, "uint64"), (255, "uint8"),
        (2**32 - 1, "uint32"), (0.1, "float32"), (-0.0, "float64"), (float("inf"), "float32"), (float("-inf"), "float64"), (float("nan"), "float32"),
    ],
)  # fmt: skip
def test_constants(value: Any, dtype: str) -> None:
    out = tirx.decl_buffer([1], dtype, "out", data_alignment=8)
    body = tirx.BufferStore(out, constant(value, dtype), [tirx.IntImm("int64", 0)])
    f = tirx.PrimFunc([out], body).with_attr("global_symbol", "f").with_attr("tirx.noalias", True)
    made = tvm.runtime.empty((1,), dtype)
    compile_functions({"f": f}, HERE.dict())["f"](made)
    wanted = np.array([value], dtype)
    assert made.numpy().tobytes() == wanted.tobytes() or (np.isnan(wanted[0]) and np.isnan(made.numpy()[0]))


def test_there_is_code_for_every_operation() -> None:
    own = {"cast", "where", "select", "edge", "reflect", "wrap"}
    language = {"add", "sub", "mul", "div", "floordiv", "mod", "min", "max", "neg", "abs", "sign", "floor", "ceil", "round", "trunc", "not", "and", "or", "xor", "shl", "shr", "lt", "le", "eq", "ne", "isnan", "isinf", "isfinite"}
    assert language | set(expr.REAL) <= set(INTRINSICS) | own


INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("plan", ["split: {axis: i, factor: 128}", "vectorize: {axis: i, width: 8}"])
def test_integers_wrap_where_the_compiler_knows_their_range(source: str, plan: str) -> None:
    """Positions and bounds are constants to TVM's analysis, which refuses casts that do not keep them."""

    def model(x: Any) -> Any:
        def to(d: str) -> Any:
            return fl.stage(lambda i: fl.cast(i * 7 - 300, d) + fl.cast(fl.minimum(x[i], fl.cast(i, source)), d), name=f"to_{d}")

        return tuple(map(to, INTEGERS))

    g = fl.trace(model, None, inputs={"x": getattr(fl, source.replace("uint", "u").replace("int", "i"))(301)})
    info = np.iinfo(source)
    x = np.random.default_rng(0).integers(info.min, info.max, 301, dtype=source, endpoint=True)
    chosen = ExecutionPlan.from_yaml(f"schedule: {{'*': [{{{plan}}}]}}")
    for want, got in zip(g.run(x), fl.compile(g, chosen)(x), strict=True):
        np.testing.assert_array_equal(want, np.asarray(got))


def test_conditions_of_lanes_in_several_places() -> None:
    """Rows that are written out share which lanes are even, whatever TVM calls that."""

    def model(x: Any) -> Any:
        near = fl.edge(x)
        h, w = x.shape
        return fl.stage(lambda i, j: fl.where(j % 2 == 0, near[i, j // 2], near[i // 2, j]), extents={"i": h, "j": 2 * w}, name="out")

    g = fl.trace(model, None, inputs={"x": fl.f32("h", "w")})
    plan = ExecutionPlan.from_yaml("schedule: {out: [{split: {axis: i, factor: 2}}, {unroll: i_inner}, {vectorize: {axis: j, width: 4}}]}")
    made = fl.compile(g, plan)
    for shape in ((1, 1), (5, 7), (8, 16)):
        x = np.random.default_rng(0).random(shape, np.float32)
        np.testing.assert_array_equal(np.asarray(made(x)), g.run(x))


@pytest.mark.parametrize("memory", ["stack", "registers"])
def test_memory_for_nothing(memory: str) -> None:
    def model(x: Any) -> Any:
        rows = fl.stage(lambda i, j: x[i, j] * 2, name="rows")
        return fl.stage(lambda i, j: rows[i, j] + 1, name="out")

    g = fl.trace(model, None, inputs={"x": fl.f32("n", 0)})
    plan = ExecutionPlan.from_yaml(f"schedule: {{rows: [{{compute_at: {{stage: out, axis: i}}}}, {{store_in: {memory}}}]}}")
    assert np.asarray(fl.compile(g, plan)(np.zeros((3, 0), np.float32))).shape == (3, 0)


@pytest.mark.parametrize("mark", ["vectorize: j_outer", "unroll: j_outer", "parallel: i_outer"])
def test_vectors_of_nothing(mark: str) -> None:
    """A loop that a split leaves no iteration does nothing, whatever its marks; what stands beside it is done."""

    def model(x: Any) -> Any:
        sums = fl.stage(lambda i: fl.sum(lambda j: x[i, j]) + 1, name="sums")
        return {"none": fl.stage(lambda i, j: sums[i] * 2 + j, name="none", extents={"i": 40, "j": 0}), "sums": sums}

    g = fl.trace(model, None, inputs={"x": fl.f32(40, 0)})
    loops = f"[{{tile: {{i: 16, j: 4}}}}, {{reorder: [i_outer, j_outer, i_inner, j_inner]}}, {{{mark}}}, {{unroll: j_inner}}]"
    made = fl.compile(g, ExecutionPlan.from_yaml(f"schedule: {{none: {loops}, sums: [{{vectorize: {{axis: i, width: 8}}}}]}}"))
    got = made(np.ones((40, 0), np.float32))
    assert np.asarray(got["none"]).shape == (40, 0)
    np.testing.assert_array_equal(np.asarray(got["sums"]), np.ones(40))
