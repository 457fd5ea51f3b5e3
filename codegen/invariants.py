"""Positions that inner loops do not change, as numbers that are computed once, outside those loops.

LLVM would move them out by itself; but TVM simplifies every loop and every index on the way there, and what takes it a moment for a name
takes it minutes for the clamps of clamps that positions in a long chain of stages are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fluorite.algo.expr import Axis, Const, Expr, Op, Size
from fluorite.algo.linear import is_index

BENT = ("edge", "reflect", "wrap", "min", "max", "floordiv", "mod")
"""What is not a sum of multiples."""
_PLAIN = ("add", "sub", "mul", "neg")


@dataclass
class Scope:
    """The body of a loop, or the kernel. `named` are the positions whose numbers are computed where it begins, `steps` compute them."""

    var: Axis | None = None
    holds: bool = True
    named: dict[Expr, Any] = field(default_factory=dict)
    steps: list[Any] = field(default_factory=list)
    depths: dict[Expr, int | None] = field(default_factory=dict)


class Scopes:
    """Those around a statement, the kernel first."""

    def __init__(self) -> None:
        self.inside = [Scope()]

    def enter(self, var: Axis, holds: bool) -> None:
        """The body of a loop; one that `holds` no steps is a vector, or written out."""
        self.inside.append(Scope(var, holds))

    def leave(self) -> list[Any]:
        return self.inside.pop().steps

    def home(self, e: Expr) -> Scope | None:
        """The scope at whose beginning the position is known; None where it is best computed where it is used."""
        if not (isinstance(e, Op) and e.op in BENT and is_index(e)):
            return None
        depth = self._depth(e)
        if depth is None or depth == len(self.inside) - 1 or not self.inside[depth].holds:
            return None
        return self.inside[depth]

    def _depth(self, e: Expr) -> int | None:
        """The innermost of the loops that decide e; None where more than loops do, or where dividing may fail."""
        known = self.inside[-1].depths
        if e not in known:
            known[e] = self._found(e)
        return known[e]

    def _found(self, e: Expr) -> int | None:
        match e:
            case Const() | Size():
                return 0
            case Axis():
                return next((n for n in range(len(self.inside) - 1, 0, -1) if self.inside[n].var is e), None)
            case Op(op="floordiv" | "mod", args=(a, Const(value=k))) if is_index(e) and k > 0:
                return self._depth(a)
            case Op(op=op, args=args) if is_index(e) and (op in _PLAIN or (op in BENT and op not in ("floordiv", "mod"))):
                found = [self._depth(a) for a in args]
                return None if None in found else max(d for d in found if d is not None)
        return None
