"""The loops of one stage, outermost first, with the producers that are computed inside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fluorite.algo.errors import PlanError
from fluorite.algo.expr import Expr, as_expr, binary
from fluorite.algo.linear import linear, simplify
from fluorite.algo.rewriting import axes_of
from fluorite.algo.stages import Stage
from fluorite.schedule.directives import Parallel, Vectorize
from fluorite.schedule.nest import PARALLEL, SERIAL, THREAD, UNROLLED, VECTOR, VTHREAD, Loop
from fluorite.schedule.regions import Box

from ..statements import Allocate, Buffer, For, If, Marked, Statement, sequence
from . import (
    bounding,
    checks,
    following,
    guarding,
    logic,
    pipelining,
    placing,
    prefetching,
    reducing,
    sliding,
    stepping,
    storing,
    tensorizing,
    tiling,
)
from .context import Context, Placed


def loops(work: Context, p: Placed, k: int) -> Statement:
    """Loop k and what is inside it, where the stage's condition asks for it, if that is known here."""
    asked = guarding.asked_at(work, p)
    if k and asked is not None and asked[0] == k and p.stage.id not in work.initialised:
        return If(asked[1], loop_and_rest(work, p, k))
    return loop_and_rest(work, p, k)


def loop_and_rest(work: Context, p: Placed, k: int) -> Statement:
    nest = p.nest
    if (made := tensorizing.statements(work, p, k)) is not None:
        return made
    first_reduction = next((n for n, loop in enumerate(nest.loops) if loop.reduction), None)
    if k == first_reduction and p.stage.id not in work.initialised:
        work.initialised.add(p.stage.id)
        return reducing.reduction(work, p, k)
    if k == tiling.tile_start(work, p):
        return tiling.tile(work, p, nest.loops[k:], k)
    loop = nest.loops[k]
    here = [work.by_id[i] for i, at in work.plan.placements.items() if at.owner == p.stage.id and at.loop == loop.name]
    here.sort(key=lambda s: work.plan.stages.index(s))
    if (d := pipelining.asked(work, p, loop)) is not None:
        return pipelining.overlapped(work, p, k, d, here)
    inside = [s for s in here if not work.plan.placements[s.id].after]
    if loop.kind in (THREAD, VTHREAD):
        work.threads.append(loop)
    if loop.kind == PARALLEL:
        if work.parallel:
            raise PlanError(
                [
                    checks.directive_of(work, p, Parallel).problem(
                        "P212",
                        f"parallel: {p.stage.name} is computed inside {work.parallel[-1]}, which is parallel already",
                        "parallel loops do not nest",
                        ("parallel only the outer one",),
                        path=p.stage.path,
                        source=p.stage.source,
                    )
                ]
            )
        work.parallel.append(f"{loop.name} of {p.stage.name}")
    after = following.boxes(work, p, k, [s for s in here if s not in inside])
    body = with_producers(work, p, k, inside, after, lambda: sequence(stepping.inside(work, p, k), *followers(work, after)))
    body = sequence(*prefetching.fetches(work, p, k), body)
    body = keeping(work, p, k, body)
    if loop.kind == PARALLEL:
        work.parallel.pop()
    if loop.kind in (THREAD, VTHREAD):
        work.threads.pop()
    return for_loop(work, p, loop, body, k)


def followers(work: Context, boxes: Mapping[int, Box]) -> list[Statement]:
    """The stages that follow an iteration, each over its box."""
    return [nest(work, placing.place(work, work.by_id[i], box, frozenset())) for i, box in boxes.items()]


def nest(work: Context, p: Placed) -> Statement:
    """All loops of a stage, inside the memory that is kept around them."""
    made = if_taken(work, p, unasked(work, p))
    return Marked(p.stage.id, made) if p.stage.id in work.runs_together else made


def if_taken(work: Context, p: Placed, body: Statement) -> Statement:
    """What makes a stage, where its condition asks for it, if no loop changes the condition."""
    asked = guarding.asked_at(work, p)
    return If(asked[1], body) if asked is not None and asked[0] == 0 else body


def unasked(work: Context, p: Placed) -> Statement:
    """All loops of a stage, whatever its condition says."""
    prefetching.check(work, p)
    pipelining.check(work, p)
    return keeping(work, p, -1, loops(work, p, 0))


def keeping(work: Context, p: Placed, k: int, body: Statement) -> Statement:
    """The body of loop k with the memory of the stages that store_at keeps there."""
    for b in reversed(work.kept.pop((p.stage.id, k), [])):
        body = Allocate(b, body)
    return body


