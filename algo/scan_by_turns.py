"""Scans whose next step waits for a loop of the one before: a loop over the steps, which counts them.

Steps of which nothing is known before they have run cannot be lifted. So the carry, the number of steps done and all that is stacked are
what one fl.while_loop carries, in which the inner loop stands. Each step writes one row of what is stacked (see fluorite.algo.row_turns).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .building import current
from .expr import Expr, as_expr, where
from .extent import Extent
from .graph import map_tree
from .looping import while_loop
from .passing import labels_of
from .tensor import Tensor
from .trace import build_stage
from .trees import leaves, refilled

Step = Callable[[Any, list[Tensor]], tuple[Any, Any]]


def by_turns(
    step: Step, init: Any, xs: Sequence[tuple[Tensor, int]], like: Any, length: Extent, reverse: bool, place: int
) -> tuple[Any, Any]:
    """The carry after the last step, and what steps stack along the axis `place`: tensors `like` these. `xs` are what is walked, each with
    the axis."""
    from .ops.gather import taken

    builder = current()
    outer = builder.steps

    every = None if like is None else map_tree(lambda t: _empty(t, place, length), like)

    def body(c: dict[str, Any]) -> dict[str, Any]:
        n = c["step"]
        t = _number(lambda: as_expr(length) - 1 - n.as_scalar() if reverse else n.as_scalar())
        with builder.step(lambda: t, outer):
            new, y = step(c["carry"], [taken(x, {axis: t}, axis) for x, axis in xs])
        stacked = {} if every is None else {"every": refilled(c["every"], _put(y, c["every"], t, place))}
        return {"carry": new, "step": n + 1, **stacked}

    def going(c: dict[str, Any]) -> Tensor:
        return build_stage([], lambda: c["step"].as_scalar() < as_expr(length), name="going")

    start = {"carry": init, "step": _number(lambda: as_expr(0)), **({} if every is None else {"every": every})}
    done = while_loop(going, body, start)
    return done["carry"], done.get("every")


def while_live(step: Step, live: int) -> Step:
    """A step for a batch: where slice number `live` is false for an element, its carry stays, and 0 is stacked."""

    def held(c: Any, x: list[Tensor]) -> tuple[Any, Any]:
        new, y = step(c, [t for n, t in enumerate(x) if n != live])
        kept = [_held(a, b, x[live]) for a, b in zip(leaves(new), leaves(c), strict=True)]
        return refilled(new, kept), None if y is None else map_tree(lambda t: _held(t, None, x[live]), y)

    return held


def _number(value: Callable[[], Expr]) -> Tensor:
    return build_stage([], value, name="step", dtype="int64")


def _tensor(value: Any) -> Tensor:
    from .ops.shapes import tensor

    return tensor(value, "scan")


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


def _put(y: Any, every: Any, t: Tensor, place: int) -> list[Tensor]:
    """What is stacked, with that of one step in its place."""
    return [_put_one(_tensor(a), b, t, place) for a, b in zip(leaves(y), leaves(every), strict=True)]


def _put_one(y: Tensor, every: Tensor, t: Tensor, place: int) -> Tensor:
    names, d = labels_of(every), _at(y, place)

    def value(*i: Expr) -> Expr:
        rest = (*i[:d], *i[d + 1 :])
        here = y[rest] if rest else y.as_scalar()
        return where(i[d] == t.as_scalar(), here, every[i])

    return build_stage(names, value, name="every", extents=dict(zip(names, every.shape, strict=True)), dtype=every.dtype)


def _held(new: Any, old: Tensor | None, live: Tensor) -> Tensor:
    """The new value where the batch element takes this step; else the old one, or 0."""
    x = _tensor(new)
    names = labels_of(x)

    def value(*i: Expr) -> Expr:
        return where(live[i[0]], x[i], 0 if old is None else old[i])

    return build_stage(names, value, name="held", extents=dict(zip(names, x.shape, strict=True)), dtype=x.dtype)


__all__ = ["by_turns", "while_live"]
