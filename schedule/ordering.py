"""Whether loops still run in the order of the axes that they came from."""

from __future__ import annotations

from collections.abc import Sequence

from fluorite.algo.expr import Axis
from fluorite.algo.extent import evaluate, symbols_of
from fluorite.algo.linear import linear
from fluorite.algo.rewriting import axes_of

from .nest import Loop, Nest


def keeps_order(nest: Nest, axes: Sequence[Axis], loops: Sequence[Loop]) -> bool:
    """Whether these loops, outermost first, visit the positions of the axes in row-major order."""
    order = [loop.var for loop in loops]
    wanted: list[Axis] = []
    for a in axes:
        value = nest.value(a)
        steps = [(atom, evaluate(c, dict.fromkeys(symbols_of(c), 1 << 20))) for atom, c in linear(value).terms if isinstance(atom, Axis)]
        wanted += [atom for atom, _ in sorted(steps, key=lambda step: -step[1])] or axes_of(value)
    wanted = [v for v in dict.fromkeys(wanted) if any(v is o for o in order)]
    return [id(v) for v in order] == [id(v) for v in wanted]


__all__ = ["keeps_order"]
