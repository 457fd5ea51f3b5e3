"""Loop nests: the loops of one stage, and what split, tile, reorder, fuse, parallel, vectorize, unroll and the gpu bindings do to them.

A nest starts with one loop per axis of its stage, reduction axes innermost. Names belong to a nest; a used-up name is remembered with the
directive that took it, so that a message can say what became of it. Nothing here knows a target's code generator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fluorite.algo.errors import Problem
from fluorite.algo.expr import Axis, Expr, as_expr, axis, binary
from fluorite.algo.extent import Extent, at_most, ceildiv, exact_quotient
from fluorite.algo.rewriting import axes_of, rewrite

from .directives import (
    Directive,
    Fuse,
    GpuBlocks,
    GpuThreads,
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
from .notation.places import Place
from .notation.yaml_reader import nearest

_FAR, _FARTHEST = 1 << 20, 1 << 31
"""Iterations that a split may make although its loop has fewer: where the extent is a number, and where it is not."""
SERIAL, PARALLEL, VECTOR, UNROLLED, BLOCK, THREAD = "serial", "parallel", "vectorized", "unrolled", "block", "thread"
TENSOR = "tensorized"
"""Part of what one instruction computes."""


@dataclass(frozen=True, eq=False)
class Loop:
    """One loop from 0 to `extent`. `lane` is "x", "y" or "z" for a loop bound to blocks or threads."""

    name: str
    var: Axis
    extent: Extent
    reduction: bool
    kind: str = SERIAL
    lane: str = ""

    @property
    def constant(self) -> int | None:
        return self.extent if isinstance(self.extent, int) else None


@dataclass(frozen=True)
class Guard:
    """`value < limit` must be tested, because a split did not divide; `tail` is how its directive wants that done.

    Of a split in two, `outer` and `inner` are the new variables: value = outer * factor + inner.
    """

    value: Axis
    limit: Extent | Expr
    tail: str = "auto"
    outer: Axis | None = None
    inner: Axis | None = None
    factor: int = 0


@dataclass(frozen=True)
class Nest:
    """loops, outermost first; `define` gives every loop variable that a directive replaced in terms of newer ones."""

    path: str
    loops: tuple[Loop, ...]
    define: Mapping[Axis, Expr] = field(default_factory=dict)
    guards: tuple[Guard, ...] = ()
    gone: Mapping[str, str] = field(default_factory=dict)  # used-up loop name -> what took it

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(loop.name for loop in self.loops)

    def loop(self, name: str) -> Loop | None:
        return next((loop for loop in self.loops if loop.name == name), None)

    def position(self, name: str) -> int:
        return self.names.index(name)

    def value(self, var: Axis) -> Expr:
        """A stage axis (or a replaced loop variable) in terms of the loops that there are."""
        definition = self.define.get(var)
        return var if definition is None else _expand(definition, self.define)

    def text(self) -> str:
        lines = [f"{self.path}:"]
        for depth, loop in enumerate(self.loops):
            kind = "" if loop.kind == SERIAL else f"{loop.kind}{'.' + loop.lane if loop.lane else ''} "
            lines.append("  " * (depth + 1) + f"{kind}for {loop.name} in 0..{loop.extent}" + ("  (reduction)" if loop.reduction else ""))
        return "\n".join(lines)


def _expand(e: Expr, define: Mapping[Axis, Expr]) -> Expr:
    def rule(n: Expr) -> Expr | None:
        if isinstance(n, Axis) and n in define:
            return _expand(define[n], define)
        return None

    return rewrite(e, rule)


def start(
    path: str, axes: Sequence[Axis], extents: Sequence[Extent], reduce_axes: Sequence[Axis] = (), reduce_extents: Sequence[Extent] = ()
) -> Nest:
    """The unscheduled nest of a stage over a box."""
    loops = [Loop(a.name, a, n, False) for a, n in zip(axes, extents, strict=True)]
    loops += [Loop(a.name, a, n, True) for a, n in zip(reduce_axes, reduce_extents, strict=True)]
    return Nest(path, tuple(loops))


class _Refused(Exception):
    def __init__(self, problem: Problem) -> None:
        self.problem = problem


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
    marks = [d for d in order if isinstance(d, Parallel | Vectorize | Unroll | GpuBlocks | GpuThreads | GpuWarps | Tensorize)]
    for d in [d for d in order if isinstance(d, Split | Tile | Reorder | Fuse)] + marks:
        try:
            nest = _apply(nest, d)
            if isinstance(d, Vectorize):
                _not_too_wide(nest, d, native(dtype), dtype)
        except _Refused as refused:
            problems.append(replace(refused.problem, path=nest.path, source=source))
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
    raise _Refused(
        d.at("axis").problem(
            "P211",
            f"{d.label()}: {wide.name} has {wide.extent} lanes",
            f"a vector of {dtype} has {native} here, and more than {widest(native)} would make very much code",
            (f"{d.label()}: {{axis: {axis_}, width: native}}, or a width of {', '.join(map(str, widths[-3:]))}",),
        )
    )


def _apply(nest: Nest, d: Directive) -> Nest:
    match d:
        case Split():
            return _split(nest, d.axis, d.parts, d.names(), d.tail, d, d.at("axis"))
        case Tile(sizes=sizes, tail=tail):
            for a, size in sizes.items():
                nest = _split(nest, a, (None, size), (f"{a}_outer", f"{a}_inner"), tail, d, d.at("sizes", a))
            parts = [f"{a}_{part}" for part in ("outer", "inner") for a in sizes]
            return _reorder(
                nest, sorted(parts, key=lambda p: bool((loop := nest.loop(p)) and loop.reduction and p.endswith("_inner"))), d, d.at()
            )
        case Reorder(loops=loops):
            return _reorder(nest, loops, d, None)
        case Fuse(axes=axes):
            return _fuse(nest, axes, d.name(), d)
        case Parallel(axis=a):
            return _mark(nest, a, PARALLEL, d)
        case Vectorize(axis=a):
            return _mark(nest, a, VECTOR, d)
        case Unroll(axis=a):
            return _mark(nest, a, UNROLLED, d)
        case Tensorize(axis=a):
            _take(nest, a, d, d.at("axis"))
            for name in nest.names[nest.position(a) :]:
                nest = _mark(nest, name, TENSOR, d)
            return nest
        case GpuWarps(axis=a):
            nest = _mark(nest, a, THREAD, d, "y")
            at = nest.position(a) + 1
            threads = Loop("warp lane", axis("warp lane"), WARP, False, THREAD, "x")
            return replace(nest, loops=(*nest.loops[:at], threads, *nest.loops[at:]))
        case GpuBlocks(loops=loops) | GpuThreads(loops=loops):
            kind = BLOCK if isinstance(d, GpuBlocks) else THREAD
            for lane, name in zip("xyz", reversed(loops), strict=False):
                nest = _mark(nest, name, kind, d, lane, d.at("loops", list(loops).index(name)))
            return nest
    raise TypeError(type(d))


def missing_loop(nest: Nest, name: str, place: Place, verb: str = "") -> Problem:
    """P203: the nest has no such loop (any more)."""
    what = f'{nest.path.rsplit("/", 1)[-1]} has no loop "{name}"'
    why = ""
    if name in nest.gone:
        what, why = what + " any more", nest.gone[name]
        if verb in ("parallel", "vectorize", "unroll"):
            why += f" ({verb} applies after every split, tile, reorder and fuse)"
    near = [n for n in nest.names if n.startswith(name + "_")] or list(nearest(name, nest.names))
    return place.problem(
        "P203",
        f"{verb + ': ' if verb else ''}{what}",
        f"{why + '; ' if why else ''}loops here, outermost first: {', '.join(nest.names) or 'none'}",
        tuple(near[:3]),
    )


def _take(nest: Nest, name: str, d: Directive, place: Place) -> Loop:
    loop = nest.loop(name)
    if loop is None:
        raise _Refused(missing_loop(nest, name, place, d.label()))
    return loop


def _took(d: Directive, *made: str) -> str:
    place = d.at()
    line = f"line {place.line} " if place.line else ""
    return f"{line}({d.label()}) made it {', '.join(made)}"


def _names_free(nest: Nest, old: Sequence[str], new: Sequence[str], d: Directive, place: Place) -> None:
    clash = [n for n in new if n in nest.names and n not in old]
    if clash:
        raise _Refused(
            place.problem(
                "P206",
                f'{d.label()}: {nest.path.rsplit("/", 1)[-1]} already has a loop "{clash[0]}"',
                "loop names of one nest differ",
                ("into: other names",),
            )
        )


def _split(nest: Nest, name: str, parts: Sequence[int | None], into: Sequence[str], tail: str, d: Directive, place: Place) -> Nest:
    loop = _take(nest, name, d, place)
    _names_free(nest, [name], into, d, place)
    if tail == "shift" and loop.reduction:
        asked, why = f"{d.label()}: tail: shift on {name}, a reduction loop", "what it computes again would be added again"
        raise _Refused(d.at("tail").problem("P226", asked, why, ("guard", "auto")))
    known = 1
    for p in parts:
        known *= p or 1
    extents: list[Extent] = [p if p is not None else ceildiv(loop.extent, known) for p in parts]
    if None not in parts and not at_most(loop.extent, known):
        raise _Refused(
            place.problem(
                "P207",
                f"{d.label()}: {' x '.join(map(str, parts))} = {known} iterations",
                f"{name} has {loop.extent}",
                ("~ for one of the factors",),
            )
        )
    most = max(_FAR, 1024 * loop.extent) if isinstance(loop.extent, int) else _FARTHEST
    if known > most:
        raise _Refused(
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
        raise _Refused(d.at("tail").problem("P226", asked, why, ("guard", "shift", "auto") if not loop.reduction else ("guard", "auto")))
    guards = nest.guards if divides else (*nest.guards, _guard(loop, new, tail))
    at = nest.position(name)
    return replace(
        nest,
        loops=(*nest.loops[:at], *new, *nest.loops[at + 1 :]),
        define={**nest.define, loop.var: value},
        guards=guards,
        gone={**nest.gone, name: _took(d, *into)},
    )


def _guard(loop: Loop, parts: Sequence[Loop], tail: str) -> Guard:
    if len(parts) == 2 and isinstance(parts[1].extent, int):
        return Guard(loop.var, loop.extent, tail, parts[0].var, parts[1].var, parts[1].extent)
    return Guard(loop.var, loop.extent, tail)


def shifted(nest: Nest, guard: Guard) -> Nest | None:
    """The nest with the last part of a split moved back so that it ends with the loop: computed again where it overlaps, never beyond.

    None where the loop may be shorter than a part, or where a reduction runs outside it, so that what is computed again would be
    added again.
    """
    if guard.outer is None or guard.inner is None or not isinstance(guard.limit, int) or guard.limit < guard.factor:
        return None
    first = next((n for n, loop in enumerate(nest.loops) if loop.reduction), len(nest.loops))
    outside = axes_of(nest.value(guard.outer))
    position = {loop.var: n for n, loop in enumerate(nest.loops)}
    if any(nest.loops[position[a]].reduction or position[a] > first for a in outside if a in position):
        return None
    start_ = binary("min", binary("mul", guard.outer, as_expr(guard.factor)), as_expr(guard.limit - guard.factor))
    return replace(
        nest,
        define={**nest.define, guard.value: binary("add", start_, guard.inner)},
        guards=tuple(g for g in nest.guards if g is not guard),
    )


def _reorder(nest: Nest, names: Sequence[str], d: Directive, place: Place | None) -> Nest:
    for n, name in enumerate(names):
        _take(nest, name, d, place or d.at("loops", n))
    chosen = iter(names)
    moved = set(names)
    order = [next(chosen) if loop.name in moved else loop.name for loop in nest.loops]
    by_name = {loop.name: loop for loop in nest.loops}
    return replace(nest, loops=tuple(by_name[n] for n in order))


def _fuse(nest: Nest, names: Sequence[str], into: str, d: Directive) -> Nest:
    loops = [_take(nest, n, d, d.at("axes", k)) for k, n in enumerate(names)]
    _names_free(nest, names, [into], d, d.at())
    at = nest.position(names[0])
    if list(nest.names[at : at + len(names)]) != list(names):
        raise _Refused(
            d.at("axes").problem(
                "P208",
                f"fuse: {', '.join(names)} are not directly inside one another in this order",
                f"loops here, outermost first: {', '.join(nest.names)}",
                ("reorder them first",),
            )
        )
    if len({loop.reduction for loop in loops}) > 1:
        raise _Refused(
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
        gone={**nest.gone, **dict.fromkeys(names, _took(d, into))},
    )


def _mark(nest: Nest, name: str, kind: str, d: Directive, lane: str = "", place: Place | None = None) -> Nest:
    place = place or d.at("axis")
    loop = _take(nest, name, d, place)
    if loop.kind != SERIAL:
        raise _Refused(place.problem("P209", f"{d.label()}: {name} is {loop.kind} already", "a loop is one thing", ("split it first",)))
    if loop.reduction and kind in (PARALLEL, VECTOR, BLOCK):
        raise _Refused(
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
        raise _Refused(
            place.problem(
                "P211",
                f"{d.label()}: the extent of {name} is {loop.extent}, known only when the kernel runs",
                "it must be constant",
                (instead,),
            )
        )
    limit = 512
    if kind == UNROLLED and isinstance(loop.extent, int) and loop.extent > limit:
        raise _Refused(
            place.problem(
                "P211",
                f"{d.label()}: {name} has {loop.extent} iterations",
                f"more than {limit} would make very much code",
                (f"split {name} first",),
            )
        )
    if kind == PARALLEL and (other := next((x for x in nest.loops if x.kind == PARALLEL), None)) is not None:
        raise _Refused(
            place.problem(
                "P212",
                f"parallel: {other.name} of this nest is parallel already",
                "parallel loops do not nest",
                (f"fuse: [{other.name}, {name}] first",),
            )
        )
    if kind == VECTOR and (other := next((x for x in nest.loops if x.kind == VECTOR), None)) is not None:
        raise _Refused(
            place.problem(
                "P209",
                f"vectorize: {other.name} of this nest is vectorised already",
                "a vector has one direction",
                (f"fuse: [{other.name}, {name}] first", f"unroll: {name}"),
            )
        )
    at = nest.position(name)
    return replace(nest, loops=(*nest.loops[:at], replace(loop, kind=kind, lane=lane), *nest.loops[at + 1 :]))
