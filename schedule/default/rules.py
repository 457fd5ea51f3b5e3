"""Which stages the default scheduler inlines and fuses, and which rule schedules each kernel."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush

from fluorite.algo.dtypes import kind
from fluorite.algo.expr import Axis, Expr
from fluorite.algo.extent import volume
from fluorite.algo.graph import Graph
from fluorite.algo.linear import linear
from fluorite.algo.stages import Stage

from ..directives import ComputeAt, ComputeInline, Directive, Pack, Parallel
from ..placing import between
from ..rewrites import operand_name
from ..scheduled import Undecided
from ..typical import TYPICAL
from ..unscheduled import scatters, sorts
from . import (
    channels,
    dots,
    few_results,
    interleaved,
    kernels,
    matrix_instructions,
    pixel_strips,
    products,
    recurrences,
    strips,
    totals,
    transpositions,
    updates,
)
from .analysis import follows, is_rounding, known, plain, pointwise, sites, unwoven
from .chosen import Chosen
from .inlining import after_inlining, inline_scaled, inline_windows
from .joint_passes import joint_passes
from .kernels import Directives
from .one_nest import run_together
from .siblings import Family, families
from .streams import streams

_STRIP_WINDOW = 64
_STRIP_DEPTH = 4
"""Stages in a row before the last one of a strip. Each widens the margins of all before it, where strips compute the same: beyond so many,
a tensor between two kernels costs less."""


def default_schedule(g: Graph, undecided: Undecided) -> Mapping[str, Directives]:
    """Directives for the undecided stages, by path (rewrites among them, so some paths are of stages that these make)."""
    externs = frozenset(s.id for s in g.stages if s.extern is not None)
    if undecided.stages & externs:  # they have no loops, and nothing shares a kernel with them
        rest = replace(undecided, stages=undecided.stages - externs)
        return {**default_schedule(g, rest), **{g.path_of(i): () for i in undecided.stages & externs}}
    if undecided.machine.is_gpu:
        from ..default_gpu import default_gpu

        return default_gpu(g, undecided)
    anchored = anchor(g, undecided)
    if anchored:
        undecided = replace(undecided, stages=frozenset(i for i in undecided.stages if g.path_of(i) not in anchored), anchors=())
        return {**default_schedule(g, undecided), **anchored}
    chosen = after_inlining(g, undecided)
    inline_windows(chosen)
    first = stage_margins(chosen)
    inline_scaled(chosen)
    related = families(chosen)
    of_one_pass = [f for f in related if chosen.one_pass(f.leader) is not None]
    schedule_families(chosen, of_one_pass)
    joint_passes(chosen)
    for s in reversed(chosen.graph.stages):
        if chosen.free(s):
            schedule_kernel(chosen, s)
    run_together(chosen, [f for f in related if f not in of_one_pass])
    chosen.directives |= streams(chosen.graph, chosen.directives)
    return {**chosen.directives, **{path: (d, *chosen.directives.get(path, ())) for path, d in first.items()}}


def schedule_families(chosen: Chosen, families: Sequence[Family]) -> None:
    """Sums to a few numbers that go over the same images: one kernel each family."""
    for family in families:
        over = chosen.one_pass(family.leader)
        assert over is not None
        chosen.placed |= family.ids
        chosen.directives |= few_results.in_one_nest(family, chosen.machine, over)


def stage_margins(chosen: Chosen) -> dict[str, Directive]:
    """Convolutions get their padded inputs as stages, so that what remains is a product."""
    out: dict[str, Directive] = {}
    for s in chosen.graph.stages:
        if chosen.free(s) and s.clock is None and chosen.multiplies(s) and (staged := products.margin_staged(chosen.graph, s)) is not None:
            before = set(chosen.graph.by_id)
            chosen.graph, out[s.path] = staged
            made = frozenset(t.id for t in chosen.graph.stages if t.id not in before)
            chosen.undecided = replace(chosen.undecided, stages=chosen.undecided.stages | made)
    return out


def anchor(g: Graph, undecided: Undecided) -> dict[str, Directives]:
    """Undecided stages that the plan computes something in: the owner keeps the loop, and what stands between is computed there too."""
    out: dict[str, Directives] = {}
    for i, owner, loop in undecided.anchors:
        found = between(g, i, owner)
        for s in (g.stages[n] for n in sorted(g.positions[k] for k in (*found, owner))):
            if s.id == owner and owner in undecided.stages:
                if not s.axes or s.clock is not None or scatters(s, False) or sorts(s, False):
                    out[s.path] = ()
                    continue
                first, last = s.axes[0].name, s.axes[-1].name
                ds: list[Directive] = [Parallel(first)] if kernels.pays_parallel(s) else []
                out[s.path] = (*ds, *(kernels.vector(s, last, undecided.machine) if last not in (loop, first) else ()))
            elif s.id in found and s.id in undecided.stages and s.id not in g.pinned:
                spread = kernels.vector(s, s.axes[-1].name, undecided.machine) if s.axes and s.reduction is None and s.clock is None else ()
                out.setdefault(s.path, (ComputeAt(stage="/" + g.path_of(owner), axis=loop), *spread))
    return out


def windowed(chosen: Chosen, root: Stage) -> bool:
    """Whether rows of root share reads, so that unrolling them pays."""
    if root.reduction is not None or len(root.axes) < 2:
        return False
    return not strip_members(chosen, root) and kernels.shares_rows(root)


def schedule_kernel(chosen: Chosen, root: Stage) -> None:
    """One kernel whose loops `root` owns, with the producers that are better computed inside it."""
    g = chosen.graph
    if recurrences.is_recurrence(g, root):
        chosen.placed.add(root.id)
        chosen.directives |= recurrences.recurrence(g, root, chosen.machine, chosen.operands(root))
        return
    product = epilogue_of(chosen, root)
    if product is not None:
        chosen.placed |= {root.id, product.id}
        chosen.directives |= product_rule(chosen, product, root)
        return
    chosen.placed.add(root.id)
    if root.scatter is not None:
        chosen.directives |= kernels.scatter(g, root, chosen.machine)
        return
    if root.rank is not None:
        chosen.directives |= kernels.rank(g, root, chosen.machine)
        return
    if chosen.is_product(root):
        chosen.directives |= product_rule(chosen, root, root)
        return
    if root.parts_axis is not None:
        reduction_kernel(chosen, root.of_elements)
        return
    if (over := chosen.one_pass(root)) is not None:
        chosen.directives |= few_results.in_one_pass(root, chosen.machine, over)
        return
    if made := state_together(chosen, root):
        chosen.directives |= made
        return
    depth, row = row_members(chosen, root)
    if row:
        chosen.placed |= {s.id for s in row}
        chosen.directives |= kernels.rows(g, root, row, depth, chosen.machine, chosen.undecided.reassociate)
        return
    if (pixels := pixel_members(chosen, root)) is not None:
        chosen.placed |= {s.id for s in pixels}
        chosen.directives |= pixel_strips.strips(g, root, pixels, chosen.machine)
        return
    if interleaved.suits(g, root, chosen.machine):
        chosen.directives |= interleaved.interleaved(g, root, chosen.machine)
        return
    if windowed(chosen, root):
        chosen.directives |= kernels.window(chosen.graph, root, chosen.machine)
        return
    strip = strip_members(chosen, root)
    if strip:
        chosen.placed |= {s.id for s in strip}
        chosen.directives |= strips.strips(g, root, strip, chosen.machine)
        return
    if root.reduction is not None:
        reduction_kernel(chosen, root)
        return
    if (across := transpositions.turned_axis(root, chosen.machine)) is not None:
        chosen.directives |= transpositions.transposition(root, across, chosen.machine)
        return
    chosen.directives |= kernels.elementwise(g, root, chosen.machine)


def reduction_kernel(chosen: Chosen, s: Stage) -> None:
    """The rule for a reduction by itself."""
    s = unwoven(chosen.graph, s)
    reassociate = chosen.undecided.reassociate or kind(s.value.dtype) != "float"  # integers and truth values come out the same
    if reassociate and totals.suits(s, chosen.machine):
        chosen.directives |= totals.total(s, chosen.machine)
    else:
        chosen.directives |= kernels.reduction(chosen.graph, s, chosen.machine, reassociate)


def product_rule(chosen: Chosen, product: Stage, root: Stage) -> Mapping[str, Directives]:
    """The rule for a product and the stage that finishes it."""
    if product.reduction is not None and 0 in (*product.extents, *product.reduction.extents):
        return {}
    by = matrix_instructions.suits(chosen.graph, product, chosen.machine, chosen.undecided.flushes)
    if by is not None:
        made = matrix_instructions.matmul(chosen.graph, product, root, chosen.machine, by)
        return {**made, **rounded_in_copies(chosen, product, {d.tensor for ds in made.values() for d in ds if isinstance(d, Pack)})}
    if chosen.undecided.reassociate and dots.suits(chosen.graph, product, root, chosen.machine):
        return dots.dots(product, root, chosen.machine)
    if (o := channels.lane_axis(product, chosen.machine)) is not None:
        return channels.channels(chosen.graph, product, root, o, chosen.machine)
    return products.matmul(chosen.graph, product, root, chosen.machine)


def rounded_in_copies(chosen: Chosen, product: Stage, packed: Container[str]) -> dict[str, Directives]:
    """Operands that are other tensors in fewer bits, for this product alone: they are rounded as they are packed."""
    g, out = chosen.graph, dict[str, Directives]()
    for i in product.sources:
        s = g.stage(i)
        if s is None or not is_rounding(s) or not chosen.free(s) or g.is_fixed(s, s.method) or s.id in (*g.outputs, *g.pinned):
            continue
        alone = [c.id for c in g.consumers[i]] == [product.id] and not any(x.clock or x.turn for x in (s, product))
        if alone and operand_name(g, product, s) in packed:
            chosen.placed.add(s.id)
            out[s.path] = (ComputeInline(),)
    return out


def epilogue_of(chosen: Chosen, root: Stage) -> Stage | None:
    """The product that root finishes: read at its own position, by nothing else."""
    if root.reduction is not None:
        return None
    g = chosen.graph
    for i in root.sources:
        p = g.stage(i)
        if (
            p is not None
            and chosen.free(p)
            and p.clock is None
            and p.id not in g.outputs
            and p.id not in g.pinned
            and chosen.is_product(p)
            and pointwise(root, p)
            and [c.id for c in g.consumers[i]] == [root.id]
            and chosen.may_fuse(root.id, i)
        ):
            return p
    return None


def state_together(chosen: Chosen, root: Stage) -> Mapping[str, Directives]:
    """One kernel for new values of state that are made of one another; not for those that end the kernel of a product."""

    def joins(p: Stage) -> bool:
        return chosen.free(p) and chosen.may_fuse(root.id, p.id) and epilogue_of(chosen, p) is None

    others = updates.members(chosen.graph, root, joins)
    made = updates.together(root, others, chosen.machine) if others else {}
    chosen.placed |= {s.id for s in others} if made else set()
    return made


def row_members(chosen: Chosen, root: Stage) -> tuple[int, list[Stage]]:
    """Producers that follow root's outer axes and are computed row by row inside it: softmax, norms."""
    for depth in range(len(root.axes) - (0 if root.reduction else 1), 0, -1):
        members = _closure(chosen, root, lambda c, p, depth=depth: follows(c, p, depth) and not chosen.apart(p))  # type: ignore[misc]
        whole = [m for m in (*members, root) if m.reduction is not None and not kernels.is_window(m)]
        if whole and members:
            return depth, members
    return 0, []


