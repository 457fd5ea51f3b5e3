"""Recurrences: step by step along the clock, the slice of every stage evaluated as a stage of its own.

A slice is the stage without its clock, in whose expression the step is a symbolic extent; so all that evaluates whole stages evaluates
slices. Running sums, products and extremes are accumulated at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from ..clock import delay
from ..expr import Expr, Read, as_expr
from ..extent import symbol
from ..ordering import turns
from ..rewriting import walk
from ..row_turns import RowTurn
from ..running import Running, running
from ..stages import Stage, rewritten
from .elementary import Array, convert, literal
from .stages import Evaluation

STEP = "step of a recurrence"
ACCUMULATE = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
E = TypeVar("E", bound=Evaluation)


@dataclass(frozen=True, eq=False)
class Cut:
    """What a slice reads of one tensor at one step: its part at step + `offset` of dimension `dimension`, under a number of its own."""

    id: int
    source: int
    dimension: int
    offset: int


@dataclass(frozen=True, eq=False)
class Slice:
    """A stage without its clock, and what it reads of other tensors at each step."""

    whole: Stage
    stage: Stage
    cuts: tuple[Cut, ...]

    def window(self, step: int) -> tuple[slice | int, ...]:
        """Its place in the whole array."""
        return (*(slice(None),) * self.whole.tick, step)


def evaluate_unit(evaluation: Evaluation, unit: Sequence[Stage], sources: Mapping[int, Array]) -> dict[int, Array]:
    """The arrays of one stage, or of all stages of one loop or one recurrence, by id."""
    evaluation.count(unit, sources)
    if unit[0].turn is not None:
        return turned(evaluation, unit, sources)
    if len(unit) == 1 and (not unit[0].clock or not unit[0].earlier):
        return {unit[0].id: evaluation.stage(unit[0], sources)}
    if len(unit) == 1 and (found := running(unit[0])) is not None:
        return {unit[0].id: accumulated(unit[0], found, evaluation.stage(found.element, sources))}
    made = {s.id: np.zeros(evaluation.extents(s)[0], evaluation.working(s.dtype)) for s in unit}
    held = {**sources, **made}
    inner, parts = stepped(evaluation), slices(unit)
    for t in steps(evaluation, unit):
        at_step(inner, t)
        for part in parts:
            for c in part.cuts:
                held[c.id] = cut(held[c.source], c, t)
            made[part.whole.id][part.window(t)] = inner.stage(part.stage, held)
    return made


def turned(evaluation: Evaluation, unit: Sequence[Stage], sources: Mapping[int, Array]) -> dict[int, Array]:
    """A loop that runs as long as its condition holds. What only a turn needs is 0 where there was none."""
    made = {s.id: np.zeros(evaluation.extents(s)[0], evaluation.working(s.dtype)) for s in unit}
    loop = turns(unit)
    if not evaluation.taken(loop.carries[0], sources):
        return made
    held = {**sources, **made}
    held |= {s.id: np.array(evaluation.stage(s, sources)) for s in loop.carries}
    dropped = {i for w in loop.rows.values() for i in w.within}
    doing = [kept for part in loop.doing if (kept := tuple(s for s in part if s.id not in dropped))]
    while True:
        for part in loop.asking:
            held |= evaluate_unit(evaluation, part, held)
        if not held[loop.condition].item():
            return {s.id: held[s.id] for s in unit}
        for part in doing:
            held |= evaluate_unit(evaluation, part, held)
        rows = [(w, _row(evaluation, w, held)) for w in loop.rows.values()]
        held |= {s.id: held[loop.becomes[s.id]] for s in loop.carries if s.id not in loop.rows}
        for w, (place, value) in rows:
            held[w.carry.id][place] = value


def _row(evaluation: Evaluation, w: RowTurn, held: Mapping[int, Array]) -> tuple[tuple[Array, ...], Array]:
    """Where a turn writes to its carry, and what."""
    s, others = w.carry, w.others
    extents = tuple(n for a, n in zip(s.axes, s.extents, strict=True) if a is not w.axis)

    def over(e: Expr, dtype: str) -> Array:
        return evaluation.stage(replace(s, axes=others, extents=extents, value=e, dtype=dtype, turn=None), held)

    place, value = over(w.position, "int64"), over(w.value, s.dtype)
    taken = (place >= 0) & (place < evaluation.size(s.ranges[w.axis]))
    for guard in w.guards:
        taken &= over(guard, "bool")
    at = iter(np.nonzero(taken) if others else ())
    return tuple(place[taken] if a is w.axis else next(at) for a in s.axes), value[taken]


def accumulated(s: Stage, found: Running, element: Array) -> Array:
    """The running combination of the elements along the stage's clock."""
    assert s.clock is not None
    axis = s.tick
    ordered = np.flip(element, axis) if s.clock.reverse else element
    if found.first is not None and ordered.shape[axis]:
        first = (slice(None),) * axis + (slice(0, 1),)
        start = convert(literal(found.first.value, found.first.dtype), element.dtype.name)
        with np.errstate(all="ignore"):
            ordered[first] = ACCUMULATE[found.op](start, ordered[first])
    with np.errstate(all="ignore"):
        out: Array = ACCUMULATE[found.op].accumulate(ordered, axis=axis, dtype=element.dtype)
    return np.ascontiguousarray(np.flip(out, axis)) if s.clock.reverse else out


