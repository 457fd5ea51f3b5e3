"""The elements of a tensor in another order along its axes, or several times: views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..expr import as_expr, refuse
from ..extent import Dim, Extent
from ..tensor import Tensor
from .gather import take
from .patterns import repeated_to
from .shapes import AxisLike, axis_number, axis_numbers, shown, tensor, view
from .views import expanded, flatten, listed, made, reshape


@view
def flip(x: Any, axis: AxisLike | Sequence[AxisLike] | None = None) -> Tensor:
    """The elements in reverse order along axes (all by default)."""
    t = tensor(x, "flip")
    turned = axis_numbers(axis, t.axis_names, "flip")
    return made(t, t.shape, t.axis_names, lambda i: tuple(as_expr(t.shape[d]) - 1 - e if d in turned else e for d, e in enumerate(i)))


@view
def tile(x: Any, reps: int | Sequence[int]) -> Tensor:
    """x repeated as a whole, `reps` times along each axis (aligned from the right, as in NumPy)."""
    t = tensor(x, "tile")
    times = counts(reps, "tile")
    rank = max(t.ndim, len(times))
    times = (1,) * (rank - len(times)) + times
    t = expanded(t, range(rank - t.ndim))
    return made(
        t,
        [n * r for n, r in zip(t.shape, times, strict=True)],
        t.axis_names,
        lambda i: tuple(e if r == 1 else e % as_expr(n) for e, n, r in zip(i, t.shape, times, strict=True)),
    )


@view
def roll(x: Any, shift: int | Sequence[int], axis: AxisLike | Sequence[AxisLike] | None = None) -> Tensor:
    """The elements moved by `shift` along axes, those that leave at one end entering at the other; of all elements in a row without axes.

    One shift for every axis, or one for each; an axis that is given twice moves by both.
    """
    t = tensor(x, "roll")
    shifts = listed(shift)
    if any(isinstance(s, bool) or not isinstance(s, int | Dim) for s in shifts):
        raise refuse("A304", f"roll by {shift!r}", "a shift is an integer or a symbolic extent")
    if axis is None:
        moved: Tensor = reshape(roll(flatten(t), sum(shifts), 0), t.shape)
        return moved
    over = [axis_number(a, t.axis_names, "roll") for a in listed(axis)]
    if len(shifts) not in (1, len(over)):
        raise refuse("A304", f"roll by {shift!r} along {axis!r}", f"{len(shifts)} shifts for {len(over)} axes", "one, or one for each")
    by: dict[int, Extent] = {}
    for d, s in zip(over, shifts if len(shifts) == len(over) else [shifts[0]] * len(over), strict=True):
        by[d] = by.get(d, 0) + s
    return made(
        t,
        t.shape,
        t.axis_names,
        lambda i: tuple((e - as_expr(by[d])) % as_expr(t.shape[d]) if d in by else e for d, e in enumerate(i)),
    )


@view
def repeat(x: Any, times: int | Sequence[int] | str, axis: AxisLike | None = None, **lengths: Extent) -> Tensor:
    """Each element along `axis` (of all in a row without one) `times` times; a list counts for each element by itself.

    A view, but for counts in a list, which make a stage. With a pattern such as ``"h w -> h (w r)", r=2`` instead of `times`, axes that
    stand on its right side alone are repeated, as `rearrange` describes.
    """
    t = tensor(x, "repeat")
    if isinstance(times, str):
        return repeated_to(t, times, lengths)
    if lengths:
        raise refuse("A304", f"repeat with {', '.join(lengths)}", "lengths belong to a pattern", 'fl.repeat(x, "h w -> h w r", r=2)')
    if axis is None:
        t, axis = flatten(t), 0
    d = axis_number(axis, t.axis_names, "repeat")
    if not isinstance(times, np.ndarray | list | tuple):
        (count,) = counts(times, "repeat")
        return _each(t, count, d)
    each = counts(np.asarray(times).tolist(), "repeat")
    if len(each) == 1:
        return _each(t, each[0], d)
    if t.shape[d] != len(each):
        raise refuse("A304", f"repeat of dimension {d} of {shown(t.shape)} by {len(each)} counts", f"its extent is {t.shape[d]}")
    taken: Tensor = take(t, np.repeat(np.arange(len(each), dtype=np.int32), each), d, name="repeat")
    return taken


def _each(t: Tensor, count: int, d: int) -> Tensor:
    """Each element along dimension d `count` times in a row."""
    return made(
        t,
        [n * count if k == d else n for k, n in enumerate(t.shape)],
        t.axis_names,
        lambda i: tuple(e // count if k == d else e for k, e in enumerate(i)),
    )


def counts(value: int | Sequence[int], what: str) -> tuple[int, ...]:
    """How often, for each axis."""
    times = tuple(listed(value))
    if any(isinstance(r, bool) or not isinstance(r, int) or r < 0 for r in times):
        raise refuse("A304", f"{what} {value!r} times", "a repeat count is a non-negative integer")
    return times
