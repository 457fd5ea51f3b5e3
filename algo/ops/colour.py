"""Colour spaces. The three channels lie along `axis`: -3 by default, as in [n, c, y, x] and [c, y, x]; -1 for photographs [y, x, c].

Values are floats; red, green and blue run from 0 to 1, and are encoded (sRGB) unless a function says linear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import expr as E
from ..building import operator
from ..dtypes import kind
from ..expr import Expr, as_expr, refuse
from ..reducing import reduce_axes
from ..tensor import Tensor
from ..trace import build_stage
from .elementwise import elementwise
from .joining import joined
from .shapes import AxisLike, axis_number, labels, shown, tensor
from .views import expanded

Matrix = Sequence[Sequence[float]]
LUMA = {"bt601": (0.299, 0.587, 0.114), "bt709": (0.2126, 0.7152, 0.0722), "bt2020": (0.2627, 0.678, 0.0593)}
YUV = ((0.299, 0.587, 0.114), (-0.14714119, -0.28886916, 0.43601035), (0.61497538, -0.51496512, -0.10001026))
XYZ = ((0.412453, 0.357580, 0.180423), (0.212671, 0.715160, 0.072169), (0.019334, 0.119193, 0.950227))
WHITE = (0.95047, 1.0, 1.08883)
"""X, Y and Z of the illuminant D65 for an observer of 2 degrees."""


def _channels(what: str, x: Any, axis: AxisLike) -> tuple[Tensor, int]:
    t = tensor(x, what)
    if t.ndim == 0 or (isinstance(axis, int) and not -t.ndim <= axis < t.ndim):
        raise refuse("A307", f"{what} of {shown(t.shape)} with channels on axis {axis}", "it has no such axis", "axis=-1")
    d = axis_number(axis, t.axis_names, what)
    if t.shape[d] != 3:
        raise refuse("A301", f"{what} of {shown(t.shape)}", f"axis {d} has {t.shape[d]} channels, a colour has 3", "axis=-1")
    if kind(t.dtype) != "float":
        raise refuse("A306", f"{what} of {t.dtype}", "colours are floats, from 0 to 1", "fl.cast(x, fl.f32) / 255")
    return t, d


def _mixed(t: Tensor, d: int, matrix: Matrix, label: str | None, shift: Sequence[float] = ()) -> Tensor:
    """A linear map of the channels, as one sum of products; with `shift`, a stage more."""
    weights = tensor(np.asarray(matrix, t.dtype), "colour")
    names = labels(t.axis_names, ["k"])

    def value(*i: Expr) -> Expr:
        return reduce_axes("sum", ["k"], lambda k: weights[i[d], k] * t[(*i[:d], k, *i[d + 1 :])], {"k": 3})

    extents = dict(zip(names, t.shape, strict=True))
    mixed = build_stage(names, value, name=label if not shift else "mixed", extents=extents)
    if not shift:
        return mixed
    offsets = tensor(np.asarray(shift, t.dtype), "colour")
    return build_stage(names, lambda *i: mixed[i] + offsets[i[d]], name=label, extents=extents)


def _planes(t: Tensor, d: int, parts: dict[str, Callable[..., Any]]) -> Tensor:
    """A stage for each new channel, from the three old ones, and the stage that joins them."""
    kept = [n for k, n in enumerate(labels(t.axis_names)) if k != d]
    extents = dict(zip(kept, (*t.shape[:d], *t.shape[d + 1 :]), strict=True))

    def old(i: tuple[Expr, ...]) -> list[Any]:
        return [t[(*i[:d], as_expr(c), *i[d:])] for c in range(3)]

    planes = [build_stage(kept, lambda *i, f=f: f(*old(i)), name=name, extents=extents) for name, f in parts.items()]
    return joined([expanded(p, (d,)) for p in planes], d, "colour")


# ---------------------------------------------------------------- brightness and opponents
@operator
def rgb_to_gray(x: Any, *, axis: AxisLike = -3, weights: str = "bt601") -> Tensor:
    """The luma: a weighted sum of the channels, by ITU-R BT.601 (0.299, 0.587, 0.114), "bt709" or "bt2020"; `axis` stays, with extent 1."""
    t, d = _channels("rgb_to_gray", x, axis)
    if weights not in LUMA:
        raise refuse("A304", f"rgb_to_gray: weights={weights!r}", "they are those of a recommendation", *LUMA)
    red, green, blue = LUMA[weights]
    names = labels(t.axis_names)

    def value(*i: Expr) -> Any:
        r, g, b = (t[(*i[:d], as_expr(c), *i[d + 1 :])] for c in range(3))
        return red * r + green * g + blue * b

    return build_stage(names, value, extents={n: 1 if k == d else m for k, (n, m) in enumerate(zip(names, t.shape, strict=True))})


@operator
def rgb_to_yuv(x: Any, *, axis: AxisLike = -3) -> Tensor:
    """Y'UV of BT.601: Y from 0 to 1, U within 0.436, V within 0.615. One stage, reduction axis k."""
    t, d = _channels("rgb_to_yuv", x, axis)
    return _mixed(t, d, YUV, None)


