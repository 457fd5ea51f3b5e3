"""prefetch: asking for what an operand's later iterations read, cache line by cache line."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from fluorite.algo.errors import PlanError
from fluorite.algo.expr import Axis, Expr, Op, as_expr, axis, binary
from fluorite.algo.linear import simplify
from fluorite.algo.rewriting import axes_of, substitute
from fluorite.schedule.directives import Prefetch
from fluorite.schedule.loop_names import missing_loop
from fluorite.schedule.nest import SERIAL
from fluorite.schedule.regions import Interval, required
from fluorite.schedule.rewrites import operand

from ..statements import Fetch, For, Statement
from . import bounding, tiling
from .context import Context, Placed

LINE = 64
"""Bytes of a cache line."""


def fetches(work: Context, p: Placed, k: int) -> list[Statement]:
    """The prefetches at the beginning of an iteration of loop k."""
    return [fetch(work, p, k, d) for d in asked_of(work, p) if d.axis == p.nest.loops[k].name]


def asked_of(work: Context, p: Placed) -> list[Prefetch]:
    return [d for d in work.plan.directives.get(p.stage.id, ()) if isinstance(d, Prefetch)]


def check(work: Context, p: Placed) -> None:
    """Every prefetch names a loop that is not written out. Raises PlanError."""
    first = tiling.tile_start(work, p)
    outside = ", ".join(p.nest.names[:first]) or "none"
    for d in asked_of(work, p):
        if p.nest.loop(d.axis) is None:
            raise PlanError([missing_loop(p.nest, d.axis, d.at("axis"), d.label())])
        if p.nest.position(d.axis) >= first:
            refuse(p, d, "axis", f"prefetch at {d.axis}", f"it is part of the innermost tile; loops outside that: {outside}")


def fetch(work: Context, p: Placed, k: int, d: Prefetch) -> Statement:
    s, loop = p.stage, p.nest.loops[k]
    source = operand(work.graph, s, d.read, d.at("read"), "prefetch")
    if source.id in work.by_id:
        refuse(p, d, "read", f"prefetch: {source.name} is computed in the same kernel", "what has just been written is near already")
    indices = [r.index for r in s.reads if r.source == source.id]
    box = bounding.boxes_at(work, p, k)[s.id]
    parts = required(indices, [box] * len(indices), source.shape, work.ranges, inside=True)
    if not any(loop.var in {*axes_of(i.start), *axes_of(i.length)} for i in parts):
        why = "each of its iterations reads the same part"
        refuse(p, d, "axis", f"prefetch: what {s.name} reads of {source.name} does not depend on {loop.name}", why)
    later = {loop.var: binary("add", loop.var, as_expr(d.ahead))}
    index: list[Expr] = []
    loops = []
    step = max(1, LINE // np.dtype(source.dtype).itemsize)
    for n, (part, size) in enumerate(zip(parts, source.shape, strict=True)):
        each = step if n == len(parts) - 1 else 1
        var = axis(f"{source.name}_{n}")
        start = substitute(part.start, later)
        at = start if part.bound == 1 else binary("add", start, binary("mul", var, as_expr(each)))
        index.append(Op("edge", (simplify(at, work.ranges), as_expr(size)), "int32", True))
        if part.bound != 1:
            loops.append((var, simplify(count(part, each, later), work.ranges)))
    body: Statement = Fetch(source.id, tuple(index))
    for var, extent in reversed(loops):
        body = For(var, var.name, as_expr(0), extent, SERIAL, "", body)
    return body


def count(part: Interval, step: int, later: dict[Axis, Expr]) -> Expr:
    """How many cache lines, or rows, the interval takes."""
    length = substitute(part.length, later)
    return binary("floordiv", binary("add", length, as_expr(step - 1)), as_expr(step))


def refuse(p: Placed, d: Prefetch, field: str, asked: str, why: str) -> NoReturn:
    raise PlanError([d.at(field).problem("P262", asked, why, ("leave prefetch out",), path=p.stage.path, source=p.stage.source)])
