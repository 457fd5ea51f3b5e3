"""The passes from an algorithm to its kernels, as a flat list of names, and the graphs between those that change graphs."""

from __future__ import annotations

from dataclasses import dataclass

from fluorite.algo.graph import Graph

GRAPH_PASSES: dict[str, str] = {
    "trace": "the algorithm as it was traced",
    "precision": "tensors in narrower types, as the plan says",
    "specialise": "the extents of a bucket put in",
    "memory": "stages computed again for late readers",
    "rewrites": "pack, cache, rfactor, stage_in, layout and pad, as the plan says",
    "default": "those that the default scheduler adds",
    "inline": "compute_inline",
}
STATEMENT_PASSES: dict[str, str] = {
    "loops": "the nests of each kernel, with what is computed inside them",
    "partition": "loops cut where a test inside them changes its answer",
    "allocation": "memory taken outside the loops that use it",
    "masks": "costly choices that differ between the lanes of a vector made selections",
    "common": "costly parts that neighbouring statements share computed once",
    "phases": "vectors whose lanes differ in kind taken apart, and strided reads picked out of whole vectors",
    "sharing": "large parts of values that occur more than once put into registers",
}
LAST = list(STATEMENT_PASSES)[-1]
PASSES = {**GRAPH_PASSES, **STATEMENT_PASSES}
"""In the order in which they run, with what each does."""


@dataclass(frozen=True, eq=False)
class Step:
    """One change of a graph: the pass that it belongs to, what it did, and the graph after it."""

    name: str
    what: str
    graph: Graph


def after(steps: tuple[Step, ...], name: str) -> Graph:
    """The graph after a pass, which may have changed nothing."""
    order = list(GRAPH_PASSES)
    return [step.graph for step in steps if order.index(step.name) <= order.index(name)][-1]
