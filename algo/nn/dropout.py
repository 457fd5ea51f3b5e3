"""Dropout as a layer."""

from __future__ import annotations

from collections.abc import Sequence

from ..building import training
from ..modules import Module
from ..ops import dropout
from ..ops.next_key import next_key
from ..ops.shapes import AxisLike
from ..tensor import Tensor


class Dropout(Module):
    """fluorite.dropout with a new key in every call of a method that trains; x itself in others. Forward and backward drop the same."""

    def __init__(self, rate: float = 0.5, *, shared: AxisLike | Sequence[AxisLike] = ()) -> None:
        self.rate, self.shared = rate, shared

    def forward(self, x: Tensor) -> Tensor:
        if not training() or self.rate == 0:
            return x
        found: Tensor = dropout(x, self.rate, key=next_key(), shared=self.shared)
        return found
