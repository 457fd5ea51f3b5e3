"""Steps from a schedule to its neighbours: other sizes, orders and places, loops unrolled or not. Legality is found out by trying."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fluorite.algo.errors import PlanError
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage
from fluorite.schedule.directives import (
    ComputeAt,
    ComputeInline,
    ComputeRoot,
    ComputeWith,
    Directive,
    Fuse,
    Pack,
    Parallel,
    Reorder,
    Split,
    Tile,
    Unroll,
    Vectorize,
)
from fluorite.schedule.nest import Loop
from fluorite.schedule.selectors import select
from fluorite.schedule.shaping import shape
from fluorite.schedule.unscheduled import unscheduled

Chosen = Mapping[str, tuple[Directive, ...]]
_SHAPING = (Split, Tile, Reorder, Fuse)
LARGEST, LARGEST_UNROLLED = 4096, 16


@dataclass(frozen=True)
class Surroundings:
    """What steps need to know: the stages by path (made by rewrites and inlined ones included) and the lanes of a vector."""

    stages: Mapping[str, Stage]
    graph: Graph
    lanes: Callable[[str], int]

    def loops(self, path: str, ds: Sequence[Directive]) -> tuple[Loop, ...]:
        """The loops of a stage after its directives, unmarked; none if they do not fit together."""
        s = self.stages.get(path)
        if s is None:
            return ()
        nest, problems = shape(
            unscheduled(s, False),
            [d for d in ds if isinstance(d, _SHAPING) or (isinstance(d, Vectorize) and d.width is not None)],
            self.lanes,
            s.dtype,
        )
        return () if problems else nest.loops

    def owner(self, path: str, d: ComputeAt) -> str | None:
        """The path of the stage at which `path` is computed."""
        mine = self.stages.get(path)
        peers = [s for s in self.stages.values() if mine is None or s.method == mine.method]
        try:
            return select(d.stage, peers, scopes=False)[0].path
        except PlanError:
            return None

    def readers(self, path: str) -> list[str]:
        mine = self.stages.get(path)
        return [] if mine is None else [s.path for s in self.stages.values() if mine.id in s.sources and s.path != path]


def neighbours(chosen: Chosen, around: Surroundings) -> list[Chosen]:
    """Every schedule that is one step away, in a fixed order."""
    found: dict[str, Chosen] = {}
    for made in (*_linked_sizes(chosen), *_single(chosen, around)):
        found.setdefault(repr(made), made)
    found.pop(repr(dict(chosen)), None)
    return list(found.values())


# ---------------------------------------------------------------- sizes
def _linked_sizes(chosen: Chosen) -> Iterator[Chosen]:
    """One size of one axis changed wherever it stands: a tile, the split of what is computed in it, and the packing that feeds it."""
    pairs = dict.fromkeys(pair for ds in chosen.values() for d in ds for pair in _sizes(d))
    for axis, size in pairs:
        for other in _around(size):
            yield {path: tuple(_resized(d, axis, size, other) for d in ds) for path, ds in chosen.items()}


def _sizes(d: Directive) -> Iterator[tuple[str, int]]:
    match d:
        case Split(axis=axis):
            yield from ((axis, n) for n in d.parts if n is not None)
        case Tile(sizes=sizes) | Pack(sizes=sizes):
            yield from sizes.items()
        case Unroll(axis=axis, factor=int(factor)):
            yield axis, factor


def _around(size: int) -> Iterator[int]:
    for other in (size * 2, size // 2, size * 4, size // 4):
        if 1 <= other <= LARGEST:
            yield other


def _resized(d: Directive, axis: str, size: int, other: int) -> Directive:
    match d:
        case Split(axis=a, factor=f) if a == axis and f == size:
            return d.replace(factor=other)
        case Split(axis=a, factors=fs) if a == axis and size in fs:
            return d.replace(factors=tuple(other if f == size else f for f in fs))
        case Tile(sizes=sizes) | Pack(sizes=sizes) if sizes.get(axis) == size:
            return d.replace(sizes={a: other if a == axis else n for a, n in sizes.items()})
        case Unroll(axis=a, factor=f) if a == axis and f == size:
            return d.replace(factor=other)
    return d


# ---------------------------------------------------------------- one directive of one stage
def _single(chosen: Chosen, around: Surroundings) -> Iterator[Chosen]:
    for path, ds in chosen.items():
        for n, d in enumerate(ds):
            for new in _instead(path, d, ds, chosen, around):
                yield {**chosen, path: (*ds[:n], *new, *ds[n + 1 :])}
        for new in _more(path, ds, chosen, around):
            yield {**chosen, path: new}
        yield from _in_strips(path, ds, chosen, around)


def _instead(path: str, d: Directive, ds: Sequence[Directive], chosen: Chosen, around: Surroundings) -> Iterator[tuple[Directive, ...]]:
    """What may stand in the place of one directive."""
    match d:
        case Split() | Tile():
            for axis, size in _sizes(d):
                for other in _around(size):
                    yield (_resized(d, axis, size, other),)
        case Vectorize(width=width) if width is not None:
            s = around.stages.get(path)
            lanes = around.lanes(s.dtype) if s else 16
            yield from ((d.replace(width=w),) for w in (lanes, 2 * lanes, lanes // 2, 4 * lanes) if w > 1 and w != width)
        case Unroll():
            yield ()
        case Parallel():
            names = [loop.name for loop in around.loops(path, ds) if not loop.reduction]
            if d.axis in names:
                at = names.index(d.axis)
                yield from ((d.replace(axis=names[k]),) for k in (at - 1, at + 1) if 0 <= k < len(names))
            yield ()
        case Reorder(loops=loops):
            for k in range(len(loops) - 1):
                yield (Reorder(*loops[:k], loops[k + 1], loops[k], *loops[k + 2 :]),)
        case ComputeAt():
            owner = around.owner(path, d)
            if owner is not None:
                places = [loop.name for loop in around.loops(owner, chosen.get(owner, ()))]
                yield from ((d.replace(axis=name),) for name in places if name != d.axis)
            yield ()
            if _can_inline(path, around):
                yield (ComputeInline(),)
        case ComputeWith():
            yield ()
        case ComputeInline():
            yield from _placed(path, chosen, around)
            yield ()
        case ComputeRoot():
            yield from _placed(path, chosen, around)


def _more(path: str, ds: tuple[Directive, ...], chosen: Chosen, around: Surroundings) -> Iterator[tuple[Directive, ...]]:
    """What may be said in addition."""
    if any(isinstance(d, ComputeInline) for d in ds):
        return
    placed = any(isinstance(d, ComputeAt) for d in ds)
    loops = around.loops(path, ds)
    marked = {d.axis for d in ds if isinstance(d, Unroll | Parallel | Vectorize)}
    for loop in loops:
        if (
            isinstance(loop.extent, int)
            and 1 < loop.extent <= LARGEST_UNROLLED
            and not any(m == loop.name or loop.name.startswith(f"{m}_") for m in marked)
        ):
            yield (*ds, Unroll(axis=loop.name))
    if not placed and loops and not loops[0].reduction and not any(isinstance(d, Parallel) for d in ds):
        yield (*ds, Parallel(axis=loops[0].name))
    if not placed:
        if _can_inline(path, around) and not any(d.rewrites for d in ds):
            yield (ComputeInline(),)
        rest = tuple(d for d in ds if not isinstance(d, Parallel | ComputeRoot))
        for new in _placed(path, chosen, around):
            yield (*new, *rest)


def _in_strips(path: str, ds: tuple[Directive, ...], chosen: Chosen, around: Surroundings) -> Iterator[Chosen]:
    """The outermost loop, which is parallel, cut into strips; what is computed in an iteration of it stays there."""
    loops = around.loops(path, ds)
    if len(loops) < 2 or any(isinstance(d, Split | Tile | Fuse) for d in ds):
        return
    outer = loops[0].name
    if any(isinstance(d, Parallel) and d.axis == outer for d in ds):
        strips = tuple(Parallel(axis=f"{outer}_outer") if isinstance(d, Parallel) else d for d in ds)
        moved = {
            other: tuple(
                d.replace(axis=f"{outer}_inner") if isinstance(d, ComputeAt) and d.axis == outer and around.owner(other, d) == path else d
                for d in some
            )
            for other, some in chosen.items()
        }
        for size in (8, 32):
            yield {**moved, path: (Split(axis=outer, factor=size), *strips)}


def _placed(path: str, chosen: Chosen, around: Surroundings) -> Iterator[tuple[Directive, ...]]:
    """Computed at the two outermost loops of its only reader."""
    readers = around.readers(path)
    if len(readers) == 1 and readers[0] in chosen:
        for loop in around.loops(readers[0], chosen[readers[0]])[:2]:
            if not loop.reduction:
                yield (ComputeAt(stage=f"/{readers[0]}", axis=loop.name),)


def _can_inline(path: str, around: Surroundings) -> bool:
    s = around.stages.get(path)
    return s is not None and s.reduction is None and bool(around.readers(path)) and s.id not in around.graph.outputs


def plain_edits(chosen: Mapping[str, Chosen]) -> dict[str, Any]:
    """Edits as JSON data."""
    from fluorite.schedule import plain

    return {place: {path: plain(ds) for path, ds in some.items()} for place, some in chosen.items()}


__all__ = ["Chosen", "Surroundings", "neighbours", "plain_edits"]
