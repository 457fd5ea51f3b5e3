"""Vectors looked up in a short table, such as a tone curve or a code book: the table is held in registers, and one instruction of AVX-512
picks from two of them by position (Intel's vpermi2b, vpermi2w, vpermi2d). Whole bits of the position choose between the pairs.
"""

from __future__ import annotations

from typing import Any

from .tvm_adapter import has_feature, tirx, tvm

_KINDS = {
    "int8": "i8", "uint8": "i8", "int16": "i16", "uint16": "i16", "int32": "i32", "uint32": "i32", "float32": "float", "float16": "half",
}  # fmt: skip
_BYTES = {"i8": 1, "i16": 2, "half": 2, "i32": 4, "float": 4}
_INTRINSIC = {1: "qi", 2: "hi", 4: "d"}
_REGISTER = 64
_LONGEST = {1: 1024, 2: 512, 4: 512}
"""Bytes of a table that is worth it: beyond that, reading elements one by one or a gather is quicker."""

Key = tuple[str, int, int]
"""Element type, lanes, entries."""


def symbol(dtype: str, lanes: int, entries: int) -> str:
    return f"fluorite_lookup_{dtype}x{lanes}_{entries}"


def definition(dtype: str, lanes: int, entries: int) -> str:
    """LLVM IR of the function of a table and of a vector of positions, all within it."""
    kind = _KINDS[dtype]
    size = _BYTES[kind]
    whole, full = f"i{8 * size}", _REGISTER // size
    register, picked = f"<{full} x {whole}>", f"<{lanes} x {whole}>"
    permute = f"@llvm.x86.avx512.vpermi2var.{_INTRINSIC[size]}.512"
    masked = f"@llvm.masked.load.v{full}{whole}.p0"
    lines = [
        f"declare {register} {permute}({register}, {register}, {register})",
        f"declare {register} {masked}(ptr, i32 immarg, <{full} x i1>, {register})",
        "",
        f"define <{lanes} x {kind}> @{symbol(dtype, lanes, entries)}(ptr %table, <{lanes} x i64> %index) {{",
        "start:",
        f"  %within = trunc <{lanes} x i64> %index to {picked}",
        f"  %place = shufflevector {picked} %within, {picked} poison, {_first(full, lanes)}",
        f"  %far = trunc <{lanes} x i64> %index to <{lanes} x i16>",
    ]
    parts = -(-entries // full)
    for k in range(parts):
        left = entries - k * full
        lines.append(f"  %at{k} = getelementptr i8, ptr %table, i64 {k * _REGISTER}")
        if left >= full:
            lines.append(f"  %part{k} = load {register}, ptr %at{k}, align {size}")
        else:
            there = f"<{full} x i1> <{', '.join(f'i1 {str(n < left).lower()}' for n in range(full))}>"
            lines.append(f"  %part{k} = call {register} {masked}(ptr %at{k}, i32 {size}, {there}, {register} zeroinitializer)")
    found = []
    for k in range(0, parts, 2):
        second = f"%part{k + 1}" if k + 1 < parts else f"%part{k}"
        lines.append(f"  %wide{k} = call {register} {permute}({register} %part{k}, {register} %place, {register} {second})")
        lines.append(f"  %found{k} = shufflevector {register} %wide{k}, {register} poison, {_first(lanes, lanes)}")
        found.append(f"%found{k}")
    bit = 2 * full
    while len(found) > 1:
        lines.append(f"  %bit{bit} = and <{lanes} x i16> %far, {_splat(lanes, bit)}")
        lines.append(f"  %is{bit} = icmp ne <{lanes} x i16> %bit{bit}, zeroinitializer")
        halved = []
        for k in range(0, len(found) - 1, 2):
            name = f"%found{bit}.{k}"
            lines.append(f"  {name} = select <{lanes} x i1> %is{bit}, {picked} {found[k + 1]}, {picked} {found[k]}")
            halved.append(name)
        found, bit = halved + found[len(found) & ~1 :], 2 * bit
    lines += [f"  %result = bitcast {picked} {found[0]} to <{lanes} x {kind}>", f"  ret <{lanes} x {kind}> %result", "}"]
    return "\n".join(lines)


def _first(lanes: int, there: int) -> str:
    """The mask of a shuffle that keeps what is there, and leaves the rest open."""
    return f"<{lanes} x i32> <{', '.join(f'i32 {n}' if n < there else 'i32 poison' for n in range(lanes))}>"


def _splat(lanes: int, value: int) -> str:
    return f"<{', '.join([f'i16 {value}'] * lanes)}>"


def looked_up(load: Any, target: Any) -> tuple[Any, Key] | None:
    """The call that reads what a vector load asks for, and of which function; None where the table is long or the vector short."""
    (index,) = load.indices if len(load.indices) == 1 else (None,)
    if index is None or isinstance(index, tirx.Ramp | tirx.Broadcast):
        return None
    dtype, lanes = str(load.ty.dtype.with_lanes(1)), load.ty.dtype.lanes
    shape = load.source.shape
    if dtype not in _KINDS or len(shape) != 1 or not isinstance(shape[0], tirx.IntImm):
        return None
    size, entries = _BYTES[_KINDS[dtype]], int(shape[0])
    full = _REGISTER // size
    if not (full <= 2 * lanes <= 2 * full and 0 < entries * size <= _LONGEST[size] and has_feature(target, "avx512vbmi")):
        return None
    wide = index if str(index.ty.dtype.with_lanes(1)) == "int64" else index.astype(f"int64x{lanes}")
    table = tirx.address_of(tirx.BufferLoad(load.source, [tirx.IntImm("int64", 0)]))
    key = (dtype, lanes, entries)
    return tvm.ir.Call(tvm.ir.Op.get("tirx.call_extern"), args=[tvm.ir.StringImm(symbol(*key)), table, wide], ret_ty=load.ty), key


__all__ = ["Key", "definition", "looked_up", "symbol"]
