"""Vectors of elements that lie anywhere, in one instruction where the processor has it: TVM reads them one by one, each by way of an index
taken out of a vector. LLVM knows by the processor's name whether its gathers are worth while, and takes them apart where they are not.

Where an array is so short that 32 bits hold a position, AVX-512 gathers a whole register in one instruction instead of two. LLVM widens
positions to 64 bits wherever it can, so that this one is asked for by name.
"""

from __future__ import annotations

from typing import Any

from .tvm_adapter import has_feature, tirx, tvm

_ELEMENTS = {
    "float32": ("float", 4), "int32": ("i32", 4), "uint32": ("i32", 4), "float64": ("double", 8), "int64": ("i64", 8), "uint64": ("i64", 8),
}  # fmt: skip
_LANES = (4, 8, 16)
_WHOLE = {"float": (16, "dps"), "i32": (16, "dpi"), "double": (8, "dpd"), "i64": (8, "dpq")}
_QUICK = ("avx512f", "fast-gather")
_SHORT = 1 << 31

Key = tuple[str, int, int]
"""Element type, lanes, bits of a position."""


def symbol(dtype: str, lanes: int, bits: int) -> str:
    """The name of the function that gathers so many elements."""
    return f"fluorite_gather_{dtype}x{lanes}_{bits}"


def definition(dtype: str, lanes: int, bits: int) -> str:
    """LLVM IR of the function of a base and of a vector of positions in elements."""
    return _whole_register(dtype, lanes) if bits == 32 else _any_vector(dtype, lanes)


def _whole_register(dtype: str, lanes: int) -> str:
    kind, size = _ELEMENTS[dtype]
    vector, index, mask = f"<{lanes} x {kind}>", f"<{lanes} x i32>", f"<{lanes} x i1>"
    name = f"@llvm.x86.avx512.mask.gather.{_WHOLE[kind][1]}.512"
    found = f"call {vector} {name}({vector} zeroinitializer, ptr %base, {index} %index, {mask} {_all(lanes)}, i32 {size})"
    return _function(symbol(dtype, lanes, 32), vector, index, f"{name}({vector}, ptr, {index}, {mask}, i32 immarg)", found)


def _any_vector(dtype: str, lanes: int) -> str:
    kind, size = _ELEMENTS[dtype]
    vector, index, at, mask = f"<{lanes} x {kind}>", f"<{lanes} x i64>", f"<{lanes} x ptr>", f"<{lanes} x i1>"
    name = f"@llvm.masked.gather.v{lanes}{kind.replace('float', 'f32').replace('double', 'f64')}.v{lanes}p0"
    places = f"%at = getelementptr {kind}, ptr %base, {index} %index"
    found = f"call {vector} {name}({at} %at, i32 {size}, {mask} {_all(lanes)}, {vector} poison)"
    return _function(symbol(dtype, lanes, 64), vector, index, f"{name}({at}, i32 immarg, {mask}, {vector})", found, places)


def _all(lanes: int) -> str:
    return f"<{', '.join(['i1 true'] * lanes)}>"


def _function(name: str, vector: str, index: str, intrinsic: str, found: str, *before: str) -> str:
    head = [f"declare {vector} {intrinsic}", "", f"define {vector} @{name}(ptr %base, {index} %index) {{", "start:"]
    return "\n".join([*head, *(f"  {line}" for line in (*before, f"%found = {found}", f"ret {vector} %found")), "}"])


def gathered(load: Any, target: Any) -> tuple[Any, Key] | None:
    """The call that reads what a vector load asks for, and of which function; None where the elements lie in a row, or apart evenly."""
    (index,) = load.indices if len(load.indices) == 1 else (None,)
    if index is None or isinstance(index, tirx.Ramp | tirx.Broadcast):
        return None
    dtype, lanes = str(load.ty.dtype.with_lanes(1)), load.ty.dtype.lanes
    if dtype not in _ELEMENTS or lanes not in _LANES or index.ty.dtype.lanes != lanes:
        return None
    elements = load.source.shape[0]
    short = isinstance(elements, tirx.IntImm) and int(elements) <= _SHORT
    bits = 32 if short and lanes == _WHOLE[_ELEMENTS[dtype][0]][0] and all(has_feature(target, x) for x in _QUICK) else 64
    same = str(index.ty.dtype.with_lanes(1)) == f"int{bits}"
    base = tirx.address_of(tirx.BufferLoad(load.source, [tirx.IntImm("int64", 0)]))
    key = (dtype, lanes, bits)
    args = [tvm.ir.StringImm(symbol(*key)), base, index if same else index.astype(f"int{bits}x{lanes}")]
    return tvm.ir.Call(tvm.ir.Op.get("tirx.call_extern"), args=args, ret_ty=load.ty), key


__all__ = ["Key", "definition", "gathered", "symbol"]
