"""Error bounds of reductions with a combiner of the user's: what each step rounds is carried on to the next, as in one long chain.

A chain has as many steps as there are elements, and no grouping has a longer one. Of a long reduction the elements are combined in two
levels, and the error that this gives is scaled up to that of the whole chain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from ..clock import place
from ..combiners import Combiner
from ..expr import Expr, Op
from ..interpreter.combining import constant
from ..interpreter.reading import Box
from ..interpreter.stages import SLAB, apply, slabs
from ..rewriting import walk
from ..stages import Stage
from .rules import Enclosure, operator

if TYPE_CHECKING:
    from .stages import EnclosingEvaluation

Array = np.ndarray[Any, Any]
_CHAIN = 64
"""Elements that are combined one by one."""
_SLAB = SLAB // 4


def combined(of: EnclosingEvaluation, c: Combiner, left: Sequence[Enclosure], right: Sequence[Enclosure]) -> list[Enclosure]:
    """The parts of what elements combine to, with bounds."""
    done: dict[Expr, Enclosure] = dict(zip((*c.left, *c.right), (*left, *right), strict=True))
    for result in c.results:
        for n in walk(result, done):
            if isinstance(n, Op):
                parts = [done[a] for a in n.args]
                done[n] = operator(n, apply(n, [p.value for p in parts], of.working), parts, of.form(n.dtype))
            else:
                done[n] = Enclosure(constant(n, of.working))  # type: ignore[arg-type]
    return [done[r] for r in c.results]


def bounded_fold(of: EnclosingEvaluation, s: Stage, c: Combiner, sources: Mapping[int, Enclosure], put: Any) -> None:
    """The stage with its bounds, box by box; the reduction's axes are not cut."""
    from .stages import EnclosingPoint

    spatial, reduced = of.extents(s.of_elements)
    rank, inner = len(spatial), int(np.prod(reduced))
    for ranges in slabs(spatial, max(1, _SLAB // max(inner, 1))):
        box = Box((*s.of_elements.axes, *s.reduce_axes), (*ranges, *((0, n) for n in reduced)), of.size)
        point = EnclosingPoint(of, box, sources)
        spread = [_shaped(point.bound(e), box.shape) for e in c.parts(s.value)]
        parts = _folded(of, c, [_each(e, lambda t: t.reshape(*t.shape[:rank], inner)) for e in spread])
        for n, part in enumerate(parts):
            window, shape = list(ranges), list(box.shape[:rank])
            if s.parts_axis is not None:
                at = place(s.parts_axis, s.axes)
                window.insert(at, (n, n + 1))
                part = _each(_shaped(part, tuple(shape)), lambda t, at=at: np.expand_dims(t, at))  # type: ignore[misc]
                shape.insert(at, 1)
            put.put(tuple(window), _shaped(part, tuple(shape)))


def _folded(of: EnclosingEvaluation, c: Combiner, parts: Sequence[Enclosure]) -> list[Enclosure]:
    """The elements along the last axis combined."""
    shape = parts[0].value.shape
    n = shape[-1]
    if not n:
        return [Enclosure(np.broadcast_to(constant(e, of.working), shape[:-1])) for e in c.identity]
    if n <= _CHAIN:
        return _chained(of, c, parts)
    step = isqrt(n)
    runs = n // step
    first = [_each(p, lambda t: t[..., : runs * step].reshape(*shape[:-1], runs, step)) for p in parts]
    of_runs = _chained(of, c, _chained(of, c, first))
    rest = [_each(p, lambda t: t[..., runs * step :]) for p in parts]
    total = combined(of, c, of_runs, _chained(of, c, rest)) if n > runs * step else of_runs
    grown = n / (step + runs)
    return [t if t.error is None else t._replace(error=t.error * grown) for t in total]


def _chained(of: EnclosingEvaluation, c: Combiner, parts: Sequence[Enclosure]) -> list[Enclosure]:
    """One by one from the first."""
    total = [_at(p, 0) for p in parts]
    for k in range(1, parts[0].value.shape[-1]):
        total = combined(of, c, total, [_at(p, k) for p in parts])
    return total


def _at(e: Enclosure, k: int) -> Enclosure:
    return _each(e, lambda t: t[..., k])


def _shaped(e: Enclosure, shape: tuple[int, ...]) -> Enclosure:
    value, error, mark = (None if t is None else np.broadcast_to(t, shape) for t in e)
    assert value is not None
    return Enclosure(value, error, mark)


def _each(e: Enclosure, f: Callable[[Array], Array]) -> Enclosure:
    """f of the values, of their bounds and of their marks."""
    value, error, mark = _shaped(e, e.value.shape)
    return Enclosure(f(value), None if error is None else f(error), None if mark is None else f(mark))


__all__ = ["bounded_fold"]
