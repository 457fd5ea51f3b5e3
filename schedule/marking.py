"""What marks do to a nest: each makes one loop parallel, a vector, unrolled, or part of a GPU's blocks, threads and warps."""

from __future__ import annotations

from dataclasses import replace

from .directives import Directive
from .loop_names import Refused, take
from .nest import BLOCK, PARALLEL, SERIAL, THREAD, UNROLLED, VECTOR, Nest
from .notation.places import Place


def mark(nest: Nest, name: str, kind: str, d: Directive, lane: str = "", place: Place | None = None) -> Nest:
    place = place or d.at("axis")
    loop = take(nest, name, d, place)
    if loop.kind != SERIAL:
        raise Refused(place.problem("P209", f"{d.label()}: {name} is {loop.kind} already", "a loop is one thing", ("split it first",)))
    if loop.reduction and kind in (PARALLEL, VECTOR, BLOCK):
        raise Refused(
            place.problem(
                "P210",
                f"{d.label()}: {name} is a reduction loop",
                "its iterations add into one place",
                (f"rfactor: {{axis: {name}, factor: ...}} first, then {d.label()} the partial results",),
            )
        )
    if kind in (VECTOR, UNROLLED, THREAD) and not isinstance(loop.extent, int):
        instead = (
            f"split: {{axis: {name}, factor: 256}}"
            if kind == THREAD
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


__all__ = ["mark"]
