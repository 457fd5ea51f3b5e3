"""Functions of complex elements, and which of the library's elementwise functions take them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from .. import expr as E
from ..expr import Expr, Op, as_expr
from .elements import (
    ComplexExpr,
    Element,
    add,
    different,
    divide,
    element,
    equal,
    multiply,
    not_for_complex,
    parts,
    power,
    subtract,
    where,
)  # fmt: skip
from .inverse_functions import acos, acosh, asin, asinh, atan, atanh, is_below, turned


def _only(x: Element) -> ComplexExpr:
    return x if isinstance(x, ComplexExpr) else ComplexExpr(*parts(x))


# ---------------------------------------------------------------- size and direction
def magnitude(z: Element) -> Expr:
    """sqrt(re² + im²) without overflow; its derivative at 0 is 0."""
    from ..ops.derived import length

    return length(*parts(z))


def angle(z: Element) -> Expr:
    a, b = parts(z)
    return E.binary("atan2", b, a)


def conjugate(z: Element) -> ComplexExpr:
    return _only(z).conj()


def sign(z: Element) -> ComplexExpr:
    """z / |z|; 0 at 0."""
    size = magnitude(z)
    a, b = parts(z)
    safe = E.where(E.binary("eq", size, 0), 1, size)
    return ComplexExpr(a / safe, b / safe)


# ---------------------------------------------------------------- exp, log, roots
def exp(z: Element) -> ComplexExpr:
    a, b = parts(z)
    size = E.unary("exp", a)
    return ComplexExpr(size * E.unary("cos", b), size * E.unary("sin", b))


def log(z: Element) -> ComplexExpr:
    """The principal logarithm; accurate where |z| is next to 1 because one part is small."""
    a, b = (abs(p) for p in parts(z))
    long, short = E.binary("max", a, b), E.binary("min", a, b)
    middle = (long > 0.5) & (long < 2)
    inner = E.where(middle, (long - 1) * (long + 1) + short * short, 0)
    size = E.where(middle, E.unary("log1p", inner) / 2, E.unary("log", magnitude(z)))
    return ComplexExpr(size, angle(z))


def _logarithm(base: float) -> Callable[[Element], ComplexExpr]:
    return lambda z: multiply(log(z), as_expr(1 / math.log(base)))


def sqrt(z: Element) -> ComplexExpr:
    """The root in the right half plane, next to the negative axis with the sign of the imaginary part, that of its zero included."""
    a, b = parts(z)
    root = E.unary("sqrt", abs(a) / 2 + magnitude(z) / 2)
    nothing = E.binary("eq", root, 0)
    other = b / (2 * E.where(nothing, 1, root))
    right = (a >= 0) | nothing
    return ComplexExpr(E.where(right, root, abs(other)), E.where(right, E.where(nothing, b, other), E.where(is_below(b), -root, root)))


# ---------------------------------------------------------------- circular and hyperbolic
def sinh(z: Element) -> ComplexExpr:
    a, b = parts(z)
    return ComplexExpr(E.unary("sinh", a) * E.unary("cos", b), E.unary("cosh", a) * E.unary("sin", b))


def cosh(z: Element) -> ComplexExpr:
    a, b = parts(z)
    return ComplexExpr(E.unary("cosh", a) * E.unary("cos", b), E.unary("sinh", a) * E.unary("sin", b))


def tanh(z: Element) -> ComplexExpr:
    """Of tanh(re) and tan(im), so that nothing overflows."""
    a, b = parts(z)
    t, u = E.unary("tanh", a), E.unary("tan", b)
    rest = 1 / E.unary("cosh", a)  # 1 - t*t is its square
    scale = 1 + t * t * u * u
    return ComplexExpr(t * (1 + u * u) / scale, u * rest * rest / scale)


def sin(z: Element) -> ComplexExpr:
    return turned(sinh, z)


def cos(z: Element) -> ComplexExpr:
    a, b = parts(z)
    return cosh(ComplexExpr(-b, a))


def tan(z: Element) -> ComplexExpr:
    return turned(tanh, z)


# ---------------------------------------------------------------- accurate near 0
def expm1(z: Element) -> ComplexExpr:
    a, b = parts(z)
    half = E.unary("sin", b / 2)
    return ComplexExpr(E.unary("expm1", a) * E.unary("cos", b) - 2 * half * half, E.unary("exp", a) * E.unary("sin", b))


def log1p(z: Element) -> ComplexExpr:
    a, b = parts(z)
    above = add(as_expr(1), _only(z))
    found = log(above)
    small = (abs(a) < 0.5) & (abs(b) < 0.5)
    inner = E.where(small, a * (2 + a) + b * b, 0)
    return ComplexExpr(E.where(small, E.unary("log1p", inner) / 2, found.real), found.imag)


# ---------------------------------------------------------------- tests
def _either(op: str) -> Callable[[Element], Expr]:
    def test(z: Element) -> Expr:
        a, b = parts(z)
        return Op(op, (a,), "bool", False) | Op(op, (b,), "bool", False)

    return test


def isfinite(z: Element) -> Expr:
    a, b = parts(z)
    return Op("isfinite", (a,), "bool", False) & Op("isfinite", (b,), "bool", False)


RULES: Mapping[str, Callable[..., Any]] = {
    "abs": magnitude,
    "acos": acos,
    "acosh": acosh,
    "add": add,
    "angle": angle,
    "asin": asin,
    "asinh": asinh,
    "atan": atan,
    "atanh": atanh,
    "conj": conjugate,
    "cos": cos,
    "cosh": cosh,
    "divide": divide,
    "equal": equal,
    "exp": exp,
    "exp2": lambda z: exp(multiply(z, as_expr(math.log(2.0)))),
    "expm1": expm1,
    "imag": lambda z: parts(z)[1],
    "isfinite": isfinite,
    "isinf": _either("isinf"),
    "isnan": _either("isnan"),
    "log": log,
    "log1p": log1p,
    "log10": _logarithm(10.0),
    "log2": _logarithm(2.0),
    "multiply": multiply,
    "negative": lambda z: -z,
    "not_equal": different,
    "pow": power,
    "real": lambda z: parts(z)[0],
    "reciprocal": lambda z: divide(as_expr(1), z),
    "rsqrt": lambda z: divide(as_expr(1), sqrt(z)),
    "sign": sign,
    "sin": sin,
    "sinh": sinh,
    "sqrt": sqrt,
    "square": lambda z: multiply(z, z),
    "subtract": subtract,
    "tan": tan,
    "tanh": tanh,
    "where": where,
}
"""By the name of each elementwise function that complex numbers have: what it is of elements, of which one at least is complex."""


def rule(name: str) -> Callable[..., Any]:
    """The function of complex elements. Raises AlgorithmError where there is none."""
    found = RULES.get(name)
    if found is None:
        raise not_for_complex(f"fl.{name}")

    def of(*operands: Any, **options: Any) -> Any:
        if options:
            raise not_for_complex(f"fl.{name} with {', '.join(options)}")
        return found(*map(element, operands))

    return of


__all__ = ["RULES", "angle", "conjugate", "cos", "cosh", "exp", "log", "magnitude", "rule", "sign", "sin", "sinh", "sqrt", "tan", "tanh"]
