"""The directive that computes the innermost loops of a product by a hardware instruction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Directive, Name


@dataclass(frozen=True)
class Tensorize(Directive):
    """Compute the loops from `axis` inwards by one instruction that multiplies small matrices, such as those of AVX-512, AMX or a GPU.

    `intrinsic` is avx512_vnni, avx512_vnni_i16, avx512_bf16, amx_int8 or amx_bf16, or on a GPU wmma_f16 or wmma_bf16; `auto` takes the
    first of the target's that fits. The loops are those of the instruction, in any order: avx512_vnni has j 16, k 4; avx512_vnni_i16 and
    avx512_bf16 j 16, k 2; amx_int8 i 16, j 16, k 64; amx_bf16 i 16, j 16, k 32; wmma 16 of each. The loops around them inside the
    reduction, of constant extent, are written out, and each keeps its result in a register: at most 32 vectors, 4 tiles, or 8 results of
    a warp.
    Legal for a sum of products of two operands, uint8 and int8 added to int32 (amx_int8: any bytes; avx512_vnni_i16: int16, as which
    bytes can be packed) or bfloat16 added to float32. k runs along the first operand; 4 bytes of k lie side by side in the other: pack:
    {tensor: b, sizes: {j: 16, k: 4}, order: [j, k]}, for int16 and bfloat16 k: 2. Where k is no multiple, both operands are packed: that
    fills with zeros. Other loops that do not divide: cache.
    On a GPU: with gpu_warps, float16 or bfloat16 to float32, k along the first operand and j along the other, on sm_70 or sm_80.
    Exact for integers. For bfloat16 of class precision: sums in another order, and subnormal numbers count as 0.
    Gains: 4 to 30 times the products of float32 vectors.
    Costs: operands in the instruction's own order; a processor that has it.
    """

    before: ClassVar[str] = "for k_outer\n  for j_inner in 0..16\n    for k_inner in 0..4: out += a * b_packed"
    after: ClassVar[str] = "tensorize: {axis: j_inner, intrinsic: avx512_vnni}\n  for k_outer: out[0..16] += avx512_vnni(a, b_packed)"

    axis: Name
    intrinsic: Name = "auto"
