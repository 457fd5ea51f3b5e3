"""Operations on floating-point numbers that TVM's simplifier would get wrong.

It takes floats for real numbers, which are not rounded, and among which are no NaN and no infinities: of x != x it makes false, of
not x < y it makes y <= x, of x - x and 0 * x it makes 0, and of (x + y) - y it makes x. TVM's own != is false beside NaN, too. So these
operations are calls until nothing simplifies them any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fluorite.algo.dtypes import kind

from .tvm_adapter import register_operation, tirx, tvm

_MEANING: dict[str, Callable[[Any, Any], Any]] = {
    "lt": tirx.LT,
    "le": tirx.LE,
    "eq": tirx.EQ,
    "ne": lambda a, b: tirx.Not(tirx.EQ(a, b)),
    "add": tirx.Add,
    "sub": tirx.Sub,
    "mul": tirx.Mul,
    "div": tirx.Div,
}


def _lowering(name: str) -> Callable[[Any], Any]:
    return lambda call: _MEANING[name](*call.args)


_ON_DEVICES = {"ne": {"cuda": lambda call: tirx.NE(*call.args), "opencl": lambda call: tirx.NE(*call.args)}}
"""In the languages of devices != means what it should, and vectors have no `not`."""
_OPERATIONS = {name: register_operation(f"fluorite.{name}", _lowering(name), _ON_DEVICES.get(name)) for name in _MEANING}
_LOWERINGS = {f"fluorite.{name}": _lowering(name) for name in _MEANING}


def lowered(call: Any) -> Any | None:
    """What a call of one of these operations stands for; None for another call."""
    lowering = _LOWERINGS.get(getattr(call.op, "name", ""))
    return None if lowering is None else lowering(call)


def _comparison(name: str) -> Callable[[str, Any, Any], Any]:
    plain = {"lt": tirx.LT, "le": tirx.LE, "eq": tirx.EQ, "ne": tirx.NE}[name]

    def compare(t: str, a: Any, b: Any) -> Any:
        """Two values of a type compared. Truth values are compared as numbers: TVM takes them for floats."""
        if t == "bool":
            return plain(a.astype("int8"), b.astype("int8"))
        return tvm.ir.Call(_OPERATIONS[name], args=[a, b], ret_ty=plain(a, b).ty) if kind(t) == "float" else plain(a, b)

    return compare


lt, le, eq, ne = map(_comparison, ("lt", "le", "eq", "ne"))


def _arithmetic(name: str) -> Callable[[Any, Any], Any]:
    def combine(a: Any, b: Any) -> Any:
        """Two floats of a type combined, as the processor does."""
        return tvm.ir.Call(_OPERATIONS[name], args=[a, b], ret_ty=a.ty)

    return combine


add, sub, mul, div = map(_arithmetic, ("add", "sub", "mul", "div"))
