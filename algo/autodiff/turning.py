"""The derivative of a scan that is a loop, since its steps wait for loops of the steps before: the steps once more, and back through them.

The loop is run again, keeping what each step began with; then a scan the other way takes each step's own derivative. What a step reads
from outside, weights above all, collects what arrives over all steps. A step that contains an fl.while_loop has a derivative where
fl.custom_vjp around that loop gives one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..building import current, placed
from ..dtypes import FLOATS
from ..errors import AlgorithmError
from ..expr import refuse
from ..graph import map_tree
from ..tensor import Direct, Tensor
from ..trees import leaves, refilled
from .aliases import alias
from .custom import Rule, result_of, stopped
from .reach import elements_of
from .transforms import settled, swept

Step = Callable[[Any, Any], tuple[Any, Any]]
Loop = Callable[[Step, Any, Sequence[tuple[Any, int]], Any, bool, int], tuple[Any, Any]]
"""A scan by turns: of a step, what it begins with, what is walked and along which axis, what is stacked tensors like these, whether it
goes the other way, and where it stacks."""


def differentiable(
    loop: Loop,
    step: Step,
    init: Any,
    xs: Sequence[tuple[Tensor, int]],
    like: Any,
    outside: Sequence[Direct],
    reverse: bool,
    place: int,
    source: str,
) -> tuple[Any, Any]:
    """loop(step, init, xs, like, reverse, place) with a derivative by init, xs and what the step reads of `outside`."""
    start = map_tree(alias, init)
    walked = [(alias(t), d) for t, d in xs]
    last, every = loop(step, start, walked, like, reverse, place)
    outcome = (map_tree(result_of, last), None if every is None else map_tree(result_of, every))
    results = tuple(leaves(outcome))

    def backward(residuals: Any, arriving: Any) -> Any:
        if rule.lifts:
            raise lifted(source)
        first, *rest = residuals
        walk = [(t, d) for t, (_, d) in zip(rest, xs, strict=True)]
        kept = loop(lambda c, x: (step(c, x)[0], list(leaves(c))), first, walk, list(leaves(first)), reverse, 0)[1]
        at_last, at_every = arriving
        begins = [t for t in leaves(first) if t.dtype in FLOATS]
        moving = [t for t in rest if t.dtype in FLOATS]
        back = [t for t, c in zip(leaves(at_last), leaves(first), strict=True) if c.dtype in FLOATS]
        each = list(leaves(at_every))

        def step_back(g: Any, x: Sequence[Tensor]) -> tuple[Any, Any]:
            carried, slices, given = x[: len(kept)], x[len(kept) : len(kept) + len(rest)], x[len(kept) + len(rest) :]
            c, s = ([stopped(t) for t in some] for some in (carried, slices))  # what came before the step is not gone through here
            new, y = step(refilled(first, c), s)
            ends = [(settled(r), a) for r, a in _pairs(new, g["carry"], y, given)]
            wrt = [t for t in (*c, *s) if t.dtype in FLOATS] + list(outside)
            found = swept([r for r, _ in ends], [elements_of(a) for _, a in ends], wrt)
            whole = [_zeros(t) if f is None else f for t, f in zip(wrt, found, strict=True)]
            n, m = len(begins), len(begins) + len(moving)
            return {"carry": whole[:n], "outside": [a + b for a, b in zip(g["outside"], whole[m:], strict=True)]}, whole[n:m]

        begin = {"carry": back, "outside": [_zeros(t) for t in outside]}
        behind = [*((t, 0) for t in kept), *walk, *((t, _place(t, place)) for t in each)]
        moved = [_without(t, d) for t, d in walk if t.dtype in FLOATS]
        total, by_step = loop(step_back, begin, behind, moved, not reverse, 0)
        along = [d for t, d in walk if t.dtype in FLOATS]
        return total["carry"], [_moved(t, d) for t, d in zip(by_step, along, strict=True)], total["outside"]

    arguments = tuple([t for t in some if t.dtype in FLOATS] for some in (leaves(start), (t for t, _ in walked), outside))
    inputs = tuple(t.source for some in arguments for t in some)
    builder = current()
    rule = Rule(inputs, arguments, results, outcome, [start, *(t for t, _ in walked)], backward, source, "scan", False, builder.when)
    for r in results:
        builder.rules[r.source] = rule
    return outcome


def lifted(source: str) -> AlgorithmError:
    asked = "the derivative of an fl.scan that is a loop, in the step of another fl.scan or in fl.vmap"
    why = "its steps wait for loops of the steps before, and are gone through again by themselves"
    return placed(refuse("A421", asked, why, "one fl.scan over the steps of both", "fl.stop_gradient"), source, current().method)


def _pairs(new: Any, carry: Sequence[Tensor], y: Any, given: Sequence[Tensor]) -> list[tuple[Any, Tensor]]:
    """The results of a step that are floats, with what arrives at each."""
    floats = [t for t in leaves(new) if t.dtype in FLOATS]
    stacked = [(t, a) for t, a in zip(leaves(y), given, strict=True) if a.dtype in FLOATS]
    return [*zip(floats, carry, strict=True), *stacked]


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


__all__ = ["differentiable"]
