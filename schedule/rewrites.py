"""The directives that change the graph: pack, cache, rfactor, find_best, stage_in, layout, pad, compute_inline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fluorite.algo.clock import place as place_of
from fluorite.algo.combiners import Combiner
from fluorite.algo.dtypes import kind
from fluorite.algo.errors import PlanError
from fluorite.algo.expr import Axis, Const, Expr, Op, Read, as_expr, axis, binary, cast, where
from fluorite.algo.extent import Extent, ceildiv, exact_quotient, maximum
from fluorite.algo.graph import Graph
from fluorite.algo.identities import identity
from fluorite.algo.linear import bounds, is_index, linear, simplify
from fluorite.algo.rewriting import axes_of, rewrite, walk
from fluorite.algo.rewriting import substitute as substitute_axes
from fluorite.algo.stages import Leaf, Reduction, Stage, Turn, redirect
from fluorite.algo.tensor import conjuncts
from fluorite.algo.wellformed import excess

from .directives import Cache, ComputeInline, Directive, FindBest, Layout, Pack, Rfactor, StageIn
from .externs import require_rewritable
from .notation.places import Place
from .notation.yaml_reader import nearest
from .storage_rewrites import layout, pad, pads_of


def refused(place: Place, code: str, s: Stage, asked: str, why: str = "", *try_: str) -> PlanError:
    return PlanError([place.problem(code, asked, why, try_, path=s.path, source=s.source)])


def rewrite_stage(g: Graph, s: Stage, d: Directive, lanes: Callable[[str], int] = lambda _: 16) -> tuple[Graph, Stage]:
    """The graph with one rewrite of stage s carried out, and what s has become. `lanes(dtype)` are those of the target's widest vector."""
    require_rewritable(g, s, d)
    if s.clock is not None and not isinstance(d, StageIn | Pack):
        raise _of_recurrence(s, d.at(), d.label())
    if s.is_carry:
        why = f"{s.name} is what a loop carries, a copy at each turn"
        raise refused(d.at(), "P271", s, f"{d.label()} of {s.name}", why, "loop directives", "the stages that the loop computes")
    match d:
        case Cache():
            return cache(g, s, d)
        case Rfactor():
            return rfactor(g, s, d)
        case FindBest():
            return find_best(g, s, d)
        case StageIn():
            return stage_in(g, s, d)
        case Pack():
            return pack(g, s, d)
        case Layout():
            return layout(g, s, d)
    return pad(g, s, d, pads_of(d, s, lanes))


def _of_recurrence(s: Stage, place: Place, asked: str) -> PlanError:
    """P271: the stage is walked step by step, and what the rewrite makes of it would not be."""
    clock = s.clock.axis.name if s.clock else ""
    why = f"{s.name} is part of a recurrence along {clock}: the next step reads what it stores"
    return refused(place, "P271", s, f"{asked} of {s.name}", why, "loop directives on its other axes")


def _fresh_id(g: Graph) -> int:
    return max(g.by_id) + 1


def _free_path(g: Graph, s: Stage, path: str, place: Place) -> str:
    if path in g.paths:
        raise refused(place, "P220", s, f"{path} exists already", "a rewrite makes a stage of a new name", "into: another name")
    return path


def cache(g: Graph, s: Stage, d: Cache) -> tuple[Graph, Stage]:
    """f = body  ->  f/into = body; f = f/into, with the axes of the new stage in `order`."""
    names = list(d.order) or [a.name for a in s.axes]
    if sorted(names) != sorted(a.name for a in s.axes):
        raise refused(
            d.at("order"),
            "P221",
            s,
            f"cache: order: [{', '.join(names)}]",
            f"it must name the axes of {s.name} once each: {', '.join(s.axis_names)}",
        )
    by_name = {a.name: a for a in s.axes}
    fresh = {a: axis(a.name) for a in (*s.axes, *s.reduce_axes)}
    inner = [by_name[n] for n in names]
    reduction = replace(s.reduction, axes=tuple(fresh[a] for a in s.reduce_axes)) if s.reduction else None
    acc = replace(
        s,
        id=_fresh_id(g),
        path=_free_path(g, s, f"{s.path}/{d.into}", d.at("into")),
        axes=tuple(fresh[a] for a in inner),
        extents=tuple(s.ranges[a] for a in inner),
        value=substitute_axes(s.value, dict(fresh)),
        reduction=reduction,
        origin="derived",
        when=_when(s, fresh),
    )
    copy = replace(s, value=Read(acc.id, tuple(inner), s.dtype), reduction=None)
    return g.spliced(s, (acc, copy)), copy


