"""Directives of one stage that cannot both be followed: where it is computed is said once, and one that is written into its readers has no
loops and no memory of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fluorite.algo.errors import Problem
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage

from .directives import ComputeAt, ComputeInline, ComputeRoot, Directive, Fold, Prefetch, StoreAt, StoreIn, Stream


def contradictions(graph: Graph, chosen: Mapping[str, Sequence[Directive]]) -> list[Problem]:
    """P219 for each directive of a stage that an earlier one of the same stage leaves no room for."""
    return [p for s in graph.stages if s.path in chosen for p in _of_stage(s, chosen[s.path])]


def _of_stage(s: Stage, ds: Sequence[Directive]) -> Iterator[Problem]:
    first: dict[object, Directive] = {}
    for d in ds:
        if (matter := _matter(d)) is None:
            continue
        if (other := first.setdefault(matter, d)) is not d:
            why = f"{other.key} says it already, and a stage has one of these" if type(other) is not type(d) else "it is said twice"
            yield _problem(s, d, why)
    if any(isinstance(d, ComputeInline) for d in ds):
        for d in ds:
            if not d.rewrites and _matter(d) != "place":  # rewrites come before a stage is written into others
                yield _problem(s, d, "compute_inline writes it into its readers: no loops and no memory of its own are left")


def _matter(d: Directive) -> object:
    """What a directive decides, where that is decided once."""
    match d:
        case ComputeAt() | ComputeInline() | ComputeRoot():
            return "place"
        case StoreAt() | StoreIn() | Stream():
            return type(d)
        case Fold():
            return "fold", d.axis
        case Prefetch():
            return "prefetch", d.read, d.axis
    return None


def _problem(s: Stage, d: Directive, why: str) -> Problem:
    return d.at().problem("P219", f"{d.key} of {s.name}", why, ("leave one of them out",), path=s.path, source=s.source)


__all__ = ["contradictions"]
