"""Operations on positions that are calls until nothing simplifies them any more.

TVM tries all that it knows of minima and maxima on a clamp, at every pass, and a clamp inside a clamp multiplies that. Of the remainders of
a vector that falls it takes multiples of the divisor away beyond 0: of 18, 17, 16 by 3 it makes those of 0, -1, -2, which have other signs.
What there is to know of positions was used before: an operation that is still here is needed.
"""

from __future__ import annotations

from typing import Any

from .tvm_adapter import register_operation, tirx, tvm

_ZERO = tirx.IntImm("int64", 0)


def _clamped(call: Any) -> Any:
    position, last = call.args
    return tirx.max(tirx.min(position, last), _ZERO)


def _remainder(call: Any) -> Any:
    position, by = call.args
    left = tirx.truncmod(position, by)
    return tirx.Select(left < _ZERO, left + by, left)


_NEAREST = register_operation("fluorite.nearest", _clamped)
_REMAINDER = register_operation("fluorite.rest", _remainder)


def nearest(position: Any, last: Any) -> Any:
    """max(min(position, last), 0), of int64: the position in a tensor that is nearest to one that may lie outside."""
    if isinstance(position, tirx.IntImm) and isinstance(last, tirx.IntImm):
        return tirx.max(tirx.min(position, last), _ZERO)
    return tvm.ir.Call(_NEAREST, args=[position, last], ret_ty=(position + last).ty)


def remainder(position: Any, by: Any) -> Any:
    """The remainder by a positive constant, never negative."""
    if isinstance(position, tirx.IntImm):
        return tirx.floormod(position, by)
    return tvm.ir.Call(_REMAINDER, args=[position, by], ret_ty=(position + by).ty)


__all__ = ["nearest", "remainder"]
