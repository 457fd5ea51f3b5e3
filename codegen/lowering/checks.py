"""What cannot be computed where a plan puts it, in sentences."""

from __future__ import annotations

from dataclasses import replace

from fluorite.algo.stages import Stage
from fluorite.schedule.directives import Directive, Fuse, Reorder, Split, Tile, Vectorize
from fluorite.schedule.grouping import Placement
from fluorite.schedule.loop_checks import keeps_order, legal_loops, no_such_loops
from fluorite.schedule.nest import THREAD, VECTOR, Nest
from fluorite.schedule.notation.places import NOWHERE, Place
from fluorite.schedule.unscheduled import sorts

from . import following
from .context import Context, Placed


def check_results(work: Context) -> None:
    """A result, or what another kernel reads, must be stored whole."""
    for i, at in work.plan.placements.items():
        if i in work.plan.outputs and not at.after and not is_made_whole(work, work.by_id[i]):
            s, place = work.by_id[i], at.directive.at() if at.directive else NOWHERE
            reader = next((c.name for c in work.graph.consumers[i] if c.id not in work.by_id), None)
            why = f"{reader} reads it in another kernel" if reader else f"it is a result of {s.method}"
            instead = (_turned_round(work.by_id[at.owner], s),) if _follows(work.by_id[at.owner], s) else ()
            work.problems.append(
                place.problem(
                    "P205",
                    f"{s.name} cannot be computed inside {work.by_id[at.owner].name}",
                    f"{why}, so all of it is needed, and not each element is read just once, at its own place",
                    (*instead, "compute_root"),
                    path=s.path,
                    source=s.source,
                )
            )


def _follows(reader: Stage, s: Stage) -> bool:
    """Whether an iteration of s makes what one of the reader needs."""
    here = all(any(i is a for a in reader.axes) for r in reader.reads if r.source == s.id for i in r.index)
    return here and reader.reduction is None and 0 < len(s.axes) < len(reader.axes)


def _turned_round(reader: Stage, s: Stage) -> str:
    return f"{reader.name}: [{{compute_at: {{stage: {s.name}, axis: {s.axes[-1].name}}}}}], the reader in its loops"


def is_made_whole(work: Context, s: Stage) -> bool:
    """Whether a stage inside another one's loop is stored whole all the same: its readers there, of the same extents, read each element
    at its own place, so that their iterations make every element once."""
    at = work.plan.placements[s.id]
    plain = s.reduction is None and s.clock is None and s.turn is None and s.when is None and at.kept is None
    if work.plan.gpu or not plain or at.owner in work.plan.placements:
        return False
    readers = [c for c in work.plan.stages if s.id in c.sources]
    return bool(readers) and all(_takes_each_once(c, s) and (c.id == at.owner or _beside(work, c, s)) for c in readers)


def _takes_each_once(c: Stage, s: Stage) -> bool:
    same = c.reduction is None and list(map(str, c.extents)) == list(map(str, s.extents))
    return same and all(all(i is a for i, a in zip(r.index, c.axes, strict=True)) for r in c.reads if r.source == s.id)


def _beside(work: Context, c: Stage, s: Stage) -> bool:
    """Whether c is stored whole too, at the same loop."""
    mine, other = work.plan.placements[s.id], work.plan.placements.get(c.id)
    together = other is not None and not other.after and (other.owner, other.loop) == (mine.owner, mine.loop)
    return together and c.id in work.plan.outputs and is_made_whole(work, c)


def check_order(work: Context, s: Stage, nest: Nest) -> None:
    """argmax and argmin keep one running best: no loop over other positions inside their loops, and no vectors. They run in order, as what
    does not commute does."""
    if s.reduction is None or not s.reduction.in_order:
        return
    best = s.reduction.kind.startswith("arg")
    first = next((n for n, loop in enumerate(nest.loops) if loop.reduction), len(nest.loops))
    wrong = next((loop for n, loop in enumerate(nest.loops) if best and not loop.reduction and (n > first or loop.kind == VECTOR)), None)
    ds = work.plan.directives.get(s.id, ())
    shaping = [d for kinds in (Reorder | Tile | Vectorize, Fuse | Split) for d in ds if isinstance(d, kinds)]
    place = shaping[0].at() if shaping else NOWHERE
    if best:  # threads compare positions, too
        nest = replace(nest, loops=tuple(loop for loop in nest.loops if loop.kind != THREAD))
    if wrong is None and not keeps_order(s, nest):
        axes = ", ".join(a.name for a in s.reduce_axes)
        work.problems.append(
            place.problem(
                "P214",
                f"{s.name}: the loops of {s.reduction.kind} no longer run in the order of {axes}",
                "of equal values the first one counts" if best else f"{s.reduction.label} does not commute",
                (f"keep {axes} in order",),
                path=s.path,
                source=s.source,
            )
        )
    if wrong is not None:
        what = "is vectorised" if wrong.kind == VECTOR else f"lies inside a loop of {s.reduction.kind}"
        work.problems.append(
            place.problem(
                "P214",
                f"{s.name}: loop {wrong.name} {what}",
                "its running best is one value",
                ("keep the reduction loops innermost",),
                path=s.path,
                source=s.source,
            )
        )


