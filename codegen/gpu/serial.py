"""GPU nests on the CPU: blocks and threads as plain loops. Shows wrong indices, tiles and guards; nothing of barriers and device code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..functions.narrow_floats import FORMATS
from ..lowered import Lowered


def bits_of(array: Any) -> Any:
    """What a kernel takes for an array: narrow floats as integers of their size."""
    name = str(array.dtype)
    return array.view(FORMATS[name].storage) if name in FORMATS else array


def serial_functions(lowered: Lowered) -> Mapping[str, Any]:
    """Every kernel compiled for this CPU, by name, callable with NumPy arrays."""
    from ..emit import emit
    from ..tvm_adapter import as_tensor, compile_functions

    if not lowered.kernels:
        return {}
    module = compile_functions({k.name: emit(k, serial=True) for k in lowered.kernels}, {"kind": "llvm"})

    def function(name: str) -> Any:
        entry = module[name]
        return lambda *a: entry(*(x if isinstance(x, int) else as_tensor(bits_of(x)) for x in a))

    return {k.name: function(k.name) for k in lowered.kernels}


__all__ = ["bits_of", "serial_functions"]
