"""The rank of every element of a row by a merge sort, bottom up: stable, n log n comparisons, no recursion.

Runs of eight are sorted by counting, for each element, those of its run that come before it: comparisons without branches. Then
neighbouring runs are merged, each pass from one half of the memory to the other. What moves is keys and the positions that they came
from; in the end the r-th position has rank r.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from fluorite.algo.expr import Expr, Op, Read, as_expr, axis, binary, cast
from fluorite.algo.extent import Extent
from fluorite.algo.ranking import Rank, precedes, ranked
from fluorite.schedule.nest import SERIAL

from ..statements import Allocate, Buffer, For, If, Statement, Store, sequence
from . import evaluating
from .context import Context, Placed

_RUN = 8
_PASSES = 40  # of a row whose length is known only when the kernel runs
_FIRST_ID = 1 << 40  # buffers of sorts have ids of their own, far below those of accumulators
ZERO = (as_expr(0),)


def row(work: Context, p: Placed, found: Rank) -> Statement:
    """The ranks of the row at the place that the loops outside have reached."""
    s = p.stage
    memory = _Row.of(s.id, s.name, found, s.ranges[found.over])
    for b in memory.buffers:
        work.storage[b.id] = (b, ZERO)

    def key(j: Expr) -> Expr:
        return evaluating.over_loops(work, replace(p, values={**p.values, found.over: j}), found.key)

    def place(i: Expr) -> tuple[Expr, ...]:
        return evaluating.own_index(work, replace(p, values={**p.values, found.axis: i}))

    def ranks(r: Expr) -> Statement:
        return Store(s.id, place(memory.came(_read(memory.side) * memory.n + r)), cast(r, "int32"))

    body = sequence(
        _loop("t", memory.n, lambda t: Store(memory.keys.id, (memory.n + t,), key(t))),
        _loop("t", memory.n, memory.placed),
        _set(memory.width, _RUN),
        _set(memory.side, 0),
        _loop("pass", as_expr(_passes(memory.extent)), lambda _: memory.merged()),
        _loop("r", memory.n, ranks),
    )
    for b in memory.buffers:
        body = Allocate(b, body)
    return body


def _passes(n: Extent) -> int:
    """How often runs must be merged until there is one."""
    return max(0, (-(-n // _RUN) - 1).bit_length()) if isinstance(n, int) else _PASSES


@dataclass(frozen=True, eq=False)
class _Row:
    """The memory of a row: keys and where they came from, twice, so that a pass reads one half and writes the other; and its counters.

    `side` is the half that holds the runs, `width` their length; `left` and `right` are the heads of the two that are being merged, and
    `taken` is 1 where the right one comes first.
    """

    extent: Extent
    descending: bool
    keys: Buffer
    order: Buffer
    before: Buffer
    width: Buffer
    side: Buffer
    left: Buffer
    right: Buffer
    taken: Buffer

    @staticmethod
    def of(id: int, name: str, found: Rank, n: Extent) -> _Row:
        first = -_FIRST_ID - 8 * id
        keys = Buffer(first, f"{name}_keys", found.key.dtype, (2 * n,), "workspace")
        order = Buffer(first - 1, f"{name}_order", "int32", (2 * n,), "workspace")
        words = ("before", "width", "side", "left", "right", "taken")
        counters = [Buffer(first - 2 - k, f"{name}_{word}", "int64", (1,), "local") for k, word in enumerate(words)]
        return _Row(n, found.descending, keys, order, *counters)

    @property
    def n(self) -> Expr:
        return as_expr(self.extent)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return (self.taken, self.right, self.left, self.side, self.width, self.before, self.order, self.keys)

    def key(self, i: Expr) -> Expr:
        return Read(self.keys.id, (i,), self.keys.dtype)

    def came(self, i: Expr) -> Expr:
        return Read(self.order.id, (i,), "int32")

    def put(self, at: Expr, key: Expr, came: Expr) -> Statement:
        return sequence(Store(self.keys.id, (at,), key), Store(self.order.id, (at,), cast(came, "int32")))

    def placed(self, t: Expr) -> Statement:
        """Element t, a key in the second half, at its place within its run in the first."""
        first = binary("mul", binary("floordiv", t, as_expr(_RUN)), as_expr(_RUN))
        length = binary("min", as_expr(_RUN), binary("sub", self.n, first))

        def counted(u: Expr) -> Statement:
            other = binary("add", first, u)
            one = ranked(self.key(self.n + other), other, self.key(self.n + t), t, self.descending)
            return _set(self.before, _read(self.before) + cast(one, "int64"))

        here = _read(self.before) + first
        return sequence(_set(self.before, 0), _loop("u", length, counted), self.put(here, self.key(self.n + t), t))

    def merged(self) -> Statement:
        """One pass, if there is more than one run."""
        width, side = _read(self.width), _read(self.side)
        pairs = binary("floordiv", width * 2 - 1 + self.n, width * 2)
        after = sequence(_set(self.width, width * 2), _set(self.side, cast(1, "int64") - side))
        return If(width < self.n, sequence(_loop("pair", pairs, self.merged_pair), after))

    def merged_pair(self, pair: Expr) -> Statement:
        width, source = _read(self.width), _read(self.side) * self.n
        target = (cast(1, "int64") - _read(self.side)) * self.n
        low = width * 2 * pair
        middle, high = binary("min", low + width, self.n), binary("min", low + width * 2, self.n)
        left, right, taken = _read(self.left), _read(self.right), _read(self.taken)
        last = self.n - 1

        def step(k: Expr) -> Statement:
            one, other = (source + binary("min", head, last) for head in (left, right))
            first = (right < high) & ((middle <= left) | precedes(self.key(other), self.key(one), self.descending))
            is_right = binary("lt", 0, taken)
            return sequence(
                _set(self.taken, first),
                self.put(target + low + k, *(_chosen(is_right, of(other), of(one)) for of in (self.key, self.came))),
                _set(self.left, left + 1 - taken),
                _set(self.right, right + taken),
            )

        return sequence(_set(self.left, low), _set(self.right, middle), _loop("k", high - low, step))


def _chosen(c: Expr, a: Expr, b: Expr) -> Expr:
    """Both sides are there to be read, so no branch is needed."""
    return Op("select", (c, a, b), a.dtype, False)


def _read(b: Buffer) -> Expr:
    return Read(b.id, ZERO, b.dtype)


def _set(b: Buffer, value: Expr | int) -> Statement:
    return Store(b.id, ZERO, cast(value, b.dtype))


def _loop(name: str, extent: Expr, body: Callable[[Expr], Statement]) -> Statement:
    var = axis(name)
    return For(var, name, as_expr(0), extent, SERIAL, "", body(var))


__all__ = ["row"]