def check_sort(work: Context, s: Stage, nest: Nest) -> None:
    """A row is sorted step by step: no vector holds several."""
    wrong = next((loop for loop in nest.loops if loop.kind == VECTOR), None)
    if wrong is None or sorts(s, work.plan.gpu) is None:
        return
    place = next((d.at() for d in work.plan.directives.get(s.id, ()) if isinstance(d, Vectorize)), NOWHERE)
    what, why = f"vectorize: loop {wrong.name} holds a sort of {s.name}", "the steps of a sort depend on what it compares"
    work.problems.append(place.problem("P217", what, why, (f"parallel: {wrong.name}",), path=s.path, source=s.source))


def check_placements(work: Context, placed: Placed) -> None:
    """Every stage computed at a loop of this nest: is there such a loop, may it be computed there, do its readers come later?"""
    owner, nest = placed.stage, placed.nest
    vector = next((n for n, loop in enumerate(nest.loops) if loop.kind == VECTOR), len(nest.loops))
    for i, at in work.plan.placements.items():
        if at.owner != owner.id:
            continue
        s, place, why = work.by_id[i], _place(work, at), ""
        if missing := no_such_loops(s, owner, nest, at):
            work.problems += missing
        elif nest.loop(at.loop) is None:  # what was to make it has been refused
            continue
        elif nest.position(at.loop) >= vector:
            why = f"{nest.loops[vector].name} is vectorised, and a stage is not computed in the lanes of another"
        elif at.after:
            why = following.unfinished(work, s, placed, nest, nest.position(at.loop))
        else:
            late = next(
                (c for c in work.plan.stages if i in c.sources and not is_inside(work, c.id, owner.id, nest.position(at.loop), nest)), None
            )
            if late is not None:
                why = f"{late.name} reads it too, and is computed outside that loop"
        if why:
            work.problems.append(
                place.problem(
                    "P204",
                    f'{s.name} cannot be computed at {owner.name}\'s "{at.loop}"',
                    f"{why}; legal: {legal_loops(nest)}",
                    (),
                    path=s.path,
                    source=s.source,
                )
            )


def check_readers(work: Context) -> None:
    """Of a kernel of several nests, as loops are: what is computed in one of them is read in no other. And that there is a nest at all."""
    nests = sum(s.id not in work.plan.placements for s in work.plan.stages)
    for i, at in work.plan.placements.items() if nests != 1 else ():
        s, owner = work.by_id[i], work.by_id[at.owner]
        late = next((c for c in work.plan.stages if i in c.sources and i != c.id and at.owner not in _around(work, c.id)), None)
        if nests == 0:
            why = f"{owner.name} is computed inside {s.name}, directly or not"
        elif late is not None and not at.after:
            why = f"{late.name} reads it too, and is computed outside that loop"
        else:
            continue
        asked = f'{s.name} cannot be computed at {owner.name}\'s "{at.loop}"'
        work.problems.append(_place(work, at).problem("P204", asked, why, ("compute_root",), path=s.path, source=s.source))


def _around(work: Context, i: int) -> set[int]:
    """A stage, and those in whose nests it is computed."""
    found = {i}
    while (at := work.plan.placements.get(i)) is not None and at.owner not in found:
        i = at.owner
        found.add(i)
    return found


def _place(work: Context, at: Placement) -> Place:
    """Where the plan says that a stage is computed there; of one that it leaves open, of another stage there, which takes it along, or of
    what it makes of the owner's loops."""
    there = [x.directive for x in (at, *work.plan.placements.values()) if x.owner == at.owner and x.loop == at.loop and x.directive]
    told = there or work.plan.directives.get(at.owner, ())
    return next((d.at("axis") for d in told if d.at("axis").line), NOWHERE)


def is_inside(work: Context, i: int, owner: int, position: int, nest: Nest) -> bool:
    """Whether stage i is computed within this loop of the owner."""
    if i == owner:
        return True
    at = work.plan.placements.get(i)
    if at is None:
        return False
    if at.after:
        return at.owner == owner and nest.loop(at.loop) is not None and nest.position(at.loop) == position
    if at.owner == owner:
        return nest.loop(at.loop) is None or nest.position(at.loop) >= position
    return is_inside(work, at.owner, owner, position, nest)


def directive_of(work: Context, p: Placed, kind: type[Directive]) -> Place:
    """Where the plan made the loop what it is."""
    found = [d for d in work.plan.directives.get(p.stage.id, ()) if isinstance(d, kind)]
    return found[0].at("axis") if found else NOWHERE
