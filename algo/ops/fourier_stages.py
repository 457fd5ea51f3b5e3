"""A Fourier transform along one axis, one stage for each prime factor of its length (two factors of 2 together).

The factors are taken out one after the other (Cooley and Tukey, 1965) in the order of Stockham's method, which needs no reordering. After
factors with the product `length`, element (k, j) is frequency k of the transform of the `length` elements j, j + rest, j + 2 rest and so on
up to n, with rest = n / length. Real and imaginary parts are apart: they are the first axis of each stage, `part`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import expr as E
from ..complex import ComplexTensor
from ..expr import Expr, as_expr
from ..extent import Extent
from ..reducing import reduce_axes
from ..tensor import Bounded, Tensor
from ..trace import build_stage
from .shapes import labels, tensor
from .views import made

_WRITTEN_OUT = 5
"""Factors up to this are written as sums of so many terms, larger ones as reductions."""
_TABLE = 2**20
"""Elements of a table for one stage. Vectors of it are loaded as they lie."""
Index = tuple[Expr, ...]
Element = Callable[[Expr, Index, Expr, Expr], Expr]
"""What an earlier stage has at (part, the other axes, k, j)."""


@dataclass(frozen=True)
class Line:
    """What is transformed: along axis `d`, `n` elements, cut or filled up with zeros; turned the other way if `inverse`, times `scale`."""

    x: Tensor | ComplexTensor
    d: int
    n: int
    inverse: bool
    scale: float

    @property
    def real(self) -> bool:
        return isinstance(self.x, Tensor)

    @property
    def dtype(self) -> str:
        return (self.x if isinstance(self.x, Tensor) else self.x.real).dtype

    def element(self) -> Element:
        """The given elements; beyond the end 0."""
        extent, x = self.x.shape[self.d], self.x
        whole = isinstance(extent, int) and self.n <= extent

        def at(outer: Index, j: Expr) -> Index:
            return (*outer[: self.d], j, *outer[self.d :])

        def longer(t: Tensor) -> Tensor:
            return t if whole else Bounded(t, "constant", 0.0)

        if isinstance(x, Tensor):
            line = longer(x)
            return lambda part, outer, k, j: line[at(outer, j)]
        real, imag = longer(x.real), longer(x.imag)
        return lambda part, outer, k, j: E.where(part > 0, imag[at(outer, j)], real[at(outer, j)])


def transformed(line: Line, kept: int) -> ComplexTensor:
    """The first `kept` frequencies, from stages `factor_R`."""
    return planes_of(_stages(line, kept, real=False), line.x.axis_names)


def transformed_to_real(line: Line) -> Tensor:
    """The real part, all of it, the last stage under the operator's own name."""
    return _stages(line, line.n, real=True)


def planes_of(planes: Tensor, names: Sequence[str | None]) -> ComplexTensor:
    """[part, ...] as a complex tensor under other axis names: views."""

    def part(n: int) -> Tensor:
        return made(planes, planes.shape[1:], names, lambda i: (as_expr(n), *i))

    joined = made(planes, [*planes.shape[1:], 2], [*names, "part"], lambda i: (i[-1], *i[:-1]))
    return ComplexTensor(part(0), part(1), joined)


def factors(n: int) -> list[int]:
    """n as a product: 4s, then what primes are left."""
    found = []
    for p in (4, *range(2, math.isqrt(n) + 1)):
        while n % p == 0:
            found.append(p)
            n //= p
    return [*found, n] if n > 1 or not found else found


def _stages(line: Line, kept: int, *, real: bool) -> Tensor:
    """The last of the stages: [part, ...], or the `real` part alone [...]."""
    d, n = line.d, line.n
    names = labels(line.x.axis_names, ["part", "k", "j", "s"])
    around = names[:d] + names[d + 1 :]
    extents = {m: e for k, (m, e) in enumerate(zip(names, line.x.shape, strict=True)) if k != d}
    read: Element = line.element()
    length = 1
    for r in factors(n):
        length *= r
        factor = _Factor(
            read, d, r, length, n, line.dtype, line.real and length == r, line.inverse, line.scale if length == n else 1.0, around, extents
        )
        if length == n:
            return factor.last_real(names[d]) if real else factor.last(kept)
        read = factor.stage()
    raise AssertionError("a length has factors")


