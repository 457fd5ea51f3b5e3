"""Error bounds of recurrences: what one step rounds, carried on to the next; running sums and extremes all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..dtypes import kind
from ..interpreter.recurrences import ACCUMULATE, Cut, at_step, cut, slices, stepped, steps, turned
from ..ordering import turns
from ..running import Running, running
from ..stages import Stage
from .classes import accumulation
from .rules import Enclosure, settle
from .stages import EnclosingEvaluation

Array = np.ndarray[Any, Any]
_NEUTRAL = {"add": (0.0,), "max": (float("-inf"),), "min": (float("inf"),)}


def bounded_unit(evaluation: EnclosingEvaluation, unit: Sequence[Stage], sources: Mapping[int, Enclosure]) -> dict[int, Enclosure]:
    """Value and bound of one stage, or of all stages of one loop or one recurrence, by id."""
    if any(s.counts for s in unit):
        evaluation.count(unit, {i: e.value for i, e in sources.items()})
    if unit[0].turn is not None:
        return _turned(evaluation, unit, sources)
    if len(unit) == 1 and (not unit[0].clock or not unit[0].earlier):
        return {unit[0].id: evaluation.bounded(unit[0], sources)}
    if len(unit) == 1 and (found := at_once(unit[0])) is not None:
        return {unit[0].id: _accumulated(evaluation, unit[0], found, evaluation.bounded(found.element, sources))}
    made = {s.id: _empty(evaluation, s) for s in unit}
    held = {**sources, **made}
    inner, parts = stepped(evaluation), slices(unit)
    for t in steps(evaluation, unit):
        at_step(inner, t)
        for part in parts:
            seen = {**held, **inner.as_read(part.whole.id, held)} if inner.casts else held
            held |= {c.id: cut_enclosure(seen[c.source], c, t) for c in part.cuts}
            window, found_ = part.window(t), inner.bounded(part.stage, held)
            whole = made[part.whole.id]
            whole.value[window] = found_.value
            for all_, one in ((whole.error, found_.error), (whole.undecided, found_.undecided)):
                if one is not None and all_ is not None:
                    all_[window] = one
    return {i: _without_nothing(e) for i, e in made.items()}


def _turned(evaluation: EnclosingEvaluation, unit: Sequence[Stage], sources: Mapping[int, Enclosure]) -> dict[int, Enclosure]:
    """A loop, turn by turn. Where its condition is not sure nothing that it makes is: another number of turns is right as well."""
    loop = turns(unit)
    made = {s.id: Enclosure(np.zeros(evaluation.extents(s)[0], evaluation.working(s.dtype))) for s in unit}
    if not evaluation.taken(loop.carries[0], {i: e.value for i, e in sources.items()}):
        return made
    held = {**sources, **made}
    held |= {s.id: evaluation.bounded(s, sources) for s in loop.carries}
    sure = True
    while True:
        for part in loop.asking:
            held |= bounded_unit(evaluation, part, held)
        asked = held[loop.condition]
        sure = sure and (asked.error is None or not asked.error.any()) and (asked.undecided is None or not asked.undecided.any())
        if not asked.value.item():
            break
        for part in loop.doing:
            held |= bounded_unit(evaluation, part, held)
        held |= {s.id: held[loop.becomes[s.id]] for s in loop.carries}
    out = {s.id: held[s.id] for s in unit}
    return out if sure else {i: Enclosure(e.value, np.full(e.value.shape, np.inf), np.ones(e.value.shape, bool)) for i, e in out.items()}


def _empty(evaluation: EnclosingEvaluation, s: Stage) -> Enclosure:
    shape = evaluation.extents(s)[0]
    return Enclosure(np.zeros(shape, evaluation.working(s.dtype)), np.zeros(shape), np.zeros(shape, bool))


def _without_nothing(e: Enclosure) -> Enclosure:
    """Bounds only where there are some."""
    return Enclosure(
        e.value,
        None if e.error is None or not e.error.any() else e.error,
        None if e.undecided is None or not e.undecided.any() else e.undecided,
    )


def cut_enclosure(e: Enclosure, c: Cut, step: int) -> Enclosure:
    """What one step reads of a tensor, with its bound."""
    return Enclosure(*(None if part is None else cut(part, c, step) for part in e))  # type: ignore[arg-type]


def at_once(s: Stage) -> Running | None:
    """A running float sum or an extreme that starts with its first element: its bounds have a closed form."""
    found = running(s)
    if found is None or found.op == "mul" or (found.op == "add" and kind(s.dtype) != "float"):
        return None
    return found if found.first is None or found.first.value in _NEUTRAL[found.op] else None


def _accumulated(evaluation: EnclosingEvaluation, s: Stage, found: Running, element: Enclosure) -> Enclosure:
    """Along the clock: errors of the elements add up, and so does what each addition rounds; of extremes the largest error counts.

    The order is fixed, so an addition rounds by its own result (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 4.2).
    """
    value = _along(s, ACCUMULATE[found.op], element.value)
    undecided = None if element.undecided is None else _along(s, np.logical_or, element.undecided)
    if found.op != "add":
        return Enclosure(value, None if element.error is None else _along(s, np.maximum, element.error), undecided)
    form = evaluation.formats[s.dtype]
    unit = max(form.unit, accumulation(evaluation.class_, s.dtype))
    count = _along(s, np.add, np.ones(value.shape)) - (1 if found.first is None else 0)
    rounded = np.where(count > 0, unit * np.abs(value) + np.where(value == 0, 0, form.tiny), 0)
    moved = rounded if element.error is None else rounded + element.error
    error = _along(s, np.add, moved) * (1 + unit) ** (2 * count)
    return marked_too(settle(value, error, 0, form), undecided)


def marked_too(e: Enclosure, undecided: Array | None) -> Enclosure:
    """The enclosure with what the elements leave undecided as well."""
    if undecided is None:
        return e
    return Enclosure(e.value, e.error, undecided if e.undecided is None else undecided | e.undecided)


def _along(s: Stage, combine: np.ufunc, values: Array) -> Array:
    """Accumulated along the stage's clock, in its direction."""
    assert s.clock is not None
    axis = s.tick
    if not s.clock.reverse:
        return np.asarray(combine.accumulate(values, axis=axis))
    return np.ascontiguousarray(np.flip(combine.accumulate(np.flip(values, axis), axis=axis), axis))


