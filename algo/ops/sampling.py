"""Images read at positions that are data: grid sampling, affine maps and flows. Images are [n, c, y, x]."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from .. import expr as E
from ..building import operator
from ..expr import Expr, as_expr, cast, refuse
from ..extent import Extent
from ..tensor import Bounded, Tensor
from ..trace import build_stage
from .shapes import dimensions, shown, tensor
from .windows import image

METHODS, OUTSIDE = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
_CUBIC = -0.75
"""The parameter of Keys (1981), as `resize` has it."""


def _reading(what: str, method: str, outside: str, align: bool) -> _Reading:
    for name, given, known in (("method", method, METHODS), ("outside", outside, OUTSIDE)):
        if given not in known:
            raise refuse("A304", f"{what}: {name}={given!r}", "it is one of these", *known)
    return _Reading(method, outside, align)


def _floats(what: str, x: Any) -> Tensor:
    t = image(x, what, 2)
    if t.dtype not in ("float32", "float64"):
        raise refuse("A306", f"{what} of {t.dtype}", "between pixels an image takes values between theirs", "fl.cast(x, fl.f32)")
    return t


def _reflected(p: Expr, size: Extent, align: bool) -> Expr:
    """p mirrored into the image: at the middles of the first and last pixel with `align`, else at the image's edges."""
    low, high = (as_expr(0), as_expr(size - 1)) if align else (cast(-0.5, p.dtype), cast(as_expr(size), p.dtype) - 0.5)
    low, high = cast(low, p.dtype), cast(high, p.dtype)
    span = high - low
    off = E.unary("abs", p - low)
    turns = E.unary("floor", off / E.binary("max", span, 1e-9))
    rest = off - turns * span
    even = E.binary("eq", turns - 2 * E.unary("floor", turns * 0.5), 0)
    inside = E.where(even, rest + low, span - rest + low)
    return E.where(span > 0, inside, cast(0.0, p.dtype))


def _settled(p: Expr, size: Extent, outside: str, align: bool) -> Expr:
    """A position where pixels will be read: as it is, at the border, or mirrored."""
    if outside == "zeros":
        return p
    p = _reflected(p, size, align) if outside == "reflection" else p
    return E.binary("min", E.binary("max", p, 0), cast(as_expr(size - 1), p.dtype))


@dataclass(frozen=True)
class _Reading:
    """How an image is read at positions between its pixels. Bicubic reads mirror each of their taps, the others the position."""

    method: str
    outside: str
    align: bool

    def place(self, p: Expr, size: Extent) -> Expr:
        return p if self.method == "bicubic" else _settled(p, size, self.outside, self.align)

    def tap(self, p: Expr, size: Extent) -> Expr:
        return _whole(E.unary("round", _settled(p, size, self.outside, self.align)))


def _cubic(share: Expr) -> list[Expr]:
    """The weights of the pixels one before, at, one after and two after a position that is `share` beyond a pixel."""

    def near(d: Expr) -> Expr:
        return ((_CUBIC + 2) * d - (_CUBIC + 3)) * d * d + 1

    def far(d: Expr) -> Expr:
        return ((_CUBIC * d - 5 * _CUBIC) * d + 8 * _CUBIC) * d - 4 * _CUBIC

    return [far(share + 1), near(share), near(1 - share), far(2 - share)]


def _sampled(t: Tensor, x: Tensor, y: Tensor, how: _Reading) -> Tensor:
    """The stage of the image at pixel positions x and y [n, y, x]: stages, so that no channel and no tap computes them again."""
    source, method = Bounded(t, "constant", 0.0), how.method

    def value(n: Expr, c: Expr, i: Expr, j: Expr) -> Any:
        across, down = x[n, i, j], y[n, i, j]
        if method == "nearest":
            return source[n, c, _whole(E.unary("round", down)), _whole(E.unary("round", across))]
        left, top = E.unary("floor", across), E.unary("floor", down)
        a, b = across - left, down - top
        if method == "bicubic":
            columns = [(how.tap(left + k, t.shape[3]), w) for k, w in zip(range(-1, 3), _cubic(a), strict=True)]
            rows = [(how.tap(top + k, t.shape[2]), w) for k, w in zip(range(-1, 3), _cubic(b), strict=True)]
            return _total(_total(source[n, c, r, q] * v for q, v in columns) * w for r, w in rows)
        k, m = _whole(left), _whole(top)
        upper = source[n, c, m, k] * (1 - a) + source[n, c, m, k + 1] * a
        lower = source[n, c, m + 1, k] * (1 - a) + source[n, c, m + 1, k + 1] * a
        return upper * (1 - b) + lower * b

    extents = dict(zip("ncyx", (*t.shape[:2], *x.shape[1:]), strict=True))
    return build_stage(["n", "c", "y", "x"], value, extents=extents)


def _total(terms: Iterable[Expr]) -> Expr:
    return reduce(lambda a, b: a + b, terms)


def _whole(p: Expr) -> Expr:
    """A whole float as an index, kept where one more is still an int32."""
    return cast(E.binary("min", E.binary("max", p, -(2.0**30)), 2.0**30), "int32")