@dataclass(frozen=True)
class _Factor:
    """Transforms of `length` elements from those of length / r: frequency k is a sum of r terms, number s turned by s k / length."""

    read: Element
    d: int
    r: int
    length: int
    n: int
    dtype: str
    real: bool  # what is read has no imaginary part
    inverse: bool
    scale: float
    around: Sequence[str]
    extents: dict[str, Extent]

    def stage(self) -> Element:
        """A stage that is not the last."""
        before, rest, d = self.length // self.r, self.n // self.length, self.d
        inner = rest >= before  # the longer of the two axes is the one to make vectors of
        axes = ["k", "j"] if inner else ["j", "k"]
        value = self._value()

        def at(part: Expr, *i: Expr) -> Expr:
            k, j = (i[d], i[d + 1]) if inner else (i[d + 1], i[d])
            return value(part, (*i[:d], *i[d + 2 :]), k, j)

        made = self._built(["part", *self.around[:d], *axes, *self.around[d:]], at, {"part": 2, "k": self.length, "j": rest})
        return lambda part, outer, k, j: made[(part, *outer[:d], *((k, j) if inner else (j, k)), *outer[d:])]

    def last(self, kept: int) -> Tensor:
        d, value = self.d, self._value()
        names = ["part", *self.around[:d], "k", *self.around[d:]]
        return self._built(names, lambda part, *i: value(part, (*i[:d], *i[d + 1 :]), i[d], as_expr(0)), {"part": 2, "k": kept})

    def last_real(self, name: str) -> Tensor:
        d, value = self.d, self._value()
        names, extents = [*self.around[:d], name, *self.around[d:]], {**self.extents, name: self.n}
        return build_stage(names, lambda *i: value(as_expr(0), (*i[:d], *i[d + 1 :]), i[d], as_expr(0)), extents=extents)

    def _built(self, names: Sequence[str], value: Callable[..., Expr], sizes: dict[str, Extent]) -> Tensor:
        return build_stage(names, value, name=f"factor_{self.r}", extents={**self.extents, **sizes})

    def _value(self) -> Element:
        r, length, dtype, read = self.r, self.length, self.dtype, self.read
        before, rest, sign = length // r, self.n // length, 1.0 if self.inverse else -1.0
        cosine, sine = _turns(r, length, dtype, self.scale)

        def value(part: Expr, outer: Index, k: Expr, j: Expr) -> Expr:
            low = E.binary("mod", k, before) if before > 1 else as_expr(0)
            opposite = 1 - part
            flip = E.where(part > 0, E.cast(sign, dtype), E.cast(-sign, dtype))

            def term(s: Any) -> Expr:
                place = j + as_expr(s) * rest
                if self.real:
                    return E.where(part > 0, sine(s, k) * sign, cosine(s, k)) * read(part, outer, low, place)
                return cosine(s, k) * read(part, outer, low, place) + sine(s, k) * flip * read(opposite, outer, low, place)

            if r > _WRITTEN_OUT:
                return reduce_axes("sum", ["s"], term, {"s": r})
            first = read(part, outer, low, j)
            if self.scale != 1.0:
                first = first * self.scale
            total = E.where(part > 0, E.cast(0.0, dtype), first) if self.real else first
            for s in range(1, r):
                total = total + term(s)
            return total

        return value


def _turns(r: int, length: int, dtype: str, scale: float) -> list[Callable[[Any, Expr], Expr]]:
    """Cosine and sine of s k / length turns times scale, for s below r and k below length: from a table of all, or a smaller one of one
    circle."""

    def read_from(circular: Any) -> Callable[[Any, Expr], Expr]:
        every = r * length <= _TABLE
        numbers = circular * scale
        table = tensor((numbers[np.arange(r)[:, None] * np.arange(length) % length] if every else numbers).astype(dtype), "fft")

        def at(s: Any, k: Expr) -> Expr:
            found: Expr = table[as_expr(s), k] if every else table[E.binary("mod", as_expr(s) * k, length)]
            return found

        return at

    return list(map(read_from, circle(length)))


def circle(n: int) -> tuple[Any, Any]:
    """Cosines and sines of k / n turns for k from 0 to n - 1, of angles up to an eighth of a turn: right to the last place."""
    turns = np.arange(n) * 4  # in units of a 4 n-th of a turn, of which n are a right angle

    def cosine(k: Any) -> Any:
        k = np.minimum(k % (4 * n), -k % (4 * n))
        small = np.minimum(k, 2 * n - k)
        found = np.where(2 * small > n, np.sin(np.pi / 2 * ((n - small) / n)), np.cos(np.pi / 2 * (small / n)))
        return np.where(k > n, -found, found)

    return cosine(turns), cosine(turns - n)


__all__ = ["Line", "circle", "factors", "planes_of", "transformed", "transformed_to_real"]
