"""What ``fl.reduce`` combines with: an expression of two elements, each a scalar or a tuple of scalars, and its identity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .expr import Const, Expr, Op, Read, Scalar, as_expr, cast
from .printing import show
from .rewriting import rewrite


@dataclass(frozen=True, eq=False)
class Combiner:
    """(left, right) -> results, one for each part of an element; `identity` combined with an element is that element.

    `commutes` says that left and right may change places. The types of the parts are those of the identity. A stage whose elements have
    several parts has an axis of these, its value is ``tuple(axis, part, part, ...)``, and its type, `dtype`, holds all their numbers.
    """

    left: tuple[Scalar, ...]
    right: tuple[Scalar, ...]
    results: tuple[Expr, ...]
    identity: tuple[Const, ...]
    dtype: str
    commutes: bool = False

    def of(self, left: Sequence[Expr], right: Sequence[Expr]) -> tuple[Expr, ...]:
        """The parts of what two elements combine to."""
        at: dict[Expr, Expr] = dict(zip((*self.left, *self.right), (*left, *right), strict=True))
        memo: dict[Expr, Expr] = {}
        return tuple(rewrite(r, at.get, memo) for r in self.results)

    def rewritten(self, rule: Callable[[Expr], Expr | None]) -> tuple[Expr, ...]:
        """The results with a rule applied."""
        memo: dict[Expr, Expr] = {}
        return tuple(rewrite(r, rule, memo) for r in self.results)

    def parts(self, value: Expr) -> tuple[Expr, ...]:
        """The parts of an element, as the value of a stage."""
        return value.operands[1:] if isinstance(value, Op) and value.op == "tuple" else (value,)

    def value(self, parts: Sequence[Expr], which: Expr | None) -> Expr:
        """The value of a stage, of the parts of an element; `which` is the axis of the parts, if there are several."""
        return parts[0] if which is None else Op("tuple", (which, *parts), self.dtype, False)

    def element(self, source: int, index: Sequence[Expr], place: int | None) -> tuple[Expr, ...]:
        """The parts of an element that a stage holds; `place` is that of their axis in the index."""
        if place is None:
            return (Read(source, tuple(index), self.dtype),)
        at = [(*index[:place], as_expr(k), *index[place + 1 :]) for k in range(len(self.identity))]
        return tuple(cast(Read(source, i, self.dtype), e.dtype) for i, e in zip(at, self.identity, strict=True))

    def text(self) -> str:
        """What it does, as one would write it: ``a, b: a + b; 0.0``."""
        combined, start = (", ".join(map(show, e)) for e in (self.results, self.identity))
        return f"{', '.join(s.name for s in (*self.left, *self.right))}: {combined}; {start}"


__all__ = ["Combiner"]
