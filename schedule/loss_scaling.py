"""`precision: loss_scale`: losses whose adjoints are computed multiplied by a number, so that those in narrow types do not vanish.

    grad/LOSS/...             every adjoint, for a seed of `scale` in place of 1
    grad/LOSS/PATH/unscaled   what is read of them by all others: divided by `scale`, in float32

A scale that is `dynamic` is state of the program, one for each loss (Micikevicius et al., "Mixed precision training", 2018): it begins at
2**16, is halved by a call in which some gradient is not finite, and doubled by the 2000th call in a row without one. A call that halves it
leaves alone all that hangs on the loss: parameters, what their optimisers keep, and how many steps these have made.

    grad/METHOD/LOSS/scale, .../good          the scale, and how many calls in a row were good
    METHOD/update/grad/METHOD/LOSS/finite     whether this one is
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from fluorite.algo.dtypes import NARROW
from fluorite.algo.errors import Problem
from fluorite.algo.expr import Const, Expr, Op, Read, axis, binary, cast, where
from fluorite.algo.graph import Graph, map_tree
from fluorite.algo.rewriting import substitute
from fluorite.algo.stages import Leaf, Reduction, Stage, redirect, rewritten

from .graph_sections import NARROWING, Precision
from .losses import Loss, losses_of
from .seeds import seeded

HOME = "grad"
"""Scales are state below this part of a path, which no attribute of a Program may have."""
START, GROWTH_INTERVAL, LEAST, MOST = 2.0**16, 2000, 2.0**-100, 2.0**100
"""Where a dynamic scale begins; after how many good calls it is doubled; and the bounds within which it and its inverse are floats."""


def is_scaled(graph: Graph) -> bool:
    """Whether the graph has scales as its state already."""
    return any(t.kind == "state" and t.path.startswith(f"{HOME}/") for t in graph.leaves)


def scaled(precision: Precision, graph: Graph) -> tuple[Graph, list[Problem]]:
    """The graph with the losses of all methods scaled, and why that cannot be. P403."""
    if precision.loss_scale == "none" or is_scaled(graph):
        return graph, []
    losses = losses_of(graph)
    if problems := [precision.place_of("loss_scale").problem("P403", *p) for p in _refusals(precision, graph, losses)]:
        return graph, problems
    work = _Scaling(graph, None if precision.loss_scale == "dynamic" else float(precision.loss_scale))
    for loss in losses:
        if (wrong := work.scale(loss)) is not None:
            why = "it is not linear in the gradients that it reads, so that it would not be larger by the same factor"
            asked = f"loss_scale: {wrong.path} cannot be scaled"
            return graph, [precision.place_of("loss_scale").problem("P403", asked, why, ("loss_scale: none",), path=wrong.path)]
    return work.result(), []


def _refusals(precision: Precision, graph: Graph, losses: Sequence[Loss]) -> list[tuple[str, str, tuple[str, ...]]]:
    asked, instead = f"loss_scale: {precision.loss_scale}", ("leave loss_scale out",)
    if not losses:
        return [(asked, f"no method of {graph.name} moves parameters by gradients, so that there is no loss to scale", instead)]
    wide = next((s for loss in losses for s in loss.gradients if s.dtype == "float64"), None)
    if wide is not None:
        return [(asked, f"{wide.path} is float64, whose range no gradient leaves", instead)]
    chosen = {precision.compute, precision.gradients, *(o.compute for o in precision.overrides.values())}
    if not chosen & NARROWING and not any(s.dtype in NARROW for loss in losses for s in loss.adjoints.values()):
        why = "no gradient is computed in a type narrower than float32, so that none can vanish"
        return [(asked, why, ("compute: f16", "compute: bf16", *instead))]
    return []


@dataclass
class _Scaling:
    """Stages as they become. `fixed` is the scale of all losses; None for scales that are state."""

    graph: Graph
    fixed: float | None
    stages: dict[int, Stage] = field(init=False)
    leaves: list[Leaf] = field(default_factory=list)
    updates: dict[str, dict[str, int]] = field(default_factory=dict)  # by method
    returned: dict[int, int] = field(default_factory=dict)  # what methods return in place of adjoints
    finite: dict[tuple[str, str], list[Expr]] = field(default_factory=dict)  # by method and path: what a new value hangs on
    fresh: int = 0

    def __post_init__(self) -> None:
        self.stages = {s.id: s for s in self.graph.stages}
        self.fresh = max(self.graph.by_id, default=0)

    # ------------------------------------------------------------ one loss
    def scale(self, loss: Loss) -> Stage | None:
        """Scale a loss; or the stage that prevents it."""
        home = f"{HOME}/{loss.path}"
        held = self._leaf(f"{home}/scale", "float32", START) if self.fixed is None else None
        scale: Expr = _number(self.fixed or 0.0) if held is None else Read(held.id, (), "float32")
        for i, s in loss.adjoints.items():
            value = seeded(self.stages[i].value, loss.adjoints, scale)
            if value is None or s.extern is not None:
                return s
            self.stages[i] = replace(self.stages[i], value=value)
        self._unscale(loss, scale)
        if held is not None:
            self._adapt(loss, held, home)
        return None

    def _unscale(self, loss: Loss, scale: Expr) -> None:
        """What others than adjoints of the loss read of these."""
        if self.fixed is not None:
            inverse: Expr = _number(1.0 / self.fixed)
        else:
            inverse = Read(self._scalar(loss, "inverse", "float32", binary("div", _number(1.0), scale)).id, (), "float32")
        to: dict[int, Stage] = {}
        for s in loss.ends:
            to[s.id] = self._beside(s, "unscaled", "float32", lambda e: binary("mul", cast(e, "float32"), inverse))
            if s.id in loss.method.ends:
                same = to[s.id] if s.dtype == "float32" else self._beside(to[s.id], "cast", s.dtype, lambda e: e)
                self.returned[s.id] = same.id
        made_here = {s.id for s in to.values()}
        for i, s in self.stages.items():
            if i not in loss.adjoints and i not in made_here and any(r.source in to for r in s.reads):
                self.stages[i] = rewritten(s, lambda e: _reading(e, to))

    def _adapt(self, loss: Loss, held: Leaf, home: str) -> None:
        """The scale for the next call, and what this call leaves alone if a gradient is not finite."""
        parts = [self._all_finite(loss, s) for s in loss.gradients]
        finite = self._scalar(loss, "finite", "bool", reduce(_and, parts))
        fine = Read(finite.id, (), "bool")
        for path in loss.moved:
            self.finite.setdefault((loss.method.name, path), []).append(fine)
        good = self._leaf(f"{home}/good", "int32", 0)
        scale, many = Read(held.id, (), "float32"), Read(good.id, (), "int32") + 1
        grown = where(many >= GROWTH_INTERVAL, binary("min", scale * 2.0, MOST), scale)
        updates = self.updates.setdefault(loss.method.name, {})
        made = self._scalar(loss, "scale", "float32", where(fine, grown, binary("max", scale * 0.5, LEAST)))
        updates[held.path] = made.id
        counted = self._scalar(loss, "good", "int32", where(fine, where(many >= GROWTH_INTERVAL, 0, many), 0))
        updates[good.path] = counted.id

    def _all_finite(self, loss: Loss, s: Stage) -> Expr:
        """Whether all elements of a gradient are finite; those that it has."""
        fresh = {a: axis(a.name) for a in s.axes}
        value: Expr = Op("isfinite", (Read(s.id, tuple(fresh.values()), s.dtype),), "bool", False)
        if s.when is not None:
            value = where(substitute(s.when, dict(fresh)), value, Const(True, "bool", False))
        over = Reduction("all", tuple(fresh.values()), s.extents) if s.axes else None
        path = s.path.removeprefix(f"{loss.method.name}/grad/{loss.label}/")
        return Read(self._scalar(loss, f"finite/{path}", "bool", value, over).id, (), "bool")

    # ------------------------------------------------------------ what is made
    def _leaf(self, path: str, dtype: str, value: float) -> Leaf:
        self.fresh += 1
        self.leaves.append(Leaf(self.fresh, path, "state", (), dtype, (), value))
        return self.leaves[-1]

    def _scalar(self, loss: Loss, name: str, dtype: str, value: Expr, over: Reduction | None = None) -> Stage:
        self.fresh += 1
        path, m = f"{loss.method.name}/update/{HOME}/{loss.path}/{name}", loss.method.name
        made = Stage(self.fresh, path, m, (), (), dtype, cast(value, dtype), over, op="loss_scale", role="update", origin="derived")
        self.stages[made.id] = made
        return made

    def _beside(self, s: Stage, name: str, dtype: str, value: Callable[[Read], Expr]) -> Stage:
        """PATH/NAME: made of s, element by element."""
        self.fresh += 1
        fresh = {a: axis(a.name) for a in s.axes}
        when = None if s.when is None else substitute(s.when, dict(fresh))
        path, axes = f"{s.path}/{name}", tuple(fresh.values())
        read = cast(value(Read(s.id, axes, s.dtype)), dtype)
        made = Stage(self.fresh, path, s.method, axes, s.extents, dtype, read, None, "loss_scale", "update", "derived", s.source, when=when)
        self.stages[made.id] = made
        return made

    # ------------------------------------------------------------ the whole
    def result(self) -> Graph:
        """The graph with all of it, in which calls that are no good leave things alone."""
        held = {t.path: t for t in self.graph.leaves if t.kind in ("parameter", "state")}
        methods = []
        for m in self.graph.methods:
            updates = {path: self.returned.get(i, i) for path, i in m.updates.items()} | self.updates.get(m.name, {})
            for (name, path), reads in self.finite.items():
                if name == m.name:
                    updates[path] = self._gated(updates[path], held[path], reduce(_and, reads))
            result = map_tree(lambda i: self.returned.get(i, i), m.result)
            pairs = frozenset(self.returned.get(i, i) for i in m.complex)
            methods.append(replace(m, result=result, updates=updates, complex=pairs))
        made = replace(self.graph, leaves=(*self.graph.leaves, *self.leaves), methods=tuple(methods))
        return made.with_stages(self.stages.values())

    def _gated(self, new: int, old: Leaf, fine: Expr) -> int:
        """The number of the new value, which is the old one where the call is no good."""
        s = self.stages[new]
        if s.reduction is None and s.extern is None and s.clock is None and s.turn is None and s.when is None:
            self.stages[new] = replace(s, value=where(fine, s.value, Read(old.id, s.axes, old.dtype)))
            return new
        kept = self._beside(s, "kept", s.dtype, lambda e: where(fine, e, Read(old.id, e.index, old.dtype)))
        for i, reader in self.stages.items():
            if i != kept.id:
                self.stages[i] = redirect(reader, {new: kept.id})
        return kept.id


def _reading(e: Expr, to: dict[int, Stage]) -> Expr | None:
    """An unscaled gradient in place of one; of a narrow one all that it has."""
    match e:
        case Read(source, index, dtype) if source in to:
            return cast(Read(to[source].id, index, "float32"), dtype)
        case Op(op="cast", args=(Op(op="cast", args=(Read(source, _, "float32") as read,)),), dtype="float32"):
            return read if any(s.id == source for s in to.values()) else None
    return None


def _number(value: float) -> Const:
    return Const(value, "float32", False)


def _and(a: Expr, b: Expr) -> Expr:
    return binary("and", a, b)


__all__ = ["GROWTH_INTERVAL", "HOME", "START", "is_scaled", "scaled"]
