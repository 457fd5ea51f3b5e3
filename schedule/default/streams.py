"""Large results go past the caches: nobody reads them before they have left these anyway."""

from __future__ import annotations

from fluorite.algo.dtypes import itemsize
from fluorite.algo.extent import volume
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage

from ..directives import ComputeInline, Stream, Vectorize
from ..unscheduled import scatters, sorts
from .kernels import Directives

LARGE = 16 << 20
"""Bytes of a result beyond which a copy into it is quicker past the caches, and reading it afterwards no slower."""


def streams(g: Graph, made: dict[str, Directives]) -> dict[str, Directives]:
    """The directives, with `stream` for every large result whose vectors are stored once and for good."""
    return {s.path: (*made[s.path], Stream()) for s in g.stages if s.path in made and _suits(g, s, made[s.path])}


def _suits(g: Graph, s: Stage, ds: Directives) -> bool:
    bytes_ = volume(s.extents) * itemsize(s.dtype)
    once = all(x is None for x in (s.reduction, s.clock, s.turn, s.when, s.parts_axis)) and not (scatters(s, False) or sorts(s, False))
    alone = s.id in g.outputs and s.id not in g.updates and not g.consumers[s.id]
    in_vectors = any(isinstance(d, Vectorize) for d in ds) and not any(isinstance(d, ComputeInline) for d in ds)
    return once and alone and in_vectors and isinstance(bytes_, int) and bytes_ >= LARGE


__all__ = ["LARGE", "streams"]
