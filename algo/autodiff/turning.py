"""The derivative of a scan that is a loop, since its steps wait for loops of the steps before: the steps once more, and back through them.

The loop is run again, keeping what each step began with; then a scan the other way takes each step's own derivative. What a step reads
from outside, weights above all, collects what arrives over all steps. Both loops have derivatives of the same kind. A step that contains
an fl.while_loop has a derivative where fl.custom_vjp around that loop gives one.

A step is a function of all that it reads: so it means the same wherever the steps are gone through again, be it in the step of another
scan or for the examples of fl.vmap, where what it captured is a slice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..building import current
from ..dtypes import FLOATS
from ..extent import Extent
from ..graph import map_tree
from ..scan_by_turns import by_turns
from ..tensor import Direct, Tensor
from .aliases import alias
from .custom import Rule, result_of
from .reach import elements_of
from .transforms import settled, swept

Tensors = Sequence[Tensor]
Walked = Sequence[tuple[Tensor, int]]
Step = Callable[[Tensors, Tensors, Tensors], tuple[list[Tensor], list[Tensor]]]
"""Of carries, slices and what is captured the next carries, and what is stacked."""


@dataclass(frozen=True)
class Turning:
    """A scan that is a loop of `length` steps, which stacks along the axis `place`."""

    step: Step
    length: Extent
    reverse: bool
    place: int
    source: str

    def run(self, init: Tensors, xs: Walked, like: Tensors, captured: Tensors) -> tuple[list[Tensor], list[Tensor]]:
        return by_turns(lambda c, x: self.step(c, x, captured), init, xs, like, self.length, self.reverse, self.place)


def differentiable(scan: Turning, init: Tensors, xs: Walked, like: Tensors, captured: Tensors) -> tuple[list[Tensor], list[Tensor]]:
    """The carry after the last step, and what is stacked, tensors `like` these; with a derivative by init, by xs, and by what the step
    reads beside them, which is `captured`."""
    begin, walked, read = map_tree(alias, (list(init), [t for t, _ in xs], list(captured)))
    axes = [d for _, d in xs]
    outcome = map_tree(result_of, scan.run(begin, list(zip(walked, axes, strict=True)), like, read))
    results = tuple(t for some in outcome for t in some)

    def backward(residuals: Any, arriving: Any) -> Any:
        first, walk, kept = residuals
        return _back(scan, first, list(zip(walk, axes, strict=True)), kept, *arriving)

    arguments = tuple(_floats(some) for some in (begin, walked, read))
    inputs = tuple(t.source for t in (*arguments[0], *arguments[1], *arguments[2]) if isinstance(t, Direct))
    rule = Rule(inputs, arguments, results, outcome, (begin, walked, read), backward, scan.source, "scan", False, current().when)
    for r in results:
        current().rules[r.source] = rule
    return outcome  # type: ignore[no-any-return]


def _back(
    scan: Turning, first: Tensors, walk: Walked, captured: Tensors, at_last: Tensors, at_every: Tensors
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """What arrives at what the scan began with, at what it walked over, and at what it captured, as far as they are floats."""

    def keeping(c: Tensors, x: Tensors, read: Tensors) -> tuple[list[Tensor], list[Tensor]]:
        return scan.step(c, x, read)[0], list(c)

    _, kept = differentiable(replace(scan, step=keeping, place=0), first, walk, first, captured)
    moving = [(t, d) for t, d in walk if t.dtype in FLOATS]
    n, m = len(_floats(first)), len(_floats(first)) + len(moving)

    def step_back(g: Tensors, x: Tensors, read: Tensors) -> tuple[list[Tensor], list[Tensor]]:
        c, s, arriving = x[: len(kept)], x[len(kept) : len(kept) + len(walk)], x[len(kept) + len(walk) :]
        own: tuple[list[Tensor], ...] = map_tree(alias, (list(c), list(s), list(read)))
        new, y = scan.step(*own)
        floats = [(t, a) for t, a in zip(y, arriving, strict=True) if a.dtype in FLOATS]
        ends = [(settled(t), a) for t, a in (*zip(_floats(new), g[:n], strict=True), *floats)]
        wrt = [t for some in own for t in _floats(some)]
        found = swept([r for r, _ in ends], [elements_of(a) for _, a in ends], wrt, apart=True)  # type: ignore[arg-type]
        whole = [_zeros(t) if f is None else f for t, f in zip(wrt[:m], found, strict=False)]
        return [*whole[:n], *(a if f is None else a + f for a, f in zip(g[n:], found[m:], strict=True))], whole[n:m]

    back = [t for t, c in zip(at_last, first, strict=True) if c.dtype in FLOATS]
    behind = [*((t, 0) for t in kept), *walk, *((t, _place(t, scan.place)) for t in at_every)]
    turned = replace(scan, step=step_back, reverse=not scan.reverse, place=0)
    begin = [*back, *map(_zeros, _floats(captured))]
    total, by_step = differentiable(turned, begin, behind, [_without(t, d) for t, d in moving], captured)
    return total[:n], [_moved(t, d) for t, (_, d) in zip(by_step, moving, strict=True)], total[n:]


def _floats(tensors: Iterable[Tensor]) -> list[Tensor]:
    return [t for t in tensors if t.dtype in FLOATS]


def _zeros(t: Tensor) -> Tensor:
    from ..ops.creation import zeros_like

    return zeros_like(t)


def _without(t: Tensor, axis: int) -> Tensor:
    """One slice along an axis, of which only the shape counts."""
    from ..ops.creation import zeros
    from ..ops.gather import taken

    return taken(t, {axis: zeros((), dtype="int64")}, axis)


def _place(t: Tensor, place: int) -> int:
    return min(place % t.ndim if place < 0 else place, t.ndim - 1)


def _moved(t: Tensor, to: int) -> Tensor:
    from ..ops.views import moveaxis

    return t if to == 0 else moveaxis(t, 0, to)


__all__ = ["Turning", "differentiable"]
