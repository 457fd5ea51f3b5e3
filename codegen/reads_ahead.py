"""Reads of an old value of state that come before it is written over, part by part.

Where one loop of a kernel makes a part of some values and then the same part of the new value of state, as the moments of an optimiser and
the weight, the old value may be read for all of them: what an iteration reads of it is what the same iteration writes, later. Each element
is written once, so no other iteration has written it before.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fluorite.algo.expr import Axis, Const, Expr, axis
from fluorite.algo.linear import simplify
from fluorite.algo.rewriting import reads, substitute

from .shortening import within_test
from .statements import Allocate, For, If, Statement, Store, walk
from .statements import Sequence as Several

_NUMBERED = tuple(axis(f"loop {n}") for n in range(32))


@dataclass(frozen=True)
class _Place:
    """A store with the loops and conditions around it, outermost first."""

    store: Store
    around: tuple[For | If, ...] = field(default=())


def reading_ahead(body: Statement, new: int, old: int) -> frozenset[int]:
    """The stores (by identity) to other buffers that read the old value no later than it is written over, in the same iteration."""
    match body:
        case For() | Allocate():
            return reading_ahead(body.body, new, old)
        case If(otherwise=None):
            return reading_ahead(body.then, new, old)
        case Several():
            writing = [part for part in body.body if any(isinstance(s, Store) and s.buffer == new for s in walk(part))]
            inside = frozenset(i for part in writing for i in reading_ahead(part, new, old))
            return inside | _before(body.body, writing, new, old)
    return frozenset()


def _before(parts: Sequence[Statement], writing: Sequence[Statement], new: int, old: int) -> frozenset[int]:
    """The stores in the parts before the first that writes which read elements that one of these writes."""
    written = [_form(p, p.store.index) for part in writing for p in _places(part) if p.store.buffer == new]
    found: set[int] = set()
    for part in itertools.takewhile(lambda part: all(part is not w for w in writing), parts):
        for p in _places(part):
            mine = [r for r in reads(p.store.value) if r.source == old]
            if mine and all(_form(p, r.index) in written for r in mine):
                found.add(id(p.store))
    return frozenset(found)


def _places(s: Statement, around: tuple[For | If, ...] = ()) -> Iterator[_Place]:
    """Its stores. (Loops around a test are taken as loops over where it holds: of numbers of two bytes they are so already.)"""
    match s:
        case Store() if len(around) <= len(_NUMBERED):
            yield _Place(s, around)
        case For(body=If(otherwise=None) as test) if (shorter := within_test(s, test)) is not None:
            yield from _places(shorter, around)
        case For():
            yield from _places(s.body, (*around, s))
        case If(otherwise=None):
            yield from _places(s.then, (*around, s))
        case Allocate():
            yield from _places(s.body, around)
        case Several():
            for part in s.body:
                yield from _places(part, around)


def _form(p: _Place, index: tuple[Expr, ...]) -> tuple[str, ...]:
    """What is the same for two places that go over the same elements: loops are numbered, those of one iteration left out."""
    numbers: dict[Axis, Expr] = {}
    said: list[str] = []
    for s in p.around:
        if isinstance(s, For) and isinstance(s.extent, Const) and s.extent.value == 1:
            numbers[s.var] = substitute(s.low, dict(numbers))
        elif isinstance(s, For):
            number = _NUMBERED[sum(line.startswith("for") for line in said)]
            said.append(f"for {_text(s.low, numbers)} {_text(s.extent, numbers)}")
            numbers[s.var] = number
        else:
            said.append(f"if {_text(s.condition, numbers)}")
    return (*said, *(_text(i, numbers) for i in index))


def _text(e: Expr, numbers: Mapping[Axis, Expr]) -> str:
    return repr(simplify(substitute(e, dict(numbers)), {}))


__all__ = ["reading_ahead"]
