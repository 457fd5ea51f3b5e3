"""What marks do to a nest: each makes one loop parallel, a vector, unrolled, or part of a GPU's blocks, threads and warps."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from .directives import Directive, GpuLanes
from .intrinsics import WARP
from .loop_names import Refused, take
from .nest import BLOCK, PARALLEL, SERIAL, THREAD, UNROLLED, VECTOR, VTHREAD, Nest
from .notation.places import Place

_LANES = tuple(1 << n for n in range(WARP.bit_length()))
VIRTUAL = 64
"""The most virtual threads of a thread."""


def lanes(nest: Nest, d: GpuLanes) -> Nest:
    """The loop as threads that are the lanes of a warp. Raises Refused P284."""
    loop, place = take(nest, d.axis, d, d.at("axis")), d.at("axis")
    if isinstance(loop.extent, int) and loop.extent not in _LANES:
        why = "lanes hand values on in pairs, over distances that are powers of two"
        asked = f"gpu_lanes: {d.axis} has {loop.extent} iterations"
        raise Refused(place.problem("P284", asked, why, (f"split: {{axis: {d.axis}, factor: {WARP}}}",)))
    made = mark(nest, d.axis, THREAD, d, "x")
    return replace(made, loops=tuple(replace(x, shuffled=True) if x.name == d.axis else x for x in made.loops))


def mark(nest: Nest, name: str, kind: str, d: Directive, lane: str = "", place: Place | None = None) -> Nest:
    place = place or d.at("axis")
    loop = take(nest, name, d, place)
    if loop.kind != SERIAL:
        raise Refused(place.problem("P209", f"{d.label()}: {name} is {loop.kind} already", "a loop is one thing", ("split it first",)))
    if loop.reduction and kind in (PARALLEL, VECTOR, BLOCK, VTHREAD):
        raise Refused(
            place.problem(
                "P210",
                f"{d.label()}: {name} is a reduction loop",
                "its iterations add into one place",
                (f"rfactor: {{axis: {name}, factor: ...}} first, then {d.label()} the partial results",),
            )
        )
    if kind in (VECTOR, UNROLLED, THREAD, VTHREAD) and not isinstance(loop.extent, int):
        instead = (
            f"split: {{axis: {name}, factor: 256}}"
            if kind == THREAD
            else f"split: {{axis: {name}, factors: [~, 4, 32], into: [...]}}"
            if kind == VTHREAD
            else f"{d.label()}: {{axis: {name}, {'width: native' if kind == VECTOR else 'factor: 4'}}}"
        )
        raise Refused(
            place.problem(
                "P211",
                f"{d.label()}: the extent of {name} is {loop.extent}, known only when the kernel runs",
                "it must be constant",
                (instead,),
            )
        )
    virtual = [x.extent for x in nest.loops if isinstance(x.extent, int) and (x is loop or x.kind == VTHREAD)]
    if kind == VTHREAD and (many := prod(virtual)) > VIRTUAL:
        why = f"a thread runs {VIRTUAL} at most: it has registers for each"
        raise Refused(place.problem("P253", f"{d.label()}: {many} virtual threads for each thread", why, ("smaller factors",)))
    limit = 512
    if kind == UNROLLED and isinstance(loop.extent, int) and loop.extent > limit:
        raise Refused(
            place.problem(
                "P211",
                f"{d.label()}: {name} has {loop.extent} iterations",
                f"more than {limit} would make very much code",
                (f"split {name} first",),
            )
        )
    if kind == PARALLEL and (other := next((x for x in nest.loops if x.kind == PARALLEL), None)) is not None:
        raise Refused(
            place.problem(
                "P212",
                f"parallel: {other.name} of this nest is parallel already",
                "parallel loops do not nest",
                (f"fuse: [{other.name}, {name}] first",),
            )
        )
    if kind == VECTOR and (other := next((x for x in nest.loops if x.kind == VECTOR), None)) is not None:
        raise Refused(
            place.problem(
                "P209",
                f"vectorize: {other.name} of this nest is vectorised already",
                "a vector has one direction",
                (f"fuse: [{other.name}, {name}] first", f"unroll: {name}"),
            )
        )
    at = nest.position(name)
    return replace(nest, loops=(*nest.loops[:at], replace(loop, kind=kind, lane=lane), *nest.loops[at + 1 :]))


__all__ = ["lanes", "mark"]
