"""The rule for recurrences and loops on a GPU: blocks along axes where their stages never meet, threads for the rest of each stage."""

from __future__ import annotations

from collections.abc import Sequence

from fluorite.algo.expr import Axis
from fluorite.algo.extent import volume
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Reduction, Stage

from ..directives import Directive, Fuse, GpuBlocks, GpuThreads, Reorder, Split
from ..independent import Shared, independent, steps
from ..loop_checks import SHAPING
from ..nest import BLOCK, THREAD
from ..recurrences import free_axes
from ..scheduled import Undecided
from ..shaping import shape
from ..unscheduled import unscheduled
from .kernels import Directives

_THREADS, _WARP = 256, 32
_LONG = 64  # a reduction that pays for handing its parts over


def gpu_recurrence(g: Graph, s: Stage, undecided: Undecided) -> Directives | None:
    """Directives of one stage of a recurrence or loop, to go with what the plan says of the others; None for any other stage."""
    s = s.of_elements
    stages = [t.of_elements for t in steps(g, s)]
    if not stages:
        return _each(s) if s.earlier else None
    shared = independent(stages)
    if (given := next((t for t in stages if t.path in undecided.decided), None)) is not None:
        return _following(s, given, undecided.decided[given.path], shared)
    if shared and all(len(shared) == len(_spatial(t)) for t in stages):
        return _threads([axes[s.id].name for axes in shared], _least([axes[s.id] for axes in shared], s), s)
    shared = shared[:3]
    threads = max(_least(_inside(t, shared), t) for t in stages)
    if threads == 1:
        return _blocks(s, shared)
    inside = [a.name for a in _inside(s, shared)]
    if undecided.reassociate and _by_block(s, inside):
        return (*_dealt(s, [a.name for a in s.reduce_axes], (threads,)), *_blocks(s, shared))
    return _in_a_block(s, shared, (threads,))


def _in_a_block(s: Stage, shared: Sequence[Shared], threads: Sequence[int]) -> Directives:
    """All of a step in a block, or in one for each position of the shared axes."""
    inside = [a.name for a in _inside(s, shared)]
    if not inside or not threads:
        return _blocks(s, shared)
    kept = [axes[s.id].name for axes in shared]
    first = (Reorder(*kept, *inside),) if kept else ()
    return (*first, *_dealt(s, inside, threads), *_blocks(s, shared))


def _following(s: Stage, given: Stage, directives: Directives, shared: Sequence[Shared]) -> Directives:
    """The blocks and threads that the plan has given to another stage of the recurrence."""
    loops = [d for d in directives if isinstance(d, SHAPING)]
    nest, _ = shape(unscheduled(given, True), loops, lambda _: 1, given.dtype)
    blocks = {loop.lane: loop.var for loop in nest.loops if loop.kind == BLOCK}
    dealt = [next((axes for axes in shared if axes[given.id] is blocks[lane]), None) for lane in "zyx" if lane in blocks]
    extents = {loop.lane: loop.extent for loop in nest.loops if loop.kind == THREAD}
    threads = [n for lane in "zyx" if isinstance(n := extents.get(lane), int)]
    return _in_a_block(s, [axes for axes in dealt if axes is not None], threads)


def _spatial(s: Stage) -> list[Axis]:
    return [a for a in s.axes if s.clock is None or a is not s.clock.axis]


def _inside(s: Stage, shared: Sequence[Shared]) -> list[Axis]:
    """The axes of a stage that a block computes all of."""
    return [a for a in _spatial(s) if not any(axes[s.id] is a for axes in shared)]


def _least(axes: Sequence[Axis], s: Stage) -> int:
    """As many threads as there are positions, up to a block."""
    n = volume([s.ranges[a] for a in axes])
    if not isinstance(n, int):
        return _THREADS
    return 1 if n <= 1 else min(_THREADS, -(-n // _WARP) * _WARP)


def by_threads(r: Reduction) -> bool:
    """Whether threads may reduce parts of it, in whichever order."""
    return not r.in_order or r.kind.startswith("arg")


def _by_block(s: Stage, inside: Sequence[str]) -> bool:
    """Whether a stage is few long sums."""
    if s.reduction is None or not by_threads(s.reduction):
        return False
    few, long = volume([n for a, n in s.ranges.items() if a.name in inside]), volume(s.reduction.extents)
    return (isinstance(few, int) and few < _WARP) and not (isinstance(long, int) and long < _LONG)


def _each(s: Stage) -> Directives:
    """Every position of the other axes is a recurrence of its own."""
    free = [a for a in s.axes if any(a is x for x in free_axes(s))]
    return _threads([a.name for a in free], _least(free, s), s)


def _threads(names: list[str], threads: int, s: Stage) -> Directives:
    if not names:
        return ()
    assert s.clock is not None
    order = (Reorder(*names, s.clock.axis.name),) if not s.loops else ()
    return (*order, *_dealt(s, names, (threads,), blocks=True))


def _dealt(s: Stage, names: list[str], threads: Sequence[int], blocks: bool = False) -> tuple[Directive, ...]:
    """All positions along some axes as one loop, dealt to threads; what is left is done by each of them, or by `blocks`."""
    taken = {a.name for a in s.ranges}
    whole, many = (_free(taken, n) for n in ("whole", "block" if blocks else "turn"))
    lanes = [_free(taken, f"thread{n or ''}") for n in range(len(threads))]
    fused = (Fuse(*names, into=whole),) if len(names) > 1 else ()
    split = Split(whole if fused else names[0], factors=(None, *threads), into=(many, *lanes))
    return (*fused, split, *((GpuBlocks(many),) if blocks else ()), GpuThreads(*lanes))


def _blocks(s: Stage, shared: Sequence[Shared]) -> tuple[Directive, ...]:
    return (GpuBlocks(*(axes[s.id].name for axes in shared)),) if shared else ()


def _free(taken: set[str], wanted: str) -> str:
    while wanted in taken:
        wanted += "_"
    return wanted


__all__ = ["by_threads", "gpu_recurrence"]
