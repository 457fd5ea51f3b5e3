"""Every wrong loop name of a plan, found stage by stage before kernels are put together, so that one mistake does not hide another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from fluorite.algo.errors import Problem
from fluorite.algo.expr import Op, Read
from fluorite.algo.graph import Graph
from fluorite.algo.rewriting import walk
from fluorite.algo.stages import Stage

from . import ordering
from .directives import (
    ComputeAt,
    Directive,
    Fuse,
    Reorder,
    Split,
    StoreAt,
    Tile,
    Unroll,
)
from .grouping import Placement
from .machine import Machine
from .nest import UNROLLED, VECTOR, Nest
from .notation.places import NOWHERE
from .placing import between
from .recurrences import clock_problems, not_within, placement_problems
from .shaping import MARKS, shape
from .unscheduled import scatters, sorts, unscheduled

SHAPING = (Split, Tile, Reorder, Fuse, *MARKS)
_OPERATIONS, _LOOP, _COPIES = 4096, 8, 16
"""How many operations unrolled loops may write out, and how many each counts as with a loop around it; copies that are always allowed."""
_OF_WHOLE_STAGES = ("P207", "P211", "P226")  # a stage that is computed at a loop has shorter extents there: lowering checks those


def loop_problems(
    g: Graph, chosen: Mapping[str, tuple[Directive, ...]], placements: Mapping[int, Placement], machine: Machine
) -> list[Problem]:
    """Problems of the nests that the directives make of whole stages, and of the loops that compute_at names."""
    problems: list[Problem] = []
    nests: dict[int, Nest] = {}
    for s in g.stages:
        ds = [d for d in chosen.get(s.path, ()) if isinstance(d, SHAPING)]
        nests[s.id], found = shape(
            unscheduled(s, machine.is_gpu),
            ds,
            machine.lanes,
            s.dtype,
            s.source,
        )
        found = found or added_again(s, ds, machine) or clock_problems(g, s, nests[s.id], ds, machine.is_gpu)
        problems += [p for p in found if s.id not in placements or p.code not in _OF_WHOLE_STAGES]
        problems += too_much_code(s, nests[s.id], ds) if s.id not in placements else []
    problems += placement_problems(g, placements)
    for i, at in placements.items():
        owner, stage = g[at.owner], g[i]
        assert isinstance(owner, Stage) and isinstance(stage, Stage)
        if scatters(stage, machine.is_gpu) or sorts(stage, machine.is_gpu):
            problems.append(scattered_whole(stage, owner, at))
        else:
            problems += no_such_loops(stage, owner, nests[at.owner], at)
        problems += following_problems(g, chosen, stage, owner, at, machine)
    return problems


def added_again(s: Stage, ds: Sequence[Directive], machine: Machine) -> list[Problem]:
    """P226: a scatter adds to what is there, wherever its loops are."""
    if not scatters(s, machine.is_gpu):
        return []
    why = f"{s.name} is a scatter: what the tail computes again would be added again"
    asking = [d for d in ds if getattr(d, "tail", "auto") == "shift"]
    return [d.at("tail").problem("P226", f"{d.label()}: tail: shift", why, ("guard", "auto"), path=s.path, source=s.source) for d in asking]


def following_problems(
    g: Graph, chosen: Mapping[str, tuple[Directive, ...]], s: Stage, owner: Stage, at: Placement, machine: Machine
) -> list[Problem]:
    """P204: what the plan leaves open between s and its owner has to be computed at that loop too, and cannot."""
    follows = replace(at, directive=None, after=False, kept=None)
    for t in g.stages if not at.after else ():
        if t.path in chosen or t.id not in between(g, s.id, owner.id):
            continue
        why = not_within(g, t, owner, follows)
        if scatters(t, machine.is_gpu) or sorts(t, machine.is_gpu):
            why = scattered_whole(t, owner, follows).why
        if why:
            place = at.directive.at("stage") if at.directive else NOWHERE
            asked = f'{s.name} cannot be computed at {owner.name}\'s "{at.loop}"'
            between_ = f"{t.name}, which reads it, would be computed there too: {why}"
            return [place.problem("P204", asked, between_, (f"compute it at {t.name}", "compute_root"), path=s.path, source=s.source)]
    return []


def too_much_code(s: Stage, nest: Nest, ds: Sequence[Directive]) -> list[Problem]:
    """P216: unrolled loops multiply; what they write out takes the code generator minutes, and no cache of instructions holds it."""
    unrolled = [loop for loop in nest.loops if loop.kind == UNROLLED and isinstance(loop.extent, int) and loop.extent > 1]
    copies = prod(loop.extent for loop in unrolled if isinstance(loop.extent, int))
    operations = sum(isinstance(e, Op | Read) for e in walk(s.value)) or 1
    first = next((n for n, loop in enumerate(nest.loops) if loop in unrolled), len(nest.loops))
    whole_loops = any(loop.kind not in (UNROLLED, VECTOR) and not loop.reduction for loop in nest.loops[first:])
    most = max(_COPIES, _OPERATIONS // (operations * (_LOOP if whole_loops else 1)))
    if copies <= most:
        return []
    d = next(d for d in reversed(ds) if isinstance(d, Unroll))
    names = " x ".join(f"{loop.name} ({loop.extent})" for loop in unrolled)
    asked = f"unroll: {names} writes {operations} operations out {copies:,} times"
    beside = " with the loops around them" * whole_loops
    why = f"more than {most} copies of them{beside} would make very much code"
    return [d.at("axis").problem("P216", asked, why, (f"smaller factors, whose product is {most} at most",), path=s.path, source=s.source)]


def no_such_loops(stage: Stage, owner: Stage, nest: Nest, at: Placement) -> list[Problem]:
    """P204: compute_at, or store_at, names a loop that its owner does not have."""
    named: list[tuple[str, str, ComputeAt | StoreAt | None]] = [("computed", at.loop, at.directive)]
    if at.kept is not None and at.kept.owner == owner.id:
        named.append(("kept", at.kept.loop, at.kept.directive))
    return [
        (d.at("axis") if d else NOWHERE).problem(
            "P204",
            f'{stage.name} cannot be {what} at {owner.name}\'s "{loop}"',
            f"no such loop{f' any more, {nest.gone[loop]}' if loop in nest.gone else ''}; legal: {legal_loops(nest)}",
            (),
            path=stage.path,
            source=stage.source,
        )
        for what, loop, d in named
        if nest.loop(loop) is None and loop not in nest.lost
    ]


def scattered_whole(stage: Stage, owner: Stage, at: Placement) -> Problem:
    """P218: a scatter or a sort is computed inside another stage."""
    place = at.directive.at("axis") if at.directive else NOWHERE
    what = "sort: every element may come first" if stage.rank is not None else "scatter: every value may arrive anywhere"
    why = f"it is a {what}, so none of it is finished before all of it is"
    asked = f'{stage.name} cannot be computed at {owner.name}\'s "{at.loop}"'
    return place.problem("P218", asked, why, ("compute_root",), path=stage.path, source=stage.source)


def legal_loops(nest: Nest) -> str:
    """The loops at which another stage may be computed: those outside vectors."""
    vector = next((n for n, loop in enumerate(nest.loops) if loop.kind == VECTOR), len(nest.loops))
    return ", ".join(loop.name for loop in nest.loops[:vector]) or "none"


def keeps_order(s: Stage, nest: Nest) -> bool:
    """Whether the iterations of the stage's reduction come in the order of its axes."""
    return ordering.keeps_order(nest, s.reduce_axes, [loop for loop in nest.loops if loop.reduction])
