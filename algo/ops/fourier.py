"""Fourier transforms of any length, one stage for each prime factor of it (two factors of 2 together).

A complex number is a pair: a complex tensor has a last axis of 2, real part and imaginary part. `axis` counts the other axes, so that -1 is
the last axis of the complex numbers, as it is in NumPy.

The factors are taken out one after the other (Cooley and Tukey, 1965) in the order of Stockham's method, which needs no reordering. After
factors with the product `length`, element (k, j) is frequency k of the transform of the `length` elements j, j + rest, j + 2 rest and so on
up to n, with rest = n / length. Between the stages real and imaginary parts are apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import expr as E
from ..building import operator
from ..expr import Expr, as_expr, refuse
from ..extent import Extent
from ..reducing import reduce_axes
from ..tensor import Bounded, Tensor
from ..trace import build_stage
from .shapes import AxisLike, axis_number, labels, shown, tensor
from .views import moveaxis

NORMS = ("backward", "ortho", "forward")
_WRITTEN_OUT = 5
"""Factors up to this are written as sums of so many terms, larger ones as reductions."""
_TABLE = 2**20
"""Elements of a table for one stage. Vectors of it are loaded as they lie."""
Index = tuple[Expr, ...]
Element = Callable[[Expr, Index, Expr, Expr], Expr]
"""What an earlier stage has at (part, the other axes, k, j)."""


@operator
def fft(x: Any, n: int | None = None, axis: AxisLike = -1, *, norm: str = "backward") -> Tensor:
    """The discrete Fourier transform of x [..., 2] along `axis`: sum over j of x[j] exp(-2 pi i j k / n) at k, complex.

    x is cut, or filled up with zeros, to `n` elements there. `norm` says where 1 / n goes: "backward" into the inverse, "forward" into
    this one, "ortho" its square root into both. The length must be known. Stages `factor_R` for each factor R, and the result.
    """
    return _complex("fft", x, n, axis, norm, inverse=False)


@operator
def ifft(x: Any, n: int | None = None, axis: AxisLike = -1, *, norm: str = "backward") -> Tensor:
    """The inverse of `fft`: the sum over k of x[k] exp(2 pi i j k / n) at j, times 1 / n by default."""
    return _complex("ifft", x, n, axis, norm, inverse=True)


@operator
def rfft(x: Any, n: int | None = None, axis: AxisLike = -1, *, norm: str = "backward") -> Tensor:
    """`fft` of real numbers x [...]: the frequencies 0 to n // 2 along `axis`, complex [..., 2]. The others are the conjugates of these."""
    t = _floats("rfft", tensor(x, "rfft"))
    d = axis_number(axis, t.axis_names, "rfft")
    line, n = _line("rfft", t, d, n)
    planes = _transformed(line, d, n, real=True, inverse=False, kept=n // 2 + 1)
    return _paired(planes, d, _scale("rfft", norm, n, False), t.axis_names)


@operator
def irfft(x: Any, n: int | None = None, axis: AxisLike = -1, *, norm: str = "backward") -> Tensor:
    """The inverse of `rfft`: x [..., 2] holds frequencies 0 to n // 2 along `axis`, the result is real [...] of n elements, by default
    2 (m - 1) for m frequencies. The imaginary parts of frequency 0, and of n / 2, do not count. Stages `whole`, `factor_R`, and the result.
    """
    t, d = _pairs("irfft", x, axis)
    m = t.shape[d]
    if n is None and isinstance(m, int):
        n = 2 * (m - 1)
    kept = None if n is None else n // 2 + 1
    half, _ = _line("irfft", t, d, kept)
    assert n is not None
    if n < 1:
        raise refuse("A304", f"irfft to {n} elements", "one element at least", "n=1")
    size = n

    def whole(part: Expr, *i: Expr) -> Expr:
        """Beyond the middle a frequency is the conjugate of the one that mirrors it."""
        k = i[d]
        mirrored = half[(*i[:d], E.where(k * 2 > size, size - k, k), *i[d + 1 :], part)]
        return E.where((k * 2 > size) & (part > 0), -mirrored, mirrored)

    names = labels(t.axis_names[:-1], ["part"])
    extents = {**dict(zip(names, t.shape[:-1], strict=True)), names[d]: n}
    planes = build_stage(["part", *names], whole, name="whole", extents={"part": 2, **extents})
    spectrum = moveaxis(planes, 0, -1)
    out = _transformed(spectrum, d, n, real=False, inverse=True, kept=n)
    scale = _scale("irfft", norm, n, True)
    return build_stage(names, lambda *i: out[(as_expr(0), *i)] * scale, extents=extents)


@operator
def fft2(x: Any, *, norm: str = "backward") -> Tensor:
    """`fft` along the last two axes of the complex numbers x [..., y, x, 2]: `along_x`, then `along_y`."""
    return fft(fft(_plane("fft2", x), axis=-1, norm=norm, name="along_x"), axis=-2, norm=norm, name="along_y")


@operator
def ifft2(x: Any, *, norm: str = "backward") -> Tensor:
    """`ifft` along the last two axes of the complex numbers, as `fft2`."""
    return ifft(ifft(_plane("ifft2", x), axis=-1, norm=norm, name="along_x"), axis=-2, norm=norm, name="along_y")


# ---------------------------------------------------------------- what is asked for
def _floats(what: str, t: Tensor) -> Tensor:
    if t.dtype not in ("float32", "float64"):
        raise refuse("A306", f"{what} of {t.dtype}", "frequencies are sums of products with sines", "fl.cast(x, fl.f32)")
    return t


def _pairs(what: str, x: Any, axis: AxisLike) -> tuple[Tensor, int]:
    t = _floats(what, tensor(x, what))
    if t.ndim < 2 or t.shape[-1] != 2:
        raise refuse(
            "A301", f"{what} of {shown(t.shape)}", "complex numbers are [..., 2], real and imaginary parts",
            "fl.rfft(x) for real numbers", "fl.stack([real, imaginary], axis=-1)",
        )  # fmt: skip
    return t, axis_number(axis, t.axis_names[:-1], what)


def _plane(what: str, x: Any) -> Tensor:
    t, _ = _pairs(what, x, -1)
    if t.ndim < 3:
        raise refuse("A307", f"{what} of {shown(t.shape)}", "there are two axes of complex numbers, y and x", "fl.fft(x)")
    return t


def _line(what: str, t: Tensor, d: int, n: int | None) -> tuple[Tensor, int]:
    """What to read along axis d, and how many elements of it."""
    extent = t.shape[d]
    if n is not None and (isinstance(n, bool) or not isinstance(n, int)):
        raise refuse("A304", f"{what} with n={n!r}", "it is the number of elements: an integer")
    if n is None and not isinstance(extent, int):
        raise refuse("A304", f"{what} along an axis of {extent} elements", "its length decides the stages: it must be known", "n=1024")
    size = extent if n is None else n
    assert isinstance(size, int)
    if size < 1:
        raise refuse("A304", f"{what} of {size} elements", "one element at least")
    return (t if isinstance(extent, int) and size <= extent else Bounded(t, "constant", 0.0)), size


def _scale(what: str, norm: str, n: int, inverse: bool) -> float:
    if norm not in NORMS:
        raise refuse("A304", f"{what}: norm={norm!r}", "it is one of these", *NORMS)
    return 1 / math.sqrt(n) if norm == "ortho" else 1 / n if (norm == "backward") == inverse else 1.0


# ---------------------------------------------------------------- the transform
def factors(n: int) -> list[int]:
    """n as a product: 4s, then what primes are left."""
    found = []
    for p in (4, *range(2, math.isqrt(n) + 1)):
        while n % p == 0:
            found.append(p)
            n //= p
    return [*found, n] if n > 1 or not found else found


def _complex(what: str, x: Any, n: int | None, axis: AxisLike, norm: str, inverse: bool) -> Tensor:
    t, d = _pairs(what, x, axis)
    line, size = _line(what, t, d, n)
    planes = _transformed(line, d, size, real=False, inverse=inverse, kept=size)
    return _paired(planes, d, _scale(what, norm, size, inverse), t.axis_names[:-1])


def _paired(planes: Tensor, d: int, scale: float, names: Sequence[str | None]) -> Tensor:
    """[part, ...] as [..., part], times scale."""
    axes = labels(names, ["part"])
    extents = dict(zip([*axes, "part"], [*planes.shape[1:], 2], strict=True))
    return build_stage([*axes, "part"], lambda *i: planes[(i[-1], *i[:-1])] * scale, extents=extents)


def _transformed(x: Tensor, d: int, n: int, *, real: bool, inverse: bool, kept: int) -> Tensor:
    """[part, ...]: the first `kept` frequencies along axis d of n elements of x [...] if real, else [..., part]."""
    rank = x.ndim if real else x.ndim - 1
    names = labels(x.axis_names[:rank], ["part", "k", "j", "s"])
    shape = x.shape[:rank]
    around, extents = names[:d] + names[d + 1 :], {m: e for k, (m, e) in enumerate(zip(names, shape, strict=True)) if k != d}

    def given(part: Expr, outer: Index, k: Expr, j: Expr) -> Expr:
        at = (*outer[:d], j, *outer[d:])
        found: Expr = x[at] if real else x[(*at, part)]
        return found

    read: Element = given
    length = 1
    for r in factors(n):
        length *= r
        last = length == n
        made = _stage(read, d, r, length, n, x.dtype, real and length == r, inverse, around, extents, kept if last else length)
        if last:
            return made[0]
        read = made[1]
    raise AssertionError("a length has factors")


def _stage(
    read: Element,
    d: int,
    r: int,
    length: int,
    n: int,
    dtype: str,
    real: bool,
    inverse: bool,
    around: Sequence[str],
    extents: dict[str, Extent],
    kept: int,
) -> tuple[Tensor, Element]:
    """Transforms of `length` elements from those of length / r: frequency k is a sum of r terms, number s turned by s k / length."""
    before, rest, sign = length // r, n // length, 1.0 if inverse else -1.0
    cosine, sine = _turns(r, length, dtype)
    last = rest == 1
    inner = rest >= before  # the longer of the two axes is the one to make vectors of
    axes = ["k"] if last else ["k", "j"] if inner else ["j", "k"]

    def value(part: Expr, *i: Expr) -> Expr:
        mine = dict(zip(axes, i[d : d + len(axes)], strict=True))
        outer = (*i[:d], *i[d + len(axes) :])
        k, j = mine["k"], mine.get("j", as_expr(0))
        low = E.binary("mod", k, before) if before > 1 else as_expr(0)
        opposite = 1 - part
        flip = E.where(part > 0, E.cast(sign, dtype), E.cast(-sign, dtype))

        def term(s: Any) -> Expr:
            place = j + as_expr(s) * rest
            if real:
                return E.where(part > 0, sine(s, k) * sign, cosine(s, k)) * read(part, outer, low, place)
            return cosine(s, k) * read(part, outer, low, place) + sine(s, k) * flip * read(opposite, outer, low, place)

        if r > _WRITTEN_OUT:
            return reduce_axes("sum", ["s"], term, {"s": r})
        first = read(part, outer, low, j)
        total = E.where(part > 0, E.cast(0.0, dtype), first) if real else first
        for s in range(1, r):
            total = total + term(s)
        return total

    sizes: dict[str, Extent] = {"k": kept, "j": rest}
    names = ["part", *around[:d], *axes, *around[d:]]
    made = build_stage(names, value, name=f"factor_{r}", extents={"part": 2, **extents, **{a: sizes[a] for a in axes}})

    def again(part: Expr, outer: Index, k: Expr, j: Expr) -> Expr:
        middle = (k,) if last else (k, j) if inner else (j, k)
        found: Expr = made[(part, *outer[:d], *middle, *outer[d:])]
        return found

    return made, again


def _turns(r: int, length: int, dtype: str) -> list[Callable[[Any, Expr], Expr]]:
    """Cosine and sine of s k / length turns, for s below r and k below length: from a table of all, or a smaller one of one circle."""

    def read_from(circular: Any) -> Callable[[Any, Expr], Expr]:
        every = r * length <= _TABLE
        table = tensor((circular[np.arange(r)[:, None] * np.arange(length) % length] if every else circular).astype(dtype), "fft")

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
