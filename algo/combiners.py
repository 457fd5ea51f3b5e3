"""What ``fl.reduce`` combines with: an expression of two elements, each a scalar or a tuple of scalars, and its identity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .expr import Const, Expr, Op, Scalar
from .printing import show
from .rewriting import rewrite


@dataclass(frozen=True, eq=False)
class Combiner:
    """(left, right) -> results, one for each part of an element; `identity` combined with an element is that element.

    `commutes` says that left and right may change places. The types of the parts are those of the identity. All parts of an element are
    handed on in one type, `dtype`, which holds every number of theirs.
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

    def parts(self, element: Expr) -> tuple[Expr, ...]:
        """The parts of an element."""
        return element.operands if isinstance(element, Op) and element.op == "tuple" else (element,)

    def element(self, parts: Sequence[Expr]) -> Expr:
        """The element of these parts."""
        return parts[0] if len(parts) == 1 else Op("tuple", tuple(parts), self.dtype, False)

    def text(self) -> str:
        """What it does, as one would write it: ``a, b: a + b; 0.0``."""
        combined, start = (", ".join(map(show, e)) for e in (self.results, self.identity))
        return f"{', '.join(s.name for s in (*self.left, *self.right))}: {combined}; {start}"


__all__ = ["Combiner"]
