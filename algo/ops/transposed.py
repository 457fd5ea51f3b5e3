"""What a sliding window spread, gathered again: transposed convolution, and fold.

A window of stride s and dilation d spreads element q of its input to the positions ``s * q + d * tap - before``. Seen from position y, the
taps that reach it are those with ``d * tap = y + before (mod s)``: none, unless gcd(s, d) divides y + before, else every (s / gcd)-th tap.
So the sum runs over those taps alone, and multiplies nothing by a zero that was put between the elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

from .. import expr as E
from ..building import operator
from ..complex.lifting import by_parts
from ..expr import Expr, as_expr, refuse
from ..extent import Extent, ceildiv
from ..reducing import reduce_axes
from ..tensor import Bounded, Tensor
from ..trace import build_stage
from .convolution import biased, divides, kernels, with_bias
from .products import product
from .shapes import shown, tensor
from .windows import SPACE, TAPS, Window, image, sides, spatial, windows, zero


@dataclass(frozen=True)
class Spread:
    """One axis: which element and which tap meet at a position, for the `steps` steps of the sum."""

    taps: Extent
    stride: int
    dilation: int
    before: Extent
    extent: Extent

    @property
    def common(self) -> int:
        return gcd(self.stride, self.dilation)

    @property
    def period(self) -> int:
        """Taps that reach the same position lie this far apart."""
        return self.stride // self.common

    @property
    def steps(self) -> Extent:
        return ceildiv(self.taps, self.period)

    def meet(self, position: Expr, step: Expr) -> tuple[Expr, Expr, list[Expr]]:
        """(element, tap, conditions under which they are there); elements outside the input count as 0."""
        at = position + as_expr(self.before)
        conditions = []
        if self.common > 1:
            conditions.append(at % self.common == 0)
            at = at // self.common
        gap = self.dilation // self.common
        if self.period == 1:
            return at - step * gap, step, conditions
        first = at * pow(gap, -1, self.period) % self.period
        tap = step * self.period + first
        if not isinstance(self.taps, int) or self.taps % self.period:
            conditions.append(tap < as_expr(self.taps))
        element = at // self.period - step if gap == 1 else (at - first * gap) // self.period - step * gap
        return element, tap, conditions


def _within(conditions: Sequence[Expr], value: Expr, otherwise: Any) -> Expr:
    if not conditions:
        return value
    met = conditions[0]
    for c in conditions[1:]:
        met = met & c
    return E.where(met, value, E.cast(otherwise, value.dtype))


# ---------------------------------------------------------------- transposed convolution
@with_bias
@operator
def conv_transpose1d(
    x: Any, w: Any, b: Any = None, *, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The transpose of conv1d, as conv_transpose2d with one axis: each element of x [n, c, x] adds its multiple of w [c, o / groups, kx].

    Axes of the result: n o x; of the reduction: c kx, where kx counts only the taps that reach a position. With b, `product` and `bias`.
    """
    return _spread_back("conv_transpose1d", 1, x, w, b, stride, padding, output_padding, dilation, groups)


