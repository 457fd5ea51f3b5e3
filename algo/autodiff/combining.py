"""The derivative of a reduction with a combiner of the user's.

The elements are taken in turn: `before` is what all in front of each one combine to, a recurrence from the first; how the result moves with
what has been combined up to and with each element, `behind`, is one from the last. By the rules for scalars the latter says how the result
moves with the element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..combiners import Combiner
from ..expr import Axis, Expr, Read, as_expr, axis, binary, where
from ..extent import Extent, volume
from ..linear import simplify
from ..recurrences import with_clocks
from ..rewriting import rewrite, substitute
from ..stages import Stage
from .algebra import add, mul, one, zero
from .emitting import Emitter
from .local import arrivals

LEFT, RIGHT = -1, -2
"""Stand for the two elements where a derivative is taken, as tensors without axes."""
_Next = Callable[[Expr, Expr, Sequence[Axis]], Expr]
"""The value at a step of a recurrence: of the one before, where that is, and the other axes."""


def under_combiner(s: Stage, c: Combiner, g: Expr, out: Emitter) -> Expr:
    """The adjoint of s.value, at the stage's axes and those of its reduction."""
    return mul(g, _Chain(s, c, out).slope())


@dataclass(frozen=True)
class _Chain:
    """The elements of a stage's reduction in turn."""

    stage: Stage
    combiner: Combiner
    out: Emitter

    def slope(self) -> Expr:
        """How the result moves with s.value."""
        s = self.stage
        assert s.reduction is not None
        place: Expr = as_expr(0)
        for a, n in zip(s.reduction.axes, s.reduction.extents, strict=True):
            place = binary("add", binary("mul", place, as_expr(n)), a)
        before = self._before()
        behind = self._behind(before)
        at = (*s.axes, place)
        return self._pulled(RIGHT, Read(before.id, at, s.dtype), s.value, Read(behind.id, at, s.dtype))

    def _before(self) -> Stage:
        return self._recurrence("before", False, lambda running, at, axes: self.combiner.of((running,), (self._element(at, axes),))[0])

    def _behind(self, before: Stage) -> Stage:
        def next_(running: Expr, at: Expr, axes: Sequence[Axis]) -> Expr:
            return self._pulled(LEFT, Read(before.id, (*axes, at), before.dtype), self._element(at, axes), running)

        return self._recurrence("behind", True, next_)

    def _pulled(self, which: int, left: Expr, right: Expr, g: Expr) -> Expr:
        """What arrives at the left or the right one of two elements when g arrives at what they combine to."""
        elements = {LEFT: left, RIGHT: right}
        stand = {i: Read(i, (), e.dtype) for i, e in elements.items()}
        (whole,) = self.combiner.of((stand[LEFT],), (stand[RIGHT],))
        total: Expr = zero(g.dtype)
        for arrival in arrivals(whole, g, which.__eq__):
            total = add(total, arrival.value)
        return rewrite(total, lambda n: elements[n.source] if isinstance(n, Read) and n is stand.get(n.source) else None)

    def _recurrence(self, name: str, reverse: bool, combined: _Next) -> Stage:
        s, out = self.stage, self.out
        assert s.reduction is not None
        axes = tuple(axis(a.name) for a in s.axes)
        step, total = axis("_".join(a.name for a in s.reduction.axes)), volume(s.reduction.extents)
        at, number = step + 1 if reverse else step - 1, out.builder.fresh()
        inside = step < as_expr(total) - 1 if reverse else as_expr(1) <= step
        start = one(s.dtype) if reverse else self.combiner.identity[0]
        value = where(inside, combined(Read(number, (*axes, at), s.dtype), at, axes), start)
        path = f"{out.name_of(s)}/{name}"
        made = out.emit(path, (*axes, step), (*s.extents, total), value, None, s.source, number, s.dtype, linear=False)
        clocked = with_clocks([made], [(made.axis_names[-1], reverse)])
        out.builder.stages |= clocked
        return clocked.get(made.id, made)

    def _element(self, at: Expr, axes: Sequence[Axis]) -> Expr:
        """The element at a flat position."""
        s = self.stage
        assert s.reduction is not None
        there = _unflattened(at, s.reduction.axes, s.reduction.extents)
        return simplify(substitute(s.value, {**dict(zip(s.axes, axes, strict=True)), **there}), {})


def _unflattened(at: Expr, axes: Sequence[Axis], extents: Sequence[Extent]) -> dict[Axis, Expr]:
    """The position along each axis of a flat one."""
    out: dict[Axis, Expr] = {}
    rest = at
    for a, n in reversed(list(zip(axes[1:], extents[1:], strict=True))):
        out[a] = binary("mod", rest, as_expr(n))
        rest = binary("floordiv", rest, as_expr(n))
    out[axes[0]] = rest
    return out


__all__ = ["under_combiner"]