@operator
def yuv_to_rgb(x: Any, *, axis: AxisLike = -3) -> Tensor:
    """The inverse of rgb_to_yuv. One stage, reduction axis k."""
    t, d = _channels("yuv_to_rgb", x, axis)
    return _mixed(t, d, np.linalg.inv(YUV).tolist(), None)


def _ycbcr() -> np.ndarray[Any, Any]:
    luma = np.asarray(LUMA["bt601"])
    blue, red = (0.5 * (np.eye(3)[c] - luma) / (1 - luma[c]) for c in (2, 0))
    return np.stack([luma, blue, red])


@operator
def rgb_to_ycbcr(x: Any, *, axis: AxisLike = -3) -> Tensor:
    """Y'CbCr of BT.601 in full range, as in JPEG: all from 0 to 1, Cb and Cr 0.5 for greys. Stages `mixed`, and the result."""
    t, d = _channels("rgb_to_ycbcr", x, axis)
    return _mixed(t, d, _ycbcr().tolist(), None, (0.0, 0.5, 0.5))


@operator
def ycbcr_to_rgb(x: Any, *, axis: AxisLike = -3) -> Tensor:
    """The inverse of rgb_to_ycbcr. Stages `mixed`, and the result."""
    t, d = _channels("ycbcr_to_rgb", x, axis)
    inverse = np.linalg.inv(_ycbcr())
    return _mixed(t, d, inverse.tolist(), None, (-inverse @ [0.0, 0.5, 0.5]).tolist())


# ---------------------------------------------------------------- hue
@operator
def rgb_to_hsv(x: Any, *, axis: AxisLike = -3) -> Tensor:
    """Hue, saturation and value (Smith, 1978), all from 0 to 1; greys have hue 0. Stages `hue saturation value`, and their join."""
    t, d = _channels("rgb_to_hsv", x, axis)

    def extremes(r: Expr, g: Expr, b: Expr) -> tuple[Expr, Expr]:
        high = E.binary("max", E.binary("max", r, g), b)
        return high, high - E.binary("min", E.binary("min", r, g), b)

    def hue(r: Expr, g: Expr, b: Expr) -> Expr:
        high, span = extremes(r, g, b)
        safe = E.where(span > 0, span, 1.0)
        sixth = E.where(high == b, 4 + (r - g) / safe, E.where(high == g, 2 + (b - r) / safe, (g - b) / safe))
        return E.where(span > 0, E.where(sixth < 0, sixth + 6, sixth) / 6, 0.0 * span)

    def saturation(r: Expr, g: Expr, b: Expr) -> Expr:
        high, span = extremes(r, g, b)
        return E.where(span > 0, span / E.where(span > 0, high, 1.0), 0.0 * span)

    return _planes(t, d, {"hue": hue, "saturation": saturation, "value": lambda r, g, b: extremes(r, g, b)[0]})


@operator
def hsv_to_rgb(x: Any, *, axis: AxisLike = -3) -> Tensor:
    """The inverse of rgb_to_hsv; hues repeat with period 1. Stages `red green blue`, and their join."""
    t, d = _channels("hsv_to_rgb", x, axis)

    def channel(n: int) -> Callable[[Expr, Expr, Expr], Expr]:
        def value(h: Expr, s: Expr, v: Expr) -> Expr:
            k = n + 6 * h
            k = k - 6 * E.unary("floor", k / 6)
            ramp = E.binary("max", E.binary("min", E.binary("min", k, 4 - k), 1), 0)
            return v - v * s * ramp

        return value

    return _planes(t, d, {"red": channel(5), "green": channel(3), "blue": channel(1)})


