"""Derivatives of the scalar operators.

``PULL[op][k](g, e)`` is the adjoint of argument k of the expression e when g is the adjoint of e. Each rule is linear in g, so the same
table gives tangents: the tangent of e is the sum of its rules with the arguments' tangents as g. Where a derivative does not exist
(sqrt and abs at 0, pow with a base of 0) it is 0; where two arguments of max or min are equal they share it, unless one is a constant:
then it is 0 (relu at 0).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator

from ..dtypes import FLOATS
from ..expr import Const, Expr, Op, Read, binary, unary
from ..rewriting import walk
from .algebra import add, converted, div, masked, mul, neg, number, one

Pull = Callable[[Expr, Op], Expr]


def _unary(derivative: Callable[[Expr, Op], Expr]) -> tuple[Pull]:
    """g times a derivative given as a function of (x, e)."""
    return (lambda g, e: mul(g, derivative(e.args[0], e)),)


def _square(x: Expr) -> Expr:
    return mul(x, x)


def _less(a: Expr, b: Expr) -> Expr:
    return binary("lt", a, b)


def _extremum(k: int, larger: bool) -> Pull:
    """The adjoint of one argument of max or min."""

    def pull(g: Expr, e: Op) -> Expr:
        mine, other = e.args[k], e.args[1 - k]
        if isinstance(other, Const):  # asks the result, which is stored, and not what it was made of
            return masked(_less(other, e) if larger else _less(e, other), g)
        wins = _less(other, mine) if larger else _less(mine, other)
        return add(masked(wins, g), masked(binary("eq", mine, other), mul(number(0.5, g), g)))

    return pull


def _sqrt(g: Expr, e: Op) -> Expr:
    return masked(binary("ne", e, number(0, e)), div(g, mul(number(2, e), e)))


def _pow_base(g: Expr, e: Op) -> Expr:
    a, b = e.args
    if isinstance(b, Const):
        if b.value == 0:
            return number(0, g)
        rest = number(1, b) if b.value == 1 else a if b.value == 2 else binary("pow", a, number(float(b.value) - 1, b))
        return mul(g, mul(b, rest))
    return masked(binary("ne", b, number(0, b)), mul(g, mul(b, binary("pow", a, binary("sub", b, one(b.dtype))))))


def _pow_exponent(g: Expr, e: Op) -> Expr:
    a, b = e.args
    flat = binary("and", binary("eq", a, number(0, a)), binary("le", number(0, b), b))
    return masked(unary("not", flat), mul(g, mul(e, unary("log", a))))


def _hypotenuse(e: Op) -> Expr:
    return add(_square(e.args[0]), _square(e.args[1]))


PULL: dict[str, tuple[Pull, ...]] = {
    "add": (lambda g, e: g, lambda g, e: g),
    "sub": (lambda g, e: g, lambda g, e: neg(g)),
    "mul": (lambda g, e: mul(g, e.args[1]), lambda g, e: mul(g, e.args[0])),
    "div": (lambda g, e: div(g, e.args[1]), lambda g, e: neg(div(mul(g, e), e.args[1]))),
    "mod": (lambda g, e: g, lambda g, e: neg(mul(g, unary("floor", div(e.args[0], e.args[1]))))),
    "max": (_extremum(0, True), _extremum(1, True)),
    "min": (_extremum(0, False), _extremum(1, False)),
    "neg": (lambda g, e: neg(g),),
    "cast": (lambda g, e: converted(g, e.args[0].dtype),),
    "abs": _unary(lambda x, e: unary("sign", x)),
    "exp": _unary(lambda x, e: e),
    "exp2": _unary(lambda x, e: mul(e, number(math.log(2), e))),
    "expm1": _unary(lambda x, e: add(e, one(e.dtype))),
    "log": (lambda g, e: div(g, e.args[0]),),
    "log2": (lambda g, e: div(g, mul(e.args[0], number(math.log(2), e))),),
    "log10": (lambda g, e: div(g, mul(e.args[0], number(math.log(10), e))),),
    "log1p": (lambda g, e: div(g, add(one(e.dtype), e.args[0])),),
    "sqrt": (_sqrt,),
    "rsqrt": (lambda g, e: mul(g, div(mul(number(-0.5, e), e), e.args[0])),),
    "sin": _unary(lambda x, e: unary("cos", x)),
    "cos": _unary(lambda x, e: neg(unary("sin", x))),
    "tan": _unary(lambda x, e: add(one(e.dtype), _square(e))),
    "tanh": _unary(lambda x, e: binary("sub", one(e.dtype), _square(e))),
    "sigmoid": _unary(lambda x, e: mul(e, binary("sub", one(e.dtype), e))),
    "erf": _unary(lambda x, e: mul(number(2 / math.sqrt(math.pi), e), unary("exp", neg(_square(x))))),
    "sinh": _unary(lambda x, e: unary("cosh", x)),
    "cosh": _unary(lambda x, e: unary("sinh", x)),
    "asin": (lambda g, e: div(g, unary("sqrt", binary("sub", one(e.dtype), _square(e.args[0])))),),
    "acos": (lambda g, e: neg(div(g, unary("sqrt", binary("sub", one(e.dtype), _square(e.args[0]))))),),
    "atan": (lambda g, e: div(g, add(one(e.dtype), _square(e.args[0]))),),
    "atan2": (
        lambda g, e: div(mul(g, e.args[1]), _hypotenuse(e)),
        lambda g, e: neg(div(mul(g, e.args[0]), _hypotenuse(e))),
    ),
    "pow": (_pow_base, _pow_exponent),
}
"""Operators with a derivative; `where` and `select` are branches, and masks guard them."""

FLAT = ("floordiv", "floor", "ceil", "round", "trunc", "sign", "isnan", "isinf", "isfinite")
"""Operators that are constant almost everywhere: nothing flows through them."""

_LINEAR = ("add", "sub", "neg", "cast", "where", "select", "max", "min", "lt", "le", "eq", "ne", "and", "or", "not", *FLAT)
_BOUNDED = (*_LINEAR, "abs", "sigmoid", "tanh", "sin", "cos", "atan", "erf")


def is_bounded(e: Expr) -> bool:
    """Whether all slopes in an expression are finite, whatever numbers its reads hold, so that 0 times them is 0."""
    return all(n.op in _BOUNDED for n in _curved(e))


def has_finite_slopes(e: Expr, infinite: Container[int] = ()) -> bool:
    """Whether all slopes in an expression are finite where its reads hold finite numbers that are not too large to be multiplied, but for
    these tensors, which may hold anything."""
    for n in _curved(e):
        if n.op not in (*_BOUNDED, "mul") or any(isinstance(r, Read) and r.source in infinite for r in walk(n)):
            return False
    return True


def _curved(e: Expr) -> Iterator[Op]:
    """The operators whose slope is no number that is there beforehand."""
    for n in walk(e):
        if isinstance(n, Op) and n.dtype in FLOATS and n.op not in _LINEAR:
            factors = n.args if n.op == "mul" else n.args[1:] if n.op == "div" else ()
            if not any(isinstance(a, Const) and a.value != 0 for a in factors):
                yield n


__all__ = ["FLAT", "PULL", "Pull", "has_finite_slopes", "is_bounded"]
