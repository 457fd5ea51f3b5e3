"""The vector instructions that add dot products of 4 bytes, or of 2 int16 or bfloat16, to every lane, as LLVM IR text.

Each takes the sums, the 4 bytes of the row that all lanes share, and 4 bytes for each lane.
"""

from __future__ import annotations

from typing import NamedTuple


class Dot(NamedTuple):
    """LLVM's instruction, with the element types of the sums and of the products; `shared_first`: the row is its second argument."""

    call: str
    sums: str
    element: str
    given: str
    each: int
    shared_first: bool


_WORDS = "llvm.x86.avx512.vpdpwssd.512"
_VNNI, _BF16 = "llvm.x86.avx512.vpdpbusd.512", "llvm.x86.avx512bf16.dpbf16ps.512"
FUNCTIONS: dict[str, Dot] = {
    "dot_uint8_int8": Dot(_VNNI, "i32", "i8", "i8", 4, True),
    "dot_int8_uint8": Dot(_VNNI, "i32", "i8", "i8", 4, False),  # the instruction's first factor is the one without a sign
    "dot_int16_int16": Dot(_WORDS, "i32", "i16", "i16", 2, True),
    "dot_bfloat16_bfloat16": Dot(_BF16, "float", "bfloat", "i16", 2, True),
}
"""By the types of the row and of the lanes."""


def definition(name: str, symbol: str, lanes: int) -> tuple[str, dict[str, None]]:
    """LLVM IR of one function, and the declaration that it needs."""
    f = FUNCTIONS[name]
    sums, factors = f"<{lanes} x {f.sums}>", f"<{lanes * f.each} x {f.element}>"
    row, given = f"<{f.each} x {f.given}>", f"<{lanes * f.each} x {f.given}>"
    first, second = ("%shared", "%own") if f.shared_first else ("%own", "%shared")
    text = f"""define {sums} @{symbol}({sums} %sums, {row} %row, {given} %lanes) alwaysinline {{
start:
  %word = bitcast {row} %row to i32
  %one = insertelement <{lanes} x i32> poison, i32 %word, i32 0
  %all = shufflevector <{lanes} x i32> %one, <{lanes} x i32> poison, <{lanes} x i32> zeroinitializer
  %shared = bitcast <{lanes} x i32> %all to {factors}
  %own = bitcast {given} %lanes to {factors}
  %result = call {sums} @{f.call}({sums} %sums, {factors} {first}, {factors} {second})
  ret {sums} %result
}}"""
    return text, {f"declare {sums} @{f.call}({sums}, {factors}, {factors})": None}


__all__ = ["FUNCTIONS", "definition"]
