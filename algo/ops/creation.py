"""Tensors from nothing but numbers, and from NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import expr as E
from ..building import operator
from ..complex import ComplexTensor, complex_tensor
from ..complex.lifting import by_parts
from ..dtypes import canonical, kind, paired, part_of
from ..expr import Expr, as_expr, refuse
from ..extent import Dim, Extent, ceildiv, maximum
from ..tensor import Tensor
from ..trace import build_stage
from .shapes import dimensions, labels, shown, tensor, view
from .views import broadcast_arrays, expanded


@view
def asarray(value: Any, dtype: Any = None) -> Tensor:
    """A constant of the algorithm from a NumPy array or (nested) lists of numbers; a tensor stays what it is."""
    if isinstance(value, Tensor):
        return value
    if part_of(dtype) is not None:
        return complex_tensor(np.asarray(value).astype(paired(str(part_of(dtype)))), "asarray")  # type: ignore[return-value]
    return tensor(value if dtype is None else np.asarray(value).astype(canonical(dtype)), "asarray")


KINDS = {bool: "bool", int: "int32", float: "float32", complex: "complex64"}
"""The type of a Python number where nothing else says it."""


def _filled(shape: Any, value: Any, dtype: Any, what: str, names: Sequence[str | None] | None = None) -> Tensor:
    declared, extents = dimensions(shape, what)
    axes = labels(declared if names is None else names)
    sizes = dict(zip(axes, extents, strict=True))
    if part_of(dtype) is not None and isinstance(value, bool | int | float | complex):
        return build_stage(axes, lambda *_: value, extents=sizes, dtype=dtype)
    to = canonical(dtype) if dtype is not None else None
    if not isinstance(value, bool | int | float):
        raise refuse("A304", f"{what} with {value!r}", "the value is a number", "fl.broadcast_to for a tensor")
    return build_stage(axes, lambda *_: as_expr(value) if to is None else E.cast(value, to), extents=sizes)


@operator
def zeros(shape: Any, dtype: Any = None) -> Tensor:
    """All 0, by default float32. `shape` holds integers, symbolic extents, or their names."""
    return _filled(shape, 0, dtype or "float32", "zeros")


@operator
def ones(shape: Any, dtype: Any = None) -> Tensor:
    """All 1, by default float32."""
    return _filled(shape, 1, dtype or "float32", "ones")


@operator
def full(shape: Any, fill_value: bool | int | float, dtype: Any = None) -> Tensor:
    """All `fill_value`, by default in the type of its kind (float32, int32, bool, complex64)."""
    given = dtype if dtype is not None else KINDS.get(type(fill_value))
    return _filled(shape, fill_value, given, "full")


@operator
def zeros_like(x: Tensor, dtype: Any = None) -> Tensor:
    """0 in the shape, axis names and (by default) type of x."""
    return _filled(x.shape, 0, dtype or x.dtype, "zeros_like", x.axis_names)


@operator
def ones_like(x: Tensor, dtype: Any = None) -> Tensor:
    """1 in the shape, axis names and (by default) type of x."""
    return _filled(x.shape, 1, dtype or x.dtype, "ones_like", x.axis_names)


@operator
def full_like(x: Tensor, fill_value: bool | int | float, dtype: Any = None) -> Tensor:
    """`fill_value` in the shape, axis names and (by default) type of x."""
    return _filled(x.shape, fill_value, dtype or x.dtype, "full_like", x.axis_names)


@operator
def arange(start: Extent | float, stop: Extent | float | None = None, step: int | float = 1, dtype: Any = None) -> Tensor:
    """start, start + step, ... below stop, along one axis `i`; ``arange(n)`` counts from 0. Whole numbers may be symbolic."""
    low, high = (0, start) if stop is None else (start, stop)
    if isinstance(step, Dim) or step == 0:
        raise refuse("A304", f"arange with step {step}", "a step is a number that is not 0")
    length: Extent
    if isinstance(low, int | Dim) and isinstance(high, int | Dim) and isinstance(step, int):
        length = maximum(ceildiv(high - low, step) if step > 0 else ceildiv(low - high, -step), 0)
    elif isinstance(low, Dim) or isinstance(high, Dim):
        raise refuse("A304", f"arange({low}, {high}, {step})", "a symbolic end needs whole numbers beside it", "fl.arange(n) * step")
    else:
        length = max(int(np.ceil((high - low) / step)), 0)
    exact = dtype is not None and canonical(dtype) == "float64"  # else the numbers are float32 before they are of the type

    def number(i: Expr) -> Expr:
        return as_expr(low) + (E.cast(i, "float64") if exact else i) * step

    return build_stage(["i"], number, extents={"i": length}, dtype=dtype)


def _triangle(x: Any, k: int, lower: bool, what: str) -> Tensor:
    t = tensor(x, what)
    if t.ndim < 2:
        raise refuse("A307", f"{what} of {shown(t.shape)}", "a matrix, or a batch of them, is needed")
    names = labels(t.axis_names)

    def value(*i: Expr) -> Any:
        keep = i[-1] <= i[-2] + k if lower else i[-1] >= i[-2] + k
        return E.where(keep, t[i], E.cast(0, t.dtype))

    return build_stage(names, value, extents=dict(zip(names, t.shape, strict=True)))


@by_parts()
@operator
def tril(x: Any, k: int = 0) -> Tensor:
    """The lower triangle of the last two axes, up to the k-th diagonal; 0 above."""
    return _triangle(x, k, True, "tril")


@by_parts()
@operator
def triu(x: Any, k: int = 0) -> Tensor:
    """The upper triangle of the last two axes, from the k-th diagonal; 0 below."""
    return _triangle(x, k, False, "triu")


@operator
def eye(n: Extent, m: Extent | None = None, *, k: int = 0, dtype: Any = None) -> Tensor:
    """1 on the k-th diagonal of an n by m matrix (square by default), 0 elsewhere, by default float32; axes i j."""
    dtype = dtype or "float32"
    to = part_of(dtype) or canonical(dtype)
    one, zero = E.cast(1, to), E.cast(0, to)
    extents = {"i": n, "j": n if m is None else m}
    return build_stage(["i", "j"], lambda i, j: E.where(i + k == j, one, zero), extents=extents, dtype=dtype)


@operator
def linspace(start: complex, stop: complex, num: Extent, dtype: Any = None, *, endpoint: bool = True) -> Tensor:
    """`num` numbers at equal distances from start to stop, along one axis `i`; without `endpoint` stop itself is left out.

    float32 by default. Computed in float64 and rounded once, for integer types down; the last is `stop` itself. Where an end is complex,
    or `dtype`, both parts are at equal distances.
    """
    dtype = dtype or "float32"
    if part_of(dtype) is not None or any(isinstance(v, complex) for v in (start, stop)):
        return _between(start, stop, num, dtype, endpoint)  # type: ignore[no-any-return]
    if any(isinstance(v, bool) or not isinstance(v, int | float) for v in (start, stop)):
        raise refuse("A304", f"linspace({start!r}, {stop!r})", "both ends are numbers", "a + (b - a) * fl.linspace(0, 1, n) for tensors")
    (count,) = dimensions((num,), "linspace")[1]
    low, high = E.cast(start, "float64"), E.cast(stop, "float64")
    gaps = E.cast(maximum(count - 1, 1) if endpoint else maximum(count, 1), "float64")

    def value(i: Expr) -> Expr:
        between = low + E.cast(i, "float64") * (E.cast(stop - start, "float64") / gaps)
        if endpoint:
            between = E.where((i > 0) & (i == as_expr(count) - 1), high, between)
        return E.unary("floor", between) if kind(canonical(dtype)) == "int" else between

    return build_stage(["i"], value, extents={"i": count}, dtype=dtype)


def _between(start: complex, stop: complex, num: Extent, dtype: Any, endpoint: bool) -> Any:
    """Both parts of complex numbers at equal distances."""
    part = part_of(dtype) or "float32"
    if part_of(dtype) is None and canonical(dtype) != "float32":  # which is what nobody asked for
        raise refuse("A211", f"linspace of complex numbers in {canonical(dtype)}", "the imaginary part would be lost", "dtype=fl.c64")
    first, last = complex(start), complex(stop)
    real = linspace(first.real, last.real, num, part, endpoint=endpoint, name="real")
    return ComplexTensor(real, linspace(first.imag, last.imag, num, part, endpoint=endpoint, name="imag"))


@view
def meshgrid(*vectors: Any, indexing: str = "xy") -> list[Tensor]:
    """Each vector spread over the grid of all: views, ``out[k][.., i_k, ..] == vectors[k][i_k]``.

    `indexing` "ij" keeps the order of the vectors, "xy" (as on paper) puts the second first.
    """
    if indexing not in ("xy", "ij"):
        raise refuse("A304", f"meshgrid: indexing={indexing!r}", "it is one of NumPy's", "xy", "ij")
    made = [tensor(v, "meshgrid") for v in vectors]
    if any(t.ndim != 1 for t in made):
        raise refuse("A307", f"meshgrid of {' and '.join(shown(t.shape) for t in made)}", "each is a vector")
    rank = len(made)
    places = [1, 0, *range(2, rank)] if indexing == "xy" and rank > 1 else list(range(rank))
    spread = [expanded(t, [d for d in range(rank) if d != p]) for t, p in zip(made, places, strict=True)]
    return broadcast_arrays(*spread)


@view
def empty(shape: Any = None, dtype: Any = None) -> Tensor:
    """Refused: every element of a tensor is a function of its index, so there is none that is not set."""
    raise refuse("A304", f"empty({shape!r})", "a tensor is the value of its elements, and these would have none", "fl.zeros(shape)")


@view
def empty_like(x: Any, dtype: Any = None) -> Tensor:
    """Refused, as `empty`."""
    raise refuse("A304", "empty_like", "a tensor is the value of its elements, and these would have none", "fl.zeros_like(x)")