# ---------------------------------------------------------------- light
@elementwise
def srgb_to_linear(x: Any) -> Expr:
    """Light of an encoded value (IEC 61966-2-1): x / 12.92 up to 0.04045, ((x + 0.055) / 1.055)^2.4 above."""
    e = as_expr(x)
    return E.where(e <= 0.04045, e / 12.92, E.power((E.binary("max", e, 0.04045) + 0.055) / 1.055, 2.4))


@elementwise
def linear_to_srgb(x: Any) -> Expr:
    """The encoded value of light (IEC 61966-2-1): 12.92 x up to 0.0031308, 1.055 x^(1 / 2.4) - 0.055 above."""
    e = as_expr(x)
    return E.where(e <= 0.0031308, 12.92 * e, 1.055 * E.power(E.binary("max", e, 0.0031308), 1 / 2.4) - 0.055)


@operator
def rgb_to_lab(x: Any, *, axis: AxisLike = -3) -> Tensor:
    """CIE L*a*b* (1976) of sRGB under D65: L from 0 to 100, a and b around 0. Stages `linear xyz cube_root`, and the result (axis k)."""
    t, d = _channels("rgb_to_lab", x, axis)
    light: Tensor = srgb_to_linear(t, name="linear")
    matrix = (np.asarray(XYZ) / np.asarray(WHITE)[:, None]).tolist()
    xyz = _mixed(light, d, matrix, "xyz")
    names = labels(xyz.axis_names)

    def root(e: Expr) -> Expr:
        return E.where(e > 0.008856, E.power(E.binary("max", e, 0.008856), 1 / 3), 7.787 * e + 16 / 116)

    f = build_stage(names, lambda *i: root(xyz[i]), name="cube_root", extents=dict(zip(names, xyz.shape, strict=True)))
    return _shifted(f, d, ((0.0, 116.0, 0.0), (500.0, -500.0, 0.0), (0.0, 200.0, -200.0)), (-16.0, 0.0, 0.0))


@operator
def lab_to_rgb(x: Any, *, axis: AxisLike = -3) -> Tensor:
    """sRGB of CIE L*a*b* under D65, clipped to 0 and 1. Stages `cube_root xyz linear`, and the result."""
    t, d = _channels("lab_to_rgb", x, axis)
    f = _shifted(t, d, ((1 / 116, 1 / 500, 0.0), (1 / 116, 0.0, 0.0), (1 / 116, 0.0, -1 / 200)), (16 / 116,) * 3, "cube_root")
    names = labels(f.axis_names)
    extents = dict(zip(names, f.shape, strict=True))

    def cube(e: Expr) -> Expr:
        return E.where(e > 0.2068966, e * e * e, (e - 16 / 116) / 7.787)

    xyz = build_stage(names, lambda *i: cube(f[i]), name="xyz", extents=extents)
    light = _mixed(xyz, d, (np.linalg.inv(XYZ) * np.asarray(WHITE)).tolist(), "linear")

    def encoded(*i: Expr) -> Any:
        e = E.binary("min", E.binary("max", light[i], 0), 1)
        return linear_to_srgb(e)

    return build_stage(names, encoded, extents=extents)


def _shifted(t: Tensor, d: int, matrix: Matrix, shift: Sequence[float], label: str | None = None) -> Tensor:
    """matrix . channels + shift in one stage, written out: most of the matrix is 0."""
    weights, offsets = tensor(np.asarray(matrix, t.dtype), "colour"), tensor(np.asarray(shift, t.dtype), "colour")
    names = labels(t.axis_names)

    def value(*i: Expr) -> Any:
        total = offsets[i[d]]
        for k in range(3):
            total = total + weights[i[d], k] * t[(*i[:d], as_expr(k), *i[d + 1 :])]
        return total

    return build_stage(names, value, name=label, extents=dict(zip(names, t.shape, strict=True)))
