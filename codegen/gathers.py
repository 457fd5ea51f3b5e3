"""Vectors of elements that lie anywhere, in one instruction where the processor has it: TVM reads them one by one, each by way of an index
taken out of a vector. LLVM knows by the processor's name whether its gathers are worth while, and takes them apart where they are not.
"""

from __future__ import annotations

from typing import Any

from .tvm_adapter import tirx, tvm

_ELEMENTS = {
    "float32": ("float", 4), "int32": ("i32", 4), "uint32": ("i32", 4), "float64": ("double", 8), "int64": ("i64", 8), "uint64": ("i64", 8),
}  # fmt: skip
_LANES = (4, 8, 16)


def symbol(dtype: str, lanes: int) -> str:
    """The name of the function that gathers so many elements."""
    return f"fluorite_gather_{dtype}x{lanes}"


def definition(dtype: str, lanes: int) -> str:
    """LLVM IR of the function of a base and of a vector of positions in elements."""
    kind, size = _ELEMENTS[dtype]
    vector, index = f"<{lanes} x {kind}>", f"<{lanes} x i64>"
    name = f"@llvm.masked.gather.v{lanes}{kind.replace('float', 'f32').replace('double', 'f64')}.v{lanes}p0"
    all_lanes = f"<{', '.join(['i1 true'] * lanes)}>"
    return "\n".join(
        [
            f"declare {vector} {name}(<{lanes} x ptr>, i32 immarg, <{lanes} x i1>, {vector})",
            "",
            f"define {vector} @{symbol(dtype, lanes)}(ptr %base, {index} %index) {{",
            "start:",
            f"  %at = getelementptr {kind}, ptr %base, {index} %index",
            f"  %found = call {vector} {name}(<{lanes} x ptr> %at, i32 {size}, <{lanes} x i1> {all_lanes}, {vector} poison)",
            f"  ret {vector} %found",
            "}",
        ]
    )


def gathered(load: Any) -> tuple[Any, tuple[str, int]] | None:
    """The call that reads what a vector load asks for, and of which function; None where the elements lie in a row, or apart evenly."""
    (index,) = load.indices if len(load.indices) == 1 else (None,)
    if index is None or isinstance(index, tirx.Ramp | tirx.Broadcast):
        return None
    dtype, lanes = str(load.ty.dtype.with_lanes(1)), load.ty.dtype.lanes
    if dtype not in _ELEMENTS or lanes not in _LANES or index.ty.dtype.lanes != lanes:
        return None
    wide = index if str(index.ty.dtype.with_lanes(1)) == "int64" else index.astype(f"int64x{lanes}")
    base = tirx.address_of(tirx.BufferLoad(load.source, [tirx.IntImm("int64", 0)]))
    name = tvm.ir.StringImm(symbol(dtype, lanes))
    return tvm.ir.Call(tvm.ir.Op.get("tirx.call_extern"), args=[name, base, wide], ret_ty=load.ty), (dtype, lanes)


__all__ = ["definition", "gathered", "symbol"]
