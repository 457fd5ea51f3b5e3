"""Directives about the memory of a stage's own result: how long it is kept, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Count, Directive, Name, Selector


@dataclass(frozen=True)
class StoreAt(Directive):
    """Keep this stage's result at loop `axis` of `stage`, further out than compute_at computes it: a sliding window.

    Each iteration then computes only what the iterations before it have not made; the first one computes all that it needs.
    Legal together with compute_at, at a loop of the same reader outside that of compute_at, or at the loop that this reader itself is
    computed at. The loops between the two are serial, so no parallel loop lies there, and they move the part that is needed forwards only.
    Gains: nothing is computed twice within one iteration of `axis`.
    Costs: memory for all that one iteration of `axis` needs, unless `fold` keeps less; what was made long ago has left the cache.
    """

    before: ClassVar[str] = (
        "rows: [{compute_at: {stage: blur, axis: y}}]\n  for s\n    for y\n      for 3 rows: rows(...)\n      for x: blur(y, x)"
    )
    after: ClassVar[str] = (
        "store_at: {stage: blur, axis: s}\n  for s\n    rows: all that s needs\n    for y\n      for the new row: rows(...)\n"
        "      for x: blur(y, x)"
    )

    stage: Selector
    axis: Name


@dataclass(frozen=True)
class Fold(Directive):
    """Keep only the last `extent` positions along `axis`, in a circular buffer.

    Legal with store_at, where one iteration needs no more than `extent` positions.
    Gains: the window stays in cache, however far it slides.
    Costs: a remainder in every address along `axis`, which is cheap for a power of two, and dear on the axis that is vectorised.
    """

    before: ClassVar[str] = "rows: float32[34, w]\n  rows[y, x] = ..."
    after: ClassVar[str] = "fold: {axis: y, extent: 4}\n  rows: float32[4, w]\n  rows[y mod 4, x] = ..."

    axis: Name
    extent: Count
