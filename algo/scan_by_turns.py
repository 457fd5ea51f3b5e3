"""Scans whose next step waits for a loop of the one before: a loop over the steps, which counts them.

Steps of which nothing is known before they have run cannot be lifted. So the carry, the number of steps done and all that is stacked are
what one fl.while_loop carries, in which the inner loop stands. Each step writes one row of what is stacked (see fluorite.algo.row_turns).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .building import current
from .expr import Expr, as_expr, where
from .extent import Extent
from .looping import while_loop
from .passing import labels_of
from .tensor import Tensor
from .trace import build_stage
from .trees import leaves, refilled

if TYPE_CHECKING:
    from .scanning import Scan

Step = Callable[[list[Tensor], list[Tensor]], tuple[list[Tensor], list[Tensor]]]


def turned(scan: Scan, source: str) -> tuple[Any, Any]:
    """The carry after the last step of a scan that has been traced, and what its steps stack."""
    from .autodiff.turning import Turning, differentiable

    step = scan.traced()
    walked = [scan.slots[t.source] for t in step.slices]
    xs = [(slot.outside, slot.axis) for slot in walked if slot.axis is not None]
    turning = Turning(step, scan.length, scan.reverse, scan.where, source)
    last, every = differentiable(turning, list(leaves(scan.init)), xs, step.like, step.captured)
    return refilled(scan.init, last), None if scan.ys is None else refilled(scan.ys, every)


def by_turns(
    step: Step, init: Sequence[Tensor], xs: Sequence[tuple[Tensor, int]], like: Sequence[Tensor], length: Extent, reverse: bool, place: int
) -> tuple[list[Tensor], list[Tensor]]:
    """The carry after the last step, and what steps stack along the axis `place`: tensors `like` these. `xs` are what is walked, each with
    the axis."""
    from .ops.gather import taken

    builder = current()
    outer = builder.steps

    def body(c: dict[str, Any]) -> dict[str, Any]:
        n = c["step"]
        t = _number(lambda: as_expr(length) - 1 - n.as_scalar() if reverse else n.as_scalar())
        with builder.step(lambda: t, outer):
            new, y = step(c["carry"], [taken(x, {axis: t}, axis) for x, axis in xs])
        put = [_put(a, b, t, place) for a, b in zip(y, c["every"], strict=True)]
        return {"carry": new, "step": n + 1, "every": put}

    def going(c: dict[str, Any]) -> Tensor:
        return build_stage([], lambda: c["step"].as_scalar() < as_expr(length), name="going")

    start = {"carry": list(init), "step": _number(lambda: as_expr(0)), "every": [_empty(t, place, length) for t in like]}
    done = while_loop(going, body, start)
    return done["carry"], done["every"]


def _number(value: Callable[[], Expr]) -> Tensor:
    return build_stage([], value, name="step", dtype="int64")


def _at(t: Tensor, place: int) -> int:
    """Where the axis of the steps goes, of a tensor of one step."""
    rank = t.ndim + 1
    return min(place % rank if place < 0 else place, rank - 1)


def _empty(like: Tensor, place: int, length: Extent) -> Tensor:
    """Room for what is stacked."""
    names, d = labels_of(like), _at(like, place)
    clock = next(n for n in ("t", "step", "turn", "t_") if n not in names)
    names.insert(d, clock)
    shape = [*like.shape[:d], length, *like.shape[d:]]
    return build_stage(names, lambda *i: as_expr(0), name="every", extents=dict(zip(names, shape, strict=True)), dtype=like.dtype)


def _put(y: Tensor, every: Tensor, t: Tensor, place: int) -> Tensor:
    """What is stacked, with that of one step in its place."""
    names, d = labels_of(every), _at(y, place)

    def value(*i: Expr) -> Expr:
        rest = (*i[:d], *i[d + 1 :])
        here = y[rest] if rest else y.as_scalar()
        return where(i[d] == t.as_scalar(), here, every[i])

    return build_stage(names, value, name="every", extents=dict(zip(names, every.shape, strict=True)), dtype=every.dtype)


__all__ = ["by_turns", "turned"]
