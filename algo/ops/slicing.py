"""``x[...]`` outside a stage: integers, slices, None, Ellipsis, integer tensors and masks, with NumPy's meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..expr import Expr, as_expr, refuse
from ..extent import Dim, Extent, at_most, ceildiv, maximum, minimum, nonnegative
from ..tensor import Index, Tensor
from .gather import positions, take_
from .shapes import shown, view
from .views import made


@dataclass(frozen=True)
class _Span:
    """start + step * i for i below extent."""

    start: Extent
    step: int
    extent: Extent


@dataclass(frozen=True)
class _Chosen:
    """Along one dimension, where a mask of this extent holds."""

    positions: np.ndarray[Any, Any]
    extent: int


@view
def getitem(x: Tensor, given: tuple[Any, ...]) -> Tensor:
    """x[given]. A view, except that integer tensors make a stage `take`, of elements that they name together.

    Where integers, tensors and masks all stand side by side, the axes of the tensors stand there too, else in front. Raises
    AlgorithmError for what does not fit the shape.
    """
    parts = _completed(x, _counted(given))
    spans: list[_Span | Extent] = []
    shape: list[Extent] = []
    names: list[str | None] = []
    place: list[int | None] = []  # result axis -> None for a new axis, else dimension of x
    gathers: dict[int, Tensor] = {}
    d = 0
    for part in parts:
        if part is None:
            shape.append(1)
            names.append(None)
            place.append(None)
            continue
        n = x.shape[d]
        if _is_number(part):
            spans.append(_position(x, part, n, d))
        else:
            if not isinstance(part, slice):
                gathers[len(shape)] = _positions(x, part, n, d)
                part = slice(None)
            span = _span(x, part, n)
            spans.append(span)
            shape.append(span.extent)
            names.append(x.axis_names[d])
            place.append(d)
        d += 1

    def index_map(index: Index) -> Index:
        at: dict[int, Expr] = {p: i for p, i in zip(place, index, strict=True) if p is not None}
        return tuple(as_expr(s.start) + at[k] * s.step if isinstance(s, _Span) else as_expr(s) for k, s in enumerate(spans))

    whole = all(isinstance(s, _Span) and s.step == 1 and s.start == 0 and s.extent == n for s, n in zip(spans, x.shape, strict=True))
    result = x if whole and None not in place else made(x, shape, names, index_map)
    return take_(result, gathers, min(gathers) if _side_by_side(parts) else 0) if gathers else result


def _counted(given: tuple[Any, ...]) -> list[Any]:
    """With masks that are known now as the positions where they hold, along each of their dimensions."""
    out: list[Any] = []
    for part in given:
        array = None if isinstance(part, Tensor) or not isinstance(part, list | tuple | np.ndarray) else np.asarray(part)
        if array is not None and array.dtype == bool and array.ndim:
            out += [_Chosen(at, n) for at, n in zip(np.nonzero(array), array.shape, strict=True)]
        else:
            out.append(part)
    return out


def _completed(x: Tensor, given: Sequence[Any]) -> list[Any]:
    """With the Ellipsis, or the missing end, written out as full slices."""
    dots = [k for k, g in enumerate(given) if g is Ellipsis]
    used = sum(g is not None and g is not Ellipsis for g in given)
    if used > x.ndim or len(dots) > 1:
        raise refuse(
            "A305", f"{used} indices into {x.label} {shown(x.shape)}", f"it has {x.ndim} axes" if used > x.ndim else "one ... at the most"
        )
    at = dots[0] if dots else len(given)
    return [*given[:at], *[slice(None)] * (x.ndim - used), *given[at + 1 :]]


def _side_by_side(parts: Sequence[Any]) -> bool:
    """Whether no slice and no None stands between what chooses positions."""
    choose = [k for k, p in enumerate(parts) if p is not None and not isinstance(p, slice)]
    return choose[-1] - choose[0] == len(choose) - 1


def _is_number(part: Any) -> bool:
    return isinstance(part, int | np.integer | Dim) and not isinstance(part, bool)


def _position(x: Tensor, i: Any, n: Extent, d: int) -> Extent:
    at: Extent = i if isinstance(i, Dim) else int(i)
    if isinstance(at, int) and at < 0:
        at = n + at
    outside = (isinstance(at, int) and at < 0) or nonnegative(at - n)
    if outside:
        raise refuse("A305", f"index {i} into dimension {d} of {x.label} {shown(x.shape)}", f"its extent is {n}")
    return at


def _positions(x: Tensor, part: Any, n: Extent, d: int) -> Tensor:
    """Positions along dimension d, as `take` has them."""
    if isinstance(part, _Chosen):
        if part.extent != n:
            asked = f"a mask of {part.extent} elements for dimension {d} of {x.label} {shown(x.shape)}"
            raise refuse("A305", asked, f"its extent is {n}: a mask says yes or no of each", "fl.where(mask, x, 0)")
        return positions(part.positions, x, d, "take")
    if not isinstance(part, Tensor | list | tuple | np.ndarray):
        why = "an index is an integer, a slice, None, ..., an integer tensor or a mask"
        raise refuse("A305", f"{x.label} indexed with {type(part).__name__}", why)
    array = part if isinstance(part, Tensor) else np.asarray(part)
    if isinstance(array, np.ndarray) and array.size and array.dtype.kind not in "iu":
        why = "an index array holds integers, or is a mask"
        raise refuse("A305", f"{x.label} indexed with an array of {array.dtype}", why, "fl.where for choices by condition")
    if isinstance(array, np.ndarray) and not array.size and isinstance(part, list | tuple):
        array = array.astype(np.int32)
    return positions(array, x, d, "take")


def _bound(value: Any, n: Extent) -> Extent:
    if isinstance(value, Dim):
        return value
    return n + int(value) if value < 0 else int(value)


def _span(x: Tensor, part: slice, n: Extent) -> _Span:
    for v in (part.start, part.stop, part.step):
        if v is not None and not _is_number(v):
            raise refuse(
                "A305", f"slice {part.start}:{part.stop}:{part.step} of {x.label}", "the ends of a slice are integers or symbolic extents"
            )
    step = 1 if part.step is None else part.step
    if not isinstance(step, int | np.integer) or step == 0:
        raise refuse("A305", f"slice of {x.label} with step {step}", "a step is an integer that is not 0")
    step = int(step)
    if step > 0:
        start = _clipped(0 if part.start is None else _bound(part.start, n), 0, n)
        stop = _clipped(n if part.stop is None else _bound(part.stop, n), 0, n)
        length = ceildiv(stop - start, step)
    else:
        start = _clipped(n - 1 if part.start is None else _bound(part.start, n), -1, n - 1)
        stop = -1 if part.stop is None else _clipped(_bound(part.stop, n), -1, n - 1)
        length = ceildiv(start - stop, -step)
    return _Span(start if length != 0 else 0, step, maximum(length, 0))


def _clipped(e: Extent, low: Extent, high: Extent) -> Extent:
    if at_most(low, e) and at_most(e, high):
        return e
    return maximum(minimum(e, high), low)