def rfactor(g: Graph, s: Stage, d: Rfactor) -> tuple[Graph, Stage]:
    """over k: f(k)  ->  partial[.., l] = over ko: f(ko * factor + l); f = over l: partial[.., l].

    In blocks, f(l * block + ko), and where the order counts, f(l * ceil(n / factor) + ko). A scatter has l first: the parts of two threads
    share no cache lines.
    """
    reduction = s.reduction
    k = next((a for a in s.reduce_axes if a.name == d.axis), None)
    if reduction is None or k is None:
        names = [a.name for a in s.reduce_axes]
        raise refused(
            d.at("axis"),
            "P222",
            s,
            f"rfactor: {d.axis} is no reduction axis of {s.name}",
            f"it has {', '.join(names) or 'none'}",
            *nearest(d.axis, names),
        )
    if reduction.kind.startswith("arg"):
        why = "its partial results would be pairs of value and position"
        raise refused(d.at(), "P222", s, f"rfactor of {reduction.kind}", why, "find_best first: it leaves a minimum over positions")
    if reduction.in_order and k is not reduction.axes[0]:
        why = f"{reduction.label} does not commute, so that its parts are runs of its first axis"
        raise refused(d.at("axis"), "P222", s, f"rfactor of {d.axis}", why, f"axis: {reduction.axes[0].name}")
    if d.factor is None and d.block is None:
        raise refused(d.at(), "P222", s, "rfactor needs a factor", "", "factor: 16", "block: 32")
    n, fresh = s.ranges[k], {a: axis(a.name) for a in s.axes}
    outer, inner = axis(f"{k.name}_outer"), axis(f"{k.name}_inner")
    parts: Extent
    length: Extent
    if d.block is not None:
        part, rest, parts, length = outer, inner, ceildiv(n, d.block), d.block
    else:
        assert d.factor is not None
        part, rest, parts, length = inner, outer, d.factor, ceildiv(n, d.factor)
    last = axis(part.name)
    others = {a: axis(a.name) for a in s.reduce_axes if a is not k}
    if d.block is not None or reduction.in_order:  # each part a run of neighbours
        whole = binary("add", binary("mul", part, as_expr(length)), rest)
    else:
        whole = binary("add", binary("mul", rest, as_expr(parts)), part)
    value = substitute_axes(s.value, {**fresh, **others, k: whole})
    if exact_quotient(n, d.block or d.factor or 1) is None:
        value = reduction.guarded(whole < as_expr(n), value)
    extents = dict(zip(reduction.axes, reduction.extents, strict=True))
    first = s.scatter is not None
    own = tuple(fresh[a] for a in s.axes)
    partial = replace(
        s,
        id=_fresh_id(g),
        path=_free_path(g, s, f"{s.path}/{d.into or 'partial'}", d.at("into")),
        axes=(part, *own) if first else (*own, part),
        extents=(parts, *s.extents) if first else (*s.extents, parts),
        value=value,
        origin="derived",
        when=_when(s, fresh),
        reduction=replace(
            reduction,
            axes=tuple(rest if a is k else others[a] for a in s.reduce_axes),
            extents=tuple(length if a is k else extents[a] for a in s.reduce_axes),
        ),
    )
    at = (last, *s.axes) if first else (*s.axes, last)
    element = Read(partial.id, at, s.dtype) if reduction.combiner is None else _parts_of(s, reduction.combiner, partial.id, at)
    total = replace(s, value=element, reduction=replace(reduction, axes=(last,), extents=(parts,)))
    return g.spliced(s, (partial, total)), total


def _parts_of(s: Stage, c: Combiner, partial: int, at: tuple[Expr, ...]) -> Expr:
    """The element of a partial result, as the value of a stage that combines them."""
    where_ = None if s.parts_axis is None else place_of(s.parts_axis, s.axes)
    return c.value(c.element(partial, at, where_), s.parts_axis)


