"""Divisions as TVM's code generator takes them: TVM simplifies -n // 2 to n // -2, and lowers that to let expressions, which fail where its
generator for LLVM meets one twice.
"""

from __future__ import annotations

from typing import Any

from .tvm_adapter import tirx, tvm, tvm_ffi


def positive_divisors() -> Any:
    """The pass after which nothing is divided by a negative constant."""

    def turned(node: Any) -> Any:
        divisor = node.b.value if isinstance(node.b, tirx.Broadcast) else node.b
        if not isinstance(divisor, tirx.IntImm) or divisor.value >= 0:
            return node
        zero = tirx.const(0, str(node.a.ty.dtype))
        if isinstance(node, tirx.FloorDiv):
            return tirx.FloorDiv(zero - node.a, zero - node.b)
        return zero - tirx.FloorMod(zero - node.a, zero - node.b)

    def changed(f: Any) -> Any:
        return f.with_body(tvm_ffi.structural_map(f.body, ((tirx.FloorDiv, tirx.FloorMod), turned)))

    @tvm.transform.module_pass(opt_level=0)  # type: ignore[untyped-decorator]
    def run(mod: Any, _context: Any) -> Any:
        return tvm.IRModule({v: changed(f) if isinstance(f, tirx.PrimFunc) else f for v, f in mod.functions.items()}, attrs=mod.attrs)

    return run


__all__ = ["positive_divisors"]
