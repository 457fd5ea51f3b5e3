"""Blocks and threads of stages that a kernel computes together, step by step or turn by turn.

Blocks do not wait for one another. So there is one block, or the blocks share out axes along which the stages never meet; in a block its
threads share out each stage, and wait for one another before the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.expr import Axis, axis
from fluorite.algo.printing import show
from fluorite.algo.rewriting import axes_of
from fluorite.algo.stages import Stage
from fluorite.schedule.directives import GpuBlocks, GpuThreads
from fluorite.schedule.independent import independent
from fluorite.schedule.nest import BLOCK, THREAD, Loop, Nest

from .nests import lanes_of
from .problems import Directives, place_of


@dataclass(frozen=True, eq=False)
class Stepped:
    """The blocks that all stages of a kernel share, by lane. `apart`: no thread reads what another one has written."""

    blocks: Mapping[str, Loop]
    apart: bool

    def inside(self, nest: Nest) -> Nest:
        """The nest of one of the stages in a block."""
        bound = {loop.var: self.blocks[loop.lane].var for loop in nest.loops if loop.kind == BLOCK}
        return Nest(
            nest.path,
            tuple(loop for loop in nest.loops if loop.kind != BLOCK),
            {**nest.define, **bound},
            nest.guards,
            nest.gone,
        )


def together(stages: Sequence[Stage], nests: Mapping[int, Nest], directives: Mapping[int, Directives]) -> tuple[Stepped, dict[str, int]]:
    """How the stages of one recurrence or loop share blocks, and the threads of a block by lane. Raises PlanError P252, P255, P270."""
    lanes: dict[str, int] = {}
    problems: list[Problem] = []
    for s in stages:
        mine = {lane: n for lane, n in lanes_of(nests[s.id]).items() if isinstance(n, int)}
        if mine and lanes and mine != lanes:
            why = f"{_names(stages)} are computed together by the {_shown(lanes)} of a block"
            problems.append(_problem(s, directives, "P255", f"{s.name} runs on {_shown(mine)}", why, "the same extents"))
        lanes = lanes or mine
    blocks = [{loop.lane: str(loop.extent) for loop in nests[s.id].loops if loop.kind == BLOCK} for s in stages]
    for s, found in zip(stages, blocks, strict=True):
        if found != blocks[0]:
            why = f"{_names(stages)} are computed together, and {stages[0].name} has {_grid(blocks[0])}"
            problems.append(_problem(s, directives, "P252", f"{s.name} has {_grid(found)}", why, "gpu_blocks of the same axes in each"))
    shared = independent(stages)
    if not problems:
        problems += [p for s in stages if (p := _meeting(s, stages, nests, directives)) is not None]
    if problems:
        raise PlanError(problems)
    dealt = [loop for loop in nests[stages[0].id].loops if loop.kind == BLOCK]
    common = {loop.lane: replace(loop, var=axis(loop.name)) for loop in dealt}
    every = all(len(shared) == len(_spatial(s)) for s in stages)
    alike = all(len({_text(nests[s.id], axes[s.id]) for s in stages}) == 1 for axes in shared)
    reducing = any(loop.reduction and loop.kind == THREAD for nest in nests.values() for loop in nest.loops)
    return Stepped(common, not lanes or (every and alike and not reducing)), lanes


def _meeting(s: Stage, stages: Sequence[Stage], nests: Mapping[int, Nest], directives: Mapping[int, Directives]) -> Problem | None:
    """P270: blocks that would read what others write at the same time."""
    nest = nests[s.id]
    blocks = {loop.var: loop.name for loop in nest.loops if loop.kind == BLOCK}
    for a in s.axes:
        used = [v for v in axes_of(nest.value(a)) if v in blocks]
        if not used:
            continue
        mine = next((axes for axes in independent(stages) if axes[s.id] is a), None)
        if mine is None:
            several = f"{_names(stages)} read{'s' * (len(stages) == 1)}"
            why = f"at one {a.name}, {several} what is computed at others: blocks do not wait for one another"
            free = [axes[s.id].name for axes in independent(stages)]
            instead = (f"gpu_blocks: {free}".replace("'", ""),) if free else ()
            return _problem(s, directives, "P270", f"gpu_blocks: {blocks[used[0]]} of {s.name}", why, *instead, f"gpu_threads: [{a.name}]")
        if len({_text(nests[t.id], mine[t.id]) for t in stages}) > 1:
            why = f"{_names(stages)} are computed together, and another deals {a.name} to blocks in another way"
            return _problem(s, directives, "P270", f"gpu_blocks: {blocks[used[0]]} of {s.name}", why, "the same splits in each of them")
    return None


def _spatial(s: Stage) -> list[Axis]:
    return [a for a in s.axes if s.clock is None or a is not s.clock.axis]


def _text(nest: Nest, a: Axis) -> str:
    """Where an axis is, as the same words in every nest that deals it in the same way."""
    labels = {loop.var: f"{loop.kind} {loop.lane or loop.name}" for loop in nest.loops}
    return show(nest.value(a), labels=labels)


def _names(stages: Sequence[Stage]) -> str:
    shown = [s.name for s in stages[:3]]
    return ", ".join(shown) + (f" and {len(stages) - 3} others" if len(stages) > 3 else "")


def _shown(lanes: Mapping[str, int]) -> str:
    return " x ".join(str(lanes[lane]) for lane in "zyx" if lane in lanes) + " threads"


def _grid(blocks: Mapping[str, str]) -> str:
    return "no gpu_blocks" if not blocks else f"{' x '.join(blocks[lane] for lane in 'zyx' if lane in blocks)} blocks"


def _problem(s: Stage, directives: Mapping[int, Directives], code: str, asked: str, why: str, *instead: str) -> Problem:
    kinds = (GpuThreads, GpuBlocks) if code == "P255" else (GpuBlocks, GpuThreads)
    return place_of(directives.get(s.id, ()), *kinds).problem(code, asked, why, instead, path=s.path, source=s.source)


__all__ = ["Stepped", "together"]
