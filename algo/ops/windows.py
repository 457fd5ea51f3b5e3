"""Operators over windows of images: convolution and pooling. Images are [n, c, y, x]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import expr as E
from ..building import operator
from ..dtypes import kind
from ..expr import Expr, as_expr, cast, refuse
from ..extent import Extent, ceildiv, maximum
from ..reducing import reduce_axes
from ..tensor import Bounded, Tensor
from ..trace import build_stage
from .arithmetic import add
from .products import product
from .reductions import real, reduced
from .shapes import pair, shown, tensor
from .views import reshape


@dataclass(frozen=True)
class Window:
    """One spatial axis: reads at ``stride * position - before + dilation * tap`` for `taps` taps give `extent` positions."""

    taps: Extent
    stride: int
    dilation: int
    before: Extent
    after: Extent
    extent: Extent

    @property
    def padded(self) -> bool:
        return self.before != 0 or self.after != 0

    def read(self, position: Expr, tap: Expr) -> Expr:
        return position * self.stride + tap * self.dilation - as_expr(self.before)


def windows(
    what: str, size: tuple[Extent, ...], taps: tuple[Extent, ...], stride: Any, padding: Any, dilation: Any = 1
) -> tuple[Window, Window]:
    strides, dilations = pair(stride, f"{what}: stride", 1), pair(dilation, f"{what}: dilation", 1)
    made = []
    for d in range(2):
        reach = (taps[d] - 1) * dilations[d] + 1
        before, after = _padding(what, padding, d, size[d], reach, strides[d])
        room = size[d] + before + after - reach
        if isinstance(room, int) and room < 0:
            raise refuse(
                "A301",
                f"{what} with windows of {shown(taps)} over {shown(size)}",
                f"along {'yx'[d]} the window reaches over {reach} elements, with padding there are {room + reach}",
            )
        made.append(Window(taps[d], strides[d], dilations[d], before, after, room // strides[d] + 1))
    return made[0], made[1]


def _padding(what: str, padding: Any, d: int, size: Extent, reach: Extent, stride: int) -> tuple[Extent, Extent]:
    match padding:
        case "valid":
            return 0, 0
        case "same":
            total = maximum((ceildiv(size, stride) - 1) * stride + reach - size, 0)
            return total // 2, total - total // 2
        case bool() | str():
            pass
        case int() if padding >= 0:
            return padding, padding
        case [int() as y, int() as x] if y >= 0 and x >= 0:
            return ((y, y), (x, x))[d]
        case [[int() as a, int() as b], [int() as e, int() as f]] if min(a, b, e, f) >= 0:
            return ((a, b), (e, f))[d]
    raise refuse(
        "A304",
        f"{what}: padding={padding!r}",
        'it is a non-negative integer, (y, x), ((before, after), (before, after)), "same" or "valid"',
    )


def _image(x: Any, what: str) -> Tensor:
    t = tensor(x, what)
    if t.ndim != 4:
        raise refuse("A307", f"{what} of {shown(t.shape)}", "an image has four axes: n, c, y, x", "fl.expand_dims(x, 0)")
    return t


@operator
def conv2d(x: Any, w: Any, b: Any = None, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Tensor:
    """The correlation of images x [n, c, y, x] with kernels w [o, c / groups, ky, kx], plus b [o].

    `padding` is with zeros: an integer, (y, x), ((before, after), (before, after)), "same" (ceil(size / stride) positions) or "valid".
    Axes of the result: n o y x; of the reduction: c ky kx. One stage; with b, stages `product` and `bias`.
    """
    t, k = _image(x, "conv2d"), tensor(w, "conv2d")
    if k.ndim != 4:
        raise refuse("A307", f"conv2d with kernels {shown(k.shape)}", "kernels have four axes: o, c, ky, kx")
    out, channels = k.shape[0], t.shape[1]
    if isinstance(groups, bool) or not isinstance(groups, int) or groups < 1 or (isinstance(out, int) and out % groups):
        raise refuse("A304", f"conv2d: groups={groups!r}", f"it is a positive integer that divides the {out} kernels")
    if channels != k.shape[1] * groups:
        raise refuse(
            "A301",
            f"conv2d of {shown(t.shape)} with kernels {shown(k.shape)}",
            f"the image has {channels} channels, the kernels read {k.shape[1]}" + (f" in each of {groups} groups" if groups > 1 else ""),
        )
    wy, wx = windows("conv2d", t.shape[2:], k.shape[2:], stride, padding, dilation)
    zero = 0.0 if kind(t.dtype) == "float" else 0
    source = Bounded(t, "constant", zero) if wy.padded or wx.padded else t
    per_group = out // groups

    def value(n: Expr, o: Expr, y: Expr, x: Expr) -> Expr:
        def tap(c: Expr, ky: Expr, kx: Expr) -> Expr:
            channel = c if groups == 1 else o // as_expr(per_group) * as_expr(k.shape[1]) + c
            return product(source[n, channel, wy.read(y, ky), wx.read(x, kx)], k[o, c, ky, kx])

        return reduce_axes("sum", ["c", "ky", "kx"], tap, {"c": k.shape[1], "ky": wy.taps, "kx": wx.taps})

    extents = {"n": t.shape[0], "o": out, "y": wy.extent, "x": wx.extent}
    result = build_stage(["n", "o", "y", "x"], value, extents=extents, name=None if b is None else "product")
    if b is None:
        return result
    shift = tensor(b, "conv2d")
    if shift.shape != (out,):
        raise refuse("A301", f"conv2d with {out} kernels and a bias {shown(shift.shape)}", "the bias has one element for each kernel")
    return add(result, reshape(shift, (out, 1, 1)), name="bias")


def _lowest(dtype: str) -> bool | int | float:
    if dtype == "bool":
        return False
    return float("-inf") if kind(dtype) == "float" else int(np.iinfo(dtype).min)


@operator
def max_pool2d(x: Any, window: Any, *, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> Tensor:
    """The largest element of each window (y, x); the padding never wins. `stride` is the window by default. Axes: n c y x; ky kx."""
    t = _image(x, "max_pool2d")
    taps = pair(window, "max_pool2d: window", 1)
    wy, wx = windows("max_pool2d", t.shape[2:], taps, taps if stride is None else stride, padding, dilation)
    source = Bounded(t, "constant", _lowest(t.dtype)) if wy.padded or wx.padded else t
    return build_stage(
        ["n", "c", "y", "x"],
        lambda n, c, y, x: reduce_axes(
            "max", ["ky", "kx"], lambda ky, kx: source[n, c, wy.read(y, ky), wx.read(x, kx)], {"ky": wy.taps, "kx": wx.taps}
        ),
        extents={"n": t.shape[0], "c": t.shape[1], "y": wy.extent, "x": wx.extent},
    )


@operator
def avg_pool2d(x: Any, window: Any, *, stride: Any = None, padding: Any = 0, include_padding: bool = False) -> Tensor:
    """The mean of each window (y, x): of the elements that there are, or with `include_padding` of all, the padding being 0.

    `stride` is the window by default. Stages `sum` and the quotient, axes n c y x; ky kx.
    """
    t = _image(x, "avg_pool2d")
    taps = pair(window, "avg_pool2d: window", 1)
    wy, wx = windows("avg_pool2d", t.shape[2:], taps, taps if stride is None else stride, padding)
    source = Bounded(t, "constant", 0.0 if kind(t.dtype) == "float" else 0) if wy.padded or wx.padded else t
    extents = {"n": t.shape[0], "c": t.shape[1], "y": wy.extent, "x": wx.extent}
    total = build_stage(
        ["n", "c", "y", "x"],
        lambda n, c, y, x: reduce_axes(
            "sum", ["ky", "kx"], lambda ky, kx: real(source[n, c, wy.read(y, ky), wx.read(x, kx)]), {"ky": wy.taps, "kx": wx.taps}
        ),
        extents=extents,
        name="sum",
    )

    def count(w: Window, size: Extent, position: Expr) -> Expr:
        if include_padding or not w.padded:
            return as_expr(w.taps)
        first = position * w.stride - as_expr(w.before)
        return E.binary("min", first + as_expr(w.taps), size) - E.binary("max", first, 0)

    return build_stage(
        ["n", "c", "y", "x"],
        lambda n, c, y, x: total[n, c, y, x] / cast(count(wy, t.shape[2], y) * count(wx, t.shape[3], x), total.dtype),
        extents=extents,
    )


@operator
def global_avg_pool2d(x: Any) -> Tensor:
    """The mean over y and x: [n, c]. Stages `sum` and the quotient."""
    t = _image(x, "global_avg_pool2d")
    total, _ = reduced("sum", t, (2, 3), lambda i: real(t[i]), "sum")
    count = as_expr(t.shape[2] * t.shape[3])
    names = [n or f"i{d}" for d, n in enumerate(total.axis_names)]
    return build_stage(names, lambda *i: total[i] / count, extents=dict(zip(names, total.shape, strict=True)))


@operator
def global_max_pool2d(x: Any) -> Tensor:
    """The largest element over y and x: [n, c]."""
    t = _image(x, "global_max_pool2d")
    return reduced("max", t, (2, 3), lambda i: t[i])[0]
