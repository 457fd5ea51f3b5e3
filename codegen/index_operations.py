"""Arithmetic on positions, in forms that TVM's simplifier gets right, and quickly.

TVM tries all that it knows of minima and maxima on a clamp, at every pass, and a clamp inside a clamp multiplies that. Of the remainders of
a vector that falls it takes multiples of the divisor away beyond 0: of 18, 17, 16 by 3 it makes those of 0, -1, -2, which have other signs.
So these two are calls until nothing simplifies them any more: what there is to know of positions was used before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fluorite.algo.expr import Axis, Const, Expr, Op, Size
from fluorite.algo.extent import nonnegative
from fluorite.algo.linear import is_index, linear

from .intrinsics import INTRINSICS
from .tvm_adapter import register_operation, tirx, tvm

_ZERO, _ONE = tirx.IntImm("int64", 0), tirx.IntImm("int64", 1)


# ---------------------------------------------------------------- what stands outside a tensor
def clamp(position: Any, n: Any) -> Any:
    """The position below n that is nearest."""
    return _between(position, n - _ONE)


def _between(position: Any, last: Any) -> Any:
    return tirx.max(tirx.min(position, last), _ZERO)


_NEAREST = register_operation("fluorite.nearest", lambda call: _between(*call.args))


def _edge(position: Any, n: Any) -> Any:
    last = n - _ONE
    if isinstance(position, tirx.IntImm) and isinstance(last, tirx.IntImm):
        return _between(position, last)
    return tvm.ir.Call(_NEAREST, args=[position, last], ret_ty=(position + last).ty)


def _reflect(position: Any, n: Any) -> Any:
    period = tirx.max((n - _ONE) * 2, _ONE)
    inside = floormod(position, period)
    return tirx.min(inside, period - inside)


def _wrap(position: Any, n: Any) -> Any:
    return floormod(position, n)


BOUNDARIES: dict[str, Callable[[Any, Any], Any]] = {"edge": _edge, "reflect": _reflect, "wrap": _wrap}
"""Of a position and an extent."""


# ---------------------------------------------------------------- division
def floordiv(a: Any, b: Any, sure: bool = False) -> Any:
    """Floor division of indices, of which `sure` says that they are not negative. By a positive constant in a form that TVM's simplifier
    leaves alone: its rules for nested floor divisions and remainders of what may be negative, or falls, are wrong in places. By anything
    else as a function of our own, which may be given 0: TVM moves common divisions in front of the tests that keep their divisor from
    being 0."""
    if not _is_positive(b):
        return INTRINSICS["floordiv"]("int64", a, b)
    quotient = tirx.truncdiv(a, b)
    if sure:
        return quotient
    return tirx.Select(tirx.And(a < _ZERO, tirx.NE(tirx.truncmod(a, b), _ZERO)), quotient - _ONE, quotient)


def floormod(a: Any, b: Any, sure: bool = False) -> Any:
    """The remainder, never negative; `sure` says that a is not negative and does not fall as lanes go on."""
    if not _is_positive(b):
        return INTRINSICS["mod"]("int64", a, b)
    if sure:
        return tirx.truncmod(a, b)
    return tirx.floormod(a, b) if isinstance(a, tirx.IntImm) else tvm.ir.Call(_REMAINDER, args=[a, b], ret_ty=(a + b).ty)


def _remainder(call: Any) -> Any:
    left = tirx.truncmod(*call.args)
    return tirx.Select(left < _ZERO, left + call.args[1], left)


_REMAINDER = register_operation("fluorite.rest", _remainder)


def rises(e: Expr) -> bool:
    """Whether e surely never falls as an axis goes on, but for starting again."""
    match e:
        case Axis() | Const() | Size():
            return True
        case Op(op="floordiv" | "mod", args=(a, Const(value=k))) if is_index(e) and k > 0:
            return rises(a)
        case Op(op="edge" | "min" | "max", args=args) if is_index(e):
            return all(map(rises, args))
    form = linear(e)
    return all(atom is not e and nonnegative(c) and rises(atom) for atom, c in form.terms)


def _is_positive(b: Any) -> bool:
    return isinstance(b, tirx.IntImm) and int(b) > 0


__all__ = ["BOUNDARIES", "clamp", "floordiv", "floormod", "rises"]
