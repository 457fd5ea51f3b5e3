"""Directives that are part of the language but not built yet: read, written and documented, and refused by `check`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from ..notation.fields import ListOf
from ..notation.places import UNMARKED, Marks
from .base import Directive, Name, fill_in, loops_of
from .loops import LOOP


@dataclass(frozen=True, init=False)
class GpuVthreads(Directive):
    """Strided register tiles: each thread takes the iterations of these loops at a stride."""

    built: ClassVar[bool] = False
    loops: Annotated[tuple[str, ...], ListOf(LOOP, least=1)]

    def __init__(self, *loops: str | Sequence[str], note: str | None = None, marks: Marks = UNMARKED) -> None:
        fill_in(self, {"loops": loops_of(loops), "note": note, "marks": marks})


@dataclass(frozen=True)
class GpuLanes(Directive):
    """Give a loop to the lanes of a warp."""

    built: ClassVar[bool] = False
    missing: ClassVar[str] = "values are not passed from lane to lane yet; gpu_warps computes by whole warps, gpu_threads by any threads"
    axis: Name
