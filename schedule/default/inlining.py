"""Which stages go into their readers: what is evaluated no more often for it, what costs next to nothing, and what saves a pass."""

from __future__ import annotations

from collections.abc import Sequence

from fluorite.algo.extent import volume
from fluorite.algo.graph import Graph
from fluorite.algo.linear import linear
from fluorite.algo.stages import Stage

from ..directives import ComputeInline
from ..machine import Machine
from ..rewrites import inline
from ..scheduled import Undecided
from ..typical import guess
from .analysis import cost, fits, is_packed_at_load, is_product, is_rounding, is_scaled, levels, plain, sites, work, written_out
from .chosen import Chosen, carry
from .interleaved import cones, evaluations, suits

_CHEAP = 1
_LONGEST = 2000  # operations of one expression, written out: beyond, the code generator takes longer than the inlining saves
_SHARED = 20_000  # the same where what is shared is computed once
_DEEPEST = 100  # operations on the longest way down: enough that a trip through memory is paid for
_PASSED = 8  # vector instructions that are cheaper than a pass over memory and back
_BODY = 150  # operations of one expression
_WORTH_A_ROW = 12  # vector instructions that are cheaper than a trip through the cache


def after_inlining(g: Graph, undecided: Undecided) -> Chosen:
    """What is left to schedule when cheap stages are written into their readers."""
    inlined = inline_cheap(g, undecided)
    chosen = Chosen(g, undecided, {g.path_of(i): (ComputeInline(),) for i in inlined}, inlined, written=g)
    for s in g.stages:
        if s.id in inlined:
            current = chosen.graph.stage(s.id)
            assert current is not None
            if current.earlier:  # others of its recurrence have been written into it
                chosen.inlined.discard(s.id)
                del chosen.directives[s.path]
                continue
            carry(chosen.carried, s.id, g.consumers[s.id])
            chosen.graph = inline(chosen.graph, current)
    return chosen


def loses_lanes(g: Graph, s: Stage, reader: Stage, machine: Machine) -> bool:
    """Whether s has rows for vectors and its reader has not, nor elements of a few parts."""

    def short(x: Stage) -> bool:
        return not x.axes or fits(x.extents[-1], machine.lanes(x.dtype) - 1)

    return short(reader) and not short(s) and not suits(g, reader, machine)


def inline_windows(chosen: Chosen) -> None:
    """Cheap producers of stencils go into their readers: what neighbouring rows share stays in registers when rows are unrolled."""
    for s in reversed(chosen.graph.stages):
        current = chosen.graph.stage(s.id)
        assert current is not None
        readers = chosen.graph.consumers[s.id]
        if (
            s.reduction is not None
            or any(x.clock for x in (s, *readers))
            or s.id in chosen.graph.outputs
            or s.id in chosen.graph.pinned
            or not chosen.free(s)
            or len(s.axes) < 2
            or not readers
            or not all(
                chosen.free(c) and c.reduction is None and len(c.axes) == len(s.axes) and chosen.may_fuse(s.id, c.id) for c in readers
            )
            or any(loses_lanes(chosen.graph, current, c, chosen.machine) for c in readers)
        ):
            continue
        again = cost(current) * (sum(_evaluations(c, current) for c in readers) - 1)
        grown = max(cost(c) + cost(current) * len(sites(c, s.id)) for c in readers)
        size, depth = {s.id: written_out(current.value, {})}, {s.id: levels(current.value, {})}
        short = all(written_out(c.value, size) <= _LONGEST and levels(c.value, depth) <= _DEEPEST for c in readers)
        if again <= _WORTH_A_ROW and grown <= _BODY and short:
            carry(chosen.carried, s.id, readers)
            chosen.graph = inline(chosen.graph, current)
            chosen.inlined.add(s.id)
            chosen.directives[s.path] = (ComputeInline(),)


