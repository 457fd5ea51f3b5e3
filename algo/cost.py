"""What a stage costs before anything is scheduled: operations, bytes and reduction length, as extents in the symbols of the inputs."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .dtypes import kind
from .expr import REAL, Expr, Op, Read
from .extent import Extent, at_most, maximum, minimum, nonnegative, volume
from .graph import Graph
from .linear import bounds, is_index
from .rewriting import walk
from .scatter import loop_extents
from .stages import Stage

FUNCTION_FLOPS = 10
"""A transcendental counts as this many operations, about what a polynomial of full accuracy takes."""
_ONE = frozenset({"add", "sub", "mul", "div", "floordiv", "mod", "min", "max", "neg", "abs", "sign", "floor", "ceil", "round", "trunc",
                  "sqrt", "shl", "shr", "and", "or", "xor", "not"})


@dataclass(frozen=True)
class Cost:
    """Counts of one stage, or sums of several. Bytes are of memory traffic if every tensor moved once and caches were perfect."""

    points: Extent = 0                 # elements written
    iterations: Extent = 0             # points times the reduction's extents; of a scatter, what is scattered
    flops: Extent = 0                  # float operations; the combining of a reduction counts, casts, tests and selections do not
    integer_ops: Extent = 0            # the same on integer data, without index arithmetic
    loads: Extent = 0                  # elements read, counted at every iteration
    bytes_read: Extent = 0             # of the boxes that the reads span, each source once
    bytes_written: Extent = 0
    reduction_length: Extent = 1       # terms per output element; the longest, in a sum of costs

    @property
    def bytes(self) -> Extent:
        return self.bytes_read + self.bytes_written

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.points + other.points, self.iterations + other.iterations, self.flops + other.flops,
                    self.integer_ops + other.integer_ops, self.loads + other.loads, self.bytes_read + other.bytes_read,
                    self.bytes_written + other.bytes_written, maximum(self.reduction_length, other.reduction_length))


def cost(graph: Graph, s: Stage) -> Cost:
    """The counts of one stage of the graph."""
    points = volume(s.extents)
    length = volume(s.reduction.extents) if s.reduction else 1
    iterations = volume(loop_extents(s))
    combiner = s.reduction.combiner if s.reduction is not None else None
    floats, integers = operations(n for part in (s.value, *(combiner.results if combiner is not None else ())) for n in walk(part))
    if s.reduction is not None and combiner is None:
        inner = s.value.dtype
        floats, integers = (floats + 1, integers) if kind(inner) == "float" else (floats, integers + 1)
    return Cost(points, iterations, iterations * floats, iterations * integers, iterations * len(s.reads),
                footprint(graph, s), points * np.dtype(s.dtype).itemsize, length)


def operations(nodes: Iterable[Expr]) -> tuple[int, int]:
    """The operations on floats and on integers that these nodes are, without those on indices."""
    floats = integers = 0
    for e in nodes:
        match e:
            case Op(op=op, dtype=dtype) if not is_index(e) and dtype != "bool" and (op in _ONE or op in REAL):
                weight = 1 if op in _ONE else FUNCTION_FLOPS
                floats, integers = (floats + weight, integers) if kind(dtype) == "float" else (floats, integers + weight)
    return floats, integers


def costs(graph: Graph, method: str | None = None) -> dict[int, Cost]:
    """Cost of every stage by id."""
    return {s.id: cost(graph, s) for s in graph.stages if method in (None, s.method)}


def total(parts: Iterable[Cost]) -> Cost:
    whole = Cost()
    for part in parts:
        whole = whole + part
    return whole


def footprint(graph: Graph, s: Stage) -> Extent:
    """Bytes of the smallest boxes that hold all that the stage reads, each source once."""
    whole: Extent = 0
    for source in dict.fromkeys(r.source for r in s.reads if r.source != s.id):
        whole = whole + span(graph, s, source) * np.dtype(graph[source].dtype).itemsize
    return whole


def span(graph: Graph, s: Stage, source: int) -> Extent:
    """Elements of the smallest box of `source` that holds what the stage reads of it; whole dimensions where that is not provable."""
    sites = [r for r in s.reads if r.source == source]
    shape = graph[source].shape
    box = volume(_extent([r.index[d] for r in sites], size, s) for d, size in enumerate(shape))
    if any(isinstance(n, Read) for r in sites for i in r.index for n in walk(i)):
        return minimum(box, volume(loop_extents(s)) * len(sites))
    return box


def _extent(indices: list[Expr], size: Extent, s: Stage) -> Extent:
    """How many places of one dimension lie between the first and the last that are read."""
    ends = [bounds(i, s.ranges) for i in indices]
    lows = [low if low is not None and nonnegative(low) else 0 for low, _ in ends]
    highs = [high if high is not None and at_most(high, size - 1) else size - 1 for _, high in ends]
    low, high = lows[0], highs[0]
    for a, b in zip(lows[1:], highs[1:], strict=True):
        low = a if at_most(a, low) else low if at_most(low, a) else 0
        high = b if at_most(high, b) else high if at_most(b, high) else size - 1
    return high - low + 1


__all__ = ["FUNCTION_FLOPS", "Cost", "cost", "costs", "footprint", "operations", "span", "total"]
