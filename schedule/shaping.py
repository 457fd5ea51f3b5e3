"""A nest after its directives: splits, tiles, reorders and fuses in the order written, then marks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from fluorite.algo.errors import Problem
from fluorite.algo.expr import axis

from .cutting import fuse, reorder, split
from .directives import (
    Directive,
    Fuse,
    GpuBlocks,
    GpuLanes,
    GpuThreads,
    GpuVthreads,
    GpuWarps,
    Parallel,
    Reorder,
    Split,
    Tensorize,
    Tile,
    Unroll,
    Vectorize,
)
from .intrinsics import WARP
from .loop_names import Refused, take
from .marking import lanes, mark
from .nest import BLOCK, PARALLEL, TENSOR, THREAD, UNROLLED, VECTOR, VTHREAD, Loop, Nest

MARKS = (Parallel, Vectorize, Unroll, GpuBlocks, GpuThreads, GpuVthreads, GpuLanes, GpuWarps, Tensorize)


def shape(
    nest: Nest, directives: Sequence[Directive], native: Callable[[str], int], dtype: str, source: str = ""
) -> tuple[Nest, list[Problem]]:
    """The nest after its loop directives, and every problem found on the way.

    `native(dtype)` is the number of lanes of the target's widest vector. Splits, tiles, reorders and fuses apply in the order written;
    bindings, parallel, unroll and vectorize after them.
    """
    problems: list[Problem] = []
    order: list[Directive] = []
    for d in directives:  # a width or a factor is a split in the place where it stands
        match d:
            case Vectorize(axis=a, width=w, tail=tail) if w is not None:
                lanes = native(dtype) if w == "native" else int(w)
                order.append(Split(axis=a, factor=lanes, tail=tail, marks=d.marks))
                order.append(Vectorize(axis=f"{a}_inner", marks=d.marks))
            case Unroll(axis=a, factor=f) if f is not None:
                order.append(Split(axis=a, factor=f, marks=d.marks))
                order.append(Unroll(axis=f"{a}_inner", marks=d.marks))
            case _:
                order.append(d)
    marks = [d for d in order if isinstance(d, MARKS)]
    marks.sort(key=lambda d: not isinstance(d, GpuLanes))  # which are threads along x, whatever else are threads
    for d in [d for d in order if isinstance(d, Split | Tile | Reorder | Fuse)] + marks:
        try:
            nest = _apply(nest, d)
            if isinstance(d, Vectorize):
                _not_too_wide(nest, d, native(dtype), dtype)
        except Refused as refused:
            if refused.missing not in nest.lost:
                problems.append(replace(refused.problem, path=nest.path, source=source))
            nest = replace(nest, lost=nest.lost | {*_makes(d)} - {*nest.names})
    return nest, problems


def widest(native: int) -> int:
    """The most lanes of one vectorised loop, where the target's vectors have `native`: a loop of more is one of vectors."""
    return max(64, 8 * native)


def _not_too_wide(nest: Nest, d: Vectorize, native: int, dtype: str) -> None:
    wide = next((x for x in nest.loops if x.kind == VECTOR and isinstance(x.extent, int) and x.extent > widest(native)), None)
    if wide is None:
        return
    axis_ = d.axis.removesuffix("_inner") if d.axis != wide.name or wide.name.removesuffix("_inner") in nest.gone else d.axis
    widths = [native << n for n in range(1, 12) if 16 <= native << n <= widest(native)]
    raise Refused(
        d.at("axis").problem(
            "P211",
            f"{d.label()}: {wide.name} has {wide.extent} lanes",
            f"a vector of {dtype} has {native} here, and more than {widest(native)} would make very much code",
            (f"{d.label()}: {{axis: {axis_}, width: native}}, or a width of {', '.join(map(str, widths[-3:]))}",),
        )
    )


def _makes(d: Directive) -> Sequence[str]:
    """The loops that a directive makes."""
    match d:
        case Split():
            return d.names()
        case Tile(sizes=sizes):
            return _parts(sizes)
        case Fuse():
            return (d.name(),)
    return ()


def _parts(sizes: Iterable[str]) -> list[str]:
    """The loops of a tile, outermost first."""
    return [f"{a}_{part}" for part in ("outer", "inner") for a in sizes]


def _apply(nest: Nest, d: Directive) -> Nest:
    match d:
        case Split():
            return split(nest, d.axis, d.parts, d.names(), d.tail, d, d.at("axis"))
        case Tile(sizes=sizes, tail=tail):
            for a, size in sizes.items():
                nest = split(nest, a, (None, size), (f"{a}_outer", f"{a}_inner"), tail, d, d.at("sizes", a))
            reduced = {p for p in _parts(sizes) if p.endswith("_inner") and (loop := nest.loop(p)) and loop.reduction}
            return reorder(nest, sorted(_parts(sizes), key=reduced.__contains__), d, d.at())
        case Reorder(loops=loops):
            return reorder(nest, loops, d, None)
        case Fuse(axes=axes):
            return fuse(nest, axes, d.name(), d)
        case Parallel(axis=a):
            return mark(nest, a, PARALLEL, d)
        case Vectorize(axis=a):
            return mark(nest, a, VECTOR, d)
        case Unroll(axis=a):
            return mark(nest, a, UNROLLED, d)
        case Tensorize(axis=a):
            take(nest, a, d, d.at("axis"))
            for name in nest.names[nest.position(a) :]:
                nest = mark(nest, name, TENSOR, d)
            return nest
        case GpuWarps(axis=a):
            nest = mark(nest, a, THREAD, d, "y")
            at = nest.position(a) + 1
            threads = Loop("warp lane", axis("warp lane"), WARP, False, THREAD, "x")
            return replace(nest, loops=(*nest.loops[:at], threads, *nest.loops[at:]))
        case GpuLanes():
            return lanes(nest, d)
        case GpuVthreads(loops=loops):
            for n, name in enumerate(loops):
                nest = mark(nest, name, VTHREAD, d, "", d.at("loops", n))
            return nest
        case GpuBlocks(loops=loops) | GpuThreads(loops=loops):
            kind = BLOCK if isinstance(d, GpuBlocks) else THREAD
            free = "yz" if kind == THREAD and any(loop.shuffled for loop in nest.loops) else "xyz"
            if len(loops) > len(free):
                why = "threadIdx.x is the lanes of a warp, which leaves two dimensions"
                asked = f"gpu_threads: {len(loops)} loops beside gpu_lanes"
                raise Refused(d.at("loops").problem("P284", asked, why, ("fuse some of them",)))
            for lane, name in zip(free, reversed(loops), strict=False):
                nest = mark(nest, name, kind, d, lane, d.at("loops", list(loops).index(name)))
            return nest
    raise TypeError(type(d))


__all__ = ["shape", "widest"]
