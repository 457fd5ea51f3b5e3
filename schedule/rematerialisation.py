"""Which values of a method are computed again in its backward pass, so that all that is there at a time stays within a limit.

The search sees kernels only. It begins with segments (Chen et al., "Training deep nets with sublinear memory cost", 2016): of every so many
bytes one value is kept, what lies between is computed again; segments of several lengths, of all values and of those alone that are cheap
for their size. From the best of these it goes on by single values: where too much is there, whatever change leaves least; where it fits,
the dearest first, what need not be computed again after all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from .alive import Values
from .running_order import STRATEGIES, Dependences, order_by

TRIES = 1500
"""Choices that are looked at, at most."""


@dataclass(frozen=True)
class Kernel:
    """A kernel of the method: the sizes in bytes of the values that it makes, the values and the leaves that it reads, the leaves that it
    writes over, its work in some unit, and whether it belongs to the backward pass or to an update."""

    makes: Mapping[int, int]
    reads: tuple[int, ...]
    leaves: frozenset[int]
    over: frozenset[int]
    work: float
    late: bool


@dataclass(frozen=True)
class Choice:
    """Values computed again; the most bytes of values that are there at a time, and the work that is added."""

    again: frozenset[int]
    peak: int
    work: float


@dataclass(frozen=True)
class Rematerialisation:
    """The kernels of one method in their order. `able` are the values that a plan can have computed again; `bound` those that go with
    their reader: parameters in another layout, parts of sums."""

    kernels: tuple[Kernel, ...]
    able: frozenset[int]
    bound: frozenset[int]

    @cached_property
    def maker(self) -> Mapping[int, int]:
        return {v: n for n, k in enumerate(self.kernels) for v in k.makes}

    @cached_property
    def sizes(self) -> Mapping[int, int]:
        return {v: size for k in self.kernels for v, size in k.makes.items()}

    @cached_property
    def wanted(self) -> tuple[int, ...]:
        """The values that might be computed again, in the order in which they are made: those that the backward pass reads, and those of
        which these are made."""
        found: set[int] = set()
        pending = [v for k in self.kernels if k.late for v in k.reads]
        while pending:
            v = pending.pop()
            if v not in found and v in self.maker and not (k := self.kernels[self.maker[v]]).late:
                found.add(v)
                pending += k.reads
        return tuple(v for v in self.maker if v in found and v in self.able)

    def unfolded(self, again: frozenset[int]) -> tuple[list[Kernel], float]:
        """The kernels with copies of those that make what is computed again, each before the first that needs it; the work of copies.

        The copy of a value v is the value -1 - v.
        """
        out: list[Kernel] = []
        copied: set[int] = set()
        work = 0.0
        for k in self.kernels:
            if not k.late:
                out.append(k)
                continue
            mine = [r for r in k.reads if r in again]
            for n, values in self.copies(mine, again, copied):
                made = self.kernels[n]
                reads = tuple(-1 - r if r in again or r in self.bound else r for r in made.reads)
                out.append(Kernel({-1 - v: made.makes[v] for v in values}, reads, made.leaves, frozenset(), made.work, True))
                work += made.work
            out.append(Kernel(k.makes, tuple(-1 - r if r in mine else r for r in k.reads), k.leaves, k.over, k.work, True))
        return out, work

    def copies(self, values: Iterable[int], again: frozenset[int], copied: set[int]) -> list[tuple[int, list[int]]]:
        """What has to run again to have these values, in order, and the values that are wanted of each; `copied` are there already."""
        found: dict[int, list[int]] = {}
        pending = [v for v in values if v not in copied]
        while pending:
            v = pending.pop()
            if v not in copied:
                copied.add(v)
                found.setdefault(self.maker[v], []).append(v)
                pending += [r for r in self.kernels[self.maker[v]].reads if r in again or r in self.bound]
        return sorted(found.items())

    def choice(self, again: Iterable[int], ordered: bool = False) -> Choice:
        """What comes of computing these again, in the order of the kernels or in the best one. Those of which nothing late is made are
        left out."""
        kernels, work = self.unfolded(frozenset(again))
        made = frozenset(-1 - v for k in kernels for v in k.makes if v < 0)
        most = _peak(kernels) if not ordered else min(_peak([kernels[n] for n in order]) for order in _orders(kernels))
        return Choice(made & self.able, most, work)

    def arranged(self, again: frozenset[int]) -> Rematerialisation:
        """The kernels of the backward pass in the order that is best where these values are computed again."""
        kernels, _ = self.unfolded(again)
        order = min(_orders(kernels), key=lambda order: _peak([kernels[n] for n in order]))
        late = (k for n in order if (k := kernels[n]).late and not any(v < 0 for v in k.makes))
        original = {_name(k): k for k in self.kernels}
        return replace(self, kernels=(*(k for k in self.kernels if not k.late), *(original[_name(k)] for k in late)))

    def found(self, limit: int) -> Choice:
        """The choice of least work that is found within the limit, else one of the least memory that is found."""
        first = min((self.choice(some, ordered=True) for some in self.segments()), key=lambda c: _rank(c, limit))
        search = _Search(self.arranged(first.again), limit)
        best = search.found(search.look(first.again))
        return min((first, self.choice(best.again, ordered=True)), key=lambda c: _rank(c, limit))

    def segments(self) -> Iterator[frozenset[int]]:
        """Nothing, and segments of several lengths."""
        yield frozenset()
        dear = {v: self.kernels[self.maker[v]].work / max(self.sizes[v], 1) for v in self.wanted}
        ranked = sorted(dear.values())
        for most in dict.fromkeys(ranked[len(ranked) * part // 2 - 1] for part in (2, 1) if len(ranked) * part // 2):
            some = [v for v in self.wanted if dear[v] <= most]
            whole = sum(self.sizes[v] for v in some)
            for parts in (1, 2, 3, 4, 6, 8, 12, 16, 24):
                if parts <= len(some):
                    yield frozenset(self._segment(some, whole / parts))

    def _segment(self, values: Sequence[int], length: float) -> Iterator[int]:
        """All but the values at which `length` bytes have come together."""
        since = 0.0
        for v in values:
            since += self.sizes[v]
            if since >= length + self.sizes[v]:
                since = 0.0
            else:
                yield v


def _name(k: Kernel) -> tuple[int, ...]:
    return tuple(k.makes)


def _rank(c: Choice, limit: int) -> tuple[float, float]:
    return (0, c.work) if c.peak <= limit else (c.peak, c.work)


def _peak(kernels: Sequence[Kernel]) -> int:
    """The most bytes that are there at a time, in this order."""
    last = {v: n for n, k in enumerate(kernels) for v in k.reads}
    sizes = {v: size for k in kernels for v, size in k.makes.items() if v in last}
    now = most = 0
    for n, k in enumerate(kernels):
        now += sum(sizes.get(v, 0) for v in k.makes)
        most = max(most, now)
        now -= sum(sizes.get(v, 0) for v in set(k.reads) if last[v] == n)
    return most


def _orders(kernels: Sequence[Kernel]) -> Iterator[list[int]]:
    """The orders that `running_order` chooses among."""
    made_by = {v: n for n, k in enumerate(kernels) for v in k.makes}
    readers: dict[int, list[int]] = {}
    using: dict[int, list[int]] = {}
    reads = {n: tuple(v for v in dict.fromkeys(k.reads) if v in made_by) for n, k in enumerate(kernels)}
    for n, k in enumerate(kernels):
        for v in reads[n]:
            readers.setdefault(v, []).append(n)
        for leaf in k.leaves:
            using.setdefault(leaf, []).append(n)
    before = {
        n: {made_by[v] for v in reads[n]} | {r for leaf in k.over for r in using.get(leaf, ()) if r < n} for n, k in enumerate(kernels)
    }
    sizes = {v: size for k in kernels for v, size in k.makes.items()}
    makes = {n: sum(size for v, size in k.makes.items() if v in readers) for n, k in enumerate(kernels)}
    values = Values(makes, reads, {v: sizes[v] for v in readers}, {v: tuple(those) for v, those in readers.items()})
    known = Dependences.of(before, {n: n for n in before})
    for strategy in STRATEGIES[:2]:
        yield order_by(strategy, values, known)


class _Search:
    """One search among single values: the choices that have been looked at."""

    def __init__(self, of: Rematerialisation, limit: int) -> None:
        self.of, self.limit = of, limit
        self.seen: dict[frozenset[int], Choice] = {}

    def found(self, best: Choice) -> Choice:
        """The best to which single values lead from there."""
        if best.peak > self.limit:
            best = self.descended(best)
        return self.pruned(best) if best.peak <= self.limit else best

    def look(self, again: Iterable[int]) -> Choice:
        key = frozenset(again)
        if key not in self.seen:
            self.seen[key] = self.of.choice(key)
        return self.seen[key]

    def rank(self, c: Choice) -> tuple[float, float]:
        return _rank(c, self.limit)

    def descended(self, best: Choice) -> Choice:
        """By single values to what leaves less, until it fits or nothing does."""
        while best.peak > self.limit and len(self.seen) < TRIES:
            near = [self.look(best.again ^ {v}) for v in self.of.wanted if len(self.seen) < TRIES]
            better = min(near, key=self.rank, default=best)
            if self.rank(better) >= self.rank(best):
                break
            best = better
        return best

    def pruned(self, best: Choice) -> Choice:
        """The dearest values first, what can be kept within the limit is."""
        of = self.of
        while len(self.seen) < TRIES:
            before = best
            for v in sorted(best.again, key=lambda v: (-of.kernels[of.maker[v]].work, v)):
                kept = self.look(best.again - {v}) if len(self.seen) < TRIES else best
                if self.rank(kept) < self.rank(best):
                    best = kept
            if best is before:
                break
        return best


__all__ = ["Choice", "Kernel", "Rematerialisation"]
