"""Reductions of much to little (the sum of an array, its maximum, a dot product): too few results to share out among the threads.

Each thread reduces a part of its own, and one more reduction takes these together. Where an outer axis of the reduction is long enough,
a part is every so many of its positions; else it is a stripe of the innermost one, as wide as a page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fluorite.algo.dtypes import held, itemsize
from fluorite.algo.expr import Axis, axis
from fluorite.algo.extent import volume
from fluorite.algo.stages import Stage

from ..directives import ComputeAt, Directive, FindBest, Fuse, Parallel, Reorder, Rfactor, Split, Vectorize
from ..machine import Machine
from ..typical import TYPICAL, guess
from .analysis import cost, known, work
from .kernels import Directives, lanes_of_partials, spans_lanes

LEAST = 1 << 18
"""Evaluations that pay for starting threads and for the second reduction."""
STRIPE = 4096
"""Bytes of one stripe of partial results."""
PARTS = 4
"""Parts for each core, where rows are shared out."""


def suits(s: Stage, machine: Machine) -> bool:
    """Whether s has fewer results than there are cores, much to do, and reads along memory."""
    return (
        s.reduction is not None
        and machine.cores > 1
        and s.scatter is None
        and s.clock is None
        and guess(volume(s.extents)) < machine.cores
        and guess(work(s)) * max(1, cost(s)) >= LEAST
        and (spans_lanes(s, machine) or _needs_runs(s))
    )


def _needs_runs(s: Stage) -> bool:
    """Whether parts of the reduction are runs of its first axis, since its combiner does not commute."""
    return s.reduction is not None and s.reduction.combiner is not None and s.reduction.in_order


def total(s: Stage, machine: Machine) -> Mapping[str, Directives]:
    """Directives for such a reduction and the stages that it is made of."""
    assert s.reduction is not None
    if _needs_runs(s):
        return runs(s, machine)
    if not s.reduction.kind.startswith("arg"):
        return shared_out(s, machine)
    best = f"{s.path}/best"
    values = shared_out(replace(s, path=best, dtype=s.value.dtype), machine)
    out = shared_out(s, machine)
    return {**values, **out, s.path: (FindBest(), *out[s.path])}


def runs(s: Stage, machine: Machine) -> dict[str, Directives]:
    """tasks[l] = over the l-th run of neighbours; s = over l: tasks[l]."""
    first = s.reduce_axes[0].name
    names = [*(a.name for a in s.axes), f"{first}_inner"]
    task = names[0] if len(names) == 1 else "task"
    own: list[Directive] = [Fuse(*names, into=task)] if len(names) > 1 else []
    parts = PARTS * machine.cores
    return {f"{s.path}/tasks": (*own, Parallel(task)), s.path: (Rfactor(axis=first, factor=parts, into="tasks"),)}


def shared_out(s: Stage, machine: Machine) -> dict[str, Directives]:
    assert s.reduction is not None
    parts = PARTS * machine.cores
    long = next((a for a in s.reduction.axes[:-1] if known(s.ranges[a], TYPICAL) >= parts), None)
    return stripes(s, machine) if long is None else rows(s, long, parts, machine)


def rows(s: Stage, over: Axis, parts: int, machine: Machine) -> dict[str, Directives]:
    """tasks[l] = over every parts-th position of `over` from l, in lanes; s = over l: tasks[l]."""
    assert s.reduction is not None
    path, outer = f"{s.path}/tasks", axis(f"{over.name}_outer")
    part = replace(s.reduction, axes=tuple(outer if a is over else a for a in s.reduction.axes))
    made = lanes_of_partials(replace(s, path=path, reduction=part), machine)
    names = [*(a.name for a in s.axes), f"{over.name}_inner"]
    task = names[0] if len(names) == 1 else "task"
    own: list[Directive] = [Fuse(*names, into=task)] if len(names) > 1 else []
    at = ComputeAt(stage="/" + path, axis=task)
    inside = {p: (at, *ds) for p, ds in made.items() if p != path}
    return {**inside, path: (*made[path], *own, Parallel(task)), s.path: (Rfactor(axis=over.name, factor=parts, into="tasks"),)}


def stripes(s: Stage, machine: Machine) -> dict[str, Directives]:
    """tasks[l] = over the elements l, l + width, ...; s = over l: tasks[l], in lanes. A thread has some stripes of neighbouring l."""
    assert s.reduction is not None
    k, lanes = s.reduction.axes[-1], machine.lanes(s.value.dtype)
    parts, few = machine.cores, 4 * lanes
    share = known(s.ranges[k], TYPICAL) // (8 * parts)
    stripe = max(few, min(STRIPE // itemsize(held(s.value.dtype)), share) // few * few)
    inner = f"{k.name}_inner"
    rest = replace(s.reduction, axes=(axis(inner),), extents=(parts * stripe,))
    summed = lanes_of_partials(replace(s, reduction=rest), machine)
    names = [a.name for a in s.axes]
    others = [a.name for a in s.reduction.axes[:-1]]
    task = "task" if names else "stripe"
    own: list[Directive] = [Split(inner, stripe, into=("stripe", "item")), Reorder(*names, "stripe", *others, f"{k.name}_outer", "item")]
    own += [Fuse(*names, "stripe", into=task)] if names else []
    own += [Parallel(task), Vectorize("item", width=lanes)]
    place: Directives = (ComputeAt(stage="/" + s.path, axis=names[-1]),) if names else ()
    inside = {p: (*place, *ds) for p, ds in summed.items() if p != s.path}
    return {
        **inside,
        f"{s.path}/tasks": tuple(own),
        s.path: (Rfactor(axis=k.name, factor=parts * stripe, into="tasks"), *summed[s.path]),
    }


__all__ = ["suits", "total"]
