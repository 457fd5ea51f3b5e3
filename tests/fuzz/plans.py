"""Random schedules for a graph. Many are legal; those that are not must be refused with a sentence."""

from __future__ import annotations

import random

from fluorite.algo.graph import Graph, Stage
from fluorite.schedule import (
    Cache,
    ComputeAt,
    ComputeInline,
    Directive,
    ExecutionPlan,
    Fuse,
    Fusion,
    Pack,
    Parallel,
    Reorder,
    Rfactor,
    Split,
    StoreIn,
    Tile,
    Unroll,
    Vectorize,
)


def plan(rng: random.Random, g: Graph) -> ExecutionPlan:
    schedule: dict[str, tuple[Directive, ...]] = {}
    names: dict[int, list[str]] = {}
    for s in reversed(g.stages):
        if rng.random() < 0.15:
            continue
        ds, loops = _nest(rng, g, s, names)
        names[s.id] = loops
        schedule["/" + s.path] = tuple(ds)
        for d in ds:
            parent = s.path.rsplit("/", 1)[0]
            made = {Cache: f"{s.path}/acc", Rfactor: f"{s.path}/partial", Pack: f"{parent}/{s.name}_packed"}.get(type(d))
            if made and rng.random() < 0.6 and not isinstance(d, Pack):
                inner: list[Directive] = (
                    [ComputeAt(stage="/" + s.path, axis=loops[rng.randrange(len(loops))])] if loops and rng.random() < 0.7 else []
                )
                if rng.random() < 0.4:
                    inner.append(StoreIn(rng.choice(["stack", "registers"])))
                schedule["/" + made] = tuple(inner)
    return ExecutionPlan(schedule=schedule, fusion=Fusion(rest=rng.choice(["auto", "none"])))


def _nest(rng: random.Random, g: Graph, s: Stage, names: dict[int, list[str]]) -> tuple[list[Directive], list[str]]:
    if s.id not in g.outputs and s.reduction is None and rng.random() < 0.2:
        return [ComputeInline()], []
    ds: list[Directive] = []
    readers = [c for c in g.consumers[s.id] if names.get(c.id)]
    if readers and s.id not in g.outputs and rng.random() < 0.6:
        owner = readers[-1]
        ds.append(ComputeAt(stage="/" + owner.path, axis=rng.choice(names[owner.id])))
        if rng.random() < 0.2:
            ds.append(StoreIn(rng.choice(["stack", "registers"])))
    spatial = [a.name for a in s.axes]
    reduced = [a.name for a in s.reduce_axes]
    if s.reduction is not None and rng.random() < 0.25:
        ds.append(Cache("acc"))
        reduced = []
    elif s.reduction is not None and rng.random() < 0.25 and not s.reduction.kind.startswith("arg"):
        ds.append(Rfactor(axis=reduced[-1], factor=rng.choice([2, 4, 16])))
        reduced = [f"{reduced[-1]}_inner"]
    if rng.random() < 0.15 and s.sources:
        t = g[rng.choice(s.sources)]
        from fluorite.schedule.rewrites import operand_axes

        axes = operand_axes(s, t)
        if axes and sum(1 for i in s.sources if g[i].name == t.name) == 1:
            ds.append(
                Pack(
                    tensor=t.name,
                    sizes={rng.choice(axes): rng.choice([2, 8, 16])},
                    order=tuple(rng.sample(axes, len(axes))),
                    into=f"{s.name}_packed",
                )
            )
    loops = [*spatial, *reduced]
    for _ in range(rng.randint(0, 3)):
        kind = rng.randrange(4)
        if kind == 0 and loops:
            axis = rng.choice(loops)
            ds.append(Split(axis, rng.choice([1, 2, 3, 8, 16]), tail=rng.choice(["auto", "auto", "guard", "shift"])))
            loops[loops.index(axis) : loops.index(axis) + 1] = [f"{axis}_outer", f"{axis}_inner"]
        elif kind == 1 and len(spatial) == 2 and spatial == loops[:2]:
            a, b = spatial
            ds.append(Tile({a: rng.choice([2, 4, 8]), b: rng.choice([4, 8, 16])}))
            loops[:2] = [f"{a}_outer", f"{b}_outer", f"{a}_inner", f"{b}_inner"]
        elif kind == 2 and len(loops) > 1:
            order = rng.sample(loops, len(loops))
            ds.append(Reorder(*order))
            loops = order
        elif kind == 3 and len(loops) > 1:
            n = rng.randrange(len(loops) - 1)
            ds.append(Fuse(loops[n], loops[n + 1]))
            loops[n : n + 2] = [f"{loops[n]}_{loops[n + 1]}"]
    if loops and rng.random() < 0.5:
        ds.append(Parallel(loops[0]))
    marked = set()
    for _ in range(rng.randint(0, 2)):
        if not loops:
            break
        axis = rng.choice(loops[-2:])
        if axis in marked:
            continue
        marked.add(axis)
        if rng.random() < 0.6:
            width = rng.choice([None, 4, 8, 16])
            ds.append(Vectorize(axis, width=width) if width else Vectorize(axis))
            if width:
                loops[loops.index(axis) : loops.index(axis) + 1] = [f"{axis}_outer", f"{axis}_inner"]
        else:
            ds.append(Unroll(axis, factor=rng.choice([2, 4])) if rng.random() < 0.5 else Unroll(axis))
            last = ds[-1]
            if isinstance(last, Unroll) and last.factor:
                loops[loops.index(axis) : loops.index(axis) + 1] = [f"{axis}_outer", f"{axis}_inner"]
    return ds, loops