def steps(evaluation: Evaluation, unit: Sequence[Stage]) -> Iterable[int]:
    """The steps in the order in which they run. Raises RunError for extents that are none."""
    count = min(evaluation.extents(s)[0][s.tick] for s in unit)
    return reversed(range(count)) if unit[0].clock and unit[0].clock.reverse else range(count)


def stepped(evaluation: E) -> E:
    """An evaluation of slices. `at_step` tells it which step it is."""
    inner = copy(evaluation)
    inner.symbols = dict(evaluation.symbols)
    return inner


def at_step(evaluation: Evaluation, step: int) -> None:
    assert isinstance(evaluation.symbols, dict)
    evaluation.symbols[STEP] = step
    evaluation.known = {}


def slices(unit: Sequence[Stage]) -> list[Slice]:
    """The stages of a recurrence at one step."""
    found: dict[tuple[int, int, int], Cut] = {}
    return [_sliced(s, found) for s in unit]


def _sliced(s: Stage, found: dict[tuple[int, int, int], Cut]) -> Slice:
    assert s.clock is not None
    clock = s.clock.axis
    mine: dict[int, Cut] = {}

    def rule(e: Expr) -> Expr | None:
        if not isinstance(e, Read):
            return None
        moving = [d for d, i in enumerate(e.index) if any(n is clock for n in walk(i))]
        if len(moving) != 1 or (back := delay(e.index[moving[0]], clock, False)) is None:
            return None
        key = (e.source, moving[0], -back)
        one = found.setdefault(key, Cut(-1 - len(found), *key))
        mine[one.id] = one
        return Read(one.id, (*e.index[: moving[0]], *e.index[moving[0] + 1 :]), e.dtype)

    step = as_expr(symbol(STEP))
    made = rewritten(rewritten(s, rule), lambda e: step if e is clock else None)
    kept = [(a, n) for a, n in zip(s.axes, s.extents, strict=True) if a is not clock]
    stage = replace(made, axes=tuple(a for a, _ in kept), extents=tuple(n for _, n in kept), clock=None)
    return Slice(s, stage, tuple(mine.values()))


def cut(source: Array, c: Cut, step: int) -> Array:
    """What a step reads. Beyond the ends lies what a branch that is not taken reads: the nearest there is."""
    size = source.shape[c.dimension]
    if not size:
        return np.zeros((*source.shape[: c.dimension], *source.shape[c.dimension + 1 :]), source.dtype)
    at = min(max(step + c.offset, 0), size - 1)
    part: Array = source[(*(slice(None),) * c.dimension, at)]
    return np.asarray(part)


__all__ = ["Cut", "Slice", "accumulated", "at_step", "cut", "evaluate_unit", "slices", "stepped", "steps", "turned"]
