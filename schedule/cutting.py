"""What split, tile, reorder and fuse do to a nest: other loops for the same iterations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fluorite.algo.expr import Expr, as_expr, axis, binary
from fluorite.algo.extent import Extent, at_most, ceildiv, exact_quotient

from .directives import Directive
from .loop_names import Refused, names_free, take, took
from .nest import Guard, Loop, Nest
from .notation.places import Place

_FAR, _FARTHEST = 1 << 20, 1 << 31
"""Iterations that a split may make although its loop has fewer: where the extent is a number, and where it is not."""


def split(nest: Nest, name: str, parts: Sequence[int | None], into: Sequence[str], tail: str, d: Directive, place: Place) -> Nest:
    loop = take(nest, name, d, place)
    names_free(nest, [name], into, d, place)
    if tail == "shift" and loop.reduction:
        asked, why = f"{d.label()}: tail: shift on {name}, a reduction loop", "what it computes again would be added again"
        raise Refused(d.at("tail").problem("P226", asked, why, ("guard", "auto")))
    known = 1
    for p in parts:
        known *= p or 1
    extents: list[Extent] = [p if p is not None else ceildiv(loop.extent, known) for p in parts]
    if None not in parts and not at_most(loop.extent, known):
        raise Refused(
            place.problem(
                "P207",
                f"{d.label()}: {' x '.join(map(str, parts))} = {known} iterations",
                f"{name} has {loop.extent}",
                ("~ for one of the factors",),
            )
        )
    most = max(_FAR, 1024 * loop.extent) if isinstance(loop.extent, int) else _FARTHEST
    if known > most:
        raise Refused(
            place.problem(
                "P207",
                f"{d.label()}: {known:,} iterations",
                f"{name} has {loop.extent}: nearly all of them would lie past its end",
                ("a smaller factor",),
            )
        )
    new = tuple(replace(loop, name=n, var=axis(n), extent=e) for n, e in zip(into, extents, strict=True))
    value: Expr = as_expr(0)
    for part in new:
        value = binary("add", binary("mul", value, as_expr(part.extent)), part.var)
    divides = exact_quotient(loop.extent, known) is not None if None in parts else loop.extent == known
    if tail == "pad" and not divides:
        why = "what lies beyond its end would be added" if loop.reduction else "only an axis of a stage can be made longer"
        asked = f"{d.label()}: tail: pad, but {loop.extent} iterations of {name} are no multiple of {known}"
        raise Refused(d.at("tail").problem("P226", asked, why, ("guard", "shift", "auto") if not loop.reduction else ("guard", "auto")))
    guards = nest.guards if divides else (*nest.guards, _guard(loop, new, tail))
    at = nest.position(name)
    return replace(
        nest,
        loops=(*nest.loops[:at], *new, *nest.loops[at + 1 :]),
        define={**nest.define, loop.var: value},
        guards=guards,
        gone={**nest.gone, name: took(d, *into)},
    )


def _guard(loop: Loop, parts: Sequence[Loop], tail: str) -> Guard:
    if len(parts) == 2 and isinstance(parts[1].extent, int):
        return Guard(loop.var, loop.extent, tail, parts[0].var, parts[1].var, parts[1].extent)
    return Guard(loop.var, loop.extent, tail)


def reorder(nest: Nest, names: Sequence[str], d: Directive, place: Place | None) -> Nest:
    for n, name in enumerate(names):
        take(nest, name, d, place or d.at("loops", n))
    chosen = iter(names)
    moved = set(names)
    order = [next(chosen) if loop.name in moved else loop.name for loop in nest.loops]
    by_name = {loop.name: loop for loop in nest.loops}
    return replace(nest, loops=tuple(by_name[n] for n in order))


def fuse(nest: Nest, names: Sequence[str], into: str, d: Directive) -> Nest:
    loops = [take(nest, n, d, d.at("axes", k)) for k, n in enumerate(names)]
    names_free(nest, names, [into], d, d.at())
    at = nest.position(names[0])
    if list(nest.names[at : at + len(names)]) != list(names):
        raise Refused(
            d.at("axes").problem(
                "P208",
                f"fuse: {', '.join(names)} are not directly inside one another in this order",
                f"loops here, outermost first: {', '.join(nest.names)}",
                ("reorder them first",),
            )
        )
    if len({loop.reduction for loop in loops}) > 1:
        raise Refused(
            d.at("axes").problem(
                "P208", f"fuse: {', '.join(names)} mix a reduction loop with others", "a fused loop is either a reduction or not"
            )
        )
    total: Extent = 1
    for loop in loops:
        total = total * loop.extent
    fused = Loop(into, axis(into), total, loops[0].reduction)
    define, rest = dict(nest.define), fused.var
    value: Expr = rest
    for loop in reversed(loops[1:]):
        define[loop.var] = binary("mod", value, as_expr(loop.extent))
        value = binary("floordiv", value, as_expr(loop.extent))
    define[loops[0].var] = value
    return replace(
        nest,
        loops=(*nest.loops[:at], fused, *nest.loops[at + len(loops) :]),
        define=define,
        gone={**nest.gone, **dict.fromkeys(names, took(d, into))},
    )


__all__ = ["fuse", "reorder", "split"]