def inline_scaled(chosen: Chosen) -> None:
    """Images that are another one times numbers go into their readers, which then read that one: no pass to write them."""
    for s in chosen.graph.stages:
        current, g = chosen.graph.stage(s.id), chosen.graph
        assert current is not None
        readers = g.consumers[s.id]
        if (
            chosen.free(s)
            and s.reduction is None
            and not any(x.clock or x.turn or x.extern for x in (s, *readers))
            and s.id not in (*g.outputs, *g.pinned)
            and is_scaled(g, current)
            and readers
            and all(chosen.free(c) and chosen.may_fuse(s.id, c.id) and not chosen.is_product(c) for c in readers)
            and all(len(sites(c, s.id)) == 1 and (c.reduction is None or chosen.one_pass(c) or _is_small(c, s)) for c in readers)
        ):
            carry(chosen.carried, s.id, readers)
            chosen.graph = inline(g, current)
            chosen.inlined.add(s.id)
            chosen.directives[s.path] = (ComputeInline(),)


def _evaluated(s: Stage, readers: Sequence[Stage]) -> float:
    """How often each element of s is evaluated inside its readers, on average."""
    return sum(guess(work(c)) * len(sites(c, s.id)) for c in readers) / max(guess(volume(s.extents)), 1)


def _is_small(c: Stage, s: Stage) -> bool:
    """Whether c evaluates little of s."""
    return 16 * guess(work(c)) <= guess(volume(s.extents))


def _evaluations(c: Stage, p: Stage) -> float:
    """How often a reader evaluates p for each of its elements when four of its rows are unrolled and share what they can."""
    columns: dict[object, set[int]] = {}
    for index in sites(c, p.id):
        row = linear(plain(index[-2]))
        offset = row.constant if isinstance(row.constant, int) else 0
        columns.setdefault((*index[:-2], index[-1]), set()).add(offset)
    return sum((4 + max(rows) - min(rows)) / 4 for rows in columns.values())


def inline_cheap(g: Graph, undecided: Undecided) -> set[int]:
    """Stages whose expression goes into their readers: those evaluated no more often for it, and those that cost next to nothing."""
    chosen, machine = Chosen(g, undecided), undecided.machine
    joined = cones(g, chosen)
    out: set[int] = set()
    spent: dict[int, int] = {}
    size: dict[int, int] = {}  # of those in `out`, written out
    depth: dict[int, int] = {}  # likewise
    for s in g.stages:
        if s.id not in undecided.stages or s.reduction is not None or s.id in g.outputs or s.id in g.pinned or s.earlier:
            spent[s.id] = cost(s)
            continue
        mine = cost(s) + sum(spent.get(i, 0) * len(sites(s, i)) for i in s.sources if i in out)
        spent[s.id] = mine
        readers = g.consumers[s.id]
        if not readers or not all(c.id in undecided.stages and chosen.may_fuse(s.id, c.id) for c in readers):
            continue
        if any(is_product(c) for c in readers) or is_packed_at_load(g, s):
            continue
        if is_rounding(s) and any(c.reduction is not None and chosen.multiplies(c) for c in readers):
            continue  # a convolution becomes a product when its margin is a stage, if it reads tensors
        places = sum(len(sites(c, s.id)) for c in readers)
        once = len(readers) == 1 and fits(evaluations(g, readers[0], s, machine), volume(s.extents))
        narrower = mine > _CHEAP and any(loses_lanes(g, s, c, machine) for c in readers)
        grown = {**size, s.id: written_out(s.value, size)}
        deeper = {**depth, s.id: levels(s.value, depth)}
        longest = _SHARED if s.id in joined else _LONGEST
        if any(written_out(c.value, grown) > longest or levels(c.value, deeper) > _DEEPEST for c in readers):
            continue
        sums = any(c.reduction is not None and c.scatter is None for c in readers)
        passing = not sums and ((places <= 2 and mine <= _CHEAP) or mine * _evaluated(s, readers) <= _PASSED)
        if mine == 0 or s.id in joined or ((once or passing) and not narrower):
            size, depth = grown, deeper
            out.add(s.id)
            carry(chosen.carried, s.id, readers)
    return out


__all__ = ["after_inlining", "inline_cheap", "inline_scaled", "inline_windows", "loses_lanes"]
