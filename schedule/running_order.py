"""The order in which the kernels of a method run: that of their stages, or another in which less memory is taken at a time.

The least peak of any order is as hard to find as the fewest registers (Sethi, "Complete register allocation problems", 1975). Orders are
made greedily: where a *chain*, a group with what has to run before it, leaves less memory taken than before it began, it runs at once;
else the next group in the order of the stages does. Of several ways to choose among chains the one with the lowest peak is taken, the
order with the shortest chains unless another is better for extents both usual and small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from fluorite.algo.graph import Graph

from .alive import Values, values_of
from .typical import TYPICAL

Rank = tuple[float, ...]
SMALL = 32
"""A symbolic extent for which no order may take more memory than the first one, either."""
_FEW = 8
"""Readers of a value, users of a group: those with more are looked at only when they themselves can run."""


@dataclass(frozen=True)
class Strategy:
    """Chains of at most `longest` groups, the one with the least `rank` first: of its growth in bytes, what it takes meanwhile, and its
    place in the order of the stages."""

    longest: int
    rank: Callable[[float, int, int], Rank]


STRATEGIES = (
    Strategy(1, lambda growth, hill, place: (place,)),
    Strategy(4, lambda growth, hill, place: (hill, growth, place)),
    Strategy(8, lambda growth, hill, place: (growth, hill, place)),
)


def running_order(
    g: Graph,
    root: Callable[[int], int],
    members_of: Mapping[int, Sequence[int]],
    before: Mapping[int, Iterable[int]],
    place: Mapping[int, int],
) -> list[int]:
    """The groups of one method in the order in which they run. `before` has the groups that run before each, without circles, `place`
    where each stands in the order of the stages."""
    usual, small = (values_of(g, root, members_of, extent) for extent in (TYPICAL, SMALL))
    known = Dependences.of(before, place)
    best = order_by(STRATEGIES[0], usual, known)
    least, first, most = usual.least, small.peak(best), usual.peak(best)
    for strategy in STRATEGIES[1:]:
        if most <= least:
            break
        order = order_by(strategy, usual, known)
        if (peak := usual.peak(order)) < most and small.peak(order) <= first:
            best, most = order, peak
    return best


@dataclass(frozen=True, eq=False)
class Dependences:
    """By group: those that run before it, those that it runs before, and its place in the order of the stages."""

    before: Mapping[int, tuple[int, ...]]
    after: Mapping[int, tuple[int, ...]]
    place: Mapping[int, int]

    @classmethod
    def of(cls, before: Mapping[int, Iterable[int]], place: Mapping[int, int]) -> Dependences:
        earlier = {r: tuple(sorted(those, key=place.__getitem__)) for r, those in before.items()}
        after: dict[int, list[int]] = {r: [] for r in before}
        for r, those in earlier.items():
            for b in those:
                after[b].append(r)
        return cls(earlier, {r: tuple(those) for r, those in after.items()}, place)


def order_by(strategy: Strategy, values: Values, known: Dependences) -> list[int]:
    """The groups in the order that one strategy makes."""
    return _Run(values, known, strategy).order()


class _Run:
    """One way through the groups of a method."""

    def __init__(self, values: Values, known: Dependences, strategy: Strategy) -> None:
        self.values, self.before, self.after, self.place = values, known.before, known.after, known.place
        self.strategy = strategy
        self.waits = {group: len(before) for group, before in self.before.items()}
        self.left = {value: len(readers) for value, readers in values.readers.items()}
        self.done: set[int] = set()
        self.ready: list[tuple[int, int]] = []
        self.found: list[tuple[Rank, int]] = []  # groups at the ends of chains that leave less than there was
        self.ranks: dict[int, Rank | None] = {}  # of these, as they were last seen

    def order(self) -> list[int]:
        out: list[int] = []
        for group, n in self.waits.items():
            if not n:
                heappush(self.ready, (self.place[group], group))
        self._look_at(group for _, group in sorted(self.ready))
        while len(out) < len(self.before):
            chain = self._best_chain() or [self._next()]
            touched: dict[int, None] = {}
            for group in chain:
                touched |= dict.fromkeys(self._run(group))
            out += chain
            self._look_at(touched)
        return out

    def _next(self) -> int:
        while True:
            _, group = heappop(self.ready)
            if group not in self.done:
                return group

    def _best_chain(self) -> list[int] | None:
        while self.found:
            rank, group = heappop(self.found)
            if self.ranks[group] != rank or group in self.done:
                continue
            self._look_at([group])
            if self.ranks[group] == rank:
                return self._chain(group)
        return None

    def _look_at(self, groups: Iterable[int]) -> None:
        for group in groups:
            chain = self._chain(group)
            rank = None if chain is None else self._rank(chain)
            if rank is not None and rank != self.ranks.get(group):
                heappush(self.found, (rank, group))
            self.ranks[group] = rank

    def _run(self, group: int) -> list[int]:
        """Runs a group; gives those whose chains may be others now."""
        self.done.add(group)
        for value in self.values.reads[group]:
            self.left[value] -= 1
        able = []
        for user in self.after[group]:
            self.waits[user] -= 1
            if not self.waits[user]:
                heappush(self.ready, (self.place[user], user))
                able.append(user)
        read = (v for reader in (group, *able) for v in self.values.reads[reader])
        near = dict.fromkeys(self.after[group])
        near |= dict.fromkeys(r for v in dict.fromkeys(read) if 0 < self.left[v] <= _FEW for r in self.values.readers[v])
        if self.strategy.longest > 1:
            for _ in range(2):
                near |= dict.fromkeys(user for r in tuple(near) if len(self.after[r]) <= _FEW for user in self.after[r])
        return [r for r in near if r not in self.done]

    def _chain(self, group: int) -> list[int] | None:
        """The group after all that has yet to run before it; None if that is too much."""
        chain: dict[int, None] = {}
        seen, pending = {group}, [group]
        while pending:
            last = pending[-1]
            missing = [r for r in self.before[last] if r not in self.done and r not in chain] if self.waits[last] else []
            seen.update(missing)
            if len(seen) > self.strategy.longest:
                return None
            if missing:
                pending += sorted(missing, key=self.place.__getitem__, reverse=True)
            else:
                chain[pending.pop()] = None
        return list(chain)

    def _rank(self, chain: Sequence[int]) -> Rank | None:
        """How good it is to run the chain now; None unless it leaves less than there is. Groups that could all run, and then would be the
        last to read a value, share in what this frees."""
        taken, used = set(chain), dict[int, int]()
        growth = hill = 0
        for group in chain:
            growth += self.values.makes[group]
            hill = max(hill, growth)
            for value in self.values.reads[group]:
                used[value] = used.get(value, 0) + 1
                if used[value] == self.left[value]:
                    growth -= self.values.sizes[value]
        share = sum(self.values.sizes[v] * n / self.left[v] for v, n in used.items() if n < self.left[v] <= _FEW and self._last(v, taken))
        return self.strategy.rank(growth - share, hill, self.place[chain[-1]]) if growth < share else None

    def _last(self, value: int, taken: set[int]) -> bool:
        others = (r for r in self.values.readers[value] if r not in self.done and r not in taken)
        return all(before in self.done or before in taken for r in others for before in self.before[r])
