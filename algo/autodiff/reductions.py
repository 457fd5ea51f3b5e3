"""What arrives at the value under a reduction when g arrives at its result.

sum gives all to each; prod gives the product of the other elements, also where some are 0. max and min give to the elements that are the
extremum in equal parts where elements are only moved; where they are computed, two computations of one element may differ in the last
bit, so the first extremum is found and gets it all. Pooling gives to the first, too. Counts and positions become stages of their own.
For combiners of the user's see `combining`.
"""

from __future__ import annotations

from ..dtypes import held
from ..expr import Const, Expr, Op, Read, as_expr, axis, binary, where
from ..rewriting import substitute
from ..stages import Reduction, Stage
from .algebra import converted, div, masked, mul, number, one, zero
from .combining import under_combiner
from .emitting import Emitter
from .reach import unknown


def under_reduction(s: Stage, g: Expr, out: Emitter) -> Expr:
    """The adjoint of s.value, at the stage's axes and those of its reduction."""
    assert s.reduction is not None
    if s.reduction.combiner is not None:
        return under_combiner(s, s.reduction.combiner, g, out)
    match s.reduction.kind:
        case "sum":
            return g
        case "max" | "min" if s.op in _FIRST or not _is_moved(s.value):
            return masked(binary("eq", _position(s), _first(s, out)), g)
        case "max" | "min":
            hit = binary("eq", s.value, Read(s.id, s.axes, s.dtype))
            wide = held(s.dtype)
            ties = _reduced(s, "sum", masked(hit, one(wide)), "ties", out)
            return masked(hit, converted(div(converted(g, wide), ties), s.value.dtype))
        case "prod":
            return mul(g, _others(s, out))
    raise unknown(s.reduction.kind)


_FIRST = tuple(f"{kind}max_pool{rank}d" for kind in ("", "adaptive_", "global_") for rank in (1, 2, 3))
"""Operators of which the first extremum gets all, as in other frameworks."""


def _is_moved(e: Expr) -> bool:
    """Whether an element is what some tensor holds, and not computed from it."""
    match e:
        case Op(op="where" | "select", args=(_, a, b)):
            return _is_moved(a) and _is_moved(b)
        case Op(op="neg", args=(a,)):
            return _is_moved(a)
    return isinstance(e, Read | Const)


def _position(s: Stage) -> Expr:
    """The position along the reduction's axes, flat."""
    assert s.reduction is not None
    total: Expr = as_expr(0)
    for a, n in zip(s.reduction.axes, s.reduction.extents, strict=True):
        total = binary("add", binary("mul", total, as_expr(n)), a)
    return total


def _first(s: Stage, out: Emitter) -> Expr:
    """A read of where the first extremum is."""
    assert s.reduction is not None
    return _reduced(s, f"arg{s.reduction.kind}", s.value, "first", out, "int32")


def _others(s: Stage, out: Emitter) -> Expr:
    """The product of all elements but this one."""
    nothing = number(0, s.value)
    is_zero = binary("eq", s.value, nothing)
    zeros = _reduced(s, "sum", masked(is_zero, one(held(s.dtype))), "zeros", out)
    rest = _reduced(s, "prod", where(is_zero, one(s.value.dtype), s.value), "nonzero", out)
    alone = masked(binary("eq", zeros, one(zeros.dtype)), rest)
    whole = masked(binary("eq", zeros, zero(zeros.dtype)), div(Read(s.id, s.axes, s.dtype), s.value))
    return where(is_zero, alone, whole)


def _reduced(s: Stage, kind: str, value: Expr, name: str, out: Emitter, dtype: str | None = None) -> Expr:
    """A read of a new stage that reduces `value` as s does."""
    assert s.reduction is not None
    fresh = {a: axis(a.name) for a in (*s.axes, *s.reduction.axes)}
    over = Reduction(kind, tuple(fresh[a] for a in s.reduction.axes), s.reduction.extents)
    axes = tuple(fresh[a] for a in s.axes)
    there = substitute(value, dict(fresh))
    made = out.emit(f"{out.name_of(s)}/{name}", axes, s.extents, there, over, s.source, None, dtype, linear=False)
    return Read(made.id, s.axes, made.dtype)


__all__ = ["under_reduction"]
