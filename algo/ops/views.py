"""Views: index maps on a tensor, never stages and never copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..complex.lifting import by_parts
from ..dtypes import kind
from ..errors import InternalError
from ..expr import Const, Expr, as_expr, cast, refuse
from ..extent import Extent, exact_quotient, symbol, volume
from ..tensor import Bounded, Index, Tensor, View
from .shapes import AxisLike, Names, axis_number, axis_numbers, broadcast, dimensions, shown, tensor, view


def made(x: Tensor, shape: Sequence[Extent], names: Sequence[str | None], index_map: Callable[[Index], Index]) -> Tensor:
    unbounded(x)
    return View(x, shape, names, index_map, x.label)


def unbounded(x: Tensor) -> None:
    if x.is_bounded:
        raise refuse(
            "A312",
            f"a view of {x.label}",
            "a boundary view is the last step before the reads, so that the boundary is that of the viewed tensor",
            f"{x.label.split('(')[0]}(view of x) in the other order",
        )


# ---------------------------------------------------------------- order of axes
@view
def transpose(x: Any, axes: Sequence[AxisLike] | None = None) -> Tensor:
    """The axes in another order, by number or name; reversed by default. ``result[i, j] == x[j, i]``."""
    t = tensor(x, "transpose")
    order = [axis_number(a, t.axis_names, "transpose") for a in axes] if axes is not None else list(reversed(range(t.ndim)))
    if sorted(order) != list(range(t.ndim)):
        raise refuse("A302", f"transpose of {shown(t.shape)} by {list(axes or ())}", f"each of its {t.ndim} axes must stand there once")
    return _permuted(t, order)


def _permuted(t: Tensor, order: Sequence[int]) -> Tensor:
    back = [order.index(d) for d in range(t.ndim)]
    return made(t, [t.shape[d] for d in order], [t.axis_names[d] for d in order], lambda i: tuple(i[k] for k in back))


@view
def moveaxis(x: Any, source: AxisLike | Sequence[AxisLike], destination: int | Sequence[int]) -> Tensor:
    """Axes moved to other positions of the result, the rest in their order."""
    t = tensor(x, "moveaxis")
    sources = [axis_number(a, t.axis_names, "moveaxis") for a in listed(source)]
    places = [axis_number(a, t.axis_names, "moveaxis") for a in listed(destination)]
    if len(sources) != len(places) or len(set(sources)) != len(sources) or len(set(places)) != len(places):
        raise refuse("A302", f"moveaxis of {source!r} to {destination!r}", "each axis has one place, and no place two axes")
    order = [d for d in range(t.ndim) if d not in sources]
    for place, d in sorted(zip(places, sources, strict=True)):
        order.insert(place, d)
    return _permuted(t, order)


def listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else (value,)


@view
def matrix_transpose(x: Any) -> Tensor:
    """The last two axes exchanged."""
    t = tensor(x, "matrix_transpose")
    if t.ndim < 2:
        raise refuse("A307", f"matrix_transpose of {shown(t.shape)}", "a matrix, or a batch of them, is needed")
    return _permuted(t, [*range(t.ndim - 2), t.ndim - 1, t.ndim - 2])


@view
def swapaxes(x: Any, first: AxisLike, second: AxisLike) -> Tensor:
    """Two axes exchanged."""
    t = tensor(x, "swapaxes")
    a, b = axis_number(first, t.axis_names, "swapaxes"), axis_number(second, t.axis_names, "swapaxes")
    order = list(range(t.ndim))
    order[a], order[b] = b, a
    return _permuted(t, order)


# ---------------------------------------------------------------- shape
@view
def reshape(x: Any, shape: Any) -> Tensor:
    """The same elements in row-major order in another shape. One dimension may be -1, others symbolic (``"n"``). Axes are unnamed."""
    t = tensor(x, "reshape")
    given = shape if isinstance(shape, list | tuple) else (shape,)
    to = _completed(t, [symbol(n) if isinstance(n, str) else n for n in given])
    blocks = _blocks(t.shape, to)
    if blocks is None:
        raise refuse("A303", f"reshape of {shown(t.shape)} to {shown(to)}", f"{t.size} elements are not {volume(to)}")

    def index_map(index: Index) -> Index:
        out: list[Expr] = []
        for source, target in blocks:
            out += _unravelled(_ravelled([index[d] for d in target], [to[d] for d in target]), [t.shape[d] for d in source])
        return tuple(out)

    return made(t, to, (None,) * len(to), index_map)


def _completed(t: Tensor, shape: list[Any]) -> tuple[Extent, ...]:
    holes = [d for d, n in enumerate(shape) if isinstance(n, int) and n == -1]
    if len(holes) > 1:
        raise refuse("A303", f"reshape to {shown(shape)}", "only one dimension may be -1")
    known = dimensions([n for d, n in enumerate(shape) if d not in holes], "reshape")[1]
    if not holes:
        return known
    rest = exact_quotient(t.size, volume(known)) if volume(known) != 0 else None
    if rest is None:
        raise refuse("A303", f"reshape of {shown(t.shape)} to {shown(shape)}", f"{t.size} elements are not a multiple of {volume(known)}")
    return (*known[: holes[0]], rest, *known[holes[0] :])


def _blocks(source: Sequence[Extent], target: Sequence[Extent]) -> list[tuple[list[int], list[int]]] | None:
    """Runs of dimensions that hold the same elements, as short as possible: an untouched axis stays an axis. None if sizes differ."""
    if volume(source) != volume(target):
        return None
    if volume(source) == 0:
        return [(list(range(len(source))), list(range(len(target))))]
    out: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(source) or j < len(target):
        a, b = _block(source[i:], target[j:])
        out.append((list(range(i, i + a)), list(range(j, j + b))))
        i, j = i + a, j + b
    return out


def _block(source: Sequence[Extent], target: Sequence[Extent]) -> tuple[int, int]:
    """How many leading dimensions of each hold the same elements: as few as possible, a lone 1 on one side too."""
    for total in range(1, len(source) + len(target) + 1):
        for a in range(min(total, len(source)) + 1):
            b = total - a
            if b <= len(target) and ((a and b) or total == 1) and volume(source[:a]) == volume(target[:b]):
                return a, b
    raise InternalError("shapes of equal size have no common block")


def _ravelled(index: Sequence[Expr], shape: Sequence[Extent]) -> Expr:
    flat: Expr = as_expr(0)
    for i, n in zip(index, shape, strict=True):
        flat = flat * as_expr(n) + i
    return flat


def _unravelled(flat: Expr, shape: Sequence[Extent]) -> list[Expr]:
    if len(shape) == 1:
        return [flat]
    out: list[Expr] = []
    below: Extent = 1
    for k in reversed(range(len(shape))):
        part = flat // as_expr(below)
        out.append(part % as_expr(shape[k]) if k else part)
        below = below * shape[k]
    return out[::-1]


@view
def flatten(x: Any, start: int = 0) -> Tensor:
    """All elements along one axis; with `start` those of the axes from there on, so that ``fl.flatten(x, 1)`` leaves the batch alone."""
    t = tensor(x, "flatten")
    first = start if start == t.ndim and type(start) is int else axis_number(start, t.axis_names, "flatten")
    result: Tensor = reshape(t, (*t.shape[:first], volume(t.shape[first:])))
    return result


def expanded(t: Tensor, where: Sequence[int]) -> Tensor:
    """t with axes of extent 1 at these positions of the result."""
    rank = t.ndim + len(where)
    kept = [d for d in range(rank) if d not in where]
    shape: list[Extent] = [1] * rank
    names: list[str | None] = [None] * rank
    for d, n, name in zip(kept, t.shape, t.axis_names, strict=True):
        shape[d], names[d] = n, name
    return made(t, shape, names, lambda i: tuple(i[d] for d in kept))


@view
def expand_dims(x: Any, axis: int | Sequence[int]) -> Tensor:
    """New axes of extent 1 at these positions of the result."""
    t = tensor(x, "expand_dims")
    given = axis if isinstance(axis, list | tuple) else (axis,)
    rank = t.ndim + len(given)
    return expanded(t, axis_numbers(axis, (None,) * rank, "expand_dims", rank))


@view
def squeeze(x: Any, axis: AxisLike | Sequence[AxisLike] | None = None) -> Tensor:
    """Without axes of extent 1: these, or all of them."""
    t = tensor(x, "squeeze")
    gone = axis_numbers(axis, t.axis_names, "squeeze") if axis is not None else tuple(d for d, n in enumerate(t.shape) if n == 1)
    wrong = [d for d in gone if t.shape[d] != 1]
    if wrong:
        raise refuse("A303", f"squeeze of axis {wrong[0]} of {shown(t.shape)}", f"its extent is {t.shape[wrong[0]]}, not 1")
    return without(t, gone)


def without(t: Tensor, gone: Sequence[int]) -> Tensor:
    """t without these axes of extent 1."""
    kept = [d for d in range(t.ndim) if d not in gone]
    return made(
        t,
        [t.shape[d] for d in kept],
        [t.axis_names[d] for d in kept],
        lambda i: tuple(i[kept.index(d)] if d in kept else as_expr(0) for d in range(t.ndim)),
    )


@view
def broadcast_to(x: Any, shape: Any) -> Tensor:
    """x seen as a larger shape: axes of extent 1 repeat, new ones come in front."""
    t = tensor(x, "broadcast_to")
    names, to = dimensions(shape, "broadcast_to")
    skip = len(to) - t.ndim
    if skip < 0 or any(n != 1 and n != m for n, m in zip(t.shape, to[skip:], strict=True)):
        raise refuse("A301", f"broadcast_to of {shown(t.shape)} to {shown(to)}", "from the right, an extent must be equal or 1")
    return broadcast_view(t, to, names)


def broadcast_view(t: Tensor, to: Sequence[Extent], names: Names) -> Tensor:
    skip = len(to) - t.ndim
    stretched = [n == 1 and to[skip + d] != 1 for d, n in enumerate(t.shape)]
    own = [names[d] if d < skip or stretched[d - skip] else t.axis_names[d - skip] for d in range(len(to))]
    return made(t, to, own, lambda i: tuple(as_expr(0) if s else i[skip + d] for d, s in enumerate(stretched)))


@view
def broadcast_arrays(*tensors: Any) -> list[Tensor]:
    """All seen in their common shape."""
    made = [tensor(t, "broadcast_arrays") for t in tensors]
    shape, names = broadcast("broadcast_arrays", made)
    return [t if t.shape == shape else broadcast_view(t, shape, names) for t in made]


# ---------------------------------------------------------------- boundaries
def _bounded(x: Any, boundary: str, value: Any = None) -> Tensor:
    t = tensor(x, boundary)
    return Bounded(t, boundary, value)


@view
def edge(x: Any) -> Tensor:
    """x with its nearest element read outside its bounds."""
    return _bounded(x, "edge")


@view
def reflect(x: Any) -> Tensor:
    """x mirrored at its first and last element, which are not repeated."""
    return _bounded(x, "reflect")


@view
def wrap(x: Any) -> Tensor:
    """x repeated periodically."""
    return _bounded(x, "wrap")


@by_parts("x", "value", scoped=False)
@view
def constant(x: Any, value: bool | int | float = 0) -> Tensor:
    """x with `value` read outside its bounds."""

    t = tensor(x, "constant")
    if not isinstance(value, bool | int | float) or (isinstance(value, float) and kind(t.dtype) != "float"):
        raise refuse("A304", f"constant({t.label}, {value!r})", f"the value outside must be a number that {t.dtype} holds")
    outside = cast(value, t.dtype)
    assert isinstance(outside, Const)
    return _bounded(t, "constant", outside.value)
