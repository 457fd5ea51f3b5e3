"""Discrete Fourier transforms of any length, as NumPy's: of complex and real tensors, along one axis or several.

Lengths must be known: they decide the stages. `norm` says where 1 / n goes: "backward" into the inverse, "forward" into the other one,
"ortho" its square root into both. The result is complex64, complex128 of float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import expr as E
from ..building import operator
from ..complex import ComplexTensor
from ..expr import Expr, as_expr, refuse
from ..extent import Dim, Extent
from ..tensor import Tensor
from ..trace import build_stage
from .complex_numbers import conj
from .fourier_stages import Line, planes_of, transformed, transformed_to_real
from .order import roll
from .shapes import AxisLike, axis_number, axis_numbers, labels, operand, shown

NORMS = ("backward", "ortho", "forward")
_SWAPPED = {"backward": "forward", "forward": "backward"}
Lengths = Sequence[int] | None
Axes = Sequence[AxisLike] | None


# ---------------------------------------------------------------- along one axis
@operator
def fft(x: Any, n: int | None = None, axis: AxisLike = -1, *, norm: str = "backward") -> ComplexTensor:
    """The sum over j of x[j] exp(-2 pi i j k / n) at k, along `axis`; x is complex or real.

    x is cut, or filled up with zeros, to `n` elements there. Stages `factor_R` for each factor R of n.
    """
    line = _line("fft", _floats("fft", x), n, axis, norm, inverse=False)
    return transformed(line, line.n)


@operator
def ifft(x: Any, n: int | None = None, axis: AxisLike = -1, *, norm: str = "backward") -> ComplexTensor:
    """The inverse of `fft`: the sum over k of x[k] exp(2 pi i j k / n) at j, times 1 / n by default."""
    line = _line("ifft", _floats("ifft", x), n, axis, norm, inverse=True)
    return transformed(line, line.n)


@operator
def rfft(x: Any, n: int | None = None, axis: AxisLike = -1, *, norm: str = "backward") -> ComplexTensor:
    """`fft` of real numbers: the frequencies 0 to n // 2. The others are the conjugates of these."""
    t = _floats("rfft", x)
    if isinstance(t, ComplexTensor):
        raise refuse(
            "A211", "rfft of complex numbers", "it leaves out half of the frequencies, which those of real numbers do not need", "fl.fft(z)"
        )
    line = _line("rfft", t, n, axis, norm, inverse=False)
    return transformed(line, line.n // 2 + 1)


@operator
def irfft(x: Any, n: int | None = None, axis: AxisLike = -1, *, norm: str = "backward") -> Tensor:
    """The inverse of `rfft`: x holds frequencies 0 to n // 2, the result is real, of n elements, by default 2 (m - 1) for m frequencies.

    The imaginary parts of frequency 0, and of n / 2, do not count. Stages `whole`, `factor_R`, and the result.
    """
    t = _floats("irfft", x)
    d = axis_number(axis, t.axis_names, "irfft")
    m = t.shape[d]
    if n is None and isinstance(m, int):
        n = 2 * (m - 1)
    if n is not None and not isinstance(n, bool) and isinstance(n, int) and n < 1:
        raise refuse("A304", f"irfft to {n} elements", "one element at least", "n=1")
    line = _line("irfft", t, n, d, norm, inverse=True)
    return transformed_to_real(Line(_mirrored(line), d, line.n, True, line.scale))


@operator
def hfft(x: Any, n: int | None = None, axis: AxisLike = -1, *, norm: str = "backward") -> Tensor:
    """The real frequencies of a signal that is its own conjugate mirror image, of which x holds elements 0 to n // 2; n as for `irfft`."""
    return irfft(conj(_floats("hfft", x)), n, axis, norm=_SWAPPED.get(norm, norm))


@operator
def ihfft(x: Any, n: int | None = None, axis: AxisLike = -1, *, norm: str = "backward") -> ComplexTensor:
    """The inverse of `hfft`: elements 0 to n // 2 of the signal that has these real frequencies."""
    return conj(rfft(x, n, axis, norm=_SWAPPED.get(norm, norm)))  # type: ignore[no-any-return]


def _mirrored(line: Line) -> ComplexTensor:
    """All frequencies of real numbers: beyond the middle one is the conjugate of the one that mirrors it."""
    d, n = line.d, line.n
    half = Line(line.x, d, n // 2 + 1, True, 1.0).element()
    names = labels(line.x.axis_names, ["part"])
    extents = {**dict(zip(names, line.x.shape, strict=True)), names[d]: n}

    def whole(part: Expr, *i: Expr) -> Expr:
        k, outer = i[d], (*i[:d], *i[d + 1 :])
        found = half(part, outer, as_expr(0), E.where(k * 2 > n, n - k, k))
        if line.real:
            found = E.where(part > 0, E.cast(0.0, line.dtype), found)
        return E.where((k * 2 > n) & (part > 0), -found, found)

    planes = build_stage(["part", *names], whole, name="whole", extents={"part": 2, **extents})
    return planes_of(planes, line.x.axis_names)


# ---------------------------------------------------------------- along several
@operator
def fft2(x: Any, s: Lengths = None, axes: Sequence[AxisLike] = (-2, -1), *, norm: str = "backward") -> ComplexTensor:
    """`fft` along two axes, y and x: `along_x`, then `along_y`. `s` are the lengths along them."""
    return _each("fft2", fft, x, s, axes, norm)


@operator
def ifft2(x: Any, s: Lengths = None, axes: Sequence[AxisLike] = (-2, -1), *, norm: str = "backward") -> ComplexTensor:
    """`ifft` along two axes, as `fft2`."""
    return _each("ifft2", ifft, x, s, axes, norm)


@operator
def fftn(x: Any, s: Lengths = None, axes: Axes = None, *, norm: str = "backward") -> ComplexTensor:
    """`fft` along axes, all or the last len(s) by default, from the last to the first: stages `axis_D/factor_R`."""
    return _each("fftn", fft, x, s, axes, norm)


@operator
def ifftn(x: Any, s: Lengths = None, axes: Axes = None, *, norm: str = "backward") -> ComplexTensor:
    """`ifft` along axes, as `fftn`."""
    return _each("ifftn", ifft, x, s, axes, norm)


@operator
def rfftn(x: Any, s: Lengths = None, axes: Axes = None, *, norm: str = "backward") -> ComplexTensor:
    """`rfft` along the last of the axes, then `fft` along the others, as `fftn`."""
    t = _floats("rfftn", x)
    over, sizes = _over("rfftn", t, s, axes)
    half = rfft(t, sizes[-1], over[-1], norm=norm, name=f"axis_{over[-1]}")
    return _along(fft, half, over[:-1], sizes[:-1], norm)


@operator
def irfftn(x: Any, s: Lengths = None, axes: Axes = None, *, norm: str = "backward") -> Tensor:
    """The inverse of `rfftn`: `ifft` along all axes but the last, then `irfft` along that."""
    t = _floats("irfftn", x)
    over, sizes = _over("irfftn", t, s, axes)
    rest = _along(ifft, t, over[:-1], sizes[:-1], norm)
    return irfft(rest, sizes[-1], over[-1], norm=norm, name=f"axis_{over[-1]}")


Transform = Callable[..., ComplexTensor]


def _each(what: str, transform: Transform, x: Any, s: Lengths, axes: Axes, norm: str) -> ComplexTensor:
    t = _floats(what, x)
    if what.endswith("2") and axes is not None and (len(axes) != 2 or t.ndim < 2):
        raise refuse("A307", f"{what} of {shown(t.shape)} along {len(axes)} axes", "there are two, y and x", "fl.fftn")
    over, sizes = _over(what, t, s, axes)
    names = ["along_y", "along_x"] if what.endswith("2") else [f"axis_{d}" for d in over]
    return _along(transform, t, over, sizes, norm, names)


def _along(
    transform: Transform, t: Any, over: Sequence[int], sizes: Sequence[int | None], norm: str, names: Sequence[str] = ()
) -> ComplexTensor:
    for k in reversed(range(len(over))):
        t = transform(t, sizes[k], over[k], norm=norm, name=names[k] if names else f"axis_{over[k]}")
    made: ComplexTensor = t
    return made


def _over(what: str, t: Any, s: Lengths, axes: Axes) -> tuple[list[int], list[int | None]]:
    """The axes, in the order in which they are given, and the length along each."""
    if s is not None and axes is None:
        axes = list(range(-len(s), 0))
    over = [axis_number(a, t.axis_names, what) for a in (range(t.ndim) if axes is None else axes)]
    if not over:
        raise refuse("A307", f"{what} of {shown(t.shape)} along no axis", "one at least", "axes=(-1,)")
    if s is not None and len(s) != len(over):
        raise refuse("A304", f"{what} with {len(s)} lengths for {len(over)} axes", "one for each", "s=None")
    return over, [None] * len(over) if s is None else list(s)


# ---------------------------------------------------------------- where frequencies lie
def fftshift(x: Any, axes: AxisLike | Sequence[AxisLike] | None = None) -> Any:
    """x with frequency 0 in the middle of axes, all by default. A view."""
    return _shifted(x, axes, lambda n: n // 2)


def ifftshift(x: Any, axes: AxisLike | Sequence[AxisLike] | None = None) -> Any:
    """The inverse of `fftshift`. A view."""
    return _shifted(x, axes, lambda n: -(n // 2))


def _shifted(x: Any, axes: Any, by: Callable[[Any], Any]) -> Any:
    t = operand(x, "fftshift")
    over = axis_numbers(axes, t.axis_names, "fftshift")
    return roll(t, [by(t.shape[d]) for d in over], list(over)) if over else t


@operator
def fftfreq(n: Extent, d: float = 1.0, dtype: Any = "float32") -> Tensor:
    """The frequencies of `fft` of n samples at distance d, in cycles per unit of d: 0, 1, ..., -2, -1 over n d, along an axis `k`."""
    scale = _spacing("fftfreq", n, d)

    def frequency(k: Expr) -> Expr:
        return E.cast(E.where(k * 2 < as_expr(n), k, k - as_expr(n)), "float64") / scale

    return build_stage(["k"], frequency, extents={"k": n}, dtype=dtype or "float32")


@operator
def rfftfreq(n: Extent, d: float = 1.0, dtype: Any = "float32") -> Tensor:
    """The frequencies of `rfft` of n samples at distance d, as `fftfreq`: 0 to n // 2."""
    scale = _spacing("rfftfreq", n, d)
    return build_stage(["k"], lambda k: E.cast(k, "float64") / scale, extents={"k": n // 2 + 1}, dtype=dtype or "float32")


def _spacing(what: str, n: Any, d: Any) -> Expr:
    if (
        isinstance(n, bool)
        or not isinstance(n, int | Dim)
        or (isinstance(n, int) and n < 1)
        or isinstance(d, bool)
        or not isinstance(d, int | float)
    ):
        raise refuse("A304", f"{what}({n!r}, {d!r})", "a number of samples, one at least, and their distance")
    return E.cast(as_expr(n), "float64") * E.cast(float(d), "float64")


# ---------------------------------------------------------------- what is asked for
def _floats(what: str, x: Any) -> Any:
    t = operand(x, what)
    if t.dtype not in ("float32", "float64", "complex64", "complex128"):
        raise refuse("A306", f"{what} of {t.dtype}", "frequencies are sums of products with sines", "fl.cast(x, fl.f32)")
    return t


def _line(what: str, t: Any, n: int | None, axis: AxisLike, norm: str, inverse: bool) -> Line:
    d = axis_number(axis, t.axis_names, what)
    extent = t.shape[d]
    if n is not None and (isinstance(n, bool) or not isinstance(n, int)):
        raise refuse("A304", f"{what} with n={n!r}", "it is the number of elements: an integer")
    if n is None and not isinstance(extent, int):
        raise refuse("A304", f"{what} along an axis of {extent} elements", "its length decides the stages: it must be known", "n=1024")
    size: int = extent if n is None else n
    if size < 1:
        raise refuse("A304", f"{what} of {size} elements", "one element at least")
    if norm not in NORMS:
        raise refuse("A304", f"{what}: norm={norm!r}", "it is one of these", *NORMS)
    scale = 1 / math.sqrt(size) if norm == "ortho" else 1 / size if (norm == "backward") == inverse else 1.0
    return Line(t, d, size, inverse, scale)
