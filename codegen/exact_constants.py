"""Floats in the source of GPU kernels: TVM writes seven digits, another number for most, so these are given by their bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from .tvm_adapter import tirx, tvm, tvm_ffi

_BITS = {
    ("opencl", "float32"): ("as_float", "int32"),
    ("opencl", "float64"): ("as_double", "int64"),
    ("cuda", "float64"): ("__longlong_as_double", "int64"),  # of float32 CUDA's source has all bits
}
"""By target and type: the function that takes an integer for a float, and the type of the integer."""


def exact_constants(module: Any, kind: str) -> Any:
    """The device functions of a module, with the constants that would lose digits in source for this kind of target given by their bits."""

    def exact(imm: Any) -> Any:
        dtype, value = str(imm.ty.dtype), float(imm.value)
        if (kind, dtype) not in _BITS or not np.isfinite(value) or float(np.dtype(dtype).type(f"{value:.6e}")) == value:
            return imm
        name, integer = _BITS[kind, dtype]
        bits = int(np.dtype(dtype).type(value).view(integer))
        return tirx.call_pure_extern(imm.ty, name, tirx.IntImm(integer, bits))

    def changed(f: Any) -> Any:
        return f.with_body(tvm_ffi.structural_map(f.body, (tirx.FloatImm, exact)))

    return tvm.IRModule({v: changed(f) for v, f in module.functions.items()}, attrs=module.attrs)


__all__ = ["exact_constants"]
