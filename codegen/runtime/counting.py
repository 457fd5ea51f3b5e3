"""Extents that a kernel computes: what follows from one of them for the calls after it, and for the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .errors import run_error, run_problem
from .extents import Extent, evaluate, names, shape_of
from .manifest import Count, Requirement
from .tensors import borrow

Array = np.ndarray[Any, Any]
Place = tuple[list[Any], int]
"""An argument of a call: the list of all, and its position."""


class Counting:
    """Called when the extent is there: takes its value, and gives the calls after it tensors and extents that fit.

    A tensor has memory for the largest extent, and is the beginning of it. `symbols` are those of the call.
    """

    def __init__(self, count: Count, value: Array, symbols: dict[str, int], requires: Sequence[Requirement]) -> None:
        self.count, self.value, self.symbols = count, value, symbols
        self.requires = [r for r in requires if count.symbol in r.symbols]
        self.tensors: list[tuple[Array, Sequence[Extent], list[Place], Place | None]] = []
        self.extents: list[tuple[Extent, Place]] = []

    def leave(self, other: Count) -> None:
        """What depends on a later extent too is asked when that is there."""
        self.requires = [r for r in self.requires if other.symbol not in r.symbols]

    def tensor(self, whole: Array, shape: Sequence[Extent], places: list[Place], result: Place | None) -> None:
        """A tensor that is as long as the extent: where calls have it, and where the results are."""
        if any(self.count.symbol in names(e) for e in shape):
            self.tensors.append((whole.reshape(-1), shape, places, result))

    def extent(self, extent: Extent, place: Place) -> None:
        """An extent that a call is told."""
        if self.count.symbol in names(extent):
            self.extents.append((extent, place))

    def __call__(self) -> None:
        n, symbols = int(self.value), self.symbols
        if not 0 <= n <= self.count.most:
            raise run_error(run_problem("R124", f"the extent {self.count.symbol} would be {n}", "a larger most=", 'beyond="cut"'))
        symbols[self.count.symbol] = n
        for r in self.requires:
            if why := r.refusal(symbols):
                raise run_error(run_problem(r.code, f"with {self.count.symbol} = {n}, {why}", "other inputs"))
        for whole, extents, places, result in self.tensors:
            shape = shape_of(extents, symbols)
            array = whole[: int(np.prod(shape, dtype=np.int64))].reshape(shape)
            tensor = borrow(array)
            for arguments, position in places:
                arguments[position] = tensor
            if result is not None:
                result[0][result[1]] = array
        for extent, (arguments, position) in self.extents:
            arguments[position] = evaluate(extent, symbols)


def counted(extents: Sequence[Extent], symbols: Mapping[str, Any]) -> bool:
    """Whether one of these extents depends on one of the symbols."""
    return any(name in symbols for e in extents for name in names(e))


__all__ = ["Counting", "counted"]
