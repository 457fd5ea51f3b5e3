"""The memory of stages that are computed inside the kernel of their readers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from fluorite.algo.dtypes import held
from fluorite.algo.errors import PlanError
from fluorite.algo.extent import Extent, ceildiv
from fluorite.algo.stages import Stage
from fluorite.schedule.directives import Align, StoreIn, Stream
from fluorite.schedule.regions import Interval
from fluorite.schedule.unscheduled import scatters, sorts

from ..gpu import memory_legality
from ..statements import Buffer
from .context import Context

MOST = 64
"""Bytes at a multiple of which the memory of a kernel begins."""


def stored_in(work: Context, s: Stage, memory: str, stored: Sequence[Interval]) -> Buffer:
    """The buffer that holds what is stored of s, and from now on its values."""
    shape = aligned(work, s, tuple(i.bound for i in stored))
    rotates = s.id in work.slots
    if rotates:
        shape = (work.slots[s.id][1], *shape)
    buffer = Buffer(s.id, s.name, held(s.dtype) if memory == "local" else s.dtype, shape, memory, rotates)
    if work.plan.gpu and not all(isinstance(n, int) for n in buffer.shape):
        raise memory_legality.symbolic(s, buffer.shape, work.plan.directives.get(s.id, ()))
    if memory == "local" and not all(isinstance(n, int) for n in buffer.shape):
        d = next(d for d in work.plan.directives[s.id] if isinstance(d, StoreIn))
        raise PlanError(
            [
                d.at("memory").problem(
                    "P213",
                    f"store_in: {d.memory}: {s.name} keeps {' x '.join(map(str, buffer.shape))} elements at a time",
                    "registers and stack hold a constant number",
                    ("compute it at a loop further inside", "leave store_in out"),
                    path=s.path,
                    source=s.source,
                )
            ]
        )
    work.storage[s.id] = (buffer, tuple(i.start for i in stored))
    return buffer


def aligned(work: Context, s: Stage, shape: tuple[Extent, ...]) -> tuple[Extent, ...]:
    """The shape of a buffer whose rows begin where align wants them to. Raises PlanError P263."""
    d = next((d for d in work.plan.directives.get(s.id, ()) if isinstance(d, Align)), None)
    if d is None:
        return shape
    size = np.dtype(s.dtype).itemsize
    last = s.axes[-1].name if s.axes else ""
    problem = ""
    if s.id in work.plan.outputs:
        field, problem = "axis", f"{s.name} is a result, or read by another kernel, which expects its rows one after the other"
    elif d.axis != last:
        field, problem = "axis", f"rows of {s.name} run along {last or 'no axis'}, the last one that is stored"
    elif d.bytes % size or d.bytes & (d.bytes - 1) or d.bytes > MOST:
        field, problem = "bytes", f"it is a power of two from {size}, the bytes of one element, to {MOST}"
    if problem:
        asked = f"align: {{axis: {d.axis}, bytes: {d.bytes}}} of {s.name}"
        raise PlanError([d.at(field).problem("P263", asked, problem, ("leave align out",), path=s.path, source=s.source)])
    elements = d.bytes // size
    return (*shape[:-1], ceildiv(shape[-1], elements) * elements)


def streamed(work: Context, s: Stage) -> bool:
    """Whether what is stored of s goes past the caches. Raises PlanError P267."""
    d = next((d for d in work.plan.directives.get(s.id, ()) if isinstance(d, Stream)), None)
    if d is None:
        return False
    if s.id not in work.plan.outputs:
        why = "its readers are in the same kernel, which the caches are for"
    elif s.id in work.graph.updates:
        why = "it is the new value of state, which is stored over the old one"
    elif s.clock is not None or s.turn is not None or scatters(s, work.plan.gpu) or sorts(s, work.plan.gpu):
        why = "it reads again what it has stored"
    elif s.reduction is not None:
        why = "a reduction adds up in the place where it is stored; cache: acc leaves a stage that only stores"
    else:
        return True
    raise PlanError([d.at().problem("P267", f"stream of {s.name}", why, ("leave stream out",), path=s.path, source=s.source)])
