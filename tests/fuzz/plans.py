"""Random schedules for a graph: most of them legal by construction; what is not must be refused with a sentence."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field

from fluorite.algo.errors import PlanError
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage
from fluorite.schedule import (
    Align,
    Cache,
    ComputeAt,
    ComputeInline,
    ComputeRoot,
    ComputeWith,
    Directive,
    ExecutionPlan,
    FindBest,
    Fold,
    Fuse,
    Fusion,
    Layout,
    Pack,
    Pad,
    Parallel,
    Prefetch,
    Reorder,
    Rfactor,
    Split,
    StageIn,
    StoreAt,
    StoreIn,
    Stream,
    Tile,
    Unroll,
    Vectorize,
)
from fluorite.schedule.graph_sections import Memory, Precision
from fluorite.schedule.nest import PARALLEL, SERIAL, VECTOR, Nest
from fluorite.schedule.placing import reaches
from fluorite.schedule.recurrences import clock_problems
from fluorite.schedule.rewrites import operand_axes, rewrite_stage
from fluorite.schedule.shaping import shape
from fluorite.schedule.unscheduled import scatters, sorts, unscheduled

_WIDTHS = (2, 4, 8, 16)


@dataclass
class _Maker:
    rng: random.Random
    graph: Graph
    bold: bool = False
    directives: dict[str, list[Directive]] = field(default_factory=dict)
    nests: dict[int, Nest] = field(default_factory=dict)
    placed: dict[int, tuple[int, str]] = field(default_factory=dict)
    together: list[tuple[str, str]] = field(default_factory=list)

    def chance(self, p: float, bold: float | None = None) -> bool:
        return self.rng.random() < (bold if self.bold and bold is not None else p)


def plan(rng: random.Random, g: Graph, bold: bool = False) -> ExecutionPlan:
    """`bold`: with more of what is rarely legal, or of which one plan in a dozen has any."""
    m = _Maker(rng, g, bold)
    for s in g.stages:
        _rewrite(m, s)
    for s in reversed(m.graph.stages):
        _schedule(m, s)
    if m.chance(0.08):
        _mistake(m)
    apart = [tuple("/" + s.path for s in rng.sample(m.graph.stages, 2))] if len(m.graph.stages) > 1 and m.chance(0.06) else []
    fusion = Fusion(rest=rng.choice(["auto", "none"]), groups=tuple(m.together), never=tuple(apart))
    schedule = {"/" + path: tuple(ds) for path, ds in m.directives.items()}
    again = rng.sample(g.stages, min(len(g.stages), 3 if bold else 1)) if m.chance(0.08, 0.3) else []
    narrow = Precision(compute=rng.choice(["bf16", "f16"])) if m.chance(0.05, 0.12) else None
    return ExecutionPlan(schedule=schedule, fusion=fusion, memory=Memory(recompute=tuple("/" + s.path for s in again)), precision=narrow)


# ---------------------------------------------------------------- rewrites
def _rewrite(m: _Maker, s: Stage) -> None:
    """Some rewrites of the stage, and now and then of what they make."""
    rng = m.rng
    read = list(dict.fromkeys(m.graph[r.source].name for r in s.reads))
    chosen: list[Directive] = []
    if read and m.chance(0.12, 0.2):
        name = rng.choice(read)
        if m.chance(0.5):
            chosen.append(StageIn(read=name, into=f"{s.name}_{name}_in"))
        elif axes := operand_axes(s, next(m.graph[r.source] for r in s.reads if m.graph[r.source].name == name)):
            sizes = {a: rng.choice([2, 3, 8, 16]) for a in rng.sample(axes, rng.randint(1, len(axes)))}
            chosen.append(Pack(tensor=name, sizes=sizes, order=tuple(rng.sample(axes, len(axes))), into=f"{s.name}_{name}_packed"))
    if m.chance(0.2 if s.reduction else 0.05):
        names = [a.name for a in s.axes]
        chosen.append(Cache("acc", order=tuple(rng.sample(names, len(names))) if m.chance(0.5) else ()))
    elif s.reduction is not None and not s.reduction.kind.startswith("arg") and m.chance(0.2, 0.4):
        parts = {rng.choice(["factor", "block"]): rng.choice([1, 2, 4, 16])}
        chosen.append(Rfactor(axis=rng.choice(s.reduce_axes).name, **parts))
    elif s.reduction is not None and s.reduction.kind.startswith("arg") and m.chance(0.2):
        chosen.append(FindBest())
    if s.axes and s.id not in m.graph.outputs and m.chance(0.15):
        names = [a.name for a in s.axes]
        name, n = rng.choice(names), rng.choice([2, 3, 4, 8, 16])
        chosen.append(rng.choice([Layout(*rng.sample(names, len(names))), Pad({name: n}), Split(name, n, tail="pad")]))
    for d in chosen:
        current = m.graph.stage(s.id)
        assert current is not None
        before = {x.id for x in m.graph.stages}
        try:
            m.graph, _ = rewrite_stage(m.graph, current, d)
        except PlanError:
            continue
        m.directives.setdefault(s.path, []).append(d)
        for new in [x for x in m.graph.stages if x.id not in before]:
            if isinstance(d, Cache) and m.chance(0.3):
                _rewrite(m, new)


# ---------------------------------------------------------------- placement and loops
def _schedule(m: _Maker, s: Stage) -> None:
    ds = m.directives.setdefault(s.path, [])
    readers = m.graph.consumers[s.id]
    if not ds and m.chance(0.12):
        del m.directives[s.path]
        return
    if s.id not in m.graph.outputs and s.reduction is None and readers and m.chance(0.2):
        ds.append(ComputeInline())
        return
    whole = s.id in m.graph.outputs or scatters(s, False) or sorts(s, False)
    place = _place(m, s) if not whole and m.chance(0.7, 0.45) else None
    if place is not None:
        m.placed[s.id] = place
        ds.append(ComputeAt(stage="/" + m.graph.path_of(place[0]), axis=place[1]))
        if m.chance(0.4):
            _window(m, s, *place, ds)
        if m.chance(0.25):
            ds.append(StoreIn(m.rng.choice(["stack", "registers"])))
    elif m.chance(0.5, 0.8) and (companion := _companion(m, s)) is not None:
        ds.append(companion)
        m.nests[s.id] = unscheduled(s, False)
        return
    elif m.chance(0.2):
        ds.append(ComputeRoot())
    roots = [c for c in readers if c.id in m.nests and c.id not in m.placed]
    if place is None and roots and m.chance(0.1):
        m.together.append(("/" + s.path, "/" + roots[0].path))
    nest = unscheduled(s, False)
    nest, _ = shape(nest, [d for d in ds if isinstance(d, Split)], lambda _: 16, "float32")
    nest = _marked(m, s, _shaped(m, s, nest, ds), ds)
    if place is not None and s.axes and m.chance(0.15):
        ds.append(Align(axis=s.axes[-1].name, bytes=m.rng.choice([8, 32, 64])))
    if place is None and s.reduction is None and m.chance(0.1):
        ds.append(Stream())
    if s.sources and nest.loops and m.chance(0.1):
        read = m.graph[m.rng.choice(sorted(s.sources))].name
        ds.append(Prefetch(read=read, axis=m.rng.choice(nest.names[:2]), ahead=m.rng.choice([1, 2, 5])))
    m.nests[s.id] = nest


def _place(m: _Maker, s: Stage) -> tuple[int, str] | None:
    """A loop within which all readers of the stage are computed."""
    readers = m.graph.consumers[s.id]
    if not readers or not all(c.id in m.nests for c in readers):
        return None
    owners = {m.placed.get(c.id, (c.id, ""))[0] for c in readers}
    if len(readers) == 1 and m.chance(0.6):
        owners = {readers[0].id}
    if len(owners) != 1:
        return None
    (owner,) = owners
    nest = m.nests[owner]
    inner = [nest.position(m.placed[c.id][1]) for c in readers if c.id != owner and m.placed[c.id][1] in nest.names]
    vector = next((n for n, loop in enumerate(nest.loops) if loop.kind == VECTOR), len(nest.loops))
    last = min([vector, *(n + 1 for n in inner)])
    return (owner, m.rng.choice(nest.names[:last])) if last > 0 else None


def _companion(m: _Maker, s: Stage) -> ComputeWith | None:
    """Another stage whose outer loops are as those that s begins with, where neither needs the other."""
    mine, found = unscheduled(s, False).loops, []
    for t in m.graph.stages:
        if t.id in m.nests and t.id not in m.placed and not reaches(m.graph, s.id, t.id) and not reaches(m.graph, t.id, s.id):
            alike = itertools.takewhile(lambda pair: pair[0].kind == pair[1].kind and pair[0].extent == pair[1].extent,
                                        zip(m.nests[t.id].loops, mine, strict=False))  # fmt: skip
            found += [ComputeWith(stage="/" + t.path, axis=loop.name) for loop, _ in alike]
    return m.rng.choice(found) if found else None


def _window(m: _Maker, s: Stage, owner: int, loop: str, ds: list[Directive]) -> None:
    """The stage kept at a loop further out, now and then in a circular buffer."""
    names = m.nests[owner].names
    outside = [(owner, name) for name in names[: names.index(loop)]]
    if owner in m.placed and m.chance(0.3):
        outside = [m.placed[owner]]
    if outside:
        home, axis = outside[-1] if m.chance(0.6) else m.rng.choice(outside)
        ds.append(StoreAt(stage="/" + m.graph.path_of(home), axis=axis))
        if s.axes and m.chance(0.4):
            ds.append(Fold(axis=m.rng.choice(s.axes).name, extent=m.rng.choice([2, 3, 4, 8])))


def _try(m: _Maker, s: Stage, nest: Nest, d: Directive, ds: list[Directive]) -> Nest:
    """The nest after the directive, which is kept if it is legal."""
    made, problems = shape(nest, [d], lambda _: 16, "float32")
    if problems or clock_problems(m.graph, s, made, [*ds, d]):
        return nest
    ds.append(d)
    return made


def _shaped(m: _Maker, s: Stage, nest: Nest, ds: list[Directive]) -> Nest:
    rng = m.rng
    ordered = s.reduction is not None and s.reduction.kind.startswith("arg")
    for _ in range(rng.choice([0, 1, 1, 2, 2, 3])):
        if not nest.loops:
            break
        name = rng.choice(nest.names)
        match rng.choice(
            ["split", "split", "factors", "fuse"] if ordered else ["split", "factors", "tile", "tile", "reorder", "reorder", "fuse"]
        ):
            case "split":
                tail = rng.choice(["auto", "auto", "guard", "shift"])
                nest = _try(m, s, nest, Split(name, rng.choice([1, 2, 3, 4, 8, 16]), tail=tail), ds)
            case "factors":
                factors = rng.sample([None, rng.choice([2, 3, 4]), rng.choice([2, 8])], 3)
                parts = tuple(f"{name}{len(nest.gone)}{c}" for c in "abc")
                nest = _try(m, s, nest, Split(name, factors=tuple(factors), into=parts), ds)
            case "tile":
                some = rng.sample(nest.names, min(2, len(nest.names)))
                nest = _try(m, s, nest, Tile({n: rng.choice([2, 4, 8, 16]) for n in some}), ds)
            case "reorder":
                nest = _try(m, s, nest, Reorder(*rng.sample(nest.names, len(nest.names))), ds)
            case "fuse":
                n = rng.randrange(len(nest.loops))
                nest = _try(m, s, nest, Fuse(*nest.names[n : n + 2]), ds) if n + 1 < len(nest.loops) else nest
    return nest


def _marked(m: _Maker, s: Stage, nest: Nest, ds: list[Directive]) -> Nest:
    rng = m.rng
    first = next((n for n, loop in enumerate(nest.loops) if loop.reduction), len(nest.loops))
    if s.id not in m.placed and first and m.chance(0.5):
        nest = _try(m, s, nest, Parallel(nest.names[rng.randrange(min(2, first))]), ds)
    if m.chance(0.6) and not (s.reduction is not None and s.reduction.kind.startswith("arg")) and not sorts(s, False):
        nest = _vectorized(m, s, nest, ds)
    for loop in rng.sample(nest.loops, len(nest.loops)):
        if m.chance(0.12) and loop.kind == SERIAL:
            small = isinstance(loop.extent, int) and loop.extent <= 4
            nest = _try(m, s, nest, Unroll(loop.name) if small else Unroll(loop.name, factor=2), ds)
    return nest


def _vectorized(m: _Maker, s: Stage, nest: Nest, ds: list[Directive]) -> Nest:
    """One loop in vectors: the innermost that is no reduction, or another with nothing but constant loops inside."""
    loops = [n for n, loop in enumerate(nest.loops) if not loop.reduction and loop.kind == SERIAL]
    free = [n for n in loops if all(isinstance(x.extent, int) and x.extent <= 16 and x.kind != PARALLEL for x in nest.loops[n + 1 :])]
    if not free:
        return nest
    loop = nest.loops[m.rng.choice(free)]
    if isinstance(loop.extent, int) and loop.extent <= 32 and m.chance(0.5):
        return _try(m, s, nest, Vectorize(loop.name), ds)
    tail = m.rng.choice(["auto", "auto", "shift", "guard"])
    return _try(m, s, nest, Vectorize(loop.name, width=m.rng.choice(_WIDTHS), tail=tail), ds)


def _mistake(m: _Maker) -> None:
    """Something that may be wrong: a name, an order, a mark, a place."""
    rng = m.rng
    s = rng.choice(m.graph.stages)
    names = [*(a.name for a in s.ranges), "i_outer", "j_inner", "q"]
    t = rng.choice(m.graph.stages)
    d = rng.choice(
        [
            Split(rng.choice(names), 4),
            Parallel(rng.choice(names)),
            Vectorize(rng.choice(names)),
            Unroll(rng.choice(names)),
            Reorder(*rng.sample(list(dict.fromkeys(names)), 2)),
            ComputeAt(stage="/" + t.path, axis=rng.choice(names)),
            ComputeInline(),
            StoreIn("registers"),
        ]
    )
    m.directives.setdefault(s.path, []).append(d)
