"""Filters of images over the last two axes, y and x: Gaussian, box, Sobel, bilateral, and flat morphology.

`boundary` says what is read outside: "edge" (the nearest element), "reflect" (mirrored at the first and last, which are not repeated),
"wrap", or a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import expr as E
from ..building import operator
from ..expr import Expr, as_expr, refuse
from ..reducing import reduce_axes
from ..tensor import Bounded, Tensor
from ..trace import build_stage
from .derived import real
from .shapes import labels, shown, tensor
from .views import constant
from .windows import highest, lowest, spatial

Boundary = str | float | int


def plane(what: str, x: Any) -> Tensor:
    t = tensor(x, what)
    if t.ndim < 2:
        raise refuse("A307", f"{what} of {shown(t.shape)}", "a filter works on the last two axes, y and x")
    return t


def surrounded(what: str, t: Tensor, boundary: Boundary) -> Tensor:
    if boundary in ("edge", "reflect", "wrap"):
        return Bounded(t, str(boundary))
    if isinstance(boundary, str):
        raise refuse("A304", f"{what}: boundary={boundary!r}", "it is a number, or one of these", "edge", "reflect", "wrap")
    result: Tensor = constant(t, boundary)
    return result


def stage_of(t: Tensor, fn: Callable[..., Any], name: str | None = None, taken: Sequence[str] = ()) -> Tensor:
    names = labels(t.axis_names, taken)
    return build_stage(names, fn, name=name, extents=dict(zip(names, t.shape, strict=True)))


def _along(what: str, t: Tensor, d: int, weights: Sequence[float], boundary: Boundary, name: str | None) -> Tensor:
    """The correlation with weights around their middle along axis d: a sum over `k`."""
    source, table = surrounded(what, t, boundary), tensor(np.asarray(weights, t.dtype if "float" in t.dtype else "float32"), what)
    middle = len(weights) // 2

    def value(*i: Expr) -> Expr:
        return reduce_axes("sum", ["k"], lambda k: real(source[(*i[:d], i[d] + k - middle, *i[d + 1 :])]) * table[k], {"k": len(weights)})

    return stage_of(t, value, name, ["k"])


# ---------------------------------------------------------------- linear
@operator
def gaussian_filter(x: Any, sigma: float, *, truncate: float = 4.0, boundary: Boundary = "edge") -> Tensor:
    """x blurred by a Gaussian of deviation `sigma` pixels, cut off beyond ``truncate * sigma`` and of sum 1 (as scipy.ndimage's).

    Stages `rows` (along y) and the result (along x), reduction axis k.
    """
    t = plane("gaussian_filter", x)
    if not sigma > 0 or not truncate > 0:
        raise refuse("A304", f"gaussian_filter: sigma={sigma!r}, truncate={truncate!r}", "both are above 0")
    radius = int(truncate * sigma + 0.5)
    raised = [math.exp(-0.5 * (k / sigma) ** 2) for k in range(-radius, radius + 1)]
    weights = [w / math.fsum(raised) for w in raised]
    rows = _along("gaussian_filter", t, t.ndim - 2, weights, boundary, "rows")
    return _along("gaussian_filter", rows, t.ndim - 1, weights, boundary, None)


@operator
def box_filter(x: Any, size: Any, *, boundary: Boundary = "edge") -> Tensor:
    """The mean over windows of `size` (y, x) pixels around each; even sizes reach one further back. Stages `rows`, and the result."""
    t = plane("box_filter", x)
    ky, kx = spatial(size, "box_filter: size", 1, 2)
    rows = _along("box_filter", t, t.ndim - 2, [1 / ky] * ky, boundary, "rows")
    return _along("box_filter", rows, t.ndim - 1, [1 / kx] * kx, boundary, None)


@operator
def sobel(x: Any, axis: str = "x", *, boundary: Boundary = "edge") -> Tensor:
    """Sobel's derivative along "y" or "x": (-1, 0, 1) along it, (1, 2, 1) across. Stages `smooth`, and the result."""
    t = plane("sobel", x)
    if axis not in ("y", "x"):
        raise refuse("A304", f"sobel along {axis!r}", "the derivative is along one of the last two axes", "y", "x")
    along, across = (t.ndim - 2, t.ndim - 1) if axis == "y" else (t.ndim - 1, t.ndim - 2)
    smooth = _along("sobel", t, across, [1.0, 2.0, 1.0], boundary, "smooth")
    return _along("sobel", smooth, along, [-1.0, 0.0, 1.0], boundary, None)


# ---------------------------------------------------------------- by value
@operator
def bilateral_filter(x: Any, radius: int, sigma_space: float, sigma_value: float, *, boundary: Boundary = "edge") -> Tensor:
    """The mean of the pixels within `radius` (a square), weighted by nearness in space and in value (Tomasi and Manduchi, 1998).

    A weight is ``exp(-distance^2 / (2 sigma_space^2) - difference^2 / (2 sigma_value^2))``. Stages `weighted weights` with the reduction
    axes ky kx, and the quotient.
    """
    t = plane("bilateral_filter", x)
    if isinstance(radius, bool) or not isinstance(radius, int) or radius < 0:
        raise refuse("A304", f"bilateral_filter: radius={radius!r}", "it is a number of pixels, at least 0")
    if not sigma_space > 0 or not sigma_value > 0:
        raise refuse("A304", f"bilateral_filter: sigmas {sigma_space!r} and {sigma_value!r}", "both are above 0")
    source, side = surrounded("bilateral_filter", t, boundary), 2 * radius + 1
    near, like = -0.5 / sigma_space**2, -0.5 / sigma_value**2

    def total(name: str, weigh: Callable[[Expr, Expr], Expr]) -> Tensor:
        def value(*i: Expr) -> Expr:
            def tap(ky: Expr, kx: Expr) -> Expr:
                down, across = ky - radius, kx - radius
                other = real(source[(*i[:-2], i[-2] + down, i[-1] + across)])
                d = other - real(t[i])
                return weigh(E.unary("exp", near * E.cast(down * down + across * across, d.dtype) + like * (d * d)), other)

            return reduce_axes("sum", ["ky", "kx"], tap, {"ky": side, "kx": side})

        return stage_of(t, value, name, ["ky", "kx"])

    weighted, weights = total("weighted", lambda w, e: w * e), total("weights", lambda w, _: w)
    return stage_of(t, lambda *i: weighted[i] / weights[i])


# ---------------------------------------------------------------- morphology
def _footprint(what: str, footprint: Any) -> np.ndarray[Any, Any]:
    if isinstance(footprint, int) or (isinstance(footprint, tuple) and all(isinstance(n, int) for n in footprint)):
        return np.ones(spatial(footprint, f"{what}: footprint", 1, 2), bool)
    shape = np.asarray(footprint).astype(bool)
    if shape.ndim != 2 or not shape.any():
        raise refuse(
            "A304", f"{what}: a footprint {shown(shape.shape)}", "it is a size, (y, x), or an array of two axes with at least one true"
        )
    return shape


def _extreme(t: Tensor, footprint: np.ndarray[Any, Any], largest: bool, name: str | None = None) -> Tensor:
    """The extreme of the footprint around each pixel; what is outside never wins. Whole rectangles go along one axis after the other."""
    op, outside = ("max", lowest(t.dtype)) if largest else ("min", highest(t.dtype))
    rows, columns = footprint.shape

    def start(n: int) -> int:
        return -((n - 1) // 2) if largest else -(n // 2)  # a dilation reads the mirrored footprint

    if footprint.all():

        def along(u: Tensor, d: int, n: int, label: str | None) -> Tensor:
            source = Bounded(u, "constant", outside)

            def value(*i: Expr) -> Expr:
                return reduce_axes(op, ["k"], lambda k: source[(*i[:d], i[d] + k + start(n), *i[d + 1 :])], {"k": n})

            return stage_of(u, value, label, ["k"])

        label = f"{name}_rows" if name else "rows"
        return along(along(t, t.ndim - 2, rows, label), t.ndim - 1, columns, name)
    source = Bounded(t, "constant", outside)
    seen = footprint[::-1, ::-1] if largest else footprint
    offsets = [(int(y) + start(rows), int(x) + start(columns)) for y, x in zip(*np.nonzero(seen), strict=True)]

    def value(*i: Expr) -> Any:
        reads: list[Any] = [source[(*i[:-2], i[-2] + dy, i[-1] + dx)] for dy, dx in offsets]
        while len(reads) > 1:
            reads = [E.binary(op, *reads[k : k + 2]) if k + 1 < len(reads) else reads[k] for k in range(0, len(reads), 2)]
        return as_expr(reads[0])

    return stage_of(t, value, name)


@operator
def erode(x: Any, footprint: Any = 3) -> Tensor:
    """The smallest pixel under a footprint around each: a size, (y, x), or an array of truth values; outside counts for nothing.

    The middle of an even size is its later half, as in scipy.ndimage. Stages `rows` (axis k) and the result; other footprints are one.
    """
    return _extreme(plane("erode", x), _footprint("erode", footprint), False)


@operator
def dilate(x: Any, footprint: Any = 3) -> Tensor:
    """The largest pixel under the mirrored footprint around each. Options and stages as for erode."""
    return _extreme(plane("dilate", x), _footprint("dilate", footprint), True)


@operator
def opening(x: Any, footprint: Any = 3) -> Tensor:
    """dilate(erode(x)): without what is bright and smaller than the footprint. Stages `eroded_rows eroded rows`, and the result."""
    f = _footprint("opening", footprint)
    return _extreme(_extreme(plane("opening", x), f, False, "eroded"), f, True)


@operator
def closing(x: Any, footprint: Any = 3) -> Tensor:
    """erode(dilate(x)): without what is dark and smaller than the footprint. Stages `dilated_rows dilated rows`, and the result."""
    f = _footprint("closing", footprint)
    return _extreme(_extreme(plane("closing", x), f, True, "dilated"), f, False)
