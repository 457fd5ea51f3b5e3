"""Windows that slide over one to three axes of space: where each position reads. Images are [n, c, x], [n, c, y, x], [n, c, z, y, x]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import kind
from ..expr import Expr, as_expr, refuse
from ..extent import Extent, ceildiv, maximum, minimum
from ..tensor import Bounded, Tensor
from .shapes import shown, tensor

SPACE = {1: ("x",), 2: ("y", "x"), 3: ("z", "y", "x")}
TAPS = {1: ("kx",), 2: ("ky", "kx"), 3: ("kz", "ky", "kx")}


@dataclass(frozen=True)
class Window:
    """One axis of space: reads at ``stride * position - before + dilation * tap`` for `taps` taps give `extent` positions."""

    taps: Extent
    stride: int
    dilation: int
    before: Extent
    after: Extent
    extent: Extent
    overhangs: bool = False

    @property
    def padded(self) -> bool:
        return self.before != 0 or self.after != 0 or self.overhangs

    def read(self, position: Expr, tap: Expr) -> Expr:
        return position * self.stride + tap * self.dilation - as_expr(self.before)


def windows(
    what: str,
    size: Sequence[Extent],
    taps: Sequence[Extent],
    stride: Any,
    padding: Any,
    dilation: Any = 1,
    ceil: bool = False,
) -> tuple[Window, ...]:
    """One Window per axis. With `ceil` a last window may hang over the end, as long as it begins before the end."""
    rank = len(size)
    strides, dilations = spatial(stride, f"{what}: stride", 1, rank), spatial(dilation, f"{what}: dilation", 1, rank)
    sides = [_padding(what, padding, d, size[d], (taps[d] - 1) * dilations[d] + 1, strides[d], rank) for d in range(rank)]
    return tuple(window(what, SPACE[rank][d], size, taps, size[d], taps[d], strides[d], dilations[d], sides[d], ceil) for d in range(rank))


def window(
    what: str,
    axis: str,
    whole: Sequence[Extent],
    kernel: Sequence[Extent],
    size: Extent,
    taps: Extent,
    stride: int,
    dilation: int,
    sides: tuple[Extent, Extent],
    ceil: bool,
) -> Window:
    before, after = sides
    reach = (taps - 1) * dilation + 1
    room = size + before + after - reach
    if isinstance(room, int) and room < 0:
        raise refuse(
            "A301",
            f"{what} with windows of {shown(kernel)} over {shown(whole)}",
            f"along {axis} the window reaches over {reach} elements, with padding there are {room + reach}",
        )
    exact = room // stride + 1
    if not ceil:
        return Window(taps, stride, dilation, before, after, exact)
    extent = minimum(ceildiv(room, stride) + 1, ceildiv(size + before, stride))
    return Window(taps, stride, dilation, before, after, extent, overhangs=bool(extent != exact))


def _padding(what: str, padding: Any, d: int, size: Extent, reach: Extent, stride: int, rank: int) -> tuple[Extent, Extent]:
    match padding:
        case "valid":
            return 0, 0
        case "same":
            total = maximum((ceildiv(size, stride) - 1) * stride + reach - size, 0)
            return total // 2, total - total // 2
    return sides(what, padding, rank)[d]


def sides(what: str, padding: Any, rank: int) -> list[tuple[int, int]]:
    """(before, after) for each axis from one integer, or one integer or pair per axis."""
    each = padding if isinstance(padding, list | tuple) else (padding,) * rank
    made = [tuple(p) if isinstance(p, list | tuple) else (p, p) for p in each]
    if len(made) != rank or any(len(p) != 2 or any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in p) for p in made):
        axes = ", ".join(SPACE[rank]) + ("," if rank == 1 else "")
        pairs = ", ".join(["(before, after)"] * rank) + ("," if rank == 1 else "")
        raise refuse("A304", f"{what}: padding={padding!r}", f'it is a non-negative integer, ({axes}), ({pairs}), "same" or "valid"')
    return [(a, b) for a, b in made]


def spatial(value: Any, what: str, least: int, rank: int) -> tuple[int, ...]:
    """One integer for each axis of space, from one for all or as many as there are."""
    each = tuple(value) if isinstance(value, list | tuple) else (value,) * rank
    if len(each) != rank or any(isinstance(v, bool) or not isinstance(v, int) or v < least for v in each):
        several = f", or {rank} of them for {' '.join(SPACE[rank])}" if rank > 1 else ""
        raise refuse("A304", f"{what}={value!r}", f"it is an integer of at least {least}{several}")
    return each


def image(x: Any, what: str, rank: int) -> Tensor:
    """x with a batch, channels and `rank` axes of space."""
    t = tensor(x, what)
    if t.ndim != rank + 2:
        axes = ("n", "c", *SPACE[rank])
        raise refuse(
            "A307", f"{what} of {shown(t.shape)}", f"an image has {('', 'three', 'four', 'five')[rank]} axes: {', '.join(axes)}",
            "fl.expand_dims(x, 0)",
        )  # fmt: skip
    return t


def surrounded(t: Tensor, made: Sequence[Window], value: bool | int | float) -> Tensor:
    """t, with a value outside where a window reads there."""
    return Bounded(t, "constant", value) if any(w.padded for w in made) else t


def zero(dtype: str) -> bool | int | float:
    return 0.0 if kind(dtype) == "float" else False if dtype == "bool" else 0


def lowest(dtype: str) -> bool | int | float:
    """What no element is below."""
    if dtype == "bool":
        return False
    return dtypes.lowest(dtype) if kind(dtype) == "float" else int(np.iinfo(dtype).min)


def highest(dtype: str) -> bool | int | float:
    """What no element is above."""
    if dtype == "bool":
        return True
    return -dtypes.lowest(dtype) if kind(dtype) == "float" else int(np.iinfo(dtype).max)
