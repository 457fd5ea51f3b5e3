"""Signs and neighbours of floating-point numbers, told by arithmetic alone: the language has no view of a number's bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import expr as E
from ..complex import complex_element, complex_tensor
from ..complex.lifting import holds_complex
from ..dtypes import kind
from ..expr import Expr, as_expr
from ..tensor import Tensor, in_body
from .derived import reals
from .elementwise import elementwise
from .shapes import tensor


def positive(x: Any) -> Any:
    """x itself; a tensor stays what it is."""
    if holds_complex(x):
        return complex_element(x) if in_body() else complex_tensor(x, "positive")
    return as_expr(x) if in_body() else x if isinstance(x, Tensor) else tensor(x, "positive")


def _negative(e: Expr) -> Expr:
    """Whether the sign of a float is minus: 1 / -0.0 is -inf."""
    zero = E.binary("eq", e, 0)
    return E.binary("lt", E.where(zero, 1 / e, e), 0)


@elementwise
def signbit(x: Any) -> Expr:
    """Whether x is negative, -0.0 included. False of NaN, whose sign the language does not tell."""
    e = as_expr(x)
    if kind(e.dtype) == "float":
        return _negative(e)
    return E.cast(False, "bool") if e.dtype == "bool" or e.dtype.startswith("u") else e < 0


@elementwise
def copysign(x: Any, y: Any) -> Expr:
    """The magnitude of x with the sign of y, -0.0 and 0.0 told apart; NaN counts as positive. Integers give float32."""
    a, b = reals(x, y)
    size = E.unary("abs", a)
    return E.where(_negative(b), -size, size)


@elementwise
def nextafter(x: Any, y: Any) -> Expr:
    """The next number of the type after x towards y; y where they are equal, NaN if either is.

    The neighbour is x rounded after adding a little more than half of its unit in the last place (Rump, Zimmermann, Boldo and Melquiond,
    "Computing predecessor and successor in rounding to nearest", 2009); numbers near the smallest are scaled up first. Right with and
    without fused multiply-add, and not under a class of numerics that flushes the smallest numbers to 0.
    """
    a, b = reals(x, y)
    info = np.finfo(E.strong(a).dtype)
    unit, least, largest = float(info.eps) / 2, float(info.smallest_subnormal), float(info.max)
    size = E.unary("abs", a)
    away = E.binary("eq", a, 0) | E.binary("eq", a < b, a > 0)  # whether the magnitude grows
    step = unit * (1 + 2 * unit)
    scaled = size / unit
    beyond = E.where(away, size + size * step, size - size * step)
    middle = E.where(away, scaled + scaled * step, scaled - scaled * step) * unit
    smallest = E.where(away, size + least, size - least)
    moved = E.where(size < least / unit, smallest, E.where(size < least / (2 * unit * unit), middle, beyond))
    moved = E.where(E.binary("eq", size, float("inf")), largest, moved)
    signed = E.where(E.where(E.binary("eq", a, 0), b < 0, _negative(a)), -moved, moved)
    return E.where(E.binary("eq", a, b), b, E.where(E.binary("ne", a, a) | E.binary("ne", b, b), a + b, signed))
