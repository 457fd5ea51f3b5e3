"""Every wrong loop name of a plan, found stage by stage before kernels are put together, so that one mistake does not hide another."""

from __future__ import annotations

from collections.abc import Mapping

from fluorite.algo.errors import Problem
from fluorite.algo.expr import Axis
from fluorite.algo.extent import evaluate, symbols_of
from fluorite.algo.graph import Graph, Stage
from fluorite.algo.linear import linear
from fluorite.algo.rewriting import axes_of

from .directives import ComputeAt, Directive, Fuse, GpuBlocks, GpuThreads, Parallel, Reorder, Split, StoreAt, Tile, Unroll, Vectorize
from .grouping import Placement
from .machine import Machine
from .nest import VECTOR, Nest, shape, start
from .notation.places import NOWHERE

SHAPING = (Split, Tile, Reorder, Fuse, Parallel, Vectorize, Unroll, GpuBlocks, GpuThreads)
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
            start(s.path, s.axes, s.extents, s.reduce_axes, s.reduction.extents if s.reduction else ()),
            ds,
            machine.lanes,
            s.dtype,
            s.source,
        )
        problems += [p for p in found if s.id not in placements or p.code not in _OF_WHOLE_STAGES]
    for i, at in placements.items():
        owner, stage = g[at.owner], g[i]
        assert isinstance(owner, Stage) and isinstance(stage, Stage)
        problems += no_such_loops(stage, owner, nests[at.owner], at)
    return problems


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
        if nest.loop(loop) is None
    ]


def legal_loops(nest: Nest) -> str:
    """The loops at which another stage may be computed: those outside vectors."""
    vector = next((n for n, loop in enumerate(nest.loops) if loop.kind == VECTOR), len(nest.loops))
    return ", ".join(loop.name for loop in nest.loops[:vector]) or "none"


def keeps_order(s: Stage, nest: Nest) -> bool:
    """Whether the iterations of the stage's reduction come in the order of its axes."""
    order = [loop.var for loop in nest.loops if loop.reduction]
    wanted: list[Axis] = []
    for a in s.reduce_axes:
        value = nest.value(a)
        steps = [(atom, evaluate(c, dict.fromkeys(symbols_of(c), 1 << 20))) for atom, c in linear(value).terms if isinstance(atom, Axis)]
        wanted += [atom for atom, _ in sorted(steps, key=lambda step: -step[1])] or axes_of(value)
    wanted = [v for v in dict.fromkeys(wanted) if any(v is o for o in order)]
    return [id(v) for v in order] == [id(v) for v in wanted]