@with_bias
@operator
def conv_transpose2d(
    x: Any, w: Any, b: Any = None, *, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The transpose of conv2d (Dumoulin and Visin, 2016): each element of x [n, c, y, x] adds its multiple of w [c, o / groups, ky, kx].

    Along each axis the result has ``(size - 1) * stride - before - after + (taps - 1) * dilation + 1 + output_padding`` positions.
    `padding` (an integer, one per axis or a pair per axis) is taken off its sides; `output_padding`, below the stride or the dilation,
    is added at the end.
    Axes of the result: n o y x; of the reduction: c ky kx, which count only the taps that reach a position. With b, `product` and `bias`.
    """
    return _spread_back("conv_transpose2d", 2, x, w, b, stride, padding, output_padding, dilation, groups)


@with_bias
@operator
def conv_transpose3d(
    x: Any, w: Any, b: Any = None, *, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The transpose of conv3d, as conv_transpose2d with an axis more: axes n o z y x; c kz ky kx."""
    return _spread_back("conv_transpose3d", 3, x, w, b, stride, padding, output_padding, dilation, groups)


def _spread_back(
    what: str, rank: int, x: Any, w: Any, b: Any, stride: Any, padding: Any, output_padding: Any, dilation: Any, groups: int
) -> Tensor:
    t, k = image(x, what, rank), kernels(w, what, rank, "c, o")
    channels, per_group = k.shape[0], k.shape[1]
    if t.shape[1] != channels:
        raise refuse(
            "A301",
            f"{what} of {shown(t.shape)} with kernels {shown(k.shape)}",
            f"the image has {t.shape[1]} channels, there are {channels} kernels",
        )
    if not divides(groups, channels):
        raise refuse("A304", f"{what}: groups={groups!r}", f"it is a positive integer that divides the {channels} channels")
    made = _spreads(what, t.shape[2:], k.shape[2:], stride, padding, output_padding, dilation)
    source, inner = Bounded(t, "constant", zero(t.dtype)), channels // groups

    def value(n: Expr, o: Expr, *at: Expr) -> Expr:
        def tap(c: Expr, *steps: Expr) -> Expr:
            met = [s.meet(p, j) for s, p, j in zip(made, at, steps, strict=True)]
            channel = c if groups == 1 else o // as_expr(per_group) * as_expr(inner) + c
            kernel = o if groups == 1 else o % as_expr(per_group)
            weight = k[channel, kernel, *(m[1] for m in met)]
            return product(source[n, channel, *(m[0] for m in met)], _within([c for m in met for c in m[2]], weight, 0))

        names = ["c", *TAPS[rank]]
        return reduce_axes("sum", names, tap, dict(zip(names, (inner, *(s.steps for s in made)), strict=True)))

    names = ["n", "o", *SPACE[rank]]
    extents = dict(zip(names, (t.shape[0], per_group * groups, *(s.extent for s in made)), strict=True))
    result: Tensor = biased(what, rank, build_stage(names, value, extents=extents, name=None if b is None else "product"), b)
    return result


def _spreads(
    what: str, size: Sequence[Extent], taps: Sequence[Extent], stride: Any, padding: Any, output_padding: Any, dilation: Any
) -> tuple[Spread, ...]:
    rank = len(size)
    strides, dilations = spatial(stride, f"{what}: stride", 1, rank), spatial(dilation, f"{what}: dilation", 1, rank)
    more, ends = spatial(output_padding, f"{what}: output_padding", 0, rank), sides(what, padding, rank)
    made = []
    for d in range(rank):
        if more[d] >= max(strides[d], dilations[d]):
            raise refuse(
                "A304", f"{what}: output_padding={output_padding!r}", f"along {SPACE[rank][d]} it must be below the stride or the dilation"
            )
        before, after = ends[d]
        extent = (size[d] - 1) * strides[d] - before - after + (taps[d] - 1) * dilations[d] + 1 + more[d]
        if isinstance(extent, int) and extent < 0:
            raise refuse(
                "A301",
                f"{what} with padding {padding!r}",
                f"along {SPACE[rank][d]} it would leave {extent} elements",
                "a smaller padding",
            )
        made.append(Spread(taps[d], strides[d], dilations[d], before, extent))
    return tuple(made)


# ---------------------------------------------------------------- windows as axes
@by_parts()
@operator
def unfold(x: Any, window: Any, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1) -> Tensor:
    """The windows (y, x) of images as axes of their own: x [n, c, y, x] gives [n, c, ky, kx, y, x], with zeros outside (im2col).

    ``fl.reshape(result, (n, c * ky * kx, y * x))``, a view, is the matrix that PyTorch's unfold returns.
    """
    t = image(x, "unfold", 2)
    taps = spatial(window, "unfold: window", 1, 2)
    v, u = windows("unfold", t.shape[2:], taps, stride, padding, dilation)
    source = Bounded(t, "constant", zero(t.dtype)) if v.padded or u.padded else t
    return build_stage(
        ["n", "c", "ky", "kx", "y", "x"],
        lambda n, c, ky, kx, y, x: source[n, c, v.read(y, ky), u.read(x, kx)],
        extents={"n": t.shape[0], "c": t.shape[1], "ky": taps[0], "kx": taps[1], "y": v.extent, "x": u.extent},
    )


@by_parts()
@operator
def fold(x: Any, size: Any, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1) -> Tensor:
    """The transpose of unfold: x [n, c, ky, kx, y, x] gives images [n, c, *size], each element the sum of all that unfold took from it.

    `stride`, `padding` and `dilation` are those of the unfold. Axes: n c y x; ky kx, which count only the taps that reach a position.
    """
    t = tensor(x, "fold")
    if t.ndim != 6:
        raise refuse("A307", f"fold of {shown(t.shape)}", "it takes six axes: n, c, ky, kx, y, x", "fl.reshape(x, (n, c, ky, kx, y, x))")
    to = spatial(size, "fold: size", 1, 2)
    made = windows("fold", to, t.shape[2:4], stride, padding, dilation)
    if tuple(w.extent for w in made) != t.shape[4:]:
        raise refuse(
            "A301",
            f"fold of {shown(t.shape)} to images of {shown(to)}",
            f"such images have {shown([w.extent for w in made])} windows, given are {shown(t.shape[4:])}",
        )
    v, u = (_spread_of(w, n) for w, n in zip(made, to, strict=True))
    source = Bounded(t, "constant", zero(t.dtype))

    def value(n: Expr, c: Expr, y: Expr, x: Expr) -> Expr:
        def tap(ky: Expr, kx: Expr) -> Expr:
            (row, down, there), (column, across, also) = v.meet(y, ky), u.meet(x, kx)
            return _within([*there, *also], source[n, c, down, across, row, column], 0)

        return reduce_axes("sum", ["ky", "kx"], tap, {"ky": v.steps, "kx": u.steps})

    return build_stage(["n", "c", "y", "x"], value, extents={"n": t.shape[0], "c": t.shape[1], "y": v.extent, "x": u.extent})


def _spread_of(w: Window, size: Extent) -> Spread:
    return Spread(w.taps, w.stride, w.dilation, w.before, size)
