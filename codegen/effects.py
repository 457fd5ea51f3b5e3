"""What a plan makes of a model, beside its speed: how many kernels run, what they take, how exact they are. `plan diff` compares two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fluorite.algo.graph import Graph
from fluorite.algo.numerics import weakest
from fluorite.schedule import ExecutionPlan

from .compiled import Compiled
from .diagnosis import every_problem
from .driver import host_target, lower_variants, prepared, with_scales
from .lowered import Lowered
from .peaks import peaks
from .runtime.peak import Peak, size

PARTS = ("parameters", "constants", "results", "buffers", "workspace")


@dataclass(frozen=True)
class Effect:
    """`kernels`: kernels of a call, by method. `peaks` by method, where all extents are known."""

    numerics: str
    kernels: Mapping[str, int]
    peaks: Mapping[str, Peak]


@dataclass(frozen=True)
class Change:
    """One thing that two plans make different: of a method, or of the whole model (""). `old` and `new` are words or numbers."""

    method: str
    what: str
    old: str | int
    new: str | int

    def text(self) -> str:
        """`predict: buffers 2 MiB -> 1 MiB (-1 MiB)`"""
        head = f"{self.method}: {self.what}" if self.method else self.what
        if isinstance(self.old, str) or isinstance(self.new, str) or self.what == "kernels":
            return f"{head} {self.old} -> {self.new}"
        more = self.new - self.old
        return f"{head} {size(self.old)} -> {size(self.new)} ({'+' if more > 0 else '-'}{size(abs(more))})"


def effect(graph: Graph, plan: ExecutionPlan, extents: Mapping[str, int]) -> Effect:
    """What the (resolved) plan makes of the model at these extents. Nothing is compiled. Raises PlanError, BuildError."""
    with every_problem(graph, plan):
        chosen, notes = prepared(plan, graph)
        target = host_target(chosen)
        variants = lower_variants(graph, chosen, target)
    compiled = Compiled(with_scales(chosen, graph), chosen, variants, Path(), target, notes)
    used = next((v for v in variants if all(extents.get(k, n) == n for k, n in v.when.items())), variants[-1])
    kernels = {m.name: _kernels(used, m.name) for m in graph.methods}
    return Effect(weakest(*(v.numerics for v in variants)), kernels, peaks(compiled, {**used.when, **extents}))


def _kernels(lowered: Lowered, method: str) -> int:
    return sum(m == method and k.name not in lowered.setup for k, m in zip(lowered.kernels, lowered.methods, strict=True))


def changes(old: Effect, new: Effect) -> tuple[Change, ...]:
    """What differs, methods in their order: memory in all, and part by part; kernels; the numerics class."""
    return tuple(c for c in _all(old, new) if c.old != c.new)


def _all(old: Effect, new: Effect) -> Iterator[Change]:
    yield Change("", "numerics", old.numerics, new.numerics)
    for method in old.kernels:
        yield Change(method, "kernels", old.kernels[method], new.kernels[method])
        if method in old.peaks and method in new.peaks:
            before, after = old.peaks[method], new.peaks[method]
            yield Change(method, "memory", before.total, after.total)
            for part in PARTS:
                yield Change(method, part, getattr(before, part), getattr(after, part))


__all__ = ["Change", "Effect", "changes", "effect"]