def find_best(g: Graph, s: Stage, d: FindBest) -> tuple[Graph, Stage]:
    """argmax over k: f(k)  ->  best = max over k: f(k); min over k: k where f(k) == best. Where best is NaN, k where f(k) is NaN."""
    reduction = s.reduction
    if reduction is None or not reduction.kind.startswith("arg"):
        found = reduction.kind if reduction is not None else "no reduction"
        raise refused(d.at(), "P222", s, f"find_best of {s.name}, which is {found}", "it splits an argmax or argmin", "rfactor")
    largest, truth = reduction.kind == "argmax", s.value.dtype == "bool"
    fresh = {a: axis(a.name) for a in (*s.axes, *s.reduce_axes)}
    best = replace(
        s,
        id=_fresh_id(g),
        path=_free_path(g, s, f"{s.path}/{d.into}", d.at("into")),
        dtype=s.value.dtype,
        axes=tuple(fresh[a] for a in s.axes),
        value=substitute_axes(s.value, dict(fresh)),
        reduction=Reduction(
            ("any" if largest else "all") if truth else ("max" if largest else "min"),
            tuple(fresh[a] for a in s.reduce_axes),
            reduction.extents,
        ),
        origin="derived",
        when=_when(s, fresh),
    )
    held = binary("eq", s.value, Read(best.id, s.axes, best.dtype))
    if kind(best.dtype) == "float":
        held = held | binary("ne", s.value, s.value)
    position: Expr = as_expr(0)
    for a, n in zip(reduction.axes, reduction.extents, strict=True):
        position = binary("add", binary("mul", position, as_expr(n)), a)
    first = where(held, cast(position, s.dtype), identity("min", s.dtype))
    at = replace(s, value=first, reduction=replace(reduction, kind="min"))
    return g.spliced(s, (best, at)), at


def operand(g: Graph, s: Stage, name: str, place: Place, verb: str) -> Leaf | Stage:
    """The one operand of s that a plan calls `name`. Raises PlanError P223."""
    found = {
        r.source: g[r.source]
        for r in s.reads
        if g[r.source].name == name or g[r.source].path == name or g[r.source].path.endswith("/" + name)
    }
    if len(found) != 1:
        names = sorted({g[i].name for i in s.sources})
        raise refused(
            place,
            "P223",
            s,
            f"{verb}: {s.name} {'does not read' if not found else 'reads several'} {name}",
            f"it reads {', '.join(names) or 'nothing'}",
            *nearest(name, names),
        )
    chosen = next(iter(found.values()))
    if isinstance(chosen, Stage) and s.clock and chosen.clock and chosen.clock.group == s.clock.group:
        raise _of_recurrence(s, place, f"{verb} {name}")
    return chosen


def operand_name(g: Graph, s: Stage, t: Leaf | Stage) -> str:
    """The shortest end of the path of t that no other operand of s has: what a plan calls it."""
    others, parts = [g[i].path for i in s.sources if i != t.id], t.path.split("/")
    for length in range(1, len(parts)):
        end = "/".join(parts[-length:])
        if not any(path == end or path.endswith(f"/{end}") for path in others):
            return end
    return t.path


def operand_axes(s: Stage, t: Leaf | Stage) -> list[str]:
    """What a plan calls the axes of operand t of stage s: the reader's names where it reads them bare, else t's own, else numbers."""
    reads = [r for r in s.reads if r.source == t.id]
    names: list[str] = []
    for d, own in enumerate(t.axis_names):
        here = reads[0].index[d]
        bare = here.name if isinstance(here, Axis) and all(r.index[d] is here for r in reads) else None
        name = bare or own or str(d)
        names.append(name if name not in names else str(d))
    return names


def stage_in(g: Graph, s: Stage, d: StageIn) -> tuple[Graph, Stage]:
    """s reads `into`, an identity stage of the operand, or of the operand with its margin if s reads it through a constant boundary."""
    t = operand(g, s, d.read, d.at("read"), "stage_in")
    path = _free_path(g, s, "/".join([*s.path.split("/")[:-1], d.into]), d.at("into"))
    margin = margin_of(s, t)
    if margin is not None:
        return _stage_in_margin(g, s, t, margin, path)
    axes = tuple(axis(n if not n.isdigit() else f"i{n}") for n in operand_axes(s, t))
    value, home = Read(t.id, axes, t.dtype), _beside(s, t)
    copy = Stage(_fresh_id(g), path, s.method, axes, t.shape, t.dtype, value, None, op=s.op, origin="derived", source=s.source, **home)
    new = redirect(s, {t.id: copy.id})
    return g.spliced(s, (copy, new)), new


@dataclass(frozen=True, eq=False)
class Margin:
    """How a stage reads an operand through a constant boundary: the guarded read, and how far it may lie outside in each dimension."""

    guarded: Expr
    read: Read
    outside: Const
    before: tuple[int, ...]
    extents: tuple[Extent, ...]


