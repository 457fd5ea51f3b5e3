"""Stencils whose producers are worth keeping: strips of rows, in which the producers stay in the cache."""

from __future__ import annotations

from collections.abc import Mapping

from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage

from ..directives import ComputeAt, Directive, Fuse, Parallel, Reorder, Split, Unroll, Vectorize
from ..machine import Machine
from ..typical import TYPICAL
from .analysis import known
from .kernels import Directives, blocks, by_lines, line_of, pays_parallel, tall_of, windowed


def strips(g: Graph, root: Stage, members: list[Stage], machine: Machine) -> Mapping[str, Directives]:
    """Strips of rows in parallel, cut across where a strip of the producers would not stay in half of the second-level cache.

    Axes before the last two stand outside where the producers have them too, and inside where all of them read the same rows.
    """
    *lead, y, x = [a.name for a in root.axes]
    lanes = machine.lanes(root.dtype)
    rows_, width = known(root.extents[-2], TYPICAL), known(root.extents[-1], TYPICAL)
    tall = tall_of(root, rows_)
    height = height_of(rows_, machine)
    columns = columns_of(width, 4 * max(1, len(members)) * (height + 4), lanes, machine)
    own: list[Directive] = [*blocks(y, height // tall, tall)]
    xs: list[str] = [x]
    if width >= lanes:
        xs = ["xv"]
        own += [Split(x, columns, into=("tile", "xt"))] if columns else []
        own += [Split("xt" if columns else x, lanes, into=("xv", "lane"))]
    vectors = ["lane"] if xs != [x] else []
    tile = ["tile"] if columns and vectors else []
    outside, inside = (lead, []) if all(len(m.axes) == len(root.axes) for m in members) else ([], lead)
    own += [Reorder(*outside, "strip", *tile, "block", *inside, *xs, *line_of(tall), *vectors)]
    task = "strip"
    if pays_parallel(root, *members):
        task = "task" if outside else "strip"
        own += [Fuse(*outside, "strip", into="task")] if outside else []
        own += [Parallel(task)]
    own += [*map(Unroll, line_of(tall)), *map(Vectorize, vectors)]
    at = ComputeAt(stage="/" + root.path, axis="tile" if tile else task)
    out: dict[str, Directives] = {root.path: tuple(own)}
    for s in members:
        out[s.path] = (at, *(windowed(s, machine) if s.reduction is not None else by_lines(s, machine, tall_of(s, height))))
    return out


def height_of(rows: int, machine: Machine) -> int:
    """Rows of a strip: few enough that every core has two."""
    return next((h for h in (32, 16, 8) if rows >= h * machine.cores * 2), 4)


def columns_of(width: int, column: int, lanes: int, machine: Machine) -> int:
    """Columns of a tile, of which each takes `column` bytes, so that it fills half of the second-level cache; 0 where none is needed."""
    room = machine.l2 // 2 // column
    if not lanes * 8 <= room < width:
        return 0
    return -(-width // -(-width // room) // lanes) * lanes  # tiles of one size, a whole number of vectors


__all__ = ["columns_of", "height_of", "strips"]