def strip_members(chosen: Chosen, root: Stage) -> list[Stage]:
    """Producers that a strip of root's rows needs only a strip of: stencils. They have root's axes, or only the last two of them."""
    if len(root.axes) < 2:
        return []

    def near(c: Stage, p: Stage) -> bool:
        if p.reduction is not None and known(volume(p.reduction.extents), _STRIP_WINDOW + 1) > _STRIP_WINDOW:
            return False
        depth = len(p.axes) - 2
        if chosen.apart(p) or depth < 0 or (len(p.axes) != len(c.axes) and (depth > 0 or c is not root)):
            return False
        return follows(c, p, depth) and all(_moves_along(c, index) for index in sites(c, p.id))

    return _closure(chosen, root, near, _STRIP_DEPTH)


def pixel_members(chosen: Chosen, root: Stage) -> list[Stage] | None:
    """The same of images whose last axis is a few parts of each pixel; None where the root is better computed otherwise."""
    g, machine = chosen.graph, chosen.machine
    if not interleaved.suits(g, root, machine) or len(root.axes) < 3 or known(root.extents[-2], TYPICAL) < machine.lanes(root.dtype):
        return None
    found = _closure(chosen, root, lambda c, p: not chosen.apart(p) and pixel_strips.near(g, c, p, machine), _STRIP_DEPTH)
    return found if found or pixel_strips.keeps_parts(root) else None


