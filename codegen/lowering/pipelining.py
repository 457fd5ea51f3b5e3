"""software_pipeline: what is computed at a loop runs some iterations ahead of what reads it, into parts of memory that are used in turn.

    for v in 0..n                    load(v); rest(v)
becomes, with d iterations ahead,
    for v in 0..min(d, n)            load(v)                        the prologue
    for v in 0..n - d                barrier; load(v + d); rest(v)
    for v in n - d..n                barrier; rest(v)               the epilogue

The part that load(v + d) writes is the one that rest(v - 1) has read, and rest(v) reads what was loaded d iterations before: both lie
before the barrier, so one is enough where they would need two. Of a GPU's stages those in shared memory run ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from fluorite.algo.errors import PlanError
from fluorite.algo.expr import Const, Expr, as_expr, binary
from fluorite.algo.linear import simplify
from fluorite.algo.stages import Stage
from fluorite.schedule.directives import SoftwarePipeline
from fluorite.schedule.loop_names import missing_loop
from fluorite.schedule.nest import BLOCK, SERIAL, THREAD, Loop

from ..statements import Allocate, Barrier, CommitGroup, For, Statement, WaitGroup, sequence
from . import copying, following, looping, placing, prefetching, stepping, tiling
from .context import Context, Placed
from .moving import moved


def asked(work: Context, p: Placed, loop: Loop) -> SoftwarePipeline | None:
    return next((d for d in _asked_of(work, p) if d.axis == loop.name), None)


def _asked_of(work: Context, p: Placed) -> list[SoftwarePipeline]:
    return [d for d in work.plan.directives.get(p.stage.id, ()) if isinstance(d, SoftwarePipeline)]


def check(work: Context, p: Placed) -> None:
    """Every pipeline is of a serial loop, at which stages are computed that can run ahead. Raises PlanError."""
    for d in _asked_of(work, p):
        loop = p.nest.loop(d.axis)
        if loop is None:
            raise PlanError([missing_loop(p.nest, d.axis, d.at("axis"), d.label())])
        here = [work.by_id[i] for i, at in work.plan.placements.items() if at.owner == p.stage.id and at.loop == d.axis and not at.after]
        outside = ", ".join(p.nest.names[: tiling.tile_start(work, p)]) or "none"
        if loop.kind != SERIAL:
            refuse(p, d, f"{d.axis} is {loop.kind}: its iterations do not come one after the other", "a serial loop")
        if p.stage.clock is not None:
            refuse(p, d, f"{p.stage.name} is a recurrence: what is computed for a step may read the one before")
        if not here:
            refuse(p, d, "no stage is computed at that loop, so none could run ahead", f"compute_at: one of {outside}", "stage_in")
        kept = next((s for s in here if work.plan.placements[s.id].kept is not None), None)
        if kept is not None:
            refuse(p, d, f"{kept.name} is kept from one iteration to the next, which uses what was made before", "leave store_at out")


def overlapped(work: Context, p: Placed, k: int, d: SoftwarePipeline, here: Sequence[Stage]) -> Statement:
    """Loop k in three parts. `here` are the stages that are computed at it."""
    loop, ahead = p.nest.loops[k], d.stages - 1
    inside = [s for s in here if not work.plan.placements[s.id].after]
    first, rotating = _running_ahead(work, p, d, inside)
    work.slots |= {s.id: (loop.var, d.stages) for s in rotating}
    after = following.boxes(work, p, k, [s for s in here if s not in inside])
    made = looping.produced(work, p, k, inside, after)
    loaded = [x for x in made if x.stage in first]
    others = [x for x in made if x.stage not in first]
    load = sequence(*(part for x in loaded for part in _after_barrier(work, x, rotating)))
    for b in reversed([x.buffer for x in loaded if x.stage not in rotating]):
        load = Allocate(b, load)
    if d.asynchronous:
        load = copying.asynchronous(load, work, d, rotating)
    mine = (stepping.inside(work, p, k), *looping.followers(work, after))
    rest = sequence(*prefetching.fetches(work, p, k), *(x.body for x in others), *mine)
    for b in reversed([x.buffer for x in others]):
        rest = Allocate(b, rest)
    rest = looping.keeping(work, p, k, rest)
    body = _in_parts(work, looping.for_loop(work, p, loop, load, k), looping.for_loop(work, p, loop, rest, k), ahead, d.asynchronous)
    if work.plan.gpu and _comes_again(work, p, k):
        body = sequence(Barrier(), body)
    for x in reversed([x for x in loaded if x.stage in rotating]):
        body = Allocate(x.buffer, body)
    return body


def _in_parts(work: Context, load: For, rest: For, ahead: int, asynchronous: bool) -> Statement:
    """Prologue, steady state and epilogue of a loop. A group of copies for every iteration, also an empty one, keeps their number known."""
    n, d = load.extent, as_expr(ahead)
    steady = simplify(binary("max", binary("sub", n, d), as_expr(0)), work.ranges)
    short = simplify(binary("min", n, d), work.ranges)
    committed = [CommitGroup()] if asynchronous else []
    ready: list[Statement] = [*([WaitGroup(ahead - 1)] if asynchronous else []), *([Barrier()] if work.plan.gpu else [])]

    def part(low: Expr, extent: Expr, *body: Statement) -> list[Statement]:
        return [] if isinstance(extent, Const) and int(extent.value) <= 0 else [_loop(load, low, extent, sequence(*body))]

    missing = simplify(binary("sub", d, short), work.ranges)  # iterations that the prologue of a short loop does not have
    return sequence(
        *part(as_expr(0), short, load.body, *committed),
        *(part(as_expr(0), missing, *committed) if asynchronous else []),
        *part(as_expr(0), steady, *ready, moved(load.body, load.var, d), *committed, rest.body),
        *part(steady, short, *ready, *committed, rest.body),
    )


def _loop(like: For, low: Expr, extent: Expr, body: Statement) -> For:
    return For(like.var, like.name, low, extent, SERIAL, "", body)


def _running_ahead(work: Context, p: Placed, d: SoftwarePipeline, inside: Sequence[Stage]) -> tuple[list[Stage], list[Stage]]:
    """The stages that run ahead, and those of them that keep several parts, because the rest of the loop reads them.

    Of a GPU's stages these are the ones in shared memory, and what only those read.
    """
    if not work.plan.gpu:
        return list(inside), list(inside)
    shared = [s for s in inside if placing.memory_of(work, s) == "shared"]
    if not shared:
        refuse(p, d, "what is computed there is kept in registers, which the next iteration needs too", "store_in: shared, with fetch")
    first = list(shared)
    for s in reversed(inside):
        if s not in first and any(s.id in t.sources for t in first):
            first.append(s)
    late = next((s for s in first if s not in shared and any(s.id in t.sources for t in work.plan.stages if t not in first)), None)
    if late is not None:
        refuse(p, d, f"{late.name}, kept in registers, is read ahead and also by the rest of the iteration", "store_in: shared, with fetch")
    return [s for s in inside if s in first], shared


def _after_barrier(work: Context, x: looping.Produced, rotating: Sequence[Stage]) -> list[Statement]:
    """A stage that runs ahead: behind a barrier where it reads what other threads have just made for it."""
    waits = work.plan.gpu and any(s.id in x.stage.sources for s in rotating)
    return [Barrier(), x.body] if waits else [x.body]


def _comes_again(work: Context, p: Placed, k: int) -> bool:
    """Whether a thread comes to loop k several times, so that others may still read what its prologue writes."""
    loops, at = p.nest.loops[:k], work.plan.placements.get(p.stage.id)
    while all(loop.kind in (BLOCK, THREAD) or loop.extent == 1 for loop in loops):
        if at is None:
            return False
        nest = work.nests[at.owner]
        loops, at = nest.loops[: nest.position(at.loop) + 1], work.plan.placements.get(at.owner)
    return True


def refuse(p: Placed, d: SoftwarePipeline, why: str, *try_: str) -> NoReturn:
    asked_ = f"software_pipeline of {p.stage.name} along {d.axis}"
    raise PlanError(
        [d.at("axis").problem("P264", asked_, why, try_ or ("leave software_pipeline out",), path=p.stage.path, source=p.stage.source)]
    )