def margin_of(s: Stage, t: Leaf | Stage) -> Margin | None:
    """The one guarded read where(inside, t[index], constant) by which s reads t, if that is how it reads it."""
    guarded = [
        n for n in walk(s.value) if isinstance(n, Op) and n.op == "where" and isinstance(n.args[1], Read) and n.args[1].source == t.id
    ]
    if len(guarded) != 1 or sum(r.source == t.id for r in s.reads) != 1:
        return None
    condition, read, outside = guarded[0].args
    if not isinstance(read, Read) or not isinstance(outside, Const):
        return None
    allowed = {_normal(c) for i, n in zip(read.index, t.shape, strict=True) for c in (as_expr(0) <= i, i < as_expr(n))}
    if any(_normal(part) not in allowed for part in conjuncts(condition)):
        return None
    before, extents = [], []
    for i, n in zip(read.index, t.shape, strict=True):
        low, high = bounds(i, s.ranges)
        if not isinstance(low, int) or high is None:
            return None
        before.append(max(0, -low))
        extents.append(maximum(n, high + 1) + before[-1])
    return Margin(guarded[0], read, outside, tuple(before), tuple(extents))


def _normal(condition: Expr) -> object:
    """The same for comparisons of positions that say the same, as 0 <= t - 1 and 1 <= t."""
    match condition:
        case Op(op="lt" | "le" as op, args=(a, b)) if is_index(a) and is_index(b):
            room = linear(b) + linear(a).scaled(-1)
            return frozenset(room.terms), room.constant - (op == "lt")
    return condition


def _stage_in_margin(g: Graph, s: Stage, t: Leaf | Stage, margin: Margin, path: str) -> tuple[Graph, Stage]:
    names = [n if n and not n.isdigit() else f"i{k}" for k, n in enumerate(operand_axes(s, t))]
    axes = tuple(axis(n) for n in names)
    at = tuple(binary("sub", a, as_expr(k)) for a, k in zip(axes, margin.before, strict=True))
    ranges = dict(zip(axes, margin.extents, strict=True))
    value: Expr = Read(t.id, at, t.dtype)
    inside = [
        c
        for i, n in zip(at, t.shape, strict=True)
        for c in (simplify(as_expr(0) <= i, ranges), simplify(i < as_expr(n), ranges))
        if not isinstance(c, Const)
    ]
    if inside:
        condition = inside[0]
        for c in inside[1:]:
            condition = condition & c
        value = where(condition, value, margin.outside)
    copy = Stage(
        _fresh_id(g),
        path,
        s.method,
        axes,
        margin.extents,
        t.dtype,
        value,
        None,
        op=s.op,
        origin="derived",
        source=s.source,
        **_beside(s, t),
    )
    moved = Read(
        copy.id,
        tuple(simplify(binary("add", i, as_expr(k)), s.ranges) for i, k in zip(margin.read.index, margin.before, strict=True)),
        t.dtype,
    )
    new = replace(s, value=rewrite(s.value, lambda e: moved if e is margin.guarded else None))
    return g.spliced(s, (copy, new)), new


def pack(g: Graph, s: Stage, d: Pack) -> tuple[Graph, Stage]:
    """t[k, j]  ->  into[j // 32, k, j % 32] for sizes {j: 32} and order [j, k]."""
    t = operand(g, s, d.tensor, d.at("tensor"), "pack")
    names = operand_axes(s, t)
    if sorted(d.order) != sorted(names):
        raise refused(
            d.at("order"),
            "P221",
            s,
            f"pack: order: [{', '.join(d.order)}]",
            f"it must name the axes of {t.name} once each: {', '.join(names)}",
        )
    unknown = [a for a in d.sizes if a not in names]
    if unknown:
        raise refused(
            d.at("sizes", unknown[0]),
            "P221",
            s,
            f"pack: {t.name} has no axis {unknown[0]}",
            f"it has {', '.join(names)}",
            *nearest(unknown[0], names),
        )
    if d.when == "build" and not g.is_fixed(t, s.method):
        raise refused(
            d.at("when"),
            "P224",
            s,
            f"pack: when: build, but {t.name} is known only when the model is called",
            f"{s.method} changes it" if isinstance(t, Leaf) and t.kind != "input" else "only parameters and constants are there at build",
            "when: call",
        )
    size = dict(zip(names, t.shape, strict=True))
    outer = [axis(f"{n}_outer" if n in d.sizes else n) for n in d.order]
    inner = {n: axis(f"{n}_inner") for n in d.sizes}
    by_name = dict(zip(d.order, outer, strict=True))

    def position(n: str) -> Expr:
        return binary("add", binary("mul", by_name[n], as_expr(d.sizes[n])), inner[n]) if n in d.sizes else by_name[n]

    value: Expr = Read(t.id, tuple(position(n) for n in names), t.dtype)
    for n in d.sizes:
        if exact_quotient(size[n], d.sizes[n]) is None:
            value = where(position(n) < as_expr(size[n]), value, identity("sum", t.dtype))
    extents: list[Extent] = [ceildiv(size[n], d.sizes[n]) if n in d.sizes else size[n] for n in d.order]
    axes = (*outer, *(inner[n] for n in d.sizes))
    path = _free_path(g, s, "/".join([*s.path.split("/")[:-1], d.into]), d.at("into"))
    packed = Stage(
        _fresh_id(g),
        path,
        s.method,
        axes,
        (*extents, *d.sizes.values()),
        t.dtype,
        value,
        None,
        op="pack at call" if d.when == "call" else "pack",
        origin="derived",
        source=s.source,
        **_beside(s, t),
    )

    def read(e: Expr) -> Expr | None:
        if not (isinstance(e, Read) and e.source == t.id):
            return None
        at = dict(zip(names, e.index, strict=True))
        index = [binary("floordiv", at[n], as_expr(d.sizes[n])) if n in d.sizes else at[n] for n in d.order]
        index += [binary("mod", at[n], as_expr(k)) for n, k in d.sizes.items()]
        return Read(packed.id, tuple(simplify(i, s.ranges) for i in index), t.dtype)

    new = replace(s, value=rewrite(s.value, read))
    return g.spliced(s, (packed, new)), new


