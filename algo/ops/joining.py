"""Tensors put together, cut apart, and padded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from .. import expr as E
from ..building import operator
from ..complex.lifting import by_parts
from ..dtypes import promote
from ..expr import Expr, as_expr, refuse
from ..extent import Extent
from ..tensor import Bounded, Tensor
from ..trace import build_stage
from .shapes import AxisLike, axis_number, labels, shown, tensor, view
from .slicing import getitem
from .views import constant, expanded, flatten

MODES = ("constant", "edge", "reflect", "wrap")


@by_parts()
@operator
def concatenate(tensors: Sequence[Any], axis: AxisLike | None = 0) -> Tensor:
    """The tensors one after the other along `axis`; their other extents are equal. With axis None, the elements of all in a row."""
    parts = [tensor(t, "concatenate") for t in tensors]
    if not parts:
        raise refuse("A307", "concatenate of nothing", "at least one tensor is needed")
    if axis is None:
        parts, axis = [flatten(t) for t in parts], 0
    return joined(parts, axis_number(axis, parts[0].axis_names, "concatenate"), "concatenate")


def joined(parts: Sequence[Tensor], d: int, what: str) -> Tensor:
    first = parts[0]
    for p in parts[1:]:
        if p.ndim != first.ndim or any(n != m for k, (n, m) in enumerate(zip(first.shape, p.shape, strict=True)) if k != d):
            raise refuse("A301", f"{what} of {' and '.join(shown(q.shape) for q in parts)}", f"all dimensions but {d} must agree")
        if promote(first.dtype, False, p.dtype, False) is None:
            raise refuse("A104", f"{what} of {first.dtype} and {p.dtype}", "these two have no common type", "fl.cast one of them")
    parts = [p for p in parts if p.shape[d] != 0] or [first]
    names = labels([next((p.axis_names[k] for p in parts if p.axis_names[k]), None) for k in range(first.ndim)])
    ends: list[Extent] = []
    for p in parts:
        ends.append((ends[-1] if ends else 0) + p.shape[d])

    def value(*i: Expr) -> Any:
        result: Any = None
        for k in reversed(range(len(parts))):
            start = ends[k - 1] if k else 0
            here = parts[k][tuple(e - as_expr(start) if a == d else e for a, e in enumerate(i))]
            result = here if result is None else E.where(i[d] < as_expr(ends[k]), here, result)
        return result

    shape = [ends[-1] if k == d else n for k, n in enumerate(first.shape)]
    return build_stage(names, value, extents=dict(zip(names, shape, strict=True)))


@by_parts()
@operator
def stack(tensors: Sequence[Any], axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis at this position of the result."""
    parts = [tensor(t, "stack") for t in tensors]
    if not parts:
        raise refuse("A307", "stack of nothing", "at least one tensor is needed")
    if any(p.shape != parts[0].shape for p in parts):
        raise refuse("A301", f"stack of {' and '.join(shown(p.shape) for p in parts)}", "all shapes must be equal")
    d = axis_number(axis, (None,) * (parts[0].ndim + 1), "stack")
    return joined([expanded(p, (d,)) for p in parts], d, "stack")


@view
def split(x: Any, parts: int | Sequence[Extent], axis: AxisLike = 0) -> list[Tensor]:
    """Views of x cut along `axis`: into equal parts, or before each of the given positions (as NumPy's split)."""
    t = tensor(x, "split")
    d = axis_number(axis, t.axis_names, "split")
    n = t.shape[d]
    if isinstance(parts, int):
        if parts < 1 or (isinstance(n, int) and n % parts) or (not isinstance(n, int) and str(n // parts * parts) != str(n)):
            raise refuse(
                "A303",
                f"split of {shown(t.shape)} into {parts} parts along dimension {d}",
                f"its extent {n} is not a multiple of {parts}",
                "the positions of the cuts as a list",
            )
        cuts: list[Extent] = [n // parts * k for k in range(1, parts)]
    else:
        cuts = list(parts)
    bounds = [0, *cuts, n]
    return [getitem(t, (*[slice(None)] * d, slice(a, b))) for a, b in pairwise(bounds)]


@view
def unstack(x: Any, axis: AxisLike = 0) -> list[Tensor]:
    """The slices of x at every position along `axis`, without that axis: views."""
    t = tensor(x, "unstack")
    d = axis_number(axis, t.axis_names, "unstack")
    n = t.shape[d]
    if not isinstance(n, int):
        raise refuse("A303", f"unstack of {shown(t.shape)} along dimension {d}", "its extent is symbolic, so there is no number of slices")
    return [getitem(t, (*[slice(None)] * d, k)) for k in range(n)]


@by_parts("x", "value")
@operator
def pad(x: Any, width: Any, mode: str = "constant", value: bool | int | float = 0) -> Tensor:
    """x with more elements around it, in one of NumPy's modes `constant` (of `value`), `edge`, `reflect`, `wrap`.

    `width` is an integer for every side, a pair (before, after) for every axis, a list with one pair or integer per axis,
    or a mapping from axis (name or number) to such.
    """
    t = tensor(x, "pad")
    if mode not in MODES:
        raise refuse("A304", f"pad: mode={mode!r}", "it is one of NumPy's modes", *MODES)
    widths = _widths(t, width)
    source = constant(t, value) if mode == "constant" else Bounded(t, mode)
    names = labels(t.axis_names)
    shape = [lo + n + hi for (lo, hi), n in zip(widths, t.shape, strict=True)]
    return build_stage(
        names,
        lambda *i: source[tuple(e - lo for e, (lo, _) in zip(i, widths, strict=True))] if i else t.as_scalar(),
        extents=dict(zip(names, shape, strict=True)),
    )


def _widths(t: Tensor, width: Any) -> list[tuple[int, int]]:
    match width:
        case Mapping():
            at = {axis_number(k, t.axis_names, "pad"): _side(v, width) for k, v in width.items()}
            return [at.get(d, (0, 0)) for d in range(t.ndim)]
        case [int(), int()]:
            return [_side(width, width)] * t.ndim
        case [*sides]:
            if len(sides) != t.ndim:
                raise refuse(
                    "A304", f"pad of {shown(t.shape)} by {width!r}", f"{len(sides)} widths for {t.ndim} axes", "a pair for each axis"
                )
            return [_side(s, width) for s in sides]
    return [_side(width, width)] * t.ndim


def _side(value: Any, width: Any) -> tuple[int, int]:
    both = tuple(value) if isinstance(value, list | tuple) else (value, value)
    if len(both) != 2 or any(isinstance(v, bool) or not isinstance(v, int) or v < 0 for v in both):
        raise refuse("A304", f"pad by {width!r}", "a width is a non-negative integer, or a pair of them", "a slice to make it smaller")
    return both[0], both[1]
