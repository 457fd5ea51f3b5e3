"""Lowering: the stages of one kernel and their nests to loop statements (bounds inference, storage, initialisations, tails, interiors).

A stage that is computed at a loop of its consumer is computed over the box that the rest of that iteration reads. Where its loops must be
constant (vectors, unrolled tiles, GPU threads) the box is a tile of constant size that may stick out of the tensor: then reads of global
memory are clamped, which is what makes sticking out harmless. Loops that a vector or an unrolled tile spans exist twice: a fast version for
where every lane is inside, and a guarded one for the rest; `partition` then moves the test out of the loop.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from fluorite.algo.errors import InternalError, PlanError, Problem
from fluorite.algo.expr import Axis, Const, Expr, Op, Read, as_expr, axes_of, axis, binary, rewrite, walk
from fluorite.algo.extent import Extent, at_most, nonnegative, symbols_of
from fluorite.algo.graph import Graph, Stage
from fluorite.algo.linear import bounds, is_index, linear, simplify, within
from fluorite.schedule.directives import (
    Directive,
    Fetch,
    GpuThreads,
    Parallel,
    Reorder,
    StoreIn,
    Tile,
    Vectorize,
)
from fluorite.schedule.grouping import Placement
from fluorite.schedule.loop_checks import SHAPING, keeps_order, legal_loops, no_such_loop
from fluorite.schedule.nest import BLOCK, PARALLEL, SERIAL, THREAD, UNROLLED, VECTOR, Guard, Loop, Nest, shape, shifted, start
from fluorite.schedule.notation.places import NOWHERE, Place
from fluorite.schedule.regions import Box, Interval, Raw, image, raw_required, required, whole

from .gpu import legality, nests
from .reductions import accumulate, accumulators, initial
from .statements import Allocate, Buffer, For, If, Kernel, Statement, Store, sequence

TRUE, FALSE = Const(True, "bool", False), Const(False, "bool", False)


@dataclass(frozen=True)
class KernelPlan:
    """What one kernel computes: stages in producer order (inlined ones already gone), those that must reach global memory, directives by stage."""

    name: str
    stages: tuple[Stage, ...]
    outputs: frozenset[int]
    directives: Mapping[int, tuple[Directive, ...]]
    placements: Mapping[int, Placement]
    gpu: bool = False


@dataclass(frozen=True, eq=False)
class Placed:
    """A stage with its nest over a box, and how its axes follow from the loops."""

    stage: Stage
    nest: Nest
    box: Box
    values: Mapping[Axis, Expr]
    padded: frozenset[Axis]


def lower(graph: Graph, plan: KernelPlan, native: Callable[[str], int]) -> tuple[Kernel | None, list[Problem], Mapping[int, Nest]]:
    """The kernel, the problems that keep it from existing, and the nests that were made (for messages and for `show`)."""
    work = _Lowering(graph, plan, native)
    try:
        body = work.roots()
    except PlanError as error:
        work.problems += error.problems
        body = None
    if plan.gpu and body is not None:
        body, shared = nests.hoisted(body)
        work.problems += legality.shared_bytes(plan.stages[-1], shared, plan.directives)
    if work.problems or body is None:
        return None, work.problems, work.nests
    from .partition import partition

    return work.kernel(partition(body)), [], work.nests


class _Lowering:
    def __init__(self, graph: Graph, plan: KernelPlan, native: Callable[[str], int]) -> None:
        self.graph, self.plan, self.native = graph, plan, native
        self.by_id = {s.id: s for s in plan.stages}
        self.problems: list[Problem] = []
        self.nests: dict[int, Nest] = {}
        self.ranges: dict[Axis, Extent] = {}
        self.storage: dict[int, tuple[Buffer, tuple[Expr, ...]]] = {}      # stage -> its buffer and the origin that indices are relative to
        self.allocated: list[Buffer] = []
        self.initialised: set[int] = set()
        self.parallel: list[str] = []
        self.lanes: Mapping[str, Extent] = {}           # GPU: the kernel's threads
        self.threads: list[Loop] = []                   # GPU: the thread loops around the place that is being lowered

    # ------------------------------------------------------------ the whole kernel
    def _check_results(self) -> None:
        """A result, or what another kernel reads, must be stored whole."""
        for i, at in self.plan.placements.items():
            if i in self.plan.outputs:
                s, place = self.by_id[i], at.directive.at() if at.directive else NOWHERE
                reader = next((c.name for c in self.graph.consumers[i] if c.id not in self.by_id), None)
                why = f"{reader} reads it in another kernel" if reader else f"it is a result of {s.method}"
                self.problems.append(place.problem("P205", f"{s.name} cannot be computed inside {self.by_id[at.owner].name}", f"{why}, so all of it is needed", ("compute_root",), path=s.path, source=s.source))

    def roots(self) -> Statement:
        done: list[Statement] = []
        self._check_results()
        if self.plan.gpu:
            self.problems += legality.kernel_shape([s for s in self.plan.stages if s.id not in self.plan.placements], self.plan.directives)
        if self.problems:
            raise PlanError(self.problems)
        for s in self.plan.stages:
            if s.id not in self.plan.placements:
                buffer = Buffer(s.id, s.name, s.dtype, s.extents, "global" if s.id in self.plan.outputs else "workspace")
                self.storage[s.id] = (buffer, tuple(as_expr(0) for _ in s.axes))
                if buffer.memory == "workspace":
                    self.allocated.append(buffer)
                placed = self._place(s, {a: whole(n) for a, n in zip(s.axes, s.extents, strict=True)}, frozenset())
                loops = self._loops(placed, 0)
                if self.plan.gpu and not s.axes:
                    loops = For(axis("block"), "block", as_expr(0), as_expr(1), BLOCK, "x", loops)
                done.append(loops)
        body = sequence(*done)
        for b in reversed(self.allocated):
            body = Allocate(b, body)
        return body

    def kernel(self, body: Statement) -> Kernel:
        outside = dict.fromkeys(i for s in self.plan.stages for i in s.sources if i not in self.by_id)
        inputs = []
        for i in outside:
            t = self.graph[i]
            inputs.append(Buffer(i, t.name, t.dtype, t.shape))
        outputs = [Buffer(s.id, s.name, s.dtype, s.extents) for s in self.plan.stages if s.id in self.plan.outputs]
        symbols = dict.fromkeys(n for s in self.plan.stages for n in _symbols_in(s))
        symbols |= dict.fromkeys(n for b in (*inputs, *outputs) for e in b.shape for n in symbols_of(e))
        return Kernel(self.plan.name, tuple(inputs), tuple(outputs), tuple(symbols), body, tuple(s.path for s in self.plan.stages))

    # ------------------------------------------------------------ placing one stage
    def _place(self, s: Stage, box: Box, sticking: frozenset[Axis]) -> Placed:
        """The stage's nest over the box. `sticking` axes may reach outside the tensor."""
        reduction = s.reduction
        bounds_of = [box[a].bound for a in s.axes]
        nest = start(s.path, s.axes, bounds_of, s.reduce_axes, reduction.extents if reduction else ())
        nest, problems = shape(nest, self._directives(s), self.native, s.dtype, s.source)
        self.problems += problems
        nest = replace(nest, loops=tuple(replace(x, kind=SERIAL) if x.kind in (VECTOR, UNROLLED) and x.extent == 1 else x for x in nest.loops))
        if self.plan.gpu:
            if problems:
                raise PlanError(self.problems)
            nest = self._on_gpu(s, nest)
        nest = self._shift_tails(s, nest)
        guards = list(nest.guards)
        for a in s.axes:
            i = box[a]
            if a not in sticking and not _same(i.length, as_expr(i.bound)):
                guards.append(Guard(a, i.length))
        nest = replace(nest, guards=tuple(guards))
        self.nests[s.id] = nest
        self._check_placements(s, nest)
        self._check_arg(s, nest)
        if self.problems:
            raise PlanError(self.problems)
        for loop in nest.loops:
            self.ranges[loop.var] = loop.extent
        values = {a: simplify(binary("add", box[a].start, nest.value(a)), self.ranges) for a in s.axes}
        values |= {a: simplify(nest.value(a), self.ranges) for a in s.reduce_axes}
        return Placed(s, nest, box, values, sticking)

    def _shift_tails(self, s: Stage, nest: Nest) -> Nest:
        """Tails of vectorised axes overlap what came before where producers are computed per part: those then never reach outside either."""
        owners = [nest.position(at.loop) for at in self.plan.placements.values() if at.owner == s.id and nest.loop(at.loop)]
        vectors = {loop.var for loop in nest.loops if loop.kind == VECTOR}
        for guard in nest.guards:
            asked = guard.tail == "shift"
            if self.plan.gpu or guard.outer is None or guard.inner is None or not (asked or (guard.tail == "auto" and set(axes_of(nest.value(guard.inner))) & vectors)):
                continue
            parts = [n for n, loop in enumerate(nest.loops) if loop.var in set(axes_of(nest.value(guard.outer)))]
            if asked or (parts and any(n >= min(parts) for n in owners)):
                nest = shifted(nest, guard) or nest
        return nest

    def _check_arg(self, s: Stage, nest: Nest) -> None:
        """argmax and argmin keep one running best: no loop over other positions inside their loops, and no vectors."""
        if s.reduction is None or not s.reduction.kind.startswith("arg"):
            return
        first = next((n for n, loop in enumerate(nest.loops) if loop.reduction), len(nest.loops))
        wrong = next((loop for n, loop in enumerate(nest.loops) if not loop.reduction and (n > first or loop.kind == VECTOR)), None)
        place = next((d.at() for d in self.plan.directives.get(s.id, ()) if isinstance(d, Reorder | Tile | Vectorize)), NOWHERE)
        if wrong is None and not keeps_order(s, nest):
            axes = ", ".join(a.name for a in s.reduce_axes)
            self.problems.append(place.problem("P214", f"{s.name}: the loops of {s.reduction.kind} no longer run in the order of {axes}", "of equal values the first one counts", (f"keep {axes} in order",), path=s.path, source=s.source))
        if wrong is not None:
            what = "is vectorised" if wrong.kind == VECTOR else f"lies inside a loop of {s.reduction.kind}"
            self.problems.append(place.problem("P214", f"{s.name}: loop {wrong.name} {what}", "its running best is one value", ("keep the reduction loops innermost",), path=s.path, source=s.source))

    def _check_placements(self, owner: Stage, nest: Nest) -> None:
        """Every stage that is computed at a loop of this nest: is there such a loop, may it be computed there, and do its readers come later?"""
        vector = next((n for n, loop in enumerate(nest.loops) if loop.kind == VECTOR), len(nest.loops))
        for i, at in self.plan.placements.items():
            if at.owner != owner.id:
                continue
            s, place, why = self.by_id[i], at.directive.at("axis") if at.directive else NOWHERE, ""
            if nest.loop(at.loop) is None:
                self.problems.append(no_such_loop(s, owner, nest, at))
            elif nest.position(at.loop) >= vector:
                why = f"{nest.loops[vector].name} is vectorised, and a stage is not computed in the lanes of another"
            else:
                late = next((c for c in self.plan.stages if i in c.sources and not self._inside(c.id, owner.id, nest.position(at.loop), nest)), None)
                if late is not None:
                    why = f"{late.name} reads it too, and is computed outside that loop"
            if why:
                self.problems.append(place.problem("P204", f"{s.name} cannot be computed at {owner.name}'s \"{at.loop}\"", f"{why}; legal: {legal_loops(nest)}", (), path=s.path, source=s.source))

    def _inside(self, i: int, owner: int, position: int, nest: Nest) -> bool:
        """Whether stage i is computed within this loop of the owner."""
        if i == owner:
            return True
        at = self.plan.placements.get(i)
        if at is None:
            return False
        if at.owner == owner:
            return nest.loop(at.loop) is None or nest.position(at.loop) >= position
        return self._inside(at.owner, owner, position, nest)

    def _on_gpu(self, s: Stage, nest: Nest) -> Nest:
        nest = nests.arranged(nest)
        ds = self.plan.directives.get(s.id, ())
        self.problems += legality.any_nest(s, nest, ds, self.native)
        if self.problems:
            raise PlanError(self.problems)
        if s.id not in self.plan.placements:
            self.lanes = nests.lanes_of(nest)
            self.problems += legality.root_nest(s, nest, ds)
        else:
            self.problems += legality.moved_nest(s, nest, ds, self.storage[s.id][0].memory, self._in_all_threads(), self.lanes)
        if self.problems:
            raise PlanError(self.problems)
        return nest

    def _in_all_threads(self) -> bool:
        return {loop.lane for loop in self.threads} == set(self.lanes)

    def _directives(self, s: Stage) -> tuple[Directive, ...]:
        ds = self.plan.directives.get(s.id, ())
        fetch = nests.fetch_of(ds) if self.plan.gpu else None
        if fetch is not None and self.lanes and s.axes and s.reduction is None:
            return nests.dealt(s, fetch, self.lanes)
        return tuple(d for d in ds if isinstance(d, SHAPING))

    def _memory(self, s: Stage) -> str:
        if self.plan.gpu:
            return self._gpu_memory(s)
        chosen = next((d.memory for d in self.plan.directives.get(s.id, ()) if isinstance(d, StoreIn)), None)
        return {"registers": "local", "stack": "local", "shared": "shared", "global": "workspace", None: "workspace"}[chosen]

    def _gpu_memory(self, s: Stage) -> str:
        ds = self.plan.directives.get(s.id, ())
        chosen = next((d.memory for d in ds if isinstance(d, StoreIn)), None)
        if chosen == "global":
            raise legality.not_in_kernel(s, ds)
        if chosen is None:
            return "local" if self._in_all_threads() and not any(isinstance(d, GpuThreads | Fetch) for d in ds) else "shared"
        return "shared" if chosen == "shared" else "local"

    # ------------------------------------------------------------ loops, outermost first
    def _loops(self, p: Placed, k: int) -> Statement:
        nest = p.nest
        first_reduction = next((n for n, loop in enumerate(nest.loops) if loop.reduction), None)
        if k == first_reduction and p.stage.id not in self.initialised:
            self.initialised.add(p.stage.id)
            return self._reduction(p, k)
        if k == self._tile_start(p):
            return self._tile(p, nest.loops[k:], k)
        loop = nest.loops[k]
        inside = [self.by_id[i] for i, at in self.plan.placements.items() if at.owner == p.stage.id and at.loop == loop.name]
        inside.sort(key=lambda s: self.plan.stages.index(s))
        if loop.kind == THREAD:
            self.threads.append(loop)
        if loop.kind == PARALLEL:
            if self.parallel:
                raise PlanError([self._directive_of(p, loop, Parallel).problem("P212", f"parallel: {p.stage.name} is computed inside {self.parallel[-1]}, which is parallel already",
                                                                               "parallel loops do not nest", ("parallel only the outer one",), path=p.stage.path, source=p.stage.source)])
            self.parallel.append(f"{loop.name} of {p.stage.name}")
        body = self._with_producers(p, k, inside, lambda: self._loops(p, k + 1))
        if loop.kind == PARALLEL:
            self.parallel.pop()
        if loop.kind == THREAD:
            self.threads.pop()
        return self._for(p, loop, body, k)

    def _directive_of(self, p: Placed, loop: Loop, kind: type[Directive]) -> Place:
        """Where the plan made the loop what it is."""
        found = [d for d in self.plan.directives.get(p.stage.id, ()) if isinstance(d, kind)]
        return found[0].at("axis") if found else NOWHERE

    def _for(self, p: Placed, loop: Loop, body: Statement, k: int) -> Statement:
        """The loop with every guard that its variable completes: as a shorter extent where that is linear, else as a test."""
        extent = as_expr(loop.extent)
        tests: list[Expr] = []
        known = {x.var for x in p.nest.loops[:k + 1]}
        late = set(self._late(p))
        if loop.kind == VECTOR:
            inner = next(x for x in p.nest.loops[k + 1:] if not isinstance(x.extent, int) or x.kind not in (SERIAL, VECTOR, UNROLLED))
            what = f"is {inner.kind}" if isinstance(inner.extent, int) else f"has {inner.extent} iterations, known only when the kernel runs"
            why = "loops inside a vector are serial or unrolled, and of constant extent"
            raise PlanError([self._directive_of(p, loop, Vectorize).problem("P215", f"vectorize: {inner.name}, inside {loop.name}, {what}", why,
                                                                            (f"reorder so that {loop.name} is innermost",), path=p.stage.path, source=p.stage.source)])
        for value, limit in self._guards(p):
            form = linear(value)
            if (value, limit) in late:
                continue
            if loop.var not in set(axes_of(value)) or not all(a in known or not self._is_loop(p, a) for a in axes_of(value)):
                continue
            if loop.kind not in (THREAD, UNROLLED) and form.coefficient(loop.var) == 1 and loop.var not in {a for x in form.atoms if x is not loop.var for a in axes_of(x)}:
                extent = binary("min", extent, binary("sub", limit, binary("sub", value, loop.var)))
            else:
                tests.append(value < limit)
        if loop.kind == SERIAL and not loop.reduction and not self.plan.gpu:
            extent = self._inside_only(p, loop, k, extent)
        extent = simplify(extent, self.ranges)
        if tests:
            body = If(_all(tests), body)
        return For(loop.var, loop.name, as_expr(0), extent, loop.kind, loop.lane, body)

    def _inside_only(self, p: Placed, loop: Loop, k: int, extent: Expr) -> Expr:
        """The iterations of a loop over a tile that sticks out, without those that lie outside altogether: nobody reads what they make."""
        inner = {x.var: x.extent for x in p.nest.loops[k + 1:]}
        for a in p.padded:
            value, n = p.values[a], p.stage.ranges[a]
            c = linear(value).coefficient(loop.var)
            first = _extreme(value, inner, False)
            if not isinstance(c, int) or c < 1 or first is None or within(value, n, self.ranges):
                continue
            rest = binary("sub", first, binary("mul", loop.var, as_expr(c)))
            if loop.var not in set(axes_of(linear(rest).expr())):
                past = binary("add", binary("sub", as_expr(n), linear(rest).expr()), as_expr(c - 1))
                extent = binary("min", extent, binary("floordiv", past, as_expr(c)))
        return extent

    def _is_loop(self, p: Placed, a: Axis) -> bool:
        return any(loop.var is a for loop in p.nest.loops)

    def _guards(self, p: Placed) -> list[tuple[Expr, Expr]]:
        out: list[tuple[Expr, Expr]] = []
        for g in p.nest.guards:
            value, limit = simplify(p.nest.value(g.value), self.ranges), as_expr(g.limit)
            if not isinstance(g.limit, Expr) and within(value, g.limit, self.ranges):
                continue
            out.append((value, limit))
        return out

    def _late(self, p: Placed) -> list[tuple[Expr, Expr]]:
        """GPU: guards that differ between threads and would enclose a barrier; they are tested around each store instead."""
        if not self.plan.gpu:
            return []
        barriers = [p.nest.position(at.loop) for i, at in self.plan.placements.items() if at.owner == p.stage.id and p.nest.loop(at.loop) and self._has_barrier(i)]
        barriers += [n for n, loop in enumerate(p.nest.loops) if loop.kind == THREAD and loop.reduction]
        last = max(barriers, default=-1)
        mine = [loop.var for loop in p.nest.loops]
        threads = {loop.var for loop in (*p.nest.loops, *self.threads) if loop.kind == THREAD}
        out = []
        for value, limit in self._guards(p):
            used = set(axes_of(value))
            if max((n for n, v in enumerate(mine) if v in used), default=-1) <= last and (used | set(axes_of(limit))) & threads:
                out.append((value, limit))
        return out

    def _has_barrier(self, i: int) -> bool:
        ds = self.plan.directives.get(i, ())
        if any(isinstance(d, Fetch | GpuThreads) for d in ds) or any(isinstance(d, StoreIn) and d.memory == "shared" for d in ds):
            return True
        return any(self._has_barrier(j) for j, at in self.plan.placements.items() if at.owner == i)

    # ------------------------------------------------------------ producers computed inside
    def _with_producers(self, p: Placed, k: int, producers: Sequence[Stage], rest: Callable[[], Statement]) -> Statement:
        if not producers:
            return rest()
        parts: list[Statement] = []
        buffers: list[Buffer] = []
        boxes = self._boxes(p, k)
        together = self._boxes(p, k, by_block=True) if self.plan.gpu else boxes
        for s in producers:
            memory = self._memory(s)
            interval, sticking = self._needed(s, together if memory == "shared" else boxes, p)
            box = dict(zip(s.axes, interval, strict=True))
            boxes[s.id] = box
            if memory == "shared":
                together[s.id] = box
            buffer = Buffer(s.id, s.name, s.dtype, tuple(i.bound for i in interval), memory)
            if self.plan.gpu and not all(isinstance(n, int) for n in buffer.shape):
                raise legality.symbolic(s, buffer.shape, self.plan.directives.get(s.id, ()))
            if memory == "local" and not all(isinstance(n, int) for n in buffer.shape):
                d = next(d for d in self.plan.directives[s.id] if isinstance(d, StoreIn))
                raise PlanError([d.at("memory").problem("P213", f"store_in: {d.memory}: {s.name} keeps {' x '.join(map(str, buffer.shape))} elements at a time",
                                                        "registers and stack hold a constant number", ("compute it at a loop further inside", "leave store_in out"), path=s.path, source=s.source)])
            self.storage[s.id] = (buffer, tuple(i.start for i in interval))
            buffers.append(buffer)
            parts.append(self._loops(self._place(s, box, sticking), 0))
        body = sequence(*parts, rest())
        for b in reversed(buffers):
            body = Allocate(b, body)
        return body

    def _boxes(self, p: Placed, k: int, by_block: bool = False) -> dict[int, Box]:
        """What one iteration of loop k computes of the owner: the loops outside are points, those inside their whole range.

        `by_block`: what all threads of the block compute of it together.
        """
        free: dict[Axis, Interval] = {loop.var: whole(loop.extent) for loop in p.nest.loops[k + 1:]}
        if by_block:
            free |= {loop.var: whole(loop.extent) for loop in self.threads}
        box: dict[Axis, Interval] = {}
        s = p.stage
        for a in (*s.axes, *s.reduce_axes):
            box[a] = self._span(p, a, image(p.values[a], free), free if by_block else {})
        return {s.id: box}

    def _span(self, p: Placed, a: Axis, raw: Raw | None, free: Box) -> Interval:
        """The part of axis a that one iteration covers: not beyond the owner's own box."""
        mine = p.box.get(a) or whole(p.stage.ranges[a])
        if free and (set(axes_of(mine.start)) | set(axes_of(mine.length))) & free.keys():
            first_, last_ = image(mine.start, free), image(mine.last, free)
            if first_ is None or last_ is None or raw is None:
                return whole(p.stage.ranges[a])
            length = binary("add", binary("sub", last_.last, first_.first), as_expr(1))
            mine = Interval(first_.first, length, raw.bound)
        if raw is None:
            return mine
        first, last = simplify(raw.first, self.ranges), simplify(raw.last, self.ranges)
        if a not in p.padded:
            if _same(first, mine.start) and at_most(mine.bound, raw.bound):
                return mine
            past = simplify(binary("sub", last, mine.last), self.ranges)
            low, high = bounds(past, self.ranges)
            if high is None or not nonnegative(high * -1):
                last = simplify(binary("min", last, mine.last), self.ranges)
        return Interval(first, simplify(binary("add", binary("sub", last, first), as_expr(1)), self.ranges), raw.bound)

    def _needed(self, s: Stage, boxes: dict[int, Box], owner: Placed) -> tuple[list[Interval], frozenset[Axis]]:
        """The box of s that everything computed in this iteration reads, and the axes along which it may stick out."""
        consumers = self._consumers_inside(s, owner, boxes)
        indices: list[tuple[Expr, ...]] = []
        where_: list[Box] = []
        for c in consumers:
            for r in c.reads:
                if r.source == s.id:
                    indices.append(r.index)
                    where_.append(boxes[c.id])
        if not indices:
            raise InternalError(f"{s.path} has no reader inside {owner.stage.path}")
        exact = required(indices, where_, s.extents, self.ranges)
        tile = raw_required(indices, where_, s.extents, self.ranges)
        marked = self._constant_axes(s, exact)
        sticking: set[Axis] = set()
        out = []
        for a, e, t in zip(s.axes, exact, tile, strict=True):
            if a in marked and t is not None and not e.whole:
                bound = self._rounded(s, a, t.bound)
                out.append(Interval(t.start, as_expr(bound), bound))
                sticking.add(a)
            else:
                out.append(e)
        return out, frozenset(sticking)

    def _consumers_inside(self, s: Stage, owner: Placed, boxes: dict[int, Box]) -> list[Stage]:
        """The readers of s; boxes of readers that are computed deeper are found on the way."""
        found = []
        for c in self.plan.stages:
            if s.id in c.sources:
                if c.id not in boxes:
                    if c.id not in self.plan.placements:
                        place = self.plan.placements[s.id].directive
                        why = f"{c.name} reads it too and is computed outside that loop"
                        problem = (place.at() if place else NOWHERE).problem("P204", f"{s.name} cannot be computed at {owner.stage.name}'s \"{self.plan.placements[s.id].loop}\"", why,
                                                                               (f"compute_root, or compute {c.name} there as well",), path=s.path, source=s.source)
                        raise PlanError([problem])
                    interval, _ = self._needed(c, boxes, owner)
                    boxes[c.id] = dict(zip(c.axes, interval, strict=True)) | {a: whole(n) for a, n in zip(c.reduce_axes, c.reduction.extents if c.reduction else (), strict=True)}
                elif c.reduction is not None and c.id != owner.stage.id:
                    boxes[c.id] = {**boxes[c.id], **{a: whole(n) for a, n in zip(c.reduce_axes, c.reduction.extents, strict=True)}}
                found.append(c)
        return found

    def _constant_axes(self, s: Stage, box: Sequence[Interval]) -> set[Axis]:
        """Axes with a loop that must be constant and not longer than the box: unrolled, vectorised, or dealt to threads."""
        nest = start(s.path, s.axes, [i.bound for i in box], s.reduce_axes, s.reduction.extents if s.reduction else ())
        nest, _ = shape(nest, self._directives(s), self.native, s.dtype)
        marked = {loop.var for loop in nest.loops if loop.kind in (VECTOR, UNROLLED, THREAD)} if not self.plan.gpu else {loop.var for loop in nest.loops}
        out: set[Axis] = set()
        for a in s.axes:
            used = set(axes_of(nest.value(a)))
            if used & marked:
                out.add(a)
        return out

    def _rounded(self, s: Stage, a: Axis, bound: Extent) -> Extent:
        """The bound rounded up so that this axis's splits divide it."""
        assert isinstance(bound, int)
        if self.plan.gpu and (fetch := nests.fetch_of(self.plan.directives.get(s.id, ()))) is not None:
            vector = (fetch.vector or 1) if a is s.axes[-1] else 1
            return -(-bound // vector) * vector
        nest = start(s.path, s.axes, [bound if x is a else 1 for x in s.axes], s.reduce_axes, s.reduction.extents if s.reduction else ())
        nest, _ = shape(nest, self._directives(s), self.native, s.dtype)
        _, high = bounds(nest.value(a), {loop.var: loop.extent for loop in nest.loops})
        return max(bound, high + 1) if isinstance(high, int) else bound

    # ------------------------------------------------------------ reductions
    def _reduction(self, p: Placed, k: int) -> Statement:
        """Initialise what the loops inside k accumulate into, then run them."""
        inner = p.nest.loops[k:]
        spatial = tuple(loop for loop in inner if not loop.reduction)
        reduction = p.stage.reduction
        assert reduction is not None
        if self.plan.gpu and nests.reduces_by_block(p.nest):
            return self._block_reduction(p, k)
        outside_vector = any(loop.kind == VECTOR for loop in p.nest.loops[:k])
        if not spatial and not outside_vector:
            self._start_scalars(p)
            return self._accumulated(p, self._loops(p, k), ())
        init_store = Store(p.stage.id, self._own_index(p), initial(p.stage)[0])
        return sequence(self._init_nest(p, spatial, k, init_store), self._loops(p, k))

    def _start_scalars(self, p: Placed) -> None:
        """From here on the reduction accumulates into scalars of its own."""
        for b in accumulators(p.stage):
            self.storage[b.id] = (b, (as_expr(0),))

    def _accumulated(self, p: Placed, loops: Statement, guards: Sequence[tuple[Expr, Expr]]) -> Statement:
        """The loops of a reduction between the start of its scalars and the store of its result."""
        scalars = accumulators(p.stage)
        init = [Store(b.id, (as_expr(0),), e) for b, e in zip(scalars, initial(p.stage), strict=True)]
        store: Statement = self._kept(p, Store(p.stage.id, self._own_index(p), Read(scalars[0].id, (as_expr(0),), scalars[0].dtype)))
        if guards:
            store = If(_all([v < n for v, n in guards]), store)
        body = sequence(*init, loops, store)
        for b in reversed(scalars):
            body = Allocate(b, body)
        return body

    def _block_reduction(self, p: Placed, k: int) -> Statement:
        accumulator = accumulators(p.stage)[0]
        self.storage[accumulator.id] = (accumulator, (as_expr(0),))
        reducing = [loop for loop in p.nest.loops[k:] if loop.kind == THREAD]
        self.threads += reducing
        body = self._loops(p, k + len(reducing))
        del self.threads[len(self.threads) - len(reducing):]
        return nests.block_reduction(p.stage, p.nest, body, lambda value: self._kept(p, Store(p.stage.id, self._own_index(p), value)))

    def _kept(self, p: Placed, store: Statement) -> Statement:
        """The store of a finished reduction, inside the guards that could not be tested further out."""
        reduced = {loop.var for loop in p.nest.loops if loop.reduction}
        tests = [v < n for v, n in self._late(p) if not set(axes_of(v)) & reduced]
        return If(_all(tests), store) if tests else store

    def _init_nest(self, p: Placed, spatial: tuple[Loop, ...], k: int, store: Statement) -> Statement:
        if not spatial:
            return store
        reduced = {loop.var for loop in p.nest.loops if loop.reduction}
        guards = [(v, n) for v, n in self._guards(p) if not (set(axes_of(v)) & reduced) and set(axes_of(v)) & {x.var for x in spatial}]
        outer = [(v, n) for v, n in self._late(p) if not set(axes_of(v)) & (reduced | {x.var for x in spatial})]
        body = self._versions(p, spatial, guards, [], lambda _: store)
        return If(_all([v < n for v, n in outer]), body) if outer else body

    # ------------------------------------------------------------ tiles: the innermost constant loops
    def _tile_start(self, p: Placed) -> int:
        """The outermost of the innermost constant loops, beginning with one that is vectorised or unrolled."""
        loops = p.nest.loops
        owners = {at.loop for at in self.plan.placements.values() if at.owner == p.stage.id}
        k = len(loops)
        while k > 0 and isinstance(loops[k - 1].extent, int) and loops[k - 1].name not in owners and loops[k - 1].kind in (SERIAL, VECTOR, UNROLLED):
            k -= 1
        while k < len(loops) and loops[k].kind == SERIAL:
            k += 1
        return k

    def _tile(self, p: Placed, loops: Sequence[Loop], k: int) -> Statement:
        inside = {x.var for x in loops}
        guards = [(v, n) for v, n in self._guards(p) if set(axes_of(v)) & inside]
        lanes = {x.var for x in loops if x.kind in (VECTOR, UNROLLED)} if any(x.kind == VECTOR for x in loops) else set()
        first = next((n for n, x in enumerate(loops) if x.reduction), None)
        start_here = first if first is not None and not any(x.reduction for x in p.nest.loops[:k]) and not self._initialised(p) else None
        if start_here is not None and not any(not x.reduction for x in loops[start_here:]) and not any(x.kind == VECTOR for x in p.nest.loops):
            self._start_scalars(p)
        body = self._versions(p, loops, guards, self._interior(p, lanes), lambda fast: self._update(p, fast), start_here)
        outer = [v < n for v, n in self._late(p) if not set(axes_of(v)) & inside]
        return If(_all(outer), body) if outer else body

    def _initialised(self, p: Placed) -> bool:
        return p.stage.id in self.initialised

    def _versions(self, p: Placed, loops: Sequence[Loop], guards: Sequence[tuple[Expr, Expr]], tests: Sequence[Expr], leaf: Callable[[Sequence[Expr]], Statement],
                  reduction_at: int | None = None) -> Statement:
        """The loops as marked where every guard and test holds throughout; where only the guards do, with clamped reads; else serial, tested."""
        tile = {x.var: x.extent for x in loops}
        conditions: list[Expr] = []
        for value, limit in guards:
            worst = _extreme(value, tile, True)
            conditions.append(FALSE if worst is None else simplify(worst < limit, self.ranges))
        decided = {t: c for t in tests if (c := _throughout(t, tile)) is not None}
        lanes = {x.var for x in loops if x.kind == VECTOR}
        needed = [t for t in decided if set(axes_of(t)) & lanes]
        held = _all([*conditions, *(simplify(decided[t], self.ranges) for t in needed)])
        everywhere = _all([simplify(c, self.ranges) for c in decided.values()])
        if isinstance(held, Const) and not held.value:
            return self._written(p, loops, leaf([]), reduction_at, guards, False)
        fast = self._written(p, loops, leaf(needed), reduction_at, (), True)
        if len(needed) < len(decided) and everywhere is not FALSE:
            best = self._written(p, loops, leaf(list(decided)), reduction_at, (), True)
            rest = _all([simplify(c, self.ranges) for t, c in decided.items() if t not in set(needed)])
            fast = best if isinstance(rest, Const) and rest.value else If(rest, best, fast)
        if isinstance(held, Const):
            return fast
        slow = self._written(p, loops, leaf([]), reduction_at, guards, False)
        stored = _all(conditions)
        if needed and stored is not FALSE and not self.plan.gpu:
            clamped = self._written(p, loops, leaf([]), reduction_at, (), True)
            slow = clamped if isinstance(stored, Const) else If(stored, clamped, slow)
        return If(held, fast, slow)

    def _written(self, p: Placed, loops: Sequence[Loop], leaf: Statement, reduction_at: int | None, guards: Sequence[tuple[Expr, Expr]], marked: bool) -> Statement:
        """One version of a tile: its loops around the leaf, with the initialisation of a reduction that begins inside it."""

        def around(inner: Sequence[Loop], body: Statement, tests: Sequence[tuple[Expr, Expr]]) -> Statement:
            if tests:
                body = If(_all([v < n for v, n in tests]), body)
            for n, loop in reversed(list(enumerate(inner))):
                # registers can only be indexed by constants, so a GPU's guarded version is written out too
                kind = loop.kind if marked else UNROLLED if self.plan.gpu and loop.kind in (VECTOR, UNROLLED) else SERIAL
                body = For(loop.var, loop.name, as_expr(0), as_expr(loop.extent), kind, loop.lane if marked else "", body)
                if inner is loops and n == reduction_at:
                    spatial = [x for x in loops[n:] if not x.reduction]
                    reduced = {x.var for x in loops if x.reduction}
                    outer = [g for g in guards if not set(axes_of(g[0])) & reduced]
                    if accumulators(p.stage)[0].id in self.storage:
                        body = self._accumulated(p, body, outer)
                    else:
                        body = sequence(around(spatial, Store(p.stage.id, self._own_index(p), initial(p.stage)[0]), outer), body)
            return body

        return around(loops, leaf, guards)

    def _interior(self, p: Placed, lanes: set[Axis]) -> list[Expr]:
        """Conditions under which the value needs no clamp and no choice that differs between the lanes of a vector."""
        if not lanes:
            return []
        found: dict[Expr, None] = {}

        def rule(n: Expr) -> Expr | None:
            match n:
                case Op(op="edge" | "reflect" | "wrap", args=(a, size)) if set(axes_of(a)) & lanes and is_index(a):
                    found[as_expr(0) <= a] = None
                    found[a < size] = None
                    return a                        # a clamp of a clamp is tested as it is when the inner one is gone
                case Op(op="where" | "select", args=(c, _, _)) if set(axes_of(c)) & lanes and not any(isinstance(x, Read) for x in walk(c)):
                    for part in _conjuncts(c):
                        if isinstance(part, Op) and part.op in ("lt", "le") and is_index(part.args[0]) and is_index(part.args[1]):
                            found[part] = None
            return None

        rewrite(self._value(p), rule)
        return [f for f in found if not isinstance(f, Const)]

    # ------------------------------------------------------------ the innermost statement
    def _update(self, p: Placed, known: Sequence[Expr]) -> Statement:
        value = self._value(p)
        if known:
            value = _assume(value, known, self.ranges)
        s = p.stage
        if s.reduction is None:
            return Store(s.id, self._own_index(p), value)
        scalar = accumulators(s)[0].id
        if scalar in self.storage:
            return accumulate(s, scalar, (as_expr(0),), value, p.values)
        return accumulate(s, s.id, self._own_index(p), value, p.values)

    def _own_index(self, p: Placed) -> tuple[Expr, ...]:
        _, origin = self.storage[p.stage.id]
        return tuple(simplify(binary("sub", p.values[a], o), self.ranges) for a, o in zip(p.stage.axes, origin, strict=True))

    def _value(self, p: Placed) -> Expr:
        """The stage's value over loop variables, reading buffers at their own origins."""
        memo: dict[Expr, Expr] = {}

        def rule(e: Expr) -> Expr | None:
            if isinstance(e, Axis):
                return p.values.get(e)
            if isinstance(e, Read):
                if e.source in self.by_id:
                    buffer, origin = self.storage[e.source]
                    local = tuple(simplify(binary("sub", i, o), self.ranges) for i, o in zip(e.index, origin, strict=True))
                    return Read(e.source, self._safe(local, buffer.shape) if p.padded else local, e.dtype)
                if p.padded:
                    return Read(e.source, self._safe(e.index, self.graph[e.source].shape), e.dtype)
            return None

        return simplify(rewrite(_eager(p.stage.value, p.stage.ranges, self._shape), rule, memo), self.ranges)

    def _shape(self, source: int) -> tuple[Extent, ...]:
        return self.graph[source].shape

    def _safe(self, index: tuple[Expr, ...], shape_: tuple[Extent, ...]) -> tuple[Expr, ...]:
        """The index, clamped where a tile that sticks out could leave the tensor."""
        return tuple(i if within(i, n, self.ranges) or not i.weak else Op("edge", (i, as_expr(n)), "int32", True) for i, n in zip(index, shape_, strict=True))


def _same(a: Expr, b: Expr) -> bool:
    d = linear(binary("sub", a, b))
    return not d.terms and d.constant == 0


def _all(conditions: Sequence[Expr]) -> Expr:
    out: Expr = TRUE
    for c in dict.fromkeys(conditions):
        if isinstance(c, Const):
            if not c.value:
                return c
            continue
        out = c if out is TRUE else out & c
    return out


def _conjuncts(c: Expr) -> list[Expr]:
    return [*_conjuncts(c.args[0]), *_conjuncts(c.args[1])] if isinstance(c, Op) and c.op == "and" else [c]


def _extreme(e: Expr, tile: Mapping[Axis, Extent], largest: bool) -> Expr | None:
    """A bound of e over the tile's variables, exact for linear forms; None where there is no simple one."""
    form = linear(e)
    total: Expr = as_expr(form.constant)
    for atom, c in form.terms:
        upper = nonnegative(c) == largest
        part: Expr | None = atom
        if isinstance(atom, Axis) and atom in tile:
            part = as_expr(tile[atom] - 1) if upper else as_expr(0)
        elif set(axes_of(atom)) & set(tile):
            part = _extreme_atom(atom, tile, upper)
        if part is None or not (nonnegative(c) or nonnegative(c * -1)):
            return None
        total = binary("add", total, binary("mul", part, as_expr(c)))
    return total


def _extreme_atom(atom: Expr, tile: Mapping[Axis, Extent], upper: bool) -> Expr | None:
    match atom:
        case Op(op="floordiv" | "edge" as op, args=(a, b)) if not axes_of(b):
            inner = _extreme(a, tile, upper)
            return None if inner is None else Op(op, (inner, b), atom.dtype, atom.weak)
        case Op(op="min" | "max" as op, args=(a, b)) if is_index(atom):
            x, y = _extreme(a, tile, upper), _extreme(b, tile, upper)
            return None if x is None or y is None else binary(op, x, y)
        case Op(op="mod" | "wrap" | "reflect", args=(_, n)) if not axes_of(n):
            return binary("sub", n, as_expr(1)) if upper else as_expr(0)
    return None


def _throughout(test: Expr, tile: Mapping[Axis, Extent]) -> Expr | None:
    """A condition under which a comparison holds for the whole tile."""
    assert isinstance(test, Op)
    a, b = test.args
    worst = _extreme(binary("sub", a, b), tile, True)
    return None if worst is None else worst < 0 if test.op == "lt" else worst <= 0


def _assume(e: Expr, known: Sequence[Expr], ranges: Mapping[Axis, Extent]) -> Expr:
    """e where the known conditions hold: clamps and choices that they decide are gone."""
    facts = set(known)

    def rule(n: Expr) -> Expr | None:
        if n in facts:
            return TRUE
        match n:
            case Op(op="edge" | "reflect" | "wrap", args=(a, size)) if (as_expr(0) <= a) in facts and (a < size) in facts:
                return a
        return None

    return simplify(rewrite(e, rule), ranges)


def _eager(e: Expr, ranges: Mapping[Axis, Extent], shape_of: Callable[[int], tuple[Extent, ...]]) -> Expr:
    """e with every choice whose branches may both be computed, because all that they read is there, as a select: that vectorises."""

    def readable(x: Expr) -> bool:
        return all(within(i, n, ranges) for r in walk(x) if isinstance(r, Read) for i, n in zip(r.index, shape_of(r.source), strict=True))

    def rule(n: Expr) -> Expr | None:
        match n:
            case Op(op="where", args=(_, a, b)) if readable(a) and readable(b):
                return Op("select", n.args, n.dtype, n.weak)
        return None

    return rewrite(e, rule)


def _symbols_in(s: Stage) -> list[str]:
    from fluorite.algo.expr import Size

    out = [n for e in (*s.extents, *(s.reduction.extents if s.reduction else ())) for n in symbols_of(e)]
    return out + [n for e in walk(s.value) if isinstance(e, Size) for n in symbols_of(e.extent)]


__all__ = ["KernelPlan", "Placed", "Placement", "lower"]
