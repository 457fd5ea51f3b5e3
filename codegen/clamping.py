"""The position in a tensor that is nearest to one that may lie outside, as a call until nothing simplifies it any more.

TVM tries all that it knows of minima and maxima on a clamp, at every pass, and a clamp inside a clamp multiplies that. What there is to
know of positions was used before: a clamp that is still here is needed.
"""

from __future__ import annotations

from typing import Any

from .tvm_adapter import register_operation, tirx, tvm


def _lowered(call: Any) -> Any:
    position, last = call.args
    return tirx.max(tirx.min(position, last), tirx.IntImm("int64", 0))


_NEAREST = register_operation("fluorite.nearest", _lowered)


def nearest(position: Any, last: Any) -> Any:
    """max(min(position, last), 0), of int64."""
    if isinstance(position, tirx.IntImm) and isinstance(last, tirx.IntImm):
        return tirx.max(tirx.min(position, last), tirx.IntImm("int64", 0))
    return tvm.ir.Call(_NEAREST, args=[position, last], ret_ty=(position + last).ty)
