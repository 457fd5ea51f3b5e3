"""Scans whose next step waits for an fl.while_loop of the one before: a loop over the steps, which counts them.

Steps of which nothing is known before they have run cannot be lifted. So the carry, the number of steps done and all that is stacked are
what one fl.while_loop carries, in which the inner loop stands. Each step writes one row of what is stacked (see fluorite.algo.row_turns).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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

Step = Callable[[Any, Any], tuple[Any, Any]]


@dataclass(frozen=True)
class Stacking:
    """What a step stacks: the nest, of tensors of one step, and where the axis of the steps goes in each."""

    like: Any
    place: int

    def at(self, t: Tensor) -> int:
        rank = t.ndim + 1
        return min(self.place % rank if self.place < 0 else self.place, rank - 1)


def by_turns(
    step: Step, init: Any, xs: Any, axes: Any, length: Extent, reverse: bool, lengths: Tensor | None, stacking: Stacking
) -> tuple[Any, Any]:
    """What fl.scan gives. `axes` has for each of xs, by identity, which axis is walked; `lengths` how many steps each element takes."""
    from .ops.gather import taken

    every = None if stacking.like is None else map_tree(lambda t: _empty(t, stacking.at(t), length), stacking.like)

    builder = current()
    outer = builder.steps

    def body(c: dict[str, Any]) -> dict[str, Any]:
        n = c["step"]
        t = _number(lambda: as_expr(length) - 1 - n.as_scalar() if reverse else n.as_scalar())
        slices = None if xs is None else map_tree(lambda x: taken(x, t, axes[id(x)]), xs)
        with builder.step(lambda: t, outer):
            new, y = step(c["carry"], slices)
        if lengths is not None:
            old = iter(leaves(c["carry"]))
            new = map_tree(lambda x: _held(x, next(old), lengths, t), new)
            y = None if y is None else map_tree(lambda x: _held(x, None, lengths, t), y)
        stacked = {} if every is None else {"every": _put(y, c["every"], t, stacking)}
        return {"carry": new, "step": n + 1, **stacked}

    def going(c: dict[str, Any]) -> Tensor:
        return build_stage([], lambda: c["step"].as_scalar() < as_expr(length), name="going")

    start = {"carry": init, "step": _number(lambda: as_expr(0)), **({} if every is None else {"every": every})}
    done = while_loop(going, body, start)
    return done["carry"], done.get("every")


def _number(value: Callable[[], Expr]) -> Tensor:
    return build_stage([], value, name="step", dtype="int64")


def _empty(like: Tensor, place: int, length: Extent) -> Tensor:
    """Room for what is stacked."""
    names = labels_of(like)
    clock = next(n for n in ("t", "step", "turn", "t_") if n not in names)
    names.insert(place, clock)
    shape = [*like.shape[:place], length, *like.shape[place:]]
    return build_stage(names, lambda *i: as_expr(0), name="every", extents=dict(zip(names, shape, strict=True)), dtype=like.dtype)


def _put(y: Any, every: Any, t: Tensor, stacking: Stacking) -> Any:
    """What is stacked, with that of one step in its place."""
    from .ops.shapes import tensor

    return refilled(every, [_put_one(tensor(a, "scan"), b, t, stacking) for a, b in zip(leaves(y), leaves(every), strict=True)])


def _put_one(y: Tensor, every: Tensor, t: Tensor, stacking: Stacking) -> Tensor:
    names, place = labels_of(every), stacking.at(y)

    def value(*i: Expr) -> Expr:
        rest = (*i[:place], *i[place + 1 :])
        here = y[rest] if rest else y.as_scalar()
        return where(i[place] == t.as_scalar(), here, every[i])

    return build_stage(names, value, name="every", extents=dict(zip(names, every.shape, strict=True)), dtype=every.dtype)


def _held(new: Any, old: Tensor | None, lengths: Tensor, t: Tensor) -> Tensor:
    """The new value where the batch element takes this step; else the old one, or 0."""
    from .ops.shapes import tensor

    x = tensor(new, "scan")
    names = labels_of(x)

    def value(*i: Expr) -> Expr:
        return where(t.as_scalar() < lengths[i[0]], x[i], 0 if old is None else old[i])

    return build_stage(names, value, name="held", extents=dict(zip(names, x.shape, strict=True)), dtype=x.dtype)


__all__ = ["Stacking", "by_turns"]
