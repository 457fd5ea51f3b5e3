"""Reductions with a combiner of the user's: neighbours are combined, then their results, until one is left.

The combiner is associative, so that this is what any grouping of the elements gives, up to rounding; their order is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..clock import place
from ..combiners import Combiner
from ..dtypes import held, kind
from ..expr import Const, Expr, Op
from ..rewriting import walk
from ..stages import Stage
from .elementary import Array, convert, literal

if TYPE_CHECKING:
    from .stages import Evaluation

Working = Callable[[str], str]


def constant(e: Const, working: Working) -> Array:
    """A number of an expression, in the type that it is held in; one that has no type of its own exactly."""
    exact = "int64" if e.weak and kind(e.dtype) == "int" else e.dtype
    return convert(literal(e.value, exact), working(exact))


def combined(c: Combiner, left: Sequence[Array], right: Sequence[Array], working: Working) -> list[Array]:
    """The parts of what elements combine to, one by one."""
    from .stages import apply

    done: dict[Expr, Array] = dict(zip((*c.left, *c.right), (*left, *right), strict=True))
    for result in c.results:
        for n in walk(result, done):
            done[n] = apply(n, [done[a] for a in n.args], working) if isinstance(n, Op) else constant(n, working)  # type: ignore[arg-type]
    return [np.broadcast_to(done[r], np.broadcast_shapes(done[r].shape, left[0].shape)) for r in c.results]


def folded(c: Combiner, parts: Sequence[Array], working: Working) -> list[Array]:
    """The elements along the last axis combined; the identity where there are none."""
    if not parts[0].shape[-1]:
        return [np.broadcast_to(constant(e, working), parts[0].shape[:-1]) for e in c.identity]
    while (n := parts[0].shape[-1]) > 1:
        halves = combined(c, [p[..., 0 : n - 1 : 2] for p in parts], [p[..., 1:n:2] for p in parts], working)
        odd = n % 2
        parts = [np.concatenate([h, p[..., n - 1 :]], axis=-1) if odd else h for h, p in zip(halves, parts, strict=True)]
    return [p[..., 0] for p in parts]


def fold(evaluation: Evaluation, s: Stage, c: Combiner, sources: Mapping[int, Array], out: Array) -> None:
    """The stage's array, box by box."""
    from .reading import Box
    from .stages import SLAB, Point, slabs

    spatial, reduced = evaluation.extents(s.of_elements)
    axes, rank = s.of_elements.axes, len(spatial)
    split = out[None] if s.parts_axis is None else np.moveaxis(out, place(s.parts_axis, s.axes), 0)
    stored = [split[k, ...] for k in range(len(c.identity))]
    types = [held(evaluation.working(e.dtype)) for e in c.identity]
    for ranges in slabs((*spatial, *reduced), SLAB):
        point = Point(evaluation, Box((*axes, *s.reduce_axes), ranges, evaluation.size), sources)
        window = tuple(slice(low, high) for low, high in ranges[:rank])
        shape = point.box.shape
        given = [np.broadcast_to(convert(point.value(e), d), shape) for e, d in zip(c.parts(s.value), types, strict=True)]
        parts = folded(c, [e.reshape(*shape[:rank], -1) for e in given], evaluation.working)
        if any(low for low, _ in ranges[rank:]):
            parts = combined(c, [convert(p[window], d) for p, d in zip(stored, types, strict=True)], parts, evaluation.working)
        for all_, part in zip(stored, parts, strict=True):
            all_[window] = part


__all__ = ["combined", "constant", "fold", "folded"]
