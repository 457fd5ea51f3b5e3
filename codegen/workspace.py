"""The memory that a kernel takes for itself while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fluorite.algo.dtypes import itemsize
from fluorite.algo.extent import Extent, volume

from .statements import Allocate, Buffer, For, If, Kernel, Sequence, Statement


def workspace(kernel: Kernel) -> tuple[Extent, Extent]:
    """Bytes that a kernel takes once, and on each of its threads, scalars aside."""
    found: dict[bool, dict[int, Buffer]] = {False: {}, True: {}}
    for inside, b in _kept(kernel.body, False):
        if volume(b.shape) != 1:
            found[inside][b.id] = b
    once, each = (sum_of(found[inside].values()) for inside in (False, True))
    return once, each


def sum_of(buffers: Iterable[Buffer]) -> Extent:
    """The bytes of all of these buffers."""
    total: Extent = 0
    for b in buffers:
        total = total + volume(b.shape) * itemsize(b.dtype)
    return total


def _kept(s: Statement | None, parallel: bool) -> Iterator[tuple[bool, Buffer]]:
    match s:
        case Allocate(buffer=b, body=body):
            yield parallel, b
            yield from _kept(body, parallel)
        case For(kind=kind, body=body):
            yield from _kept(body, parallel or kind == "parallel")
        case If(then=then, otherwise=otherwise):
            yield from _kept(then, parallel)
            yield from _kept(otherwise, parallel)
        case Sequence(body=parts):
            for part in parts:
                yield from _kept(part, parallel)


__all__ = ["workspace"]