def _moves_along(c: Stage, index: tuple[Expr, ...]) -> bool:
    """Whether the row index moves with c's rows only, plus constants and small windows."""
    form = linear(plain(index[-2]))
    windows, y = set(c.reduce_axes), c.axes[-2]
    return form.coefficient(y) == 1 and all(isinstance(a, Axis) and (a is y or a in windows) for a in form.atoms)


def _is_whole(chosen: Chosen, p: Stage) -> bool:
    """Whether all of p is needed before any of it is: a result, a condition, a scatter, a sort, or elements of several parts."""
    gpu = chosen.machine.is_gpu
    if p.parts_axis is not None:
        return True
    return p.id in chosen.graph.outputs or p.id in chosen.graph.pinned or scatters(p, gpu) is not None or sorts(p, gpu) is not None


def _closure(chosen: Chosen, root: Stage, joins: Callable[[Stage, Stage], bool], depth: int | None = None) -> list[Stage]:
    """Free producers of root in their order, whose readers are all inside and join each of them; at most `depth` of them in a row."""
    g = chosen.graph
    inside = {root.id: 0}
    members: list[Stage] = []
    nearest = [-g.positions[i] for i in root.sources if g.stage(i) is not None]  # what reads a stage stands after it: seen before it
    heapify(nearest)
    while nearest:
        p = g.stages[-heappop(nearest)]
        if p.id in inside or p.clock or not chosen.free(p) or _is_whole(chosen, p):
            continue
        readers = g.consumers[p.id]
        if not all(c.id in inside for c in readers) or not all(joins(c, p) for c in readers):
            continue
        after = 1 + max((inside[c.id] for c in readers), default=0)
        if (depth is None or after <= depth) and all(chosen.may_fuse(i, p.id) for i in inside):
            inside[p.id] = after
            members.append(p)
            for i in p.sources:
                if g.stage(i) is not None:
                    heappush(nearest, -g.positions[i])
    return members[::-1]
