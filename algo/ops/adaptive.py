"""Adaptive pooling: windows that cut an image into a given number of parts.

Part i of m along an axis of n elements is ``[floor(i * n / m), ceil((i + 1) * n / m))`` (PyTorch's rule): neighbours share an element where
m does not divide n, and no part is empty. Where a size is None the axis stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import expr as E
from ..building import operator
from ..expr import Expr, as_expr, cast
from ..extent import Extent, ceildiv
from ..reducing import reduce_axes
from ..tensor import Tensor
from ..trace import build_stage
from .reductions import rounded, summand
from .windows import SPACE, TAPS, image, lowest, spatial, zero


@dataclass(frozen=True)
class Part:
    """One axis of `size` elements cut into `count` parts."""

    size: Extent
    count: Extent

    @property
    def taps(self) -> Extent:
        """The elements of the largest part."""
        if self.size == self.count:
            return 1
        if isinstance(self.size, int) and isinstance(self.count, int):
            return max((-(-(i + 1) * self.size // self.count) - i * self.size // self.count for i in range(self.count)), default=1)
        return self.size if self.count == 1 else ceildiv(self.size - 1, self.count) + 1

    @property
    def even(self) -> bool:
        known = isinstance(self.size, int) and isinstance(self.count, int) and self.size % self.count == 0
        return known or self.count == 1 or self.size == self.count

    def first(self, i: Expr) -> Expr:
        return i if self.size == self.count else i * as_expr(self.size) // as_expr(self.count)

    def end(self, i: Expr) -> Expr:
        return ((i + 1) * as_expr(self.size) + as_expr(self.count - 1)) // as_expr(self.count)


def _parts(what: str, space: Sequence[Extent], size: Any) -> list[Part]:
    rank = len(space)
    kept = [m is None for m in (size if isinstance(size, list | tuple) else (size,) * rank)]
    known = [1 if k else m for k, m in zip(kept, size, strict=True)] if isinstance(size, list | tuple) else 1 if size is None else size
    counts = spatial(known, f"{what}: size", 1, rank)
    return [Part(n, n if k else m) for n, k, m in zip(space, kept, counts, strict=True)]


def _pooled(what: str, rank: int, x: Any, size: Any, largest: bool) -> Tensor:
    t = image(x, what, rank)
    parts = _parts(what, t.shape[2:], size)
    names = ["n", "c", *SPACE[rank]]
    extents = dict(zip(names, (*t.shape[:2], *(p.count for p in parts)), strict=True))

    def value(n: Expr, c: Expr, *at: Expr) -> Expr:
        def tap(*taps: Expr) -> Expr:
            read = [p.first(i) + k for p, i, k in zip(parts, at, taps, strict=True)]
            inside = [r < p.end(i) for p, i, r in zip(parts, at, read, strict=True) if not p.even]
            found = t[n, c, *read]
            if inside:
                met = inside[0]
                for more in inside[1:]:
                    met = met & more
                found = E.where(met, found, cast(lowest(t.dtype) if largest else zero(t.dtype), t.dtype))
            return found if largest else summand(found)

        return reduce_axes("max" if largest else "sum", list(TAPS[rank]), tap, {k: p.taps for k, p in zip(TAPS[rank], parts, strict=True)})

    if largest:
        return build_stage(names, value, extents=extents)
    total = build_stage(names, value, extents=extents, name="sum")

    def divided(*i: Expr) -> Any:
        count: Expr = as_expr(1)
        for p, e in zip(parts, i[2:], strict=True):
            count = count * (as_expr(p.taps) if p.even else p.end(e) - p.first(e))
        return rounded(total[i] / cast(count, total.dtype), t.dtype)

    return build_stage(names, divided, extents=extents)


@operator
def adaptive_avg_pool1d(x: Any, size: Any) -> Tensor:
    """The means of `size` parts: [n, c, size]. Stages `sum` and the quotient, axes n c x; kx."""
    return _pooled("adaptive_avg_pool1d", 1, x, size, False)


@operator
def adaptive_avg_pool2d(x: Any, size: Any) -> Tensor:
    """The means of y * x parts of an image, `size` one integer or (y, x), of which None keeps the axis. Stages `sum` and the quotient,
    axes n c y x; ky kx."""
    return _pooled("adaptive_avg_pool2d", 2, x, size, False)


@operator
def adaptive_avg_pool3d(x: Any, size: Any) -> Tensor:
    """The means of z * y * x parts of a volume. Stages `sum` and the quotient, axes n c z y x; kz ky kx."""
    return _pooled("adaptive_avg_pool3d", 3, x, size, False)


@operator
def adaptive_max_pool1d(x: Any, size: Any) -> Tensor:
    """The largest elements of `size` parts: [n, c, size]. Axes n c x; kx."""
    return _pooled("adaptive_max_pool1d", 1, x, size, True)


@operator
def adaptive_max_pool2d(x: Any, size: Any) -> Tensor:
    """The largest elements of y * x parts of an image, `size` one integer or (y, x). Axes n c y x; ky kx."""
    return _pooled("adaptive_max_pool2d", 2, x, size, True)


@operator
def adaptive_max_pool3d(x: Any, size: Any) -> Tensor:
    """The largest elements of z * y * x parts of a volume. Axes n c z y x; kz ky kx."""
    return _pooled("adaptive_max_pool3d", 3, x, size, True)
