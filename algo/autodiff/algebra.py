"""Arithmetic on adjoints: what multiplies by one or adds zero is never written, and masks stay outside."""

from __future__ import annotations

from ..dtypes import kind
from ..expr import Axis, Const, Expr, Op, Size, binary, cast, unary, where
from ..identities import identity
from ..linear import is_index, linear


def zero(dtype: str) -> Const:
    return identity("sum", dtype)


def one(dtype: str) -> Const:
    return identity("prod", dtype)


def number(value: float, like: Expr) -> Const:
    """A constant of the type of an expression."""
    return Const(float(value), like.dtype, False)


def is_zero(e: Expr) -> bool:
    return isinstance(e, Const) and e.value == 0


def is_one(e: Expr) -> bool:
    return isinstance(e, Const) and e.value == 1


def is_masked(e: Expr) -> bool:
    """Whether e is where(condition, value, 0)."""
    return isinstance(e, Op) and e.op == "where" and is_zero(e.args[2])


def add(a: Expr, b: Expr) -> Expr:
    if is_zero(a):
        return b
    if is_zero(b):
        return a
    if a is b:
        return mul(number(2, a), a)
    if isinstance(a, Const) and isinstance(b, Const):
        return Const(a.value + b.value, a.dtype, False)
    if isinstance(a, Op) and isinstance(b, Op) and is_masked(a) and is_masked(b):
        if a.args[0] is b.args[0]:
            return masked(a.args[0], add(a.args[1], b.args[1]))
        if a.args[0] is negation(b.args[0]):
            return where(b.args[0], b.args[1], a.args[1])
        if b.args[0] is negation(a.args[0]):
            return where(a.args[0], a.args[1], b.args[1])
    if isinstance(b, Op) and b.op == "neg":
        return binary("sub", a, b.args[0])
    return binary("add", a, b)


def neg(a: Expr) -> Expr:
    match a:
        case Const():
            return Const(-a.value, a.dtype, False)
        case Op(op="neg", args=(inner,)):
            return inner
        case Op(op="where", args=(c, value, other)) if is_zero(other):
            return masked(c, neg(value))
    return unary("neg", a)


def mul(a: Expr, b: Expr) -> Expr:
    if is_zero(a) or is_zero(b):
        return zero(a.dtype)
    if is_one(a):
        return b
    if is_one(b):
        return a
    if isinstance(a, Const) and isinstance(b, Const):
        return Const(a.value * b.value, a.dtype, False)
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Op) and is_masked(x):
            return masked(x.args[0], mul(x.args[1], y) if x is a else mul(y, x.args[1]))
        if isinstance(x, Const) and x.value == -1:
            return neg(y)
        if isinstance(x, Op) and x.op == "neg":
            return neg(mul(x.args[0], y) if x is a else mul(y, x.args[0]))
    return binary("mul", a, b)


def div(a: Expr, b: Expr) -> Expr:
    if is_zero(a) or is_one(b):
        return a
    if isinstance(a, Op) and is_masked(a):
        return masked(a.args[0], div(a.args[1], b))
    if isinstance(a, Op) and a.op == "neg":
        return neg(div(a.args[0], b))
    return binary("div", a, b)


def masked(condition: Expr, value: Expr) -> Expr:
    """value where the condition holds, else 0."""
    if is_zero(value):
        return value
    if isinstance(condition, Const):
        return value if condition.value else zero(value.dtype)
    return where(condition, value, zero(value.dtype))


def converted(value: Expr, dtype: str) -> Expr:
    """An adjoint in another float type."""
    if isinstance(value, Op) and is_masked(value):
        return masked(value.args[0], converted(value.args[1], dtype))
    return Const(float(value.value), dtype, False) if isinstance(value, Const) else cast(value, dtype)


def negation(condition: Expr) -> Expr:
    """The condition that holds where this one does not; of positions a comparison again, since they are never NaN."""
    match condition:
        case Const(value=v):
            return Const(not v, "bool", False)
        case Op(op="not", args=(c,), dtype="bool"):
            return c
        case Op(op="lt", args=(a, b)) if _exact(a) and _exact(b):
            return binary("le", b, a)
        case Op(op="le", args=(a, b)) if _exact(a) and _exact(b):
            return binary("lt", b, a)
        case Op(op="eq", args=(Axis() as a, Const(value=0) as b)):
            return binary("lt", b, a)
    return unary("not", condition)


def _exact(e: Expr) -> bool:
    return is_index(e) and kind(e.dtype) == "int" and all(isinstance(x, Axis | Size | Op) for x in linear(e).atoms)


__all__ = [
    "add",
    "converted",
    "div",
    "is_masked",
    "is_one",
    "is_zero",
    "masked",
    "mul",
    "neg",
    "negation",
    "number",
    "one",
    "zero",
]
