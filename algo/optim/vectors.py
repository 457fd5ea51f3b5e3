"""Parameters and their like as vectors: sums over all elements, in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..expr import Expr, cast, unary
from ..reducing import reduce_axes
from ..tensor import Tensor
from ..trace import build_stage
from .update import elementwise

PAIR = "pair"


def added(t: Tensor, fn: Callable[..., Expr]) -> Expr:
    """The sum of fn(i, j, ...) over the elements of a tensor."""
    axes = axis_labels(t)
    return reduce_axes("sum", axes, fn, dict(zip(axes, t.shape, strict=True))) if axes else fn()


def axis_labels(t: Tensor) -> list[str]:
    """Names for the axes of a tensor."""
    return [f"e{d}" for d in range(t.ndim)]


def double(t: Tensor, *i: Expr) -> Expr:
    """An element in float64."""
    return cast(t[i] if i else t.as_scalar(), "float64")


def dot(name: str, a: Tensor, b: Tensor) -> Tensor:
    """The product of two tensors as vectors."""
    return build_stage([], lambda: added(a, lambda *i: double(a, *i) * double(b, *i)), name=name, origin="derived")


def magnitude(name: str, t: Tensor) -> Tensor:
    """The sum of the magnitudes of all elements."""
    return build_stage([], lambda: added(t, lambda *i: unary("abs", double(t, *i))), name=name, origin="derived")


def total(name: str, parts: Sequence[Tensor]) -> Tensor:
    """The sum of numbers."""
    return elementwise((), (), name, "float64", lambda *each: _sum(each), *parts)


def each_with(name: str, parts: Sequence[tuple[Tensor, Tensor, str]], m: int) -> Tensor:
    """The products of each of m vectors with one, of which each part (many, one, path) holds some elements."""

    def of_part(many: Tensor, t: Tensor, path: str) -> Tensor:
        def value(k: Expr) -> Expr:
            return added(t, lambda *i: double(many, k, *i) * double(t, *i))

        return build_stage([PAIR], value, name=f"{name}/{path}", extents={PAIR: m}, origin="derived")

    found = [of_part(*p) for p in parts]
    return build_stage([PAIR], lambda k: _sum([f[k] for f in found]), name=name, extents={PAIR: m}, origin="derived")


def _sum(each: Sequence[Expr]) -> Expr:
    whole = each[0]
    for e in each[1:]:
        whole = whole + e
    return whole


__all__ = ["PAIR", "axis_labels", "dot", "each_with", "magnitude", "total"]
