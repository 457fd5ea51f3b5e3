"""What a plan may not ask of an extern: a function computes it whole, between kernels, of tensors as the algorithm has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage

from .directives import ComputeRoot, Directive, Layout, Pad
from .grouping import Placement
from .machine import Machine
from .notation.places import NOWHERE, Place

_WHY = "a function of NumPy arrays computes it, whole and outside all kernels"


def require_rewritable(g: Graph, s: Stage, d: Directive) -> None:
    """Raises PlanError for a rewrite that would change an extern, or the order or size of what one is given."""
    if s.extern is not None:
        raise PlanError([d.at().problem("P274", f"{d.label()} of {s.name}", _WHY, ("no directive",), path=s.path, source=s.source)])
    changes = isinstance(d, Layout | Pad) or getattr(d, "tail", "") == "pad"
    if changes and (reader := next((t for t in g.consumers[s.id] if t.extern is not None), None)) is not None:
        why = f"the function of {reader.name} is given it as the algorithm says"
        instead = ("cache: {into: acc}, and that of acc",)
        raise PlanError([d.at().problem("P274", f"{d.label()} of {s.name}", why, instead, path=s.path, source=s.source)])


def extern_problems(
    g: Graph,
    chosen: Mapping[str, tuple[Directive, ...]],
    placements: Mapping[int, Placement],
    together: Sequence[tuple[Sequence[int], Place]],
    machine: Machine,
) -> Iterator[Problem]:
    """Directives on externs, stages computed at or in one, kernels shared with one, and externs on a GPU."""
    externs = {s.id: s for s in g.stages if s.extern is not None}
    for s in externs.values():
        if machine.is_gpu:
            why = f"{_WHY}, and a GPU's kernels are built to run without Python"
            yield NOWHERE.problem("P275", f"fl.extern {s.name} on a GPU", why, ("target: {kind: llvm}",), path=s.path, source=s.source)
        for d in chosen.get(s.path, ()):
            if not isinstance(d, ComputeRoot):
                yield d.at().problem("P274", f"{d.label()} of {s.name}", _WHY, ("no directive",), path=s.path, source=s.source)
    for i, at in placements.items():
        if at.owner in externs and at.directive is not None:
            s = externs[at.owner]
            asked = f"{at.directive.label()} of {g[i].name}"
            yield at.directive.at().problem("P274", asked, f"{s.name} has no loops: {_WHY}", ("compute_root",), path=g.path_of(i))
    for ids, place in together:
        if len(ids) > 1 and (mine := next((externs[i] for i in ids if i in externs), None)) is not None:
            yield place.problem("P274", f"a kernel with {mine.name} in it", _WHY, ("the group without it",), path=mine.path)


__all__ = ["extern_problems", "require_rewritable"]
