"""The one place where the foreign-function library is imported.

It imports torch by itself when torch is installed, for conversions that are not needed here; that would cost seconds.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING


def _import_without_torch() -> None:
    if "torch" in sys.modules or "tvm_ffi" in sys.modules:
        return
    sys.modules["torch"] = None  # type: ignore[assignment]    # the import system's way to say "not installed"
    try:
        import tvm_ffi  # noqa: F401
    finally:
        if sys.modules.get("torch", ...) is None:
            del sys.modules["torch"]


if not TYPE_CHECKING:
    _import_without_torch()

from tvm_ffi import Function, Module, Shape, Tensor, from_dlpack, get_global_func, load_module  # noqa: E402
from tvm_ffi import __version__ as version  # noqa: E402
from tvm_ffi import dtype as ffi_dtype  # noqa: E402

__all__ = ["Function", "Module", "Shape", "Tensor", "ffi_dtype", "from_dlpack", "get_global_func", "load_module", "version"]
