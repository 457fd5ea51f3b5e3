"""Where nothing arrives because something else was chosen: there a slope that is infinite must count for nothing, though 0 times it is NaN.

Adjoints are exactly 0 there, however many stages lie between the choice and the slope, so a steep stage behind a choice asks what arrives
whether it is 0. What nobody chose between is not asked, nor is a factor of a sum of products: those stay products of two tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from ..dtypes import FLOATS
from ..expr import Const, Expr, Op, binary
from ..rewriting import reads, walk
from ..stages import Stage
from .algebra import masked, number
from .predicates import holds_data
from .rules import has_finite_slopes, is_bounded

_CHOOSING = ("where", "select", "max", "min")


class Choices:
    """Of one reverse sweep over these stages: what has been met of choices on the way back."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.stages = stages
        self.behind: set[int] = set()  # the tensors whose adjoint may be 0 for a choice
        self.right: set[int] = set()  # those of which the consumers alone may have chosen

    def meet(self, members: Sequence[Stage], sources: Iterable[int]) -> None:
        """Go past the stages of one unit, which pass adjoints on to these tensors."""
        again = any(s.id in self.behind for s in members)
        chosen = again or any(_chooses(s) for s in members)
        if not chosen:
            return
        circular = len(members) > 1 or any(s.clock is not None for s in members)
        found = {*sources, *(s.id for s in members if circular)}
        if not again and not circular:
            self.right |= found - self.behind
        else:
            self.right -= found
        self.behind |= found

    def guarded(self, s: Stage, value: Expr, g: Expr, condition: Expr | None) -> Expr:
        """What arrives at a stage of this value, `condition` is where anything does as far as is known."""
        if s.id not in self.behind or isinstance(g, Const):
            return g
        known = condition if s.id in self.right and s.reduction is None else None
        steep = not has_finite_slopes(value, () if s.reduction is not None else self._infinite)
        if not steep and (known is None or is_bounded(value)):
            return g
        return masked(binary("ne", g, number(0, g)) if known is None else known, g)

    @cached_property
    def _infinite(self) -> set[int]:
        """The stages that may hold what is not finite, though all inputs are finite and no product is too large."""
        found: set[int] = set()
        more = True
        while more:  # once, but for recurrences
            more = False
            for s in self.stages:
                if s.id in found or s.dtype not in FLOATS:
                    continue
                if s.extern is not None or not has_finite_slopes(s.value) or any(r.source in found for r in reads(s.value)):
                    found.add(s.id)
                    more = True
        return found


def _chooses(s: Stage) -> bool:
    """Whether data decides which of the tensors that a stage reads counts."""
    if s.reduction is not None and s.reduction.kind in ("max", "min"):
        return True
    for n in walk(s.value):
        if isinstance(n, Op) and n.dtype in FLOATS and n.op in _CHOOSING and holds_data(n.args[0] if n.op in ("where", "select") else n):
            return True
    return False


__all__ = ["Choices"]
