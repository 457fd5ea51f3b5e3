"""What GPU bindings make of a nest: the order of its loops, the dealing of a tile to threads, memory that a block shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fluorite.algo.extent import Extent
from fluorite.algo.stages import Stage
from fluorite.schedule.directives import Directive, Fetch, Fuse, GpuThreads, Split, Vectorize
from fluorite.schedule.nest import BLOCK, THREAD, VTHREAD, Loop, Nest

from ..statements import Allocate, Buffer, For, Statement, transform

LANES = ("z", "y", "x")


def arranged(nest: Nest) -> Nest:
    """Blocks outside virtual threads outside threads outside everything else. All threads run all serial iterations, so the order among
    them is free."""
    by_block = any(loop.kind == THREAD and loop.reduction for loop in nest.loops)

    def rank(loop: Loop) -> int:
        if loop.kind == BLOCK:
            return 0
        if loop.kind == VTHREAD:
            return 1
        if loop.kind == THREAD:
            return 4 if loop.reduction else 2
        return 5 if by_block and loop.reduction else 3

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
