"""The derivative of a reduction with a combiner of the user's.

The elements are taken in turn: `before` is what all in front of each one combine to, a recurrence from the first; how the result moves with
what has been combined up to and with each element, `behind`, is one from the last. By the rules for scalars the latter says how the result
moves with the element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..clock import place as place_of
from ..combiners import Combiner
from ..dtypes import FLOATS
from ..expr import Axis, Expr, Op, Read, as_expr, axis, binary, where
from ..extent import Extent, volume
from ..linear import simplify
from ..recurrences import with_clocks
from ..rewriting import rewrite, substitute
from ..stages import Stage
from .algebra import add, converted, mul, one, zero
from .emitting import Emitter
from .local import arrivals

_Parts = Sequence[Expr]
"""Of an element, or of what arrives at one."""
_Next = Callable[[_Parts, Expr, Sequence[Axis]], _Parts]
"""What a step of a recurrence makes of the one next to it, at the flat position of that, and at the other axes."""


def under_combiner(s: Stage, c: Combiner, g: Expr, out: Emitter) -> Expr:
    """The adjoint of s.value, at the axes of the stage's elements and those of its reduction. Of one part it is g times something; of
    several, g is asked at each of them."""
    chain = _Chain(s, c, out)
    if s.parts_axis is None:
        return mul(g, chain.arriving([one(g.dtype)])[0])
    which = s.parts_axis
    arrived = [converted(substitute(g, {which: as_expr(k)}), e.dtype) if e.dtype in FLOATS else e for k, e in enumerate(c.identity)]
    return Op("tuple", (which, *chain.arriving(arrived)), g.dtype, False)


@dataclass(frozen=True)
class _Chain:
    """The elements of a stage's reduction in turn."""

    stage: Stage
    combiner: Combiner
    out: Emitter

    def arriving(self, g: _Parts) -> _Parts:
        """What arrives at each element when g arrives at the result."""
        s, axes = self.stage, self.stage.of_elements.axes
        assert s.reduction is not None
        place: Expr = as_expr(0)
        for a, n in zip(s.reduction.axes, s.reduction.extents, strict=True):
            place = binary("add", binary("mul", place, as_expr(n)), a)
        before = self._before()
        behind = self._behind(before, g)
        here = self._index(axes, place)
        return self._pulled(False, _at(before, here), self.combiner.parts(s.value), _at(behind, here))

    def _index(self, axes: Sequence[Expr], step: Expr) -> tuple[Expr, ...]:
        """Of the recurrences: one runs along memory, several step by step together, so that their steps stand outside."""
        return (*axes, step) if self.stage.parts_axis is None else (step, *axes)

    def _before(self) -> list[Stage]:
        def combined(running: _Parts, at: Expr, axes: Sequence[Axis]) -> _Parts:
            return self.combiner.of(running, self._element(at, axes))

        return self._recurrences("before", False, self.combiner.identity, combined)

    def _behind(self, before: Sequence[Stage], g: _Parts) -> list[Stage]:
        def pulled(running: _Parts, at: Expr, axes: Sequence[Axis]) -> _Parts:
            return self._pulled(True, _at(before, self._index(axes, at)), self._element(at, axes), running)

        return self._recurrences("behind", True, g, pulled)

    def _pulled(self, to_left: bool, left: _Parts, right: _Parts, g: _Parts) -> _Parts:
        """What arrives at the parts of the left or of the right one of two elements when g arrives at what they combine to."""
        elements = dict(zip((~n for n in range(2 * len(left))), (*left, *right), strict=True))
        stand = {n: Read(n, (), e.dtype) for n, e in elements.items()}
        sides = [list(stand.values())[: len(left)], list(stand.values())[len(left) :]]
        wanted = sides[0 if to_left else 1]
        total: dict[int, Expr] = {r.source: zero(r.dtype) for r in wanted}
        for result, arrived in zip(self.combiner.of(*sides), g, strict=True):
            for arrival in arrivals(result, arrived, total.__contains__) if result.dtype in FLOATS else ():
                total[arrival.read.source] = add(total[arrival.read.source], arrival.value)
        memo: dict[Expr, Expr] = {r: elements[n] for n, r in stand.items()}
        return [rewrite(e, memo.get) for e in total.values()]

    def _recurrences(self, name: str, reverse: bool, start: _Parts, next_: _Next) -> list[Stage]:
        """A stage for each part, in terms of those of the step before, or behind; `start` is what the outermost ones are."""
        s, builder = self.stage, self.out.builder
        assert s.reduction is not None
        fresh = {a: axis(a.name) for a in s.of_elements.axes}
        axes = tuple(fresh.values())
        step, total = axis("_".join(a.name for a in s.reduction.axes)), volume(s.reduction.extents)
        at = step + 1 if reverse else step - 1
        inside = step < as_expr(total) - 1 if reverse else as_expr(1) <= step
        numbers = [builder.fresh() for _ in start]
        running = [Read(i, self._index(axes, at), e.dtype) for i, e in zip(numbers, self.combiner.identity, strict=True)]
        following = next_(running, at, axes)
        own = [a for a in self._index(axes, step) if isinstance(a, Axis)]
        sizes = {**dict(zip(axes, s.of_elements.extents, strict=True)), step: total}
        made = []
        for k, (number, first, then) in enumerate(zip(numbers, start, following, strict=True)):
            value = where(inside, then, substitute(first, dict(fresh)))
            path = f"{self.out.name_of(s)}/{name}{k if len(start) > 1 else ''}"
            made.append(self.out.emit(path, own, [sizes[a] for a in own], value, None, s.source, number, then.dtype, linear=False))
        clocked = with_clocks(made, [(made[0].axis_names[place_of(step, own)], reverse)])
        builder.stages |= clocked
        return [clocked.get(m.id, m) for m in made]

    def _element(self, at: Expr, axes: Sequence[Axis]) -> _Parts:
        """The parts of the element at a flat position."""
        s = self.stage
        assert s.reduction is not None
        there = _unflattened(at, s.reduction.axes, s.reduction.extents)
        here = {**dict(zip(s.of_elements.axes, axes, strict=True)), **there}
        return [simplify(substitute(e, here), {}) for e in self.combiner.parts(s.value)]


def _at(stages: Sequence[Stage], index: Sequence[Expr]) -> _Parts:
    return [Read(t.id, tuple(index), t.dtype) for t in stages]


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