def for_loop(work: Context, p: Placed, loop: Loop, body: Statement, k: int) -> For:
    """The loop with every guard that its variable completes: as a shorter extent where that is linear, else as a test."""
    extent = as_expr(loop.extent)
    tests: list[Expr] = []
    known = {x.var for x in p.nest.loops[: k + 1]}
    late = set(guarding.late_guards(work, p))
    if loop.kind == VECTOR:
        inner = next(x for x in p.nest.loops[k + 1 :] if not isinstance(x.extent, int) or x.kind not in (SERIAL, VECTOR, UNROLLED))
        what = f"is {inner.kind}" if isinstance(inner.extent, int) else f"has {inner.extent} iterations, known only when the kernel runs"
        why = "loops inside a vector are serial or unrolled, and of constant extent"
        raise PlanError(
            [
                checks.directive_of(work, p, Vectorize).problem(
                    "P215",
                    f"vectorize: {inner.name}, inside {loop.name}, {what}",
                    why,
                    (f"reorder so that {loop.name} is innermost",),
                    path=p.stage.path,
                    source=p.stage.source,
                )
            ]
        )
    for value, limit in guarding.guards_of(work, p):
        form = linear(value)
        if (value, limit) in late:
            continue
        if loop.var not in set(axes_of(value)) or not all(a in known or not guarding.is_loop(p, a) for a in axes_of(value)):
            continue
        if (
            loop.kind not in (THREAD, VTHREAD, UNROLLED)
            and form.coefficient(loop.var) == 1
            and loop.var not in {a for x in form.atoms if x is not loop.var for a in axes_of(x)}
        ):
            extent = binary("min", extent, binary("sub", limit, binary("sub", value, loop.var)))
        else:
            tests.append(value < limit)
    if loop.kind == SERIAL and not loop.reduction and not work.plan.gpu:
        extent = guarding.inside_only(work, p, loop, k, extent)
    extent = simplify(extent, work.ranges)
    if tests:
        body = If(logic.conjunction(tests), body)
    return For(loop.var, loop.name, as_expr(0), extent, loop.kind, loop.lane, body)


def with_producers(
    work: Context, p: Placed, k: int, producers: Sequence[Stage], after: Mapping[int, Box], rest: Callable[[], Statement]
) -> Statement:
    """What one iteration needs of the producers, for its owner and for what comes `after` it, then the rest."""
    made = produced(work, p, k, producers, after)
    body = sequence(*(x.body for x in made), rest())
    for b in reversed([x.buffer for x in made if not x.kept]):
        body = Allocate(b, body)
    return body


@dataclass(frozen=True, eq=False)
class Produced:
    """What one iteration computes of a stage, and where to. `kept` memory is that of a loop further out."""

    stage: Stage
    buffer: Buffer
    body: Statement
    kept: bool


def produced(work: Context, p: Placed, k: int, producers: Sequence[Stage], after: Mapping[int, Box]) -> list[Produced]:
    """The stages that are computed at loop k, in the order in which they read one another."""
    if not producers:
        return []
    made: list[Produced] = []
    boxes = {**bounding.boxes_at(work, p, k), **after}
    together = bounding.boxes_at(work, p, k, by_block=True) if work.plan.gpu else boxes
    windows = sliding.windows(work, p, k, [s for s in producers if work.plan.placements[s.id].kept is not None], boxes)
    for s in producers:
        if s.id in work.plan.outputs:  # where it is stored whole
            exact, _ = bounding.needed_box(work, s, boxes, p, exact=True)
            boxes[s.id] = dict(zip(s.axes, exact, strict=True))
            body = nest(work, placing.place(work, s, boxes[s.id], frozenset()))
            made.append(Produced(s, work.storage[s.id][0], body, kept=True))
            continue
        memory = placing.memory_of(work, s)
        if s.id in windows.of:
            interval, sticking, stored = windows.of[s.id]
        else:
            interval, sticking = bounding.needed_box(work, s, together if memory == "shared" else boxes, p)
            if windows.of:
                interval, sticking = sliding.nearest(work, p, s, windows, interval, sticking)
            stored = interval
        box = dict(zip(s.axes, interval, strict=True))
        boxes[s.id] = box
        if memory == "shared":
            together[s.id] = box
        buffer = storing.stored_in(work, s, memory, stored)
        kept = work.plan.placements[s.id].kept
        if kept is not None:
            work.kept.setdefault((p.stage.id, sliding.home(p, kept)), []).append(buffer)
        made.append(Produced(s, buffer, nest(work, placing.place(work, s, box, sticking)), kept is not None))
    return made