def disturbed_unit(
    bounding: EnclosingEvaluation,
    plain: Any,
    unit: Sequence[Stage],
    exact: dict[int, Array],
    samples: Sequence[dict[int, Array]],
    push: Any,
) -> None:
    """The recurrence in every sample, each step moved by `push(sample number, its own roundings' bound)`; and exactly, all in place.

    A loop is moved all at once, at its end.
    """
    if len(unit) == 1 and (found := at_once(unit[0])) is not None and found.op == "add":
        _disturbed_sum(bounding, plain, unit[0], found, exact, samples, push)
        return
    if unit[0].turn is not None:
        own_ = _turned(bounding, unit, {i: Enclosure(exact[i]) for s in unit for i in s.sources if i in exact})
        for n, held in enumerate(samples):
            for i, value in turned(plain, unit, held).items():
                error = own_[i].error
                held[i] = value + push(n, error) if error is not None and value.dtype.kind == "f" else value
        exact.update({i: e.value for i, e in own_.items()})
        return
    everything = [exact, *samples]
    for held in everything:
        held.update({s.id: np.zeros(bounding.extents(s)[0], bounding.working(s.dtype)) for s in unit})
    inner, free, parts = stepped(bounding), stepped(plain), slices(unit)
    for t in steps(bounding, unit):
        at_step(inner, t)
        at_step(free, t)
        for part in parts:
            for held in everything:
                held.update({c.id: cut(held[c.source], c, t) for c in part.cuts})
            seen = {i: Enclosure(exact[i]) for i in part.stage.sources}
            if inner.casts:
                read = inner.as_read(part.whole.id, {c.source: Enclosure(exact[c.source]) for c in part.cuts})
                seen |= {c.id: cut_enclosure(read[c.source], c, t) for c in part.cuts if c.source in read}
            own = inner.bounded(part.stage, seen)
            exact[part.whole.id][part.window(t)] = own.value
            for n, held in enumerate(samples):
                value = free.stage(part.stage, held)
                if own.error is not None and value.dtype.kind == "f":
                    value = value + push(n, own.error)
                held[part.whole.id][part.window(t)] = value


def _disturbed_sum(
    bounding: EnclosingEvaluation,
    plain: Any,
    s: Stage,
    found: Running,
    exact: dict[int, Array],
    samples: Sequence[dict[int, Array]],
    push: Any,
) -> None:
    """A running sum: what its elements and each addition round is added up like the elements themselves."""
    own = bounding.bounded(found.element, {i: Enclosure(exact[i]) for i in found.element.sources})
    exact[s.id] = _along(s, np.add, own.value)
    rounding = np.abs(exact[s.id]) * max(bounding.formats[s.dtype].unit, accumulation(bounding.class_, s.dtype))
    total = rounding if own.error is None else rounding + own.error
    for n, held in enumerate(samples):
        held[s.id] = _along(s, np.add, plain.stage(found.element, held) + push(n, total))


__all__ = ["at_once", "bounded_unit", "cut_enclosure", "disturbed_unit"]
