"""Conditions on positions in one normal form: an affine form that is 0, or at least 0. What else a condition says stays an expression."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from ..dtypes import kind
from ..expr import Axis, Const, Expr, Op, Read, Size, binary
from ..extent import Extent, nonnegative
from ..linear import Linear, Ranges, bounds, is_index, linear
from ..rewriting import walk
from ..scatter import position
from ..tensor import conjuncts


@dataclass(frozen=True, eq=False)
class Predicate:
    """form >= 0 (`least`) or form == 0 (`equal`)."""

    kind: Literal["least", "equal"]
    form: Linear

    @property
    def key(self) -> Any:
        """Equal for the same condition."""
        return self.kind, frozenset((id(a), c) for a, c in self.form.terms), self.form.constant

    def always(self, ranges: Ranges) -> bool:
        low, high = bounds(self.form.expr(), ranges)
        if low is None or not nonnegative(low):
            return False
        return self.kind == "least" or (high is not None and nonnegative(high * -1))

    def never(self, ranges: Ranges) -> bool:
        low, high = bounds(self.form.expr(), ranges)
        below = high is not None and nonnegative(high * -1 - 1)
        return below or (self.kind == "equal" and low is not None and nonnegative(low - 1))

    def implies(self, other: Predicate) -> bool:
        """Whether `other` holds wherever this one does, because they differ by a constant."""
        if other.kind != "least" or self.key == other.key:
            return bool(self.key == other.key)
        gap = other.form + self.form.scaled(-1)
        return not gap.terms and nonnegative(gap.constant)

    def expr(self, targets: Iterable[Axis] = ()) -> Expr:
        """The condition. An equation says where one of `targets` is, so that a scatter is recognised."""
        if self.kind == "equal":
            for a in targets:
                if (c := self.form.coefficient(a)) in (1, -1):
                    rest = self.form + Linear(((a, c),), 0).scaled(-1)
                    other = _data(rest.scaled(-c).expr())
                    return binary("eq", a, other)
        left, right = _sides(self.form)
        return binary("eq" if self.kind == "equal" else "le", left, right)


def _data(e: Expr) -> Expr:
    """What an axis is compared with: a position, or data that holds one."""
    return e if is_index(e) else position(e)


def least(form: Linear) -> Predicate:
    return Predicate("least", form)


def equal(form: Linear) -> Predicate:
    return Predicate("equal", form)


def _sides(form: Linear) -> tuple[Expr, Expr]:
    """left and right with right - left = form, and no negative coefficient on either side."""
    below = tuple((a, c * -1) for a, c in form.terms if _negative(c))
    above = tuple((a, c) for a, c in form.terms if not _negative(c))
    down: Extent = -form.constant if isinstance(form.constant, int) and form.constant < 0 else 0
    up: Extent = 0 if down else form.constant
    return Linear(below, down).expr(), Linear(above, up).expr()


def _negative(c: Extent) -> bool:
    return c < 0 if isinstance(c, int) else not nonnegative(c) and nonnegative(c * -1)


def split(condition: Expr) -> tuple[list[Predicate], list[Expr]]:
    """What a condition says of positions, and the rest of its conjuncts."""
    found: list[Predicate] = []
    rest: list[Expr] = []
    for c in conjuncts(condition):
        match c:
            case Op(op="lt", args=(a, b)) if _positions(a, b):
                found.append(least(linear(b) + linear(a).scaled(-1) + Linear((), -1)))
            case Op(op="le", args=(a, b)) if _positions(a, b):
                found.append(least(linear(b) + linear(a).scaled(-1)))
            case Op(op="eq", args=(a, b)) if _positions(a, b):
                found.append(equal(linear(a) + linear(b).scaled(-1)))
            case Op(op="eq", args=(a, b)) if _places(a, b):
                found.append(equal(linear(_plain(a)) + linear(_plain(b)).scaled(-1)))
            case _:
                rest.append(c)
    return found, rest


def _positions(*sides: Expr) -> bool:
    """Whether the sides are arithmetic of positions and extents alone."""
    return all(is_index(e) and all(isinstance(n, Axis | Const | Size | Op) for n in walk(e)) for e in sides)


def _places(a: Expr, b: Expr) -> bool:
    """Whether an equation puts an axis where data says."""
    return all(kind(e.dtype) == "int" for e in (a, b)) and any(isinstance(_plain(e), Axis) for e in (a, b))


def _plain(e: Expr) -> Expr:
    """An axis without the cast to the type of what it is compared with."""
    match e:
        case Op(op="cast", args=(Axis() as a,), dtype="int32" | "int64"):
            return a
    return e


def holds_data(e: Expr) -> bool:
    return any(isinstance(n, Read) for n in walk(e))


def conjunction(conditions: Iterable[Expr]) -> Expr | None:
    out: Expr | None = None
    for c in conditions:
        out = c if out is None else binary("and", out, c)
    return out


__all__ = ["Predicate", "conjunction", "equal", "holds_data", "least", "split"]
