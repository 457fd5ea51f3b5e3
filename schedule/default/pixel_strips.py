"""Stencils over images whose last axis is a few parts of each pixel: strips of rows, in which the producers stay in the cache."""

from __future__ import annotations

from collections.abc import Mapping

from fluorite.algo.expr import Axis, Expr
from fluorite.algo.graph import Graph
from fluorite.algo.linear import linear
from fluorite.algo.stages import Stage

from ..directives import ComputeAt, Directive, Fuse, Parallel, Reorder, Split, Unroll, Vectorize
from ..machine import Machine
from ..typical import TYPICAL
from . import interleaved
from .analysis import axes_of_index, known, plain
from .interleaved import outside_indices
from .kernels import Directives, blocks, line_of, pays_parallel, shares_rows, vector
from .strips import columns_of, height_of

_LINES = 4
"""Rows that are written out where they share what they read."""


def row_of(g: Graph, s: Stage, machine: Machine) -> int:
    """Which axis counts the rows of pixels; below 0 where there is none."""
    return len(s.axes) - (3 if interleaved.suits(g, s, machine) else 2)


def near(g: Graph, c: Stage, p: Stage, machine: Machine) -> bool:
    """Whether a strip of c's rows needs a strip of p's, for the same axes before the rows."""
    mine, its = row_of(g, c, machine), row_of(g, p, machine)
    if mine != its or its < 0 or p.reduction is not None:
        return False
    indices = [r.index for r in c.reads if r.source == p.id]
    lead = all(all(i is a for i, a in zip(index[:its], c.axes[:its], strict=True)) for index in indices)
    y = c.axes[its]
    return lead and all(_moves_with(index[its], y) and y not in set(axes_of_index(index[its + 1 :])) for index in indices)


def _moves_with(row: Expr, y: Axis) -> bool:
    form = linear(plain(row))
    return form.coefficient(y) == 1 and all(a is y for a in form.atoms)


def keeps_parts(s: Stage) -> bool:
    """Whether every part is made of the same part of pixels beside one another, so that a row of parts is as good as a row of pixels."""
    *_, x, part = s.axes
    for r in s.reads:
        used = set(axes_of_index(r.index))
        if not used & {x, part}:
            continue
        if len(r.index) < 2 or r.index[-1] is not part or used & {x, part} != {x, part} or not _moves_with(r.index[-2], x):
            return False
        if {x, part} & set(axes_of_index(r.index[:-2])):
            return False
    return not {x, part} & set(outside_indices(s))


def strips(g: Graph, root: Stage, members: list[Stage], machine: Machine) -> Mapping[str, Directives]:
    """Strips in parallel, cut across where what is kept of them would not stay in half of the second-level cache."""
    *lead, y, x = [a.name for a in root.axes[:-1]]
    lanes, parts = machine.lanes(root.dtype), known(root.extents[-1], 1)
    rows, width = known(root.extents[-3], TYPICAL), known(root.extents[-2], TYPICAL)
    height = height_of(rows, machine)
    tall = _LINES if rows >= 2 * _LINES and keeps_parts(root) and shares_rows(root, -3) else 1
    columns = columns_of(width, 4 * parts * len(members) * (height + 4), lanes, machine) if members else 0
    own: list[Directive] = [*blocks(y, height // tall, tall)]
    own += [Split(x, columns, into=("tile", "xt"))] if columns else []
    shaping, inner, marks = _pixels(root, "xt" if columns else x, "", machine)
    tile, line = ["tile"] if columns else [], line_of(tall)
    own += [*shaping, Reorder(*lead, "strip", *tile, "block", *inner[:-1], *line, inner[-1])]
    task = "strip"
    if pays_parallel(root, *members):
        task = "task" if lead else "strip"
        own += [*([Fuse(*lead, "strip", into=task)] if lead else []), Parallel(task)]
    at = ComputeAt(stage="/" + root.path, axis="tile" if tile else task)
    out: dict[str, Directives] = {root.path: (*own, *map(Unroll, line), *marks)}
    for s in members:
        if interleaved.suits(g, s, machine):
            shaping, inner, marks = _pixels(s, s.axes[-2].name, "pixel_", machine)
            out[s.path] = (at, *shaping, Reorder(*inner), *marks)
        else:
            out[s.path] = (at, *vector(s, s.axes[-1].name, machine))
    return out


def _pixels(s: Stage, x: str, prefix: str, machine: Machine) -> tuple[list[Directive], list[str], Directives]:
    """How one vector of pixels after the other is computed: what makes the loops, their order, what is done with them."""
    part, lanes = s.axes[-1].name, machine.lanes(s.dtype)
    vec, lane = f"{prefix}vec", f"{prefix}lane"
    if not keeps_parts(s):
        return [Split(x, lanes, into=(vec, lane))], [vec, part, lane], (Unroll(part), Vectorize(lane))
    few, pixel, row = f"{prefix}few", f"{prefix}pixel", f"{prefix}row"
    loops: list[Directive] = [Split(x, lanes, into=(few, pixel)), Fuse(pixel, part, into=row), Split(row, lanes, into=(vec, lane))]
    return loops, [few, vec, lane], (Unroll(vec), Vectorize(lane))


__all__ = ["keeps_parts", "near", "row_of", "strips"]