@operator
def grid_sample(x: Any, grid: Any, *, method: str = "bilinear", outside: str = "zeros", align_corners: bool = False) -> Tensor:
    """The image x [n, c, h, w] at the positions `grid` [n, y, x, 2], (x, y) from -1 to 1 (Jaderberg et al., 2015; PyTorch's grid_sample).

    -1 and 1 are the middles of the first and last pixel with `align_corners`, else the image's edges. `method` is "bilinear", "nearest"
    (halves to even) or "bicubic" (as `resize`); `outside` says what is read there: "zeros", the "border", or its "reflection". A position
    of NaN reads pixel 0 times NaN. Stages `across down` [n y x], in pixels, and the result, axes n c y x.
    """
    t, g = _floats("grid_sample", x), tensor(grid, "grid_sample")
    how = _reading("grid_sample", method, outside, align_corners)
    if g.ndim != 4 or g.shape[3] != 2 or g.shape[0] != t.shape[0]:
        raise refuse("A301", f"grid_sample of {shown(t.shape)} at {shown(g.shape)}", f"a grid is [{t.shape[0]}, y, x, 2]")
    if g.dtype != t.dtype:
        raise refuse("A306", f"grid_sample of {t.dtype} at {g.dtype}", "image and grid have one type", f"fl.cast(grid, '{t.dtype}')")

    def pixels(label: str, part: int, size: Extent) -> Tensor:
        def place(n: Expr, i: Expr, j: Expr) -> Any:
            p = g[n, i, j, part]
            count = cast(as_expr(size), t.dtype)
            at = (p + 1) * 0.5 * (count - 1) if align_corners else ((p + 1) * count - 1) * 0.5
            return how.place(at, size)

        return build_stage(["n", "y", "x"], place, name=label, extents=dict(zip("nyx", g.shape[:3], strict=True)))

    return _sampled(t, pixels("across", 0, t.shape[3]), pixels("down", 1, t.shape[2]), how)


@operator
def affine_grid(theta: Any, size: Any, *, align_corners: bool = False) -> Tensor:
    """The grid [n, y, x, 2] for grid_sample whose element at (x, y) is theta [n, 2, 3] times (x, y, 1), with x and y from -1 to 1.

    `size` is (y, x) of the result; `align_corners` as for grid_sample. One stage, axes n y x c.
    """
    m = tensor(theta, "affine_grid")
    to = dimensions(size, "affine_grid")[1]
    if m.ndim != 3 or m.shape[1:] != (2, 3) or len(to) != 2:
        raise refuse("A301", f"affine_grid of {shown(m.shape)} to {size!r}", "theta is [n, 2, 3], the size (y, x)")

    def norm(p: Expr, count: Extent) -> Expr:
        at, n = cast(p, m.dtype), cast(as_expr(count), m.dtype)
        if align_corners:
            return 2 * at / E.binary("max", n - 1, 1) - E.where(n > 1, cast(1.0, m.dtype), cast(0.0, m.dtype))
        return (2 * at + 1) / n - 1

    def value(n: Expr, y: Expr, x: Expr, c: Expr) -> Any:
        return m[n, c, 0] * norm(x, to[1]) + m[n, c, 1] * norm(y, to[0]) + m[n, c, 2]

    return build_stage(["n", "y", "x", "c"], value, extents={"n": m.shape[0], "y": to[0], "x": to[1], "c": 2})


@operator
def warp_affine(x: Any, matrix: Any, size: Any = None, *, method: str = "bilinear", outside: str = "zeros") -> Tensor:
    """The image [n, c, y, x] whose pixel (x, y) is x at matrix [2, 3] times (x, y, 1), in pixels (OpenCV's WARP_INVERSE_MAP).

    `size` is (y, x) of the result, that of x by default. Stages `across down`, and the result, axes n c y x.
    """
    t, m = _floats("warp_affine", x), tensor(matrix, "warp_affine")
    how = _reading("warp_affine", method, outside, True)
    to = t.shape[2:] if size is None else dimensions(size, "warp_affine")[1]
    if m.shape != (2, 3) or len(to) != 2:
        raise refuse("A301", f"warp_affine by {shown(m.shape)}", "the matrix is [2, 3], the size (y, x)")

    def pixels(label: str, row: int) -> Tensor:
        def place(n: Expr, y: Expr, x: Expr) -> Any:
            a, b, c = (cast(m[row, k], t.dtype) for k in range(3))
            return how.place(a * cast(x, t.dtype) + b * cast(y, t.dtype) + c, t.shape[2 if row else 3])

        return build_stage(["n", "y", "x"], place, name=label, extents={"n": t.shape[0], "y": to[0], "x": to[1]})

    return _sampled(t, pixels("across", 0), pixels("down", 1), how)


@operator
def warp(x: Any, flow: Any, *, method: str = "bilinear", outside: str = "border") -> Tensor:
    """The image [n, c, y, x] whose pixel (x, y) is x at (x + flow[:, 0], y + flow[:, 1]), the flow [n, 2, y, x] being in pixels.

    Stages `across down`, and the result, axes n c y x.
    """
    t, f = _floats("warp", x), tensor(flow, "warp")
    how = _reading("warp", method, outside, True)
    if f.ndim != 4 or f.shape[:2] != (t.shape[0], 2):
        raise refuse("A301", f"warp of {shown(t.shape)} by {shown(f.shape)}", f"the flow is [{t.shape[0]}, 2, y, x]")

    def pixels(label: str, part: int) -> Tensor:
        def place(n: Expr, y: Expr, x: Expr) -> Any:
            at = cast(f[n, part, y, x], t.dtype) + cast(y if part else x, t.dtype)
            return how.place(at, t.shape[2 if part else 3])

        return build_stage(["n", "y", "x"], place, name=label, extents=dict(zip("nyx", (f.shape[0], *f.shape[2:]), strict=True)))

    return _sampled(t, pixels("across", 0), pixels("down", 1), how)
