"""Which stages the default scheduler inlines and fuses, and which rule schedules each kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush

from fluorite.algo.dtypes import kind
from fluorite.algo.expr import Axis, Expr, Op
from fluorite.algo.extent import volume
from fluorite.algo.graph import Graph
from fluorite.algo.linear import linear
from fluorite.algo.stages import Stage, unwidened

from ..directives import ComputeAt, ComputeInline, Directive, Parallel
from ..machine import Machine
from ..placing import between
from ..rewrites import inline
from ..scheduled import Undecided
from ..typical import guess
from ..unscheduled import scatters, sorts
from . import channels, dots, few_results, kernels, products, recurrences, totals, transpositions
from .analysis import (
    cost,
    factors,
    fits,
    follows,
    is_packed_at_load,
    is_product,
    is_rounding,
    known,
    levels,
    plain,
    pointwise,
    sites,
    work,
    written_out,
)

Directives = tuple[Directive, ...]
_CHEAP = 1
_LONGEST = 2000  # operations of one expression, written out: beyond, the code generator takes longer than the inlining saves
_DEEPEST = 100  # operations on the longest way down: enough that a trip through memory is paid for
_STRIP_WINDOW = 64
_PASSED = 8  # vector instructions that are cheaper than a pass over memory and back
_BODY = 150  # operations of one expression
_WORTH_A_ROW = 12  # vector instructions that are cheaper than a trip through the cache


@dataclass
class Chosen:
    """The directives so far, by path, and the stages that already have a kernel. `carried`: whose expressions a stage contains."""

    graph: Graph
    undecided: Undecided
    directives: dict[str, Directives] = field(default_factory=dict)
    inlined: set[int] = field(default_factory=set)
    placed: set[int] = field(default_factory=set)
    carried: dict[int, set[int]] = field(default_factory=dict)
    written: Graph | None = None  # before anything was written into its readers

    def multiplies(self, s: Stage) -> bool:
        """Whether a stage multiplies as the algorithm has it. The rules for products move operands, which is done before stages are written
        into their readers: what only that makes a product is none."""
        first = s if self.written is None else self.written.by_id.get(s.id, s)
        value = unwidened(first.value) if isinstance(first, Stage) else None
        return isinstance(value, Op) and value.op == "mul"

    def operands(self, s: Stage) -> frozenset[int]:
        """The tensors that a stage reads as the algorithm has it: those that a rule may move."""
        first = None if self.written is None else self.written.by_id.get(s.id)
        return frozenset((first if isinstance(first, Stage) else s).sources)

    def is_product(self, s: Stage) -> bool:
        """Whether a stage is a product, under the rules for products."""
        return factors(s) is not None and self.multiplies(s) and self.one_pass(s) is None

    def one_pass(self, s: Stage) -> few_results.Pass | None:
        """How a stage is reduced in one pass over its operands, if that may be done and pays."""
        free = self.undecided.reassociate or kind(s.value.dtype) != "float"  # integers and truth values come out the same
        return few_results.one_pass(s, self.machine) if free else None

    def apart(self, s: Stage) -> bool:
        """Whether a stage has a kernel of its own, or one of which it is the main part."""
        return factors(s) is not None or self.one_pass(s) is not None

    @property
    def machine(self) -> Machine:
        return self.undecided.machine

    def free(self, s: Stage) -> bool:
        return s.id in self.undecided.stages and s.id not in self.placed and s.id not in self.inlined

    def may_fuse(self, a: int, b: int) -> bool:
        """Whether a and b, with what has been written into them, may share a kernel."""
        apart, of_both = self.undecided.apart, ({a, *self.carried.get(a, ())}, {b, *self.carried.get(b, ())})
        if any((x, y) in apart or (y, x) in apart for x in of_both[0] for y in of_both[1]):
            return False
        loops = [t.loops for t in (self.graph.by_id[x] for x in (a, b)) if isinstance(t, Stage)]
        if len(set(loops)) > 1:
            return False
        of_a = next((g for g in self.undecided.together if a in g), None)
        of_b = next((g for g in self.undecided.together if b in g), None)
        if of_a is None and of_b is None:
            return self.undecided.fuse
        return of_a is of_b


def carry(carried: dict[int, set[int]], s: int, readers: Iterable[Stage]) -> None:
    """Note that s is written into its readers."""
    for c in readers:
        carried.setdefault(c.id, set()).update({s, *carried.get(s, ())})


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
    for s in reversed(chosen.graph.stages):
        if chosen.free(s):
            schedule_kernel(chosen, s)
    return {**chosen.directives, **{path: (d, *chosen.directives.get(path, ())) for path, d in first.items()}}


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


def anchor(g: Graph, undecided: Undecided) -> dict[str, Directives]:
    """Undecided stages that the plan computes something in: the owner keeps the loop, and what stands between is computed there too."""
    out: dict[str, Directives] = {}
    for i, owner, loop in undecided.anchors:
        found = between(g, i, owner)
        for s in (g.stages[n] for n in sorted(g.positions[k] for k in (*found, owner))):
            if s.id == owner and owner in undecided.stages:
                if s.clock is not None or scatters(s, False) or sorts(s, False):
                    out[s.path] = ()
                    continue
                first, last = s.axes[0].name, s.axes[-1].name
                ds: list[Directive] = [Parallel(first)] if kernels.pays_parallel(s) else []
                out[s.path] = (*ds, *(kernels.vector(s, last, undecided.machine) if last not in (loop, first) else ()))
            elif s.id in found and s.id in undecided.stages and s.id not in g.pinned:
                spread = kernels.vector(s, s.axes[-1].name, undecided.machine) if s.axes and s.reduction is None and s.clock is None else ()
                out.setdefault(s.path, (ComputeAt(stage="/" + g.path_of(owner), axis=loop), *spread))
    return out


def loses_lanes(s: Stage, reader: Stage, machine: Machine) -> bool:
    """Whether s has rows for vectors and its reader has not: pairs or pixels of three colours that are put together from planes."""

    def short(x: Stage) -> bool:
        return not x.axes or fits(x.extents[-1], machine.lanes(x.dtype) - 1)

    return short(reader) and not short(s)


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
            or any(loses_lanes(current, c, chosen.machine) for c in readers)
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


def _evaluated(s: Stage, readers: Sequence[Stage]) -> float:
    """How often each element of s is evaluated inside its readers, on average."""
    return sum(guess(work(c)) * len(sites(c, s.id)) for c in readers) / max(guess(volume(s.extents)), 1)


def _evaluations(c: Stage, p: Stage) -> float:
    """How often a reader evaluates p for each of its elements when four of its rows are unrolled and share what they can."""
    columns: dict[object, set[int]] = {}
    for index in sites(c, p.id):
        row = linear(plain(index[0]))
        offset = row.constant if isinstance(row.constant, int) else 0
        columns.setdefault(index[1:], set()).add(offset)
    return sum((4 + max(rows) - min(rows)) / 4 for rows in columns.values())


def windowed(chosen: Chosen, root: Stage) -> bool:
    """Whether rows of root share reads, so that unrolling them pays."""
    if root.reduction is not None or len(root.axes) < 2:
        return False
    return not strip_members(chosen, root) and kernels.shares_rows(root)


def inline_cheap(g: Graph, undecided: Undecided) -> set[int]:
    """Stages whose expression goes into their readers: those evaluated no more often for it, and those that cost next to nothing."""
    chosen, machine = Chosen(g, undecided), undecided.machine
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
        once = len(readers) == 1 and fits(volume((places, work(readers[0]))), volume(s.extents))
        narrower = mine > _CHEAP and any(loses_lanes(s, c, machine) for c in readers)
        grown = {**size, s.id: written_out(s.value, size)}
        deeper = {**depth, s.id: levels(s.value, depth)}
        if any(written_out(c.value, grown) > _LONGEST or levels(c.value, deeper) > _DEEPEST for c in readers):
            continue
        sums = any(c.reduction is not None and c.scatter is None for c in readers)
        passing = not sums and ((places <= 2 and mine <= _CHEAP) or mine * _evaluated(s, readers) <= _PASSED)
        if mine == 0 or ((once or passing) and not narrower):
            size, depth = grown, deeper
            out.add(s.id)
            carry(chosen.carried, s.id, readers)
    return out


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
    depth, row = row_members(chosen, root)
    if row:
        chosen.placed |= {s.id for s in row}
        chosen.directives |= kernels.rows(g, root, row, depth, chosen.machine, chosen.undecided.reassociate)
        return
    if windowed(chosen, root):
        chosen.directives |= kernels.window(chosen.graph, root, chosen.machine)
        return
    strip = strip_members(chosen, root)
    if strip:
        chosen.placed |= {s.id for s in strip}
        chosen.directives |= kernels.strips(g, root, strip, chosen.machine)
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
    reassociate = chosen.undecided.reassociate or kind(s.value.dtype) != "float"  # integers and truth values come out the same
    if reassociate and totals.suits(s, chosen.machine):
        chosen.directives |= totals.total(s, chosen.machine)
    else:
        chosen.directives |= kernels.reduction(chosen.graph, s, chosen.machine, reassociate)


def product_rule(chosen: Chosen, product: Stage, root: Stage) -> Mapping[str, Directives]:
    """The rule for a product and the stage that finishes it."""
    if chosen.undecided.reassociate and dots.suits(chosen.graph, product, root, chosen.machine):
        return dots.dots(product, root, chosen.machine)
    if (o := channels.lane_axis(chosen.graph, product, chosen.machine)) is not None:
        return channels.channels(chosen.graph, product, root, o, chosen.machine)
    return products.matmul(chosen.graph, product, root, chosen.machine)


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

    return _closure(chosen, root, near)


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


def _closure(chosen: Chosen, root: Stage, joins: Callable[[Stage, Stage], bool]) -> list[Stage]:
    """Free producers of root in their order, whose readers are all inside and join each of them."""
    g = chosen.graph
    inside = {root.id}
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
        if all(chosen.may_fuse(i, p.id) for i in inside):
            inside.add(p.id)
            members.append(p)
            for i in p.sources:
                if g.stage(i) is not None:
                    heappush(nearest, -g.positions[i])
    return members[::-1]
