"""What a plan rounds on the way, and how far each rounding may move a value: the bounds of the class `precision` come from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ..interpreter.elementary import convert
from .rules import Enclosure, Format, loose, settle


@dataclass(frozen=True)
class Casts:
    """`reads`: the type to which a stage (first id) rounds what it reads of a tensor (second id). `arithmetic`: the type in which a stage
    computes, where that is narrower than the algorithm's. `state`: whether new values of state come about in another way than these say,
    being rounded where they are stored or following from scaled losses. `overflow`: whether a number beyond the largest of a type in
    `reads` may become infinite; otherwise that counts as wrong."""

    reads: Mapping[tuple[int, int], str] = field(default_factory=dict)
    arithmetic: Mapping[int, str] = field(default_factory=dict)
    state: bool = False
    overflow: bool = False

    def __bool__(self) -> bool:
        return bool(self.reads or self.arithmetic or self.state)

    def of(self, stage: int) -> dict[int, str]:
        """The tensors that a stage rounds, with the types."""
        return {tensor: dtype for (reader, tensor), dtype in self.reads.items() if reader == stage}


NO_CASTS = Casts()


def rounded(x: Enclosure, dtype: str, form: Format, overflow: bool = False) -> Enclosure:
    """A tensor as whoever rounds it to `dtype` sees it: what the type holds stays as it is. Beyond the type's largest number there is no
    allowance, so that an overflow counts as wrong, unless `overflow` lets it be anything."""
    value = x.value.astype(np.float64)
    with np.errstate(all="ignore"):
        kept = np.asarray(convert(value, dtype)).astype(np.float64) == value
    step = np.where(kept & (loose(x) == 0), 0.0, form.unit * (np.abs(value) + loose(x)) + form.tiny)
    error = np.where(np.isfinite(value), step + loose(x), loose(x))
    if overflow:
        error = np.where(np.abs(value) + error > form.largest, np.inf, error)
    bounded = settle(value, error, 0, Format(form.unit, form.tiny, np.inf))
    return Enclosure(x.value, bounded.error, x.undecided)


__all__ = ["NO_CASTS", "Casts", "rounded"]
