"""What GPU bindings make of a nest: the order of its loops, the dealing of a tile to threads, reductions by a whole block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from fluorite.algo.expr import Expr, Read, as_expr, binary
from fluorite.algo.extent import Extent
from fluorite.algo.stages import Stage
from fluorite.schedule.directives import Directive, Fetch, Fuse, GpuThreads, Split, Vectorize
from fluorite.schedule.nest import BLOCK, THREAD, Loop, Nest

from ..reductions import accumulators, initial, together
from ..statements import Allocate, Barrier, Buffer, For, If, Statement, Store, sequence, transform

LANES = ("z", "y", "x")
ZERO = (as_expr(0),)


def arranged(nest: Nest) -> Nest:
    """Blocks outside threads outside everything else. All threads run all serial iterations, so the order among them is free."""
    by_block = any(loop.kind == THREAD and loop.reduction for loop in nest.loops)

    def rank(loop: Loop) -> int:
        if loop.kind == BLOCK:
            return 0
        if loop.kind == THREAD:
            return 3 if loop.reduction else 1
        return 4 if by_block and loop.reduction else 2

    return replace(nest, loops=tuple(sorted(nest.loops, key=rank)))


def lanes_of(nest: Nest) -> dict[str, Extent]:
    """Thread extents by lane."""
    return {loop.lane: loop.extent for loop in nest.loops if loop.kind == THREAD}


def reduces_by_block(nest: Nest) -> bool:
    return any(loop.kind == THREAD and loop.reduction for loop in nest.loops)


def fetch_of(directives: tuple[Directive, ...]) -> Fetch | None:
    return next((d for d in directives if isinstance(d, Fetch)), None)


def dealt(s: Stage, fetch: Fetch, lanes: Mapping[str, Extent]) -> tuple[Directive, ...]:
    """fetch, said with other directives: all loops as one, cut into steps of one element (or vector) a thread."""
    names = [a.name for a in s.axes]
    out: list[Directive] = []
    if (fetch.vector or 1) > 1:
        last = names.pop()
        out.append(Split(axis=last, factor=fetch.vector, into=("fetch vector", "fetch lane"), marks=fetch.marks))
        names.append("fetch vector")
    if len(names) > 1:
        out.append(Fuse(*names, into="fetched", marks=fetch.marks))
        names = ["fetched"]
    used = [lane for lane in LANES if lane in lanes]
    loops = tuple(f"thread {lane}" for lane in used)
    out.append(Split(axis=names[0], factors=(None, *(int(str(lanes[lane])) for lane in used)), into=("step", *loops), marks=fetch.marks))
    out.append(GpuThreads(*loops, marks=fetch.marks))
    if (fetch.vector or 1) > 1:
        out.append(Vectorize("fetch lane", marks=fetch.marks))
    return tuple(out)


def hoisted(body: Statement) -> tuple[Statement, tuple[Buffer, ...]]:
    """The statement with shared memory allocated once for a block, and what is allocated."""
    found: dict[int, Buffer] = {}

    def take(s: Statement) -> Statement | None:
        if isinstance(s, Allocate) and s.buffer.memory == "shared":
            found[s.buffer.id] = s.buffer
            return s.body
        return None

    stripped = transform(body, take)
    buffers = tuple(found.values())

    def put(s: Statement) -> Statement:
        if isinstance(s, For) and s.kind == BLOCK:
            return For(s.var, s.name, s.low, s.extent, s.kind, s.lane, put(s.body))
        for b in reversed(buffers):
            s = Allocate(b, s)
        return s

    return put(stripped), buffers


def partial_results(s: Stage, nest: Nest, own_barriers: bool = False) -> Buffer:
    """One value for each thread of the block, in shared memory."""
    threads = [loop for loop in nest.loops if loop.kind == THREAD]
    return Buffer(-2 * s.id - 1, f"{s.name}_partial", s.dtype, tuple(loop.extent for loop in threads), "shared", own_barriers)


def block_reduction(
    s: Stage, nest: Nest, body: Statement, store: Callable[[Expr], Statement], own_barriers: bool = False
) -> Statement:
    """Every thread reduces its share (`body`, into the accumulator), then the block halves the number of values until one is left.

    `own_barriers`: those between are written here, for TVM puts none into what runs only sometimes.
    """
    accumulator, partial = accumulators(s)[0], partial_results(s, nest, own_barriers)
    own = [loop for loop in nest.loops if loop.kind == THREAD]
    reducing = [loop for loop in own if loop.reduction]
    assert s.reduction is not None

    def by_threads(inner: Statement) -> Statement:
        for loop in reversed(reducing):
            inner = For(loop.var, loop.name, as_expr(0), as_expr(loop.extent), THREAD, loop.lane, inner)
        return inner

    here = tuple(loop.var for loop in own)
    share = sequence(Store(accumulator.id, ZERO, initial(s)[0]), body, Store(partial.id, here, Read(accumulator.id, ZERO, s.dtype)))
    parts: list[Statement] = [by_threads(Allocate(accumulator, share))]
    steps = list(_halvings(reducing))
    at_start = _all_zero(reducing)
    for loop, left, half in steps:
        other = tuple(binary("add", v, as_expr(half)) if x is loop else v for x, v in zip(own, here, strict=True))
        combined = together(s, Read(partial.id, here, s.dtype), Read(partial.id, other, s.dtype))
        last = (loop, left, half) == steps[-1]
        test = at_start if last else binary("add", loop.var, as_expr(half)) < as_expr(left)
        parts.append(by_threads(If(test, store(combined) if last else Store(partial.id, here, combined))))
    if not steps:
        parts.append(by_threads(store(Read(partial.id, here, s.dtype))))
    between = (Barrier(),) if own_barriers else ()
    return Allocate(partial, sequence(*(x for part in parts for x in (part, *between))))


def _halvings(loops: Sequence[Loop]) -> Iterator[tuple[Loop, int, int]]:
    """The loop, how many values are left along it, and how far apart those are that are combined."""
    for loop in loops:
        left = int(str(loop.extent))
        while left > 1:
            half = (left + 1) // 2
            yield loop, left, half
            left = half


def _all_zero(loops: Sequence[Loop]) -> Expr:
    """Holds in the first thread."""
    found: Expr | None = None
    for loop in loops:
        first = loop.var < as_expr(1)
        found = first if found is None else found & first
    assert found is not None
    return found
