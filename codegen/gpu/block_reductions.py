"""Reductions by many threads: each takes its share, then they hand on what they have, along a warp by shuffles, else in shared memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fluorite.algo.expr import Expr, Read, as_expr, binary
from fluorite.algo.stages import Stage
from fluorite.schedule.nest import THREAD, Loop, Nest

from ..reductions import Index, accumulators, assigned, initial, merged
from ..statements import Allocate, Barrier, Buffer, Exchange, For, If, Statement, Store, sequence

ZERO = (as_expr(0),)
Finish = Callable[[Sequence[Expr]], Statement]
"""What stores the result, of the state that is left."""


def block_reduction(s: Stage, nest: Nest, body: Statement, store: Finish, own_barriers: bool = False) -> Statement:
    """Every thread reduces its share (`body`, into the accumulators), then the number of states is halved until one is left.

    `own_barriers`: those between are written here, for TVM puts none into what runs only sometimes; nor between the parts of a state.
    """
    own = tuple(loop for loop in nest.loops if loop.kind == THREAD)
    lane = next((loop for loop in own if loop.shuffled and loop.reduction), None)
    state = accumulators(s)
    threads = _Threads(s, own, lane, own_barriers or len(state) > 1)
    share: Statement = sequence(*(Store(b.id, ZERO, e) for b, e in zip(state, initial(s), strict=True)), body)
    found = [Read(b.id, ZERO, b.dtype) for b in state]
    if lane is not None:
        return threads.by_lanes(share, found, store)
    return threads.by_halves(share, found, store)


@dataclass(frozen=True, eq=False)
class _Threads:
    """The threads of a block that reduce a stage together. `lane` is the loop of those that are in one warp."""

    s: Stage
    own: tuple[Loop, ...]
    lane: Loop | None
    own_barriers: bool

    @property
    def reducing(self) -> list[Loop]:
        return [loop for loop in self.own if loop.reduction]

    def by_lanes(self, share: Statement, found: Sequence[Expr], store: Finish) -> Statement:
        """Each lane combines what it has with what the lane half a warp further has, a quarter of one, and so on."""
        assert self.lane is not None
        here = tuple(loop.var for loop in self.own)
        mine, other = self.buffers("lane", "lanes", self.own, 3), self.buffers("other", "lanes", self.own, 4)
        parts = [self.all(assigned(self.s, mine, here, found), share)]
        distance = int(str(self.lane.extent)) // 2
        while distance:
            parts.append(
                self.all(sequence(*(Exchange(o.id, m.id, here, self.lane.var, distance) for o, m in zip(other, mine, strict=True))))
            )
            parts.append(self.all(assigned(self.s, mine, here, merged(self.s, _at(mine, here), _at(other, here)))))
            distance //= 2
        if len(self.reducing) == 1:
            parts.append(self.all(If(_first(self.reducing), store(_at(mine, here)))))
            return _allocated((*mine, *other), parts)
        return _allocated((*mine, *other), [*parts, self.by_halves(sequence(), _at(mine, here), store)])

    def by_halves(self, share: Statement, found: Sequence[Expr], store: Finish) -> Statement:
        """In shared memory the first half of the threads combine what they have with what the second half has, and so on."""
        own = [loop for loop in self.own if loop is not self.lane]
        here = tuple(loop.var for loop in own)
        partial = self.buffers("partial", "shared", own, 2)
        among = [] if self.lane is None else [self.lane]
        put = assigned(self.s, partial, here, found)
        parts = [self.all(If(_first(among), put) if among else put, share)]
        steps = list(_halvings([loop for loop in own if loop.reduction]))
        for loop, left, half in steps:
            there = tuple(binary("add", v, as_expr(half)) if x is loop else v for x, v in zip(own, here, strict=True))
            values = merged(self.s, _at(partial, here), _at(partial, there))
            if (loop, left, half) == steps[-1]:
                parts.append(self.all(If(_first(self.reducing), store(values))))
                continue
            test = binary("add", loop.var, as_expr(half)) < as_expr(left)
            parts.append(self.all(If(_first(among) & test if among else test, assigned(self.s, partial, here, values))))
        if not steps:
            parts.append(self.all(If(_first(self.reducing), store(_at(partial, here)))))
        between = (Barrier(),) if self.own_barriers else ()
        return _allocated(partial, [x for part in parts for x in (part, *between)])

    def all(self, inner: Statement, share: Statement | None = None) -> Statement:
        """By all threads, after they have reduced their `share`."""
        if share is not None:
            inner = _allocated(accumulators(self.s), [share, inner])
        for loop in reversed(self.reducing):
            inner = For(loop.var, loop.name, as_expr(0), as_expr(loop.extent), THREAD, loop.lane, inner)
        return inner

    def buffers(self, what: str, memory: str, loops: Sequence[Loop], batch: int) -> tuple[Buffer, ...]:
        """A state for each thread."""
        state = accumulators(self.s)
        shape = tuple(loop.extent for loop in loops)
        first = -2 * self.s.id - (batch << 48)
        rotates = memory == "shared" and self.own_barriers
        several = len(state) > 1
        return tuple(
            Buffer(first - (k << 32), f"{self.s.name}_{what}{k if several else ''}", b.dtype, shape, memory, rotates)
            for k, b in enumerate(state)
        )


def _at(buffers: Sequence[Buffer], index: Index) -> list[Expr]:
    return [Read(b.id, index, b.dtype) for b in buffers]


def _allocated(buffers: Sequence[Buffer], parts: Sequence[Statement]) -> Statement:
    body = sequence(*parts)
    for b in reversed(buffers):
        body = Allocate(b, body)
    return body


def _halvings(loops: Sequence[Loop]) -> Iterator[tuple[Loop, int, int]]:
    """The loop, how many values are left along it, and how far apart those are that are combined."""
    for loop in loops:
        left = int(str(loop.extent))
        while left > 1:
            half = (left + 1) // 2
            yield loop, left, half
            left = half


def _first(loops: Sequence[Loop]) -> Expr:
    """Holds in the first thread along these loops."""
    found: Expr | None = None
    for loop in loops:
        first = loop.var < as_expr(1)
        found = first if found is None else found & first
    assert found is not None
    return found


__all__ = ["block_reduction"]
