"""The rewrites that change how a stage is stored: pad makes its axes longer, layout puts them into another order.

Both leave what the stage means to its readers as it is, so a result, whose shape and order the algorithm says, takes neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from fluorite.algo.errors import PlanError
from fluorite.algo.expr import Expr, Op, Read, as_expr
from fluorite.algo.extent import ceildiv
from fluorite.algo.graph import Graph
from fluorite.algo.linear import within
from fluorite.algo.rewriting import rewrite, substitute, walk
from fluorite.algo.stages import Stage, rewritten

from ..directives import Directive, Layout, Pad, Split, Tile, Vectorize
from ..notation.places import Place
from ..notation.yaml_reader import nearest


def pads_of(d: Directive, s: Stage, lanes: Callable[[str], int]) -> Mapping[str, int]:
    """The axes of s that a directive makes longer, with the multiples that they become. What is no axis of s is left to its nest."""
    match d:
        case Pad(sizes=sizes):
            return sizes
        case Split(axis=a, tail="pad"):
            multiple = 1
            for part in d.parts:
                multiple *= part or 1
            found = {a: multiple}
        case Tile(sizes=sizes, tail="pad"):
            found = dict(sizes)
        case Vectorize(axis=a, width=width, tail="pad") if width is not None:
            found = {a: lanes(s.dtype) if width == "native" else int(width)}
        case _:
            return {}
    return {a: n for a, n in found.items() if a in s.axis_names}


def pad(g: Graph, s: Stage, d: Directive, multiples: Mapping[str, int]) -> tuple[Graph, Stage]:
    """s over axes that are multiples of these. Beyond an old end it reads what it reads at that end; nobody reads what it makes there."""
    place = d.at("tail") if not isinstance(d, Pad) else d.at("sizes")
    unknown = next((a for a in multiples if a not in s.axis_names), None)
    if unknown is not None:
        why = (
            "what lies beyond the end of a reduction would be added"
            if unknown in {a.name for a in s.reduce_axes}
            else f"{s.name} has {', '.join(s.axis_names) or 'no axes'}"
        )
        raise _refused(place, s, f"pad: {unknown} is no axis of {s.name}", why, *nearest(unknown, s.axis_names))
    if s.id in g.outputs or s.id in g.carried:
        asked, why = f"{d.label()} pads {s.name}", f"it is a result of {s.method}, whose shape the algorithm says"
        raise _refused(place, s, asked, why, "cache: {into: acc}, and pad that", "tail: shift")
    extents = tuple(ceildiv(n, m) * m if (m := multiples.get(a.name)) else n for a, n in zip(s.axes, s.extents, strict=True))
    ranges = {**s.ranges, **dict(zip(s.axes, extents, strict=True))}

    last = {a: Op("edge", (a, as_expr(n)), "int32", True) for a, n, m in zip(s.axes, s.extents, extents, strict=True) if n != m}

    def at_the_end(e: Expr) -> Expr | None:
        inside = not isinstance(e, Read) or all(within(i, n, ranges) for i, n in zip(e.index, g[e.source].shape, strict=True))
        return None if inside else substitute(e, dict(last))

    value = rewrite(s.value, at_the_end)
    if value is not s.value and any(isinstance(e, Op) and e.op in ("where", "select") for e in walk(s.value)):
        value = substitute(s.value, dict(last))  # a condition may be what keeps a read inside
    new = replace(s, extents=extents, value=value)
    return g.spliced(s, (new,)), new


def layout(g: Graph, s: Stage, d: Layout) -> tuple[Graph, Stage]:
    """s with its axes in another order, and every read of it with its indices in that order."""
    names = [a.name for a in s.axes]
    if sorted(d.axes) != sorted(names):
        asked, why = f"layout: [{', '.join(d.axes)}]", f"it must name the axes of {s.name} once each: {', '.join(names) or 'none'}"
        raise _refused(d.at("axes"), s, asked, why)
    if s.id in g.outputs or s.id in g.carried:
        asked, why = f"layout: [{', '.join(d.axes)}] of {s.name}", f"it is a result of {s.method}, whose order of axes the algorithm says"
        raise _refused(d.at("axes"), s, asked, why, "cache: {into: acc, order: ...}")
    order = [names.index(n) for n in d.axes]

    def turned(e: Expr) -> Expr | None:
        return Read(e.source, tuple(e.index[k] for k in order), e.dtype) if isinstance(e, Read) and e.source == s.id else None

    own = rewritten(s, turned)  # a recurrence reads itself
    new = replace(own, axes=tuple(s.axes[k] for k in order), extents=tuple(s.extents[k] for k in order))
    return g.spliced(s, (new,), [rewritten(x, turned) for x in g.stages if s.id in x.sources and x is not s]), new


def _refused(place: Place, s: Stage, asked: str, why: str, *try_: str) -> PlanError:
    return PlanError([place.problem("P226", asked, why, try_, path=s.path, source=s.source)])
