"""Lowering: the stages of one kernel and their nests to loop statements (bounds inference, storage, initialisations, tails, interiors).

A stage that is computed at a loop of its consumer is computed over the box that the rest of that iteration reads. Where its loops must be
constant (vectors, unrolled tiles, GPU threads) the box is a tile of constant size that may stick out of the tensor: then reads of global
memory are clamped, which is what makes sticking out harmless. Loops that a vector or an unrolled tile spans exist twice: a fast version for
where every lane is inside, and a guarded one for the rest; `partition` then moves the test out of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.graph import Graph
from fluorite.schedule.nest import Nest
from fluorite.schedule.passes import LAST

from ..allocation import hoist_allocations
from ..common_parts import common_once
from ..gpu import memory_legality, nests, vthreads
from ..interleaving import interleaved
from ..masked_lanes import selected
from ..partition import partition
from ..phases import dealt
from ..positions import Shapes
from ..sharing import computed_once
from ..shortening import shortened
from ..statements import Kernel, Statement, allocations
from ..strides import combed
from . import assembling, companions
from .context import Context, KernelPlan

PASSES: dict[str, Callable[[Statement, Context], Statement]] = {
    "loops": lambda body, _: body,
    "partition": lambda body, work: partition(body) if work.plan.gpu else shortened(partition(body), _dtypes(work, body)),
    "allocation": lambda body, _: hoist_allocations(body),
    "masks": lambda body, work: body if work.plan.gpu else selected(body, work.ranges, _shapes(work, body)),
    "common": lambda body, work: body if work.plan.gpu else common_once(body, _dtypes(work, body)),
    "phases": lambda body, work: body if work.plan.gpu else _in_lanes(body, work),
    "sharing": lambda body, work: body if work.plan.gpu else computed_once(body, _dtypes(work, body)),
}
"""What becomes of a kernel's statements, in order."""


def lower(
    graph: Graph, plan: KernelPlan, native: Callable[[str], int], last: str = LAST
) -> tuple[Kernel | None, list[Problem], Mapping[int, Nest]]:
    """The kernel after pass `last`, the problems that keep it from existing, and the nests that were made (for messages and for `show`)."""
    work = Context(graph, plan, native)
    try:
        body = companions.run_together(work, assembling.roots(work))
    except PlanError as error:
        return None, list(dict.fromkeys([*work.problems, *error.problems])), work.nests
    if plan.gpu:
        body, shared = nests.hoisted(body)
        body = vthreads.written_out(body)
        work.problems += memory_legality.shared_bytes(plan.stages[-1], shared, plan.directives)
    if work.problems:
        return None, list(dict.fromkeys(work.problems)), work.nests
    for name, change in PASSES.items():
        body = change(body, work)
        if name == last:
            break
    return assembling.kernel(work, body), [], work.nests


def _in_lanes(body: Statement, work: Context) -> Statement:
    """With the lanes of vectors brought to where they belong."""
    body = dealt(body, work.ranges, _dtypes(work, body))
    body = interleaved(body, _dtypes(work, body), _shapes(work, body))
    return combed(body, _dtypes(work, body), _shapes(work, body))


def _dtypes(work: Context, body: Statement) -> dict[int, str]:
    """Of every tensor and buffer."""
    return {i: t.dtype for i, t in {**work.graph.by_id, **work.by_id}.items()} | {b.id: b.dtype for b in allocations(body)}


def _shapes(work: Context, body: Statement) -> Shapes:
    """Of every tensor and buffer, as it lies in memory."""
    return {i: t.shape for i, t in {**work.graph.by_id, **work.by_id}.items()} | {b.id: b.shape for b in allocations(body)}


__all__ = ["PASSES", "KernelPlan", "lower"]
