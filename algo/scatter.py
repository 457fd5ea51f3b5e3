"""Scatter, recognised: reductions that a table of positions could do.

``sum_i where(a == ids[i], v[i], 0)`` says at which ``a`` each ``v[i]`` arrives. Evaluated as it stands it asks every ``a`` about every
``i``; read the other way round, one pass over ``i`` adds ``v[i]`` at ``ids[i]``. The interpreter and code generation do the latter. What
lies outside the result matches no ``a`` and so changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .expr import Axis, Const, Expr, Op, Read, as_expr, binary, cast
from .extent import Extent, at_most
from .identities import identity
from .linear import Ranges, is_index, linear
from .rewriting import axes_of, walk
from .stages import Stage
from .tensor import conjuncts

_KINDS = ("sum", "prod", "max", "min", "any", "all")


@dataclass(frozen=True, eq=False)
class Scatter:
    """`value` is combined into the result where each of `targets` has the position beside it in `index`, if all `predicates` hold.

    `free` are the other axes of the stage: the loops of a scatter run over these and the reduction's axes. `value`, `predicates` and
    later indices may name targets, which then stand for their positions.
    """

    targets: tuple[Axis, ...]
    index: tuple[Expr, ...]
    value: Expr
    predicates: tuple[Expr, ...]
    free: tuple[Axis, ...]


def scatter_of(s: Stage) -> Scatter | None:
    """The scatter that a stage is, if it is one: its positions are data, or an arithmetic of several axes."""
    if s.reduction is None or s.reduction.kind not in _KINDS or not s.axes:
        return None
    conditions, value = _guarded(s.value, s.reduction.kind)
    found: dict[Axis, Expr] = {}
    left: list[Expr] = []
    for c in conditions:
        target = _target(c, s, found)
        if target is None:
            left.append(c)
        else:
            found[target[0]] = target[1]
    if not any(_is_scattered(e) for e in found.values()):
        return None
    free = tuple(a for a in s.axes if a not in found)
    return Scatter(tuple(found), tuple(found.values()), value, tuple(left), free)


def loop_extents(s: Stage) -> tuple[Extent, ...]:
    """The extents that one evaluation of the stage runs over: all axes, or what a scatter scatters, or a sort sorts."""
    axes = s.scatter.free if s.scatter is not None else s.rank.free if s.rank is not None else s.of_elements.axes
    return tuple(s.ranges[a] for a in (*axes, *s.reduce_axes))


def has_identity(s: Stage) -> bool:
    """Whether the reduction of the stage over no elements is a value: that of its kind, or the one that a scatter's body names."""
    return s.reduction is None or s.reduction.kind in ("sum", "prod", "any", "all", "reduce") or s.scatter is not None


# ---------------------------------------------------------------- where(conditions, value, identity)
def _guarded(e: Expr, kind: str) -> tuple[list[Expr], Expr]:
    """The conditions under which e is not the identity of the reduction, and what it then is."""
    outer: list[Expr] = []
    while isinstance(e, Op) and e.op == "where" and e.args[2] is identity(kind, e.dtype):
        outer += conjuncts(e.args[0])
        e = e.args[1]
    match e:
        case Op(op="cast", args=(Op(op="where", args=(c, a, Const() as b)),)) if cast(b, e.dtype) is identity(kind, e.dtype):
            return [*outer, *conjuncts(c)], cast(a, e.dtype)
        case Op(op="cast", args=(c,)) if c.dtype == "bool" and kind == "sum" and e.dtype != "bool":
            return [*outer, *conjuncts(c)], cast(as_expr(1), e.dtype)
        case Op(op="and") if kind == "any" and e.dtype == "bool":
            return [*outer, *conjuncts(e)], Const(True, "bool", False)
        case Op(op="eq") if kind == "any":
            return [*outer, e], Const(True, "bool", False)
    return outer, e


# ---------------------------------------------------------------- axis == position
def _target(c: Expr, s: Stage, found: dict[Axis, Expr]) -> tuple[Axis, Expr] | None:
    """An axis of the stage and the position that a condition gives it."""
    match c:
        case Op(op="eq", args=(x, y)):
            for one, other in ((x, y), (y, x)):
                for a, e in _solved(one, other, s):
                    fresh = a not in found and not any(a in set(axes_of(i)) for i in found.values())
                    if fresh and a not in set(axes_of(e)) and (_has_read(e) or set(axes_of(e)) & set(s.reduce_axes)):
                        return a, e
    return None


def _solved(one: Expr, other: Expr, s: Stage) -> Iterable[tuple[Axis, Expr]]:
    """The axes a of the stage for which one == other says that a is at a position."""
    plain = _uncast(one, s.ranges)
    if not is_index(plain) or not (is_index(other) or _is_integer(other)):
        return
    form = linear(plain)
    for a in form.atoms:
        if isinstance(a, Axis) and any(a is x for x in s.axes) and form.coefficient(a) in (1, -1):
            rest = linear(binary("sub", plain, a)) if form.coefficient(a) == 1 else linear(binary("add", plain, a))
            if not rest.terms and rest.constant == 0 and form.coefficient(a) == 1:
                yield a, position(other)
            elif form.coefficient(a) == 1:
                yield a, binary("sub", position(other), rest.expr())
            else:
                yield a, binary("sub", rest.expr(), position(other))


def position(e: Expr) -> Expr:
    """An integer as a position: index arithmetic as it is, anything else in 64 bits."""
    return e if is_index(e) else cast(e, "int64")


def _uncast(e: Expr, ranges: Ranges) -> Expr:
    """An axis without the cast to the type of what it is compared with, where that type holds every position."""
    match e:
        case Op(op="cast", args=(Axis() as a,)) if _is_integer(e):
            fits = at_most(ranges.get(a, 0), int(np.iinfo(e.dtype).max) + 1) if np.dtype(e.dtype).itemsize < 4 else True
            return a if fits else e
    return e


def _is_integer(e: Expr) -> bool:
    return e.dtype != "bool" and "int" in e.dtype


def _has_read(e: Expr) -> bool:
    return any(isinstance(n, Read) for n in walk(e))


def _is_scattered(e: Expr) -> bool:
    """Whether a position is data, or more than one axis moved by a constant."""
    form = linear(e)
    return _has_read(e) or not form.is_affine or len(form.terms) > 1


__all__ = ["Scatter", "has_identity", "loop_extents", "position", "scatter_of"]