def _when(s: Stage, to: Mapping[Axis, Axis]) -> Expr | None:
    """The condition of s over other axes."""
    return None if s.when is None else substitute_axes(s.when, dict(to))


def _beside(s: Stage, t: Leaf | Stage) -> dict[str, Any]:
    """Where a copy of t that only s reads is computed: in the loop that t is part of, and under the condition of s if it is the same
    everywhere. What is constant is copied once, and what a loop does not change before it."""
    around = t.loops if isinstance(t, Stage) else ()
    shared = tuple(a for a, b in zip(around, s.loops, strict=False) if a == b)
    constant = isinstance(t, Leaf) and t.kind != "input"
    when = None if s.when is None or constant or set(axes_of(s.when)) or shared != s.loops else s.when
    return {"when": when, "turn": Turn(shared[-1], around=shared[:-1]) if shared else None}


def inline(g: Graph, s: Stage, d: ComputeInline | None = None) -> Graph:
    """The graph without s: its expression stands wherever it was read."""
    place = d.at() if d is not None else Place()
    if s.reduction is not None:
        raise refused(
            place, "P225", s, f"compute_inline: {s.name} is a reduction", "its loops cannot stand inside an expression", "compute_at"
        )
    if s.earlier:
        raise _of_recurrence(s, place, "compute_inline")
    if s.id in g.outputs:
        raise refused(place, "P225", s, f"compute_inline: {s.name} is a result of {s.method}", "it must be stored", "compute_root")
    if s.id in g.counts:
        why = f"it is the extent {g.counts[s.id][0]}, which is asked before what is as long"
        raise refused(place, "P225", s, f"compute_inline: {s.name}", why, "compute_root")
    readers = [x for x in g.stages if s.id in x.sources]
    if s.extern is not None or any(x.extern is not None for x in readers):
        why = "a function of NumPy arrays makes it, or is given it"
        raise refused(place, "P225", s, f"compute_inline: {s.name}", why, "compute_root")
    if s.is_carry or any(x.is_carry and x.turn and s.id in (x.turn.next, x.turn.condition) for x in readers):
        why = "it is stored for the next turn"
        raise refused(place, "P225", s, f"compute_inline: {s.name} is what a loop carries, makes or asks at each turn", why, "compute_root")

    def put(reader: Stage) -> Stage:
        def rule(e: Expr) -> Expr | None:
            if isinstance(e, Read) and e.source == s.id:
                return substitute_axes(s.value, dict(zip(s.axes, e.index, strict=True)))
            return None

        value = simplify(rewrite(reader.value, rule), reader.ranges)
        if (why := excess(value)) is not None:
            raise refused(place, "P225", s, f"compute_inline: {s.name} makes of {reader.name} {why[0]}", why[1], "compute_root")
        when = None if reader.when is None else simplify(rewrite(reader.when, rule), reader.ranges)
        return replace(reader, value=value, when=when, counts=tuple(dict.fromkeys((*reader.counts, *s.counts))))

    return g.spliced(s, (), [put(x) for x in readers])
