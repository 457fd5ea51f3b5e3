"""Stores past the caches: vectors that fill cache lines go straight to memory, which then need not be read before it is written.

A mark on the value says so until loops are vectors. Processors want such a store at a multiple of a line; elsewhere it is a plain one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fluorite.algo.dtypes import itemsize

from .tvm_adapter import element_address, external, has_feature, register_operation, tirx, tvm

LINE = 64
"""Bytes of a cache line."""

_ELEMENTS = {"float32": "float", "float64": "double", "float16": "half"} | {
    f"{sign}int{bits}": f"i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_END = "fluorite_stream_end"
_MARK = register_operation("fluorite.streamed", lambda call: call.args[0])

Key = tuple[str, int]
"""Element type, lanes."""


def marked(value: Any) -> Any:
    """The value, to be stored past the caches."""
    return tvm.ir.Call(_MARK, args=[value], ret_ty=value.ty)


def is_mark(call: Any) -> bool:
    return getattr(call.op, "name", "") == "fluorite.streamed"


def streamed(store: Any) -> tuple[Any, Key] | None:
    """The call that stores a marked vector, and of which function; None where it fills no cache lines, or is not marked."""
    value = store.value
    if not isinstance(value, tvm.ir.Call) or not is_mark(value) or len(store.indices) != 1:
        return None
    at, lanes = store.indices[0], value.ty.dtype.lanes
    dtype = str(value.ty.dtype.with_lanes(1))
    if dtype not in _ELEMENTS or not isinstance(at, tirx.Ramp) or not isinstance(at.stride, tirx.IntImm) or int(at.stride) != 1:
        return None
    if lanes * itemsize(dtype) % LINE:
        return None
    key = (dtype, lanes)
    return external(symbol(*key), element_address(store.buffer, [at.base]), value.args[0]), key


def symbol(dtype: str, lanes: int) -> str:
    """The name of the function that stores so many elements."""
    return f"fluorite_stream_{dtype}x{lanes}"


def definition(dtype: str, lanes: int) -> str:
    """LLVM IR of the function of an address and a vector."""
    vector = f"<{lanes} x {_ELEMENTS[dtype]}>"
    return f"""define void @{symbol(dtype, lanes)}(ptr %to, {vector} %value) {{
start:
  %address = ptrtoint ptr %to to i64
  %beside = and i64 %address, {LINE - 1}
  %whole = icmp eq i64 %beside, 0
  br i1 %whole, label %past, label %plain
past:
  store {vector} %value, ptr %to, align {LINE}, !nontemporal !0
  ret void
plain:
  store {vector} %value, ptr %to, align {itemsize(dtype)}
  ret void
}}
"""


def definitions(keys: Iterable[Key], target: Any) -> str:
    """LLVM IR of the functions that store, and of the one that finishes."""
    x86 = has_feature(target, "sse")
    fence = "call void @llvm.x86.sse.sfence()" if x86 else "fence release"
    declared = ["declare void @llvm.x86.sse.sfence()"] * x86
    end = f"define void @{_END}() {{\nstart:\n  {fence}\n  ret void\n}}\n"
    return "\n".join([*declared, *(definition(*k) for k in sorted(keys)), end, "!0 = !{i32 1}"])


def finished() -> Any:
    """The call after which other threads see what was stored past the caches."""
    return external(_END)


def finishes(call: Any) -> bool:
    return getattr(call.op, "name", "") == "tirx.call_extern" and getattr(call.args[0], "value", "") == _END


__all__ = ["Key", "definitions", "finished", "finishes", "is_mark", "marked", "streamed"]
