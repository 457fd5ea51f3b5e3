"""What arrives at the value under a reduction when g arrives at its result.

max and min give to the elements that are the extremum, in equal parts; prod gives the product of the other elements, also where some are
0; sum gives all to each. Counts and zeros become stages of their own.
"""

from __future__ import annotations

from ..dtypes import held
from ..expr import Expr, Read, axis, binary, refuse, where
from ..graph import Reduction, Stage
from ..rewriting import substitute
from .algebra import converted, div, masked, mul, number, one, zero
from .emitting import Emitter


def under_reduction(s: Stage, g: Expr, out: Emitter) -> Expr:
    """The adjoint of s.value, at the stage's axes and those of its reduction."""
    assert s.reduction is not None
    match s.reduction.kind:
        case "sum":
            return g
        case "max" | "min":
            hit = binary("eq", s.value, Read(s.id, s.axes, s.dtype))
            wide = held(s.dtype)
            ties = _reduced(s, "sum", masked(hit, one(wide)), "ties", out)
            return masked(hit, converted(div(converted(g, wide), ties), s.value.dtype))
        case "prod":
            return mul(g, _others(s, out))
    raise refuse("A171", f"the derivative of {s.reduction.kind}", "nobody said what it is", "fl.custom_vjp around it", "fl.stop_gradient")


def _others(s: Stage, out: Emitter) -> Expr:
    """The product of all elements but this one."""
    nothing = number(0, s.value)
    is_zero = binary("eq", s.value, nothing)
    zeros = _reduced(s, "sum", masked(is_zero, one(held(s.dtype))), "zeros", out)
    rest = _reduced(s, "prod", where(is_zero, one(s.value.dtype), s.value), "nonzero", out)
    alone = masked(binary("eq", zeros, one(zeros.dtype)), rest)
    whole = masked(binary("eq", zeros, zero(zeros.dtype)), div(Read(s.id, s.axes, s.dtype), s.value))
    return where(is_zero, alone, whole)


def _reduced(s: Stage, kind: str, value: Expr, name: str, out: Emitter) -> Expr:
    """A read of a new stage that reduces `value` as s does."""
    assert s.reduction is not None
    fresh = {a: axis(a.name) for a in (*s.axes, *s.reduction.axes)}
    over = Reduction(kind, tuple(fresh[a] for a in s.reduction.axes), s.reduction.extents)
    made = out.emit(f"{out.name_of(s)}/{name}", tuple(fresh[a] for a in s.axes), s.extents, substitute(value, dict(fresh)), over, s.source)
    return Read(made.id, s.axes, made.dtype)


__all__ = ["under_reduction"]
