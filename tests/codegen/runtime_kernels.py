"""Kernels built by hand, and manifests over them, so that the runtime is tested without the compiler."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from fluorite.algo.errors import RunError
from fluorite.codegen.entry_object import c_compiler, entry_object
from fluorite.codegen.functions.narrow_floats import FORMATS
from fluorite.codegen.tvm_adapter import link, write_object
from tvm import tirx
from tvm.tirx import BufferLoad, BufferStore, For, ForKind, IntImm, PrimFunc, Var

Body = Callable[[Sequence[Any], Sequence[Any]], Any]


def image(h: int = 3, w: int = 5) -> np.ndarray[Any, Any]:
    return np.arange(h * w, dtype=np.float32).reshape(h, w)


def refusal(call: Callable[[], Any]) -> str:
    with pytest.raises(RunError) as caught:
        call()
    return str(caught.value)


def _int(value: int) -> IntImm:
    return IntImm("int64", value)


def elementwise(
    name: str, shape: Sequence[Any], dtypes: Sequence[str], body: Body, kind: ForKind = ForKind.SERIAL, alignment: int = -1
) -> PrimFunc:
    """`last[i, j] = body(reads, (i, j))` over buffers of one shape; a string in it is a symbol, given as a last argument too."""
    symbols = {s: Var(s, "int64") for s in dict.fromkeys(e for e in shape if isinstance(e, str))}
    extents = [symbols[e] if isinstance(e, str) else _int(e) for e in shape]
    stored = [FORMATS[d].storage if d in FORMATS else d for d in dtypes]
    buffers = [tirx.decl_buffer(extents, d, f"B{i}", data_alignment=alignment) for i, d in enumerate(stored)]
    axes = [Var(f"i{k}", "int64") for k in range(len(shape))]
    nest: Any = BufferStore(buffers[-1], body([BufferLoad(b, axes) for b in buffers[:-1]], axes), axes)
    for k in reversed(range(len(axes))):
        nest = For(axes[k], _int(0), extents[k], kind if k == 0 else ForKind.SERIAL, nest)
    return PrimFunc([*buffers, *symbols.values()], nest).with_attr("global_symbol", name)


def scaled(name: str) -> PrimFunc:
    """`out[i, j] = image[i, j] * amount`, amount of rank 0."""
    h, w, i, j = (Var(n, "int64") for n in "hwij")
    image, out = (tirx.decl_buffer((h, w), "float32", n) for n in ("image", "out"))
    amount = tirx.decl_buffer((), "float32", "amount")
    store = BufferStore(out, BufferLoad(image, [i, j]) * BufferLoad(amount, []), [i, j])
    return PrimFunc(
        [image, amount, out, h, w],
        For(i, _int(0), h, ForKind.SERIAL, For(j, _int(0), w, ForKind.SERIAL, store)),
    ).with_attr("global_symbol", name)


def _vector_add(name: str) -> PrimFunc:
    """16 floats at once, with loads that demand alignment."""
    a, b, c = (tirx.decl_buffer((16,), "float32", n) for n in "abc")
    v = Var("v", "int64")
    store = BufferStore(c, BufferLoad(a, [v]) + BufferLoad(b, [v]), [v])
    return PrimFunc([a, b, c], For(v, _int(0), _int(16), ForKind.VECTORIZED, store)).with_attr("global_symbol", name)


def refusing(name: str) -> PrimFunc:
    """A kernel of one input and one output that fails where n is 13."""
    n = Var("n", "int64")
    x, y = (tirx.decl_buffer([n], "float32", b) for b in "xy")
    i = Var("i", "int64")
    loop = For(i, _int(0), n, ForKind.SERIAL, BufferStore(y, BufferLoad(x, [i]), [i]))
    refusal = tirx.AssertStmt(n != _int(13), tvm.ir.StringImm("ValueError"), [tvm.ir.StringImm("thirteen is too many")])
    return PrimFunc([x, y, n], tirx.SeqStmt([refusal, loop])).with_attr("global_symbol", name).with_attr("tirx.noalias", True)


@cache
def library(entry: bool = True) -> bytes:
    """The kernels below, linked with or without the entry that runs several in one call."""
    one = tirx.const(1.0, "float32")
    f32 = "float32"
    kernels = [
        _vector_add("add16"),
        scaled("scaled"),
        elementwise("add", ["n"], [f32] * 3, lambda r, _: r[0] + r[1]),
        elementwise("increment", ["n"], [f32] * 2, lambda r, _: r[0] + one),
        elementwise("increment_anywhere", ["n"], [f32] * 2, lambda r, _: r[0] + one, alignment=4),
        elementwise("increment_parallel", ["n"], [f32] * 2, lambda r, _: r[0] + one, ForKind.PARALLEL),
        elementwise("increment2d", ["h", "w"], [f32] * 2, lambda r, _: r[0] + one),
        elementwise("sevens", ["n"], [f32] * 2, lambda r, _: tirx.const(7.0, f32)),
        elementwise("double4", [4], [f32] * 2, lambda r, _: r[0] + r[0]),
        elementwise("add4", [4], [f32] * 3, lambda r, _: r[0] + r[1]),
        elementwise("copy_bfloat16", ["n"], ["bfloat16"] * 2, lambda r, _: r[0]),
        elementwise("copy_bool", ["n"], ["bool"] * 2, lambda r, _: r[0]),
        elementwise("copy_int8", ["n"], ["int8"] * 2, lambda r, _: r[0]),
    ]
    return linked([*kernels, refusing("refusing")], entry)


def linked(kernels: Sequence[PrimFunc], entry: bool = True) -> bytes:
    module = tvm.IRModule({k.attrs["global_symbol"]: k for k in kernels})
    built = tvm.compile(module, target=tvm.target.Target({"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 2}), tir_pipeline="s_tir")
    with tempfile.TemporaryDirectory() as folder:
        code, path = Path(folder) / "kernels.o", Path(folder) / "kernels.so"
        write_object(built, code)
        link([code, entry_object()] if entry else [code], path, c_compiler())
        return path.read_bytes()


def buffer(kind: str, name: str, *shape: Any, dtype: str = "float32", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "name": name, "dtype": dtype, "shape": list(shape), **more}


def step(kernel: str, *arguments: int, symbols: Sequence[Any] = ()) -> dict[str, Any]:
    return {"kernel": kernel, "arguments": list(arguments), "symbols": list(symbols)}


def method(buffers: list[dict[str, Any]], steps: list[dict[str, Any]], result: Any = None, **more: Any) -> dict[str, Any]:
    """A method whose inputs are its input buffers, with one variant, that returns its last buffer unless `result` says otherwise."""
    inputs = [{k: b[k] for k in ("name", "dtype", "shape")} | {"buffer": i} for i, b in enumerate(buffers) if b["kind"] == "input"]
    symbols = {e: {"min": 0, "max": None, "multiple": 1} for i in inputs for e in i["shape"] if isinstance(e, str)}
    body = {"when": {}, "buffers": buffers, "setup": more.pop("setup", []), "steps": steps}
    return {
        "doc": "Test.",
        "inputs": inputs,
        "symbols": symbols,
        "variants": [body],
        "result": result or {"buffer": len(buffers) - 1},
    } | more


def manifest(name: str, parameters: Sequence[dict[str, Any]] = (), **methods: dict[str, Any]) -> dict[str, Any]:
    return {
        "format": 1,
        "fluorite": "0.1.0",
        "name": name,
        "toolchain": {"tvm_ffi": "0.1.14.post0"},
        "target": {"kind": "llvm", "cpu": "x86-64-v3", "features": ["avx2", "fma"]},
        "threads": 2,
        "plan": "version: 1\n",
        "parameters": list(parameters),
        "methods": methods,
    }


def add16() -> dict[str, Any]:
    return method([buffer("input", "a", 16), buffer("input", "b", 16), buffer("output", "sum", 16)], [step("add16", 0, 1, 2)])


def photo() -> dict[str, Any]:
    return method(
        [buffer("input", "image", "h", "w"), buffer("input", "amount"), buffer("output", "photo", "h", "w")],
        [step("scaled", 0, 1, 2, symbols=["h", "w"])],
        symbols={"h": {"min": 0, "max": 10000, "multiple": 1}, "w": {"min": 0, "max": None, "multiple": 1}},
    )


def chain(count: int, kernel: str = "increment", **more: Any) -> dict[str, Any]:
    """`count` elementwise stages one after the other; `more` is said of the input and the output."""
    temporaries = [buffer("temporary", f"t{i}", "n") for i in range(count - 1)]
    steps = [step(kernel, i, i + 1, symbols=["n"]) for i in range(count)]
    return method([buffer("input", "x", "n", **more), *temporaries, buffer("output", "y", "n", **more)], steps)
