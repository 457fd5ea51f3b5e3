"""How each reduction starts and takes in one more value."""

from __future__ import annotations

from collections.abc import Mapping

from fluorite.algo.dtypes import held, kind
from fluorite.algo.expr import Axis, Const, Expr, Op, Read, as_expr, binary, cast
from fluorite.algo.identities import identity
from fluorite.algo.rewriting import rewrite
from fluorite.algo.stages import Stage

from .statements import Buffer, If, Statement, Store, sequence

ZERO = (as_expr(0),)


def accumulators(s: Stage) -> tuple[Buffer, ...]:
    """One-element buffers that hold the running state of a reduction: its value, or the index and the best value of argmax and argmin."""
    assert s.reduction is not None
    state = (Buffer(-2 * s.id, f"{s.name}_acc", held(s.dtype), (1,), "local"),)
    if s.reduction.kind.startswith("arg"):
        return (*state, Buffer(-2 * s.id - 1, f"{s.name}_best", held(s.value.dtype), (1,), "local"))
    return state


def initial(s: Stage) -> tuple[Expr, ...]:
    """Starting values, in the order of `accumulators`."""
    assert s.reduction is not None
    if s.reduction.kind.startswith("arg"):
        return Const(-1, s.dtype, False), identity(s.reduction.kind, s.value.dtype)
    return (s.reduction.identity(s.dtype),)


COMBINE = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "any": "or", "all": "and"}


def together(s: Stage, left: Expr, right: Expr) -> Expr:
    """What two values of a reduction combine to."""
    assert s.reduction is not None
    if s.reduction.combiner is None:
        return Op(COMBINE[s.reduction.kind], (left, right), s.dtype, False)
    (combined,) = s.reduction.combiner.of((left,), (right,))
    return chosen(combined)


def chosen(e: Expr) -> Expr:
    """A choice between values that are there already, so that both sides may be computed."""
    return rewrite(e, lambda n: Op("select", n.args, n.dtype, n.weak) if isinstance(n, Op) and n.op == "where" else None)


def accumulate(s: Stage, target: int, index: tuple[Expr, ...], value: Expr, at: Mapping[Axis, Expr]) -> Statement:
    """state[index] = state[index] combined with value. `at` gives the reduction axes' values, which argmax and argmin need."""
    assert s.reduction is not None
    kind_ = s.reduction.kind
    if not kind_.startswith("arg"):
        return Store(target, index, together(s, Read(target, index, s.dtype), value))
    best_buffer = accumulators(s)[1]
    best = Read(best_buffer.id, ZERO, best_buffer.dtype)
    found = Read(target, index, s.dtype)
    low, high = (best, value) if kind_ == "argmax" else (value, best)
    better: Expr = binary("lt", low, high)
    if kind(value.dtype) == "float":  # NaN is better than every number, and no NaN better than the first
        better = ~binary("le", high, low) & binary("eq", best, best)
    better = better | (found < Const(0, s.dtype, False))
    flat: Expr = as_expr(0)
    for a, n in zip(s.reduction.axes, s.reduction.extents, strict=True):
        flat = binary("add", binary("mul", flat, as_expr(n)), at[a])
    return If(better, sequence(Store(target, index, cast(flat, s.dtype)), Store(best_buffer.id, ZERO, value)))
