"""Expressions as text."""

from __future__ import annotations

from collections.abc import Callable

from .expr import SYMBOL, Access, Axis, Const, Expr, Op, Read, Reduce, Size


def show(e: Expr, name: Callable[[int], str] = lambda i: f"%{i}") -> str:
    """The expression as one would write it."""
    return _show(e, name, 0)


_LEVEL = {
    "or": 1,
    "xor": 2,
    "and": 3,
    "lt": 4,
    "le": 4,
    "eq": 4,
    "ne": 4,
    "shl": 5,
    "shr": 5,
    "add": 6,
    "sub": 6,
    "mul": 7,
    "div": 7,
    "floordiv": 7,
    "mod": 7,
}


def _show(e: Expr, name: Callable[[int], str], level: int) -> str:
    match e:
        case Const(value=v):
            return repr(v)
        case Axis():
            return e.name
        case Size():
            return str(e.extent) if e.extent.is_atom else f"({e.extent})"
        case Read():
            return f"{name(e.source)}[{', '.join(_show(i, name, 0) for i in e.index)}]"
        case Access():
            return f"{e.tensor.label}[{', '.join(_show(i, name, 0) for i in e.index)}]"
        case Reduce():
            return f"{e.kind}({', '.join(a.name for a in e.axes)} | {_show(e.body, name, 0)})"
        case Op(op="cast"):
            return f"{e.dtype}({_show(e.args[0], name, 0)})"
        case Op(op=op) if op in _LEVEL:
            mine = _LEVEL[op]
            text = f"{_show(e.args[0], name, mine)} {SYMBOL[op]} {_show(e.args[1], name, mine + 1)}"
            return f"({text})" if mine < level else text
        case Op():
            return f"{e.op}({', '.join(_show(a, name, 0) for a in e.args)})"
    raise TypeError(type(e))
