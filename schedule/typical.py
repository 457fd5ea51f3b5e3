"""What a symbolic extent is taken to be where a number is needed, and none is given."""

from __future__ import annotations

from fluorite.algo.extent import Extent, evaluate

TYPICAL = 1024


def guess(n: Extent, extent: int = TYPICAL) -> int:
    """n where every symbol is `extent`."""
    return n if isinstance(n, int) else evaluate(n, dict.fromkeys(n.symbols(), extent))


__all__ = ["TYPICAL", "guess"]
