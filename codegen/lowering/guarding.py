"""The tests that keep a nest inside its box, and the loops that need none."""

from __future__ import annotations

from fluorite.algo.expr import Axis, Expr, as_expr, binary
from fluorite.algo.linear import linear, simplify, within
from fluorite.algo.rewriting import axes_of
from fluorite.schedule.directives import Fetch, GpuLanes, GpuThreads, GpuWarps, StoreIn
from fluorite.schedule.nest import PARALLEL, SERIAL, THREAD, VTHREAD, Loop

from . import evaluating, logic
from .context import Context, Placed


def guards_of(work: Context, p: Placed) -> list[tuple[Expr, Expr]]:
    out: list[tuple[Expr, Expr]] = []
    for g in p.nest.guards:
        value, limit = simplify(p.nest.value(g.value), work.ranges), as_expr(g.limit)
        if not isinstance(g.limit, Expr) and within(value, g.limit, work.ranges):
            continue
        out.append((value, limit))
    return out


def asked_at(work: Context, p: Placed) -> tuple[int, Expr] | None:
    """Where the stage's condition is asked, and what is asked there: before the outermost loop that does not change it.

    A condition that changes inside a vector or from one element to the next is not asked: nothing reads what is then made in vain. Nor is
    one on a GPU, where threads that leave would not come to their barriers.
    """
    if p.stage.when is None or work.plan.gpu:
        return None
    condition = evaluating.over_loops(work, p, p.stage.when)
    changing = set(axes_of(condition))
    k = max((n + 1 for n, loop in enumerate(p.nest.loops) if loop.var in changing), default=0)
    outside = p.nest.loops[:k]
    if k and (k == len(p.nest.loops) or any(loop.reduction or loop.kind not in (SERIAL, PARALLEL) for loop in outside)):
        return None
    return k, condition


def late_guards(work: Context, p: Placed) -> list[tuple[Expr, Expr]]:
    """GPU: guards that differ between threads and would enclose a barrier; they are tested around each store instead."""
    if not work.plan.gpu:
        return []
    barriers = [
        p.nest.position(at.loop)
        for i, at in work.plan.placements.items()
        if at.owner == p.stage.id and p.nest.loop(at.loop) and has_barrier(work, i)
    ]
    barriers += [n for n, loop in enumerate(p.nest.loops) if loop.kind == THREAD and loop.reduction]  # shuffles are like barriers
    last = max(barriers, default=-1)
    mine = [loop.var for loop in p.nest.loops]
    threads = {loop.var for loop in (*p.nest.loops, *work.threads) if loop.kind in (THREAD, VTHREAD)}
    out = []
    for value, limit in guards_of(work, p):
        used = set(axes_of(value))
        if max((n for n, v in enumerate(mine) if v in used), default=-1) <= last and (used | set(axes_of(limit))) & threads:
            out.append((value, limit))
    return out


def has_barrier(work: Context, i: int) -> bool:
    ds = work.plan.directives.get(i, ())
    dealt = any(isinstance(d, Fetch | GpuThreads | GpuLanes | GpuWarps) for d in ds)
    if dealt or any(isinstance(d, StoreIn) and d.memory == "shared" for d in ds):
        return True
    return any(has_barrier(work, j) for j, at in work.plan.placements.items() if at.owner == i)


def is_loop(p: Placed, a: Axis) -> bool:
    return any(loop.var is a for loop in p.nest.loops)


def inside_only(work: Context, p: Placed, loop: Loop, k: int, extent: Expr) -> Expr:
    """The iterations of a loop over a tile that sticks out, without those that lie outside altogether: nobody reads what they make."""
    inner = {x.var: x.extent for x in p.nest.loops[k + 1 :]}
    for a in p.padded:
        value, n = p.values[a], p.stage.ranges[a]
        c = linear(value).coefficient(loop.var)
        first = logic.extreme(value, inner, False)
        if not isinstance(c, int) or c < 1 or first is None or within(value, n, work.ranges):
            continue
        rest = binary("sub", first, binary("mul", loop.var, as_expr(c)))
        if loop.var not in set(axes_of(linear(rest).expr())):
            past = binary("add", binary("sub", as_expr(n), linear(rest).expr()), as_expr(c - 1))
            extent = binary("min", extent, binary("floordiv", past, as_expr(c)))
    return extent
