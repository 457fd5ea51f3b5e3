"""What a symbolic extent is taken to be where a number is needed, and none is given."""

from __future__ import annotations

from fluorite.algo.extent import Extent, evaluate

TYPICAL = 1024


def guess(n: Extent) -> int:
    return n if isinstance(n, int) else evaluate(n, dict.fromkeys(n.symbols(), TYPICAL))


__all__ = ["TYPICAL", "guess"]
