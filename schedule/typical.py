"""What a symbolic extent is taken to be where a number is needed, and none is given."""

from __future__ import annotations

from fluorite.algo.extent import Extent, evaluate
from fluorite.algo.extent_names import most_of

TYPICAL = 1024


def guess(n: Extent, extent: int = TYPICAL) -> int:
    """n where every symbol is `extent`, or its most."""
    if isinstance(n, int):
        return n
    return evaluate(n, {name: extent if (most := most_of(name)) is None else min(most, extent) for name in n.symbols()})


__all__ = ["TYPICAL", "guess"]
