"""Recurrences that only combine each element with the result so far: running sums, products and extremes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .clock import delay
from .expr import Const, Expr, Op, Read
from .linear import is_index, linear
from .rewriting import reads
from .stages import Stage

COMBINERS = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}


@dataclass(frozen=True, eq=False)
class Running:
    """h = `op` of h one step before and `element`; at the first step `element` itself, or with `first` that combined with it."""

    op: str
    element: Stage
    first: Const | None


def running(s: Stage) -> Running | None:
    """What the stage runs over, if it is where(later, op(h, e), e), or op(where(later, h, constant), e), with h its own last step."""
    if s.clock is None or s.reduction is not None or len(s.earlier) != 1:
        return None
    match s.value:
        case Op(op="where", args=(c, Op(op=op, args=args), e)) if op in COMBINERS and _is_later(s, c):
            if any(a is e for a in args) and any(_is_last(s, a) for a in args):
                return _of(s, op, e, None)
        case Op(op=op, args=args) if op in COMBINERS:
            for guarded, e in (args, reversed(args)):
                match guarded:
                    case Op(op="where", args=(c, h, Const() as first)) if _is_later(s, c) and _is_last(s, h):
                        return _of(s, op, e, first)
    return None


def _of(s: Stage, op: str, e: Expr, first: Const | None) -> Running | None:
    if any(r.source == s.id for r in reads(e)):
        return None
    return Running(op, replace(s, value=e, clock=None), first)


def _is_last(s: Stage, e: Expr) -> bool:
    """Whether e is the stage's own value one step before, at the same place."""
    if not isinstance(e, Read) or e.source != s.id or s.clock is None:
        return False
    return all(delay(i, a, s.clock.reverse) == 1 if a is s.clock.axis else i is a for i, a in zip(e.index, s.axes, strict=True))


def _is_later(s: Stage, condition: Expr) -> bool:
    """Whether a condition says: at every step but the first."""
    assert s.clock is not None
    match condition:
        case Op(op="lt" | "le" as op, args=(a, b)) if is_index(a) and is_index(b):
            form = linear(b - a - (1 if op == "lt" else 0))  # >= 0
            sign, constant = (-1, s.extents[s.tick] - 2) if s.clock.reverse else (1, -1)
            return form.atoms == (s.clock.axis,) and form.coefficient(s.clock.axis) == sign and form.constant == constant
    return False


__all__ = ["COMBINERS", "Running", "running"]
