"""Tiles, the innermost constant loops: a fast version where every lane is inside, and guarded ones for the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fluorite.algo.expr import Axis, Const, Expr, Op, Read, as_expr, binary
from fluorite.algo.linear import is_index, simplify
from fluorite.algo.rewriting import axes_of, rewrite, walk
from fluorite.algo.tensor import conjuncts
from fluorite.schedule.nest import SERIAL, UNROLLED, VECTOR, Loop

from ..reductions import accumulators, begun
from ..statements import Allocate, Buffer, For, If, Statement, sequence, transform
from . import evaluating, guarding, logic, placing, reducing
from .context import FALSE, Context, Placed


def tile_start(work: Context, p: Placed) -> int:
    """The outermost of the innermost constant loops, beginning with one that is vectorised or unrolled."""
    loops = p.nest.loops
    owners = {at.loop for at in work.plan.placements.values() if at.owner == p.stage.id}
    k = len(loops)
    while (
        k > 0
        and isinstance(loops[k - 1].extent, int)
        and loops[k - 1].name not in owners
        and loops[k - 1].kind in (SERIAL, VECTOR, UNROLLED)
    ):
        k -= 1
    while k < len(loops) and loops[k].kind == SERIAL:
        k += 1
    return k


def tile(work: Context, p: Placed, loops: Sequence[Loop], k: int) -> Statement:
    inside = {x.var for x in loops}
    guards = [(v, n) for v, n in guarding.guards_of(work, p) if set(axes_of(v)) & inside]
    lanes = {x.var for x in loops if x.kind in (VECTOR, UNROLLED)} if any(x.kind == VECTOR for x in loops) else set()
    first = next((n for n, x in enumerate(loops) if x.reduction), None)
    start_here = (
        first if first is not None and not any(x.reduction for x in p.nest.loops[:k]) and not reducing.initialised(work, p) else None
    )
    if start_here is not None and not any(not x.reduction for x in loops[start_here:]) and not any(x.kind == VECTOR for x in p.nest.loops):
        reducing.start_scalars(work, p)

    def leaf(known: Sequence[Expr], at: Placed) -> Statement:
        return evaluating.update(work, at, known)

    moved = overlapping(work, p, loops) if start_here is not None or p.stage.reduction is None else None
    body = versions(work, p, loops, guards, interior(work, p, lanes), leaf, start_here, moved)
    outer = [v < n for v, n in guarding.late_guards(work, p) if not set(axes_of(v)) & inside]
    return If(logic.conjunction(outer), body) if outer else body


@dataclass(frozen=True, eq=False)
class Moved:
    """A tile moved back so that its last element is the last of its axis: `at` has its index values, `enough` says that there is room."""

    at: Placed
    guard: tuple[Expr, Expr]
    enough: Expr


def overlapping(work: Context, p: Placed, loops: Sequence[Loop]) -> Moved | None:
    """The last vector of an axis that its width does not divide, as one that overlaps the vector before it.

    None where nothing asks for it, or where what it computes again cannot be: producers were computed for the original place.
    """
    inside = {x.var for x in loops}
    vectors = {x.var for x in loops if x.kind == VECTOR}
    owners = [p.nest.position(at.loop) for at in work.plan.placements.values() if at.owner == p.stage.id and p.nest.loop(at.loop)]
    for g in p.nest.guards:
        if work.plan.gpu or g.outer is None or g.inner is None or g.tail not in ("auto", "shift") or isinstance(g.limit, Expr):
            continue
        if g.tail == "auto" and work.overwrites(p.stage):
            continue
        around = set(axes_of(p.nest.value(g.outer)))
        first = min((n for n, loop in enumerate(p.nest.loops) if loop.var in around), default=None)
        if first is None or around & inside or not set(axes_of(p.nest.value(g.inner))) & vectors or any(n >= first for n in owners):
            continue
        pair = (simplify(p.nest.value(g.value), work.ranges), as_expr(g.limit))
        guards = [v for v, _ in guarding.guards_of(work, p)]
        if sum(pair[0] is v for v in guards) != 1:  # none to avoid, or the axis may end before that limit
            continue
        if any(set(axes_of(v)) <= set(axes_of(p.nest.value(g.inner))) for v in guards):  # what is moved back is not made of whole vectors
            continue
        nest = replace(p.nest, define={**p.nest.define, g.value: binary("add", as_expr(g.limit - g.factor), g.inner)})
        values = placing.positions(work, p.stage, nest, p.box) | {a: p.values[a] for a in p.stage.reduce_axes}
        work.again.add(p.stage.id)
        return Moved(replace(p, nest=nest, values=values), pair, simplify(as_expr(g.factor) <= as_expr(g.limit), work.ranges))
    return None


def versions(
    work: Context,
    p: Placed,
    loops: Sequence[Loop],
    guards: Sequence[tuple[Expr, Expr]],
    tests: Sequence[Expr],
    leaf: Callable[[Sequence[Expr], Placed], Statement],
    reduction_at: int | None = None,
    moved: Moved | None = None,
) -> Statement:
    """The loops as marked where all guards and tests hold throughout; where only guards do, with clamped reads; else moved or serial."""
    tile = {x.var: x.extent for x in loops}
    holds: dict[Expr, Expr] = {}
    for value, limit in guards:
        worst = logic.extreme(value, tile, True)
        holds[value] = FALSE if worst is None else simplify(worst < limit, work.ranges)
    conditions = list(holds.values())
    decided = {t: c for t in tests if (c := logic.throughout(t, tile)) is not None}
    lanes = {x.var for x in loops if x.kind == VECTOR}
    needed = [t for t in decided if set(axes_of(t)) & lanes]
    held = logic.conjunction([*conditions, *(simplify(decided[t], work.ranges) for t in needed)])
    everywhere = logic.conjunction([simplify(c, work.ranges) for c in decided.values()])
    if isinstance(held, Const) and not held.value and moved is None:
        return written(work, p, loops, leaf([], p), reduction_at, guards, False)
    fast = written(work, p, loops, leaf(needed, p), reduction_at, (), True)
    if len(needed) < len(decided) and everywhere is not FALSE:
        best = written(work, p, loops, leaf(list(decided), p), reduction_at, (), True)
        rest = logic.conjunction([simplify(c, work.ranges) for t, c in decided.items() if t not in set(needed)])
        fast = best if isinstance(rest, Const) and rest.value else If(rest, best, fast)
    if isinstance(held, Const) and held.value:
        return fast
    slow = written(work, p, loops, leaf([], p), reduction_at, guards, False)
    if moved is not None:
        possible = logic.conjunction([moved.enough, *(c for v, c in holds.items() if v is not moved.guard[0])])
        if possible is not FALSE:
            back = written(work, moved.at, loops, leaf([], moved.at), reduction_at, (), True)
            slow = back if isinstance(possible, Const) else If(possible, back, slow)
    stored = logic.conjunction(conditions)
    if needed and stored is not FALSE and not work.plan.gpu:
        clamped = written(work, p, loops, leaf([], p), reduction_at, (), True)
        slow = clamped if isinstance(stored, Const) else If(stored, clamped, slow)
    return slow if isinstance(held, Const) else If(held, fast, slow)


def written(
    work: Context,
    p: Placed,
    loops: Sequence[Loop],
    leaf: Statement,
    reduction_at: int | None,
    guards: Sequence[tuple[Expr, Expr]],
    marked: bool,
) -> Statement:
    """One version of a tile: its loops around the leaf, with the initialisation of a reduction that begins inside it."""

    def around(inner: Sequence[Loop], body: Statement, tests: Sequence[tuple[Expr, Expr]]) -> Statement:
        if tests:
            body = If(logic.conjunction([v < n for v, n in tests]), body)
        for n, loop in reversed(list(enumerate(inner))):
            # registers can only be indexed by constants, so a GPU's guarded version is written out too
            kind = loop.kind if marked else UNROLLED if work.plan.gpu and loop.kind in (VECTOR, UNROLLED) else SERIAL
            kept, body = outside(body) if kind == VECTOR else ((), body)
            body = For(loop.var, loop.name, as_expr(0), as_expr(loop.extent), kind, loop.lane if marked else "", body)
            for b in kept:
                body = Allocate(b, body)
            if inner is loops and n == reduction_at:
                spatial = [x for x in loops[n:] if not x.reduction]
                reduced = {x.var for x in loops if x.reduction}
                outer = [g for g in guards if not set(axes_of(g[0])) & reduced]
                if accumulators(p.stage)[0].id in work.storage:
                    body = reducing.accumulated(work, p, body, outer)
                else:
                    body = sequence(around(spatial, begun(p.stage, evaluating.own_index(work, p)), outer), body)
        return body

    return around(loops, leaf, guards)


def outside(body: Statement) -> tuple[tuple[Buffer, ...], Statement]:
    """What is allocated in a loop of vectors, with room for each lane, and the loop's body without that."""
    found: list[Buffer] = []

    def take(s: Statement) -> Statement | None:
        if not isinstance(s, Allocate):
            return None
        found.append(s.buffer)
        return s.body

    stripped = transform(body, take)
    return tuple(found), stripped


def interior(work: Context, p: Placed, lanes: set[Axis]) -> list[Expr]:
    """Conditions under which the value needs no clamp and no choice that differs between the lanes of a vector."""
    if not lanes:
        return []
    found: dict[Expr, None] = {}

    def rule(n: Expr) -> Expr | None:
        match n:
            case Op(op="edge" | "reflect" | "wrap", args=(a, size)) if set(axes_of(a)) & lanes and is_index(a):
                found[as_expr(0) <= a] = None
                found[a < size] = None
                return a  # a clamp of a clamp is tested as it is when the inner one is gone
            case Op(op="where" | "select", args=(c, _, _)) if set(axes_of(c)) & lanes and not any(isinstance(x, Read) for x in walk(c)):
                for part in conjuncts(c):
                    if isinstance(part, Op) and part.op in ("lt", "le") and is_index(part.args[0]) and is_index(part.args[1]):
                        found[part] = None
        return None

    rewrite(evaluating.value_of(work, p), rule)
    return [f for f in found if not isinstance(f, Const)]
