"""The directive that lets iterations of one loop overlap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

from ..notation.fields import Integer
from .base import Directive, Name

Stages: TypeAlias = Annotated[int, Integer(least=2, most=16, auto=(2, 3, 4))]


@dataclass(frozen=True)
class SoftwarePipeline(Directive):
    """Overlap iterations of `axis`: what is computed at that loop runs `stages` - 1 iterations ahead of what reads it.

    The first iterations make their part before the loop (prologue); then each makes one for later and reads the one for now (steady
    state), and the last ones only read (epilogue). Each such stage keeps `stages` parts, written in turn. `asynchronous`: the copies of
    a GPU go to shared memory without passing through registers (cp.async), and a thread waits for them when they are read.
    Legal for a serial loop at which stages are computed, by compute_at, that start anew in each iteration; on a GPU those in shared
    memory run ahead. asynchronous: for plain copies (stage_in), on sm_80 and later.
    Gains: waiting for memory and computing happen at once where the processor does not reorder instructions by itself, on a GPU, and
    one barrier an iteration instead of two.
    Costs: memory for `stages` parts; the loop's code twice.
    """

    before: ClassVar[str] = "for k_outer\n  w_tile = w[k_outer, ...]\n  for k_inner: product += ... * w_tile"
    after: ClassVar[str] = (
        "software_pipeline: {axis: k_outer, stages: 2}\n  w_tile[0] = w[0, ...]\n  for k_outer in 0..n-1\n"
        "    w_tile[(k_outer+1) mod 2] = w[k_outer+1, ...]\n    for k_inner: product += ... * w_tile[k_outer mod 2]\n"
        "  for k_outer in n-1..n: ..."
    )

    axis: Name
    stages: Stages = 2
    asynchronous: bool = False
