"""Images of another size. Positions are exact: output i reads around ``(a * i + b) / c`` with whole a, b and c, divided as integers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import expr as E
from ..building import operator
from ..dtypes import kind
from ..expr import Expr, as_expr, cast, refuse
from ..extent import Extent
from ..reducing import reduce_axes
from ..tensor import Bounded, Tensor
from ..trace import build_stage
from .derived import real
from .shapes import dimensions, labels, shown, tensor, view
from .views import reshape, transpose

METHODS, COORDINATES = ("nearest", "bilinear", "bicubic"), ("half_pixel", "align_corners", "asymmetric")


@dataclass(frozen=True)
class Scaling:
    """One axis of `size` elements seen with `count`: output i lies at ``(step * i + start) / scale`` of the input."""

    size: Extent
    count: Extent
    step: Extent
    start: Extent
    scale: Extent

    def floor(self, i: Expr) -> Expr:
        return (i * as_expr(self.step) + as_expr(self.start)) // as_expr(self.scale)

    def fraction(self, i: Expr, dtype: str) -> Expr:
        return cast((i * as_expr(self.step) + as_expr(self.start)) % as_expr(self.scale), dtype) / cast(as_expr(self.scale), dtype)

    def nearest(self, i: Expr) -> Expr:
        """The element whose middle is nearest, the later of two (half_pixel, align_corners)."""
        return (i * as_expr(2 * self.step) + as_expr(2 * self.start + self.scale)) // as_expr(2 * self.scale)


def _scaling(size: Extent, count: Extent, coordinates: str) -> Scaling:
    match coordinates:
        case "half_pixel":  # (i + 1/2) * size / count - 1/2
            return Scaling(size, count, 2 * size, size - count, 2 * count)
        case "align_corners":
            return Scaling(size, count, 0, 0, 1) if isinstance(count, int) and count == 1 else Scaling(size, count, size - 1, 0, count - 1)
    return Scaling(size, count, size, 0, count)


@operator
def resize(
    x: Any,
    size: Any,
    method: str = "bilinear",
    *,
    coordinates: str = "half_pixel",
    antialias: bool = False,
    cubic: float = -0.75,
) -> Tensor:
    """x [..., y, x] with its last two axes resized to `size` (y, x): integers, or symbolic extents.

    `method` is "nearest", "bilinear" or "bicubic" (Keys, 1981, with parameter `cubic`: -0.75 as in OpenCV and PyTorch, -0.5 as in Pillow).
    `coordinates` says where element i of the result lies in x: "half_pixel" at ``(i + 1/2) * size / count - 1/2``, "align_corners" at
    ``i * (size - 1) / (count - 1)``, "asymmetric" at ``i * size / count``. Reads outside take the nearest element. "nearest" takes the
    nearest element, the later of two, but with "asymmetric" the one before (PyTorch's nearest). `antialias` widens the kernel by the scale
    where the image shrinks, and weighs only elements that are there (as Pillow and PyTorch; "half_pixel" and known sizes only).
    Stages: nearest is one; else `rows`, and the result, with the reduction axes ky and kx. Integers give float32, but for nearest.
    """
    t = tensor(x, "resize")
    if t.ndim < 2:
        raise refuse("A307", f"resize of {shown(t.shape)}", "the last two axes, y and x, are resized", "fl.expand_dims(x, 0)")
    for option, chosen, known in (("method", method, METHODS), ("coordinates", coordinates, COORDINATES)):
        if chosen not in known:
            raise refuse("A304", f"resize: {option}={chosen!r}", "it is one of these", *known)
    if antialias and (method == "nearest" or coordinates != "half_pixel"):
        raise refuse(
            "A304", f"resize: antialias with {method} and {coordinates}", "it widens the kernels of half_pixel", "bilinear", "bicubic"
        )
    given = dimensions(size, "resize")[1]
    to = given * 2 if len(given) == 1 else given
    if len(to) != 2 or 0 in to:
        raise refuse("A304", f"resize to {size!r}", "the size is one positive extent, or two for y and x")
    rows, columns = (_scaling(n, m, coordinates) for n, m in zip(t.shape[-2:], to, strict=True))
    if method == "nearest":
        return _nearest(t, rows, columns, coordinates == "asymmetric")
    kernel = _Kernel(_hat, 1) if method == "bilinear" else _Kernel(lambda d: _keys(d, cubic), 2)
    lined = _resampled(t, t.ndim - 2, rows, kernel, antialias, "ky", "rows")
    return _resampled(lined, t.ndim - 1, columns, kernel, antialias, "kx", None)


def _nearest(t: Tensor, rows: Scaling, columns: Scaling, before: bool) -> Tensor:
    source, names = Bounded(t, "edge"), labels(t.axis_names)

    def place(s: Scaling, i: Expr) -> Expr:
        return s.floor(i) if before else s.nearest(i)

    return build_stage(
        names,
        lambda *i: source[(*i[:-2], place(rows, i[-2]), place(columns, i[-1]))],
        extents=dict(zip(names, (*t.shape[:-2], rows.count, columns.count), strict=True)),
    )


@dataclass(frozen=True)
class _Kernel:
    """A weight as a function of the distance, 0 from `radius` on."""

    weight: Callable[[Expr], Expr]
    radius: int


def _hat(d: Expr) -> Expr:
    return E.binary("max", 1 - E.unary("abs", d), 0)


def _keys(d: Expr, a: float) -> Expr:
    e = E.unary("abs", d)
    near, far = ((a + 2) * e - (a + 3)) * e * e + 1, ((e - 5) * e + 8) * e * a - 4 * a
    return E.where(e <= 1, near, E.where(e < 2, far, 0.0 * e))


def _resampled(t: Tensor, d: int, s: Scaling, kernel: _Kernel, antialias: bool, tap: str, name: str | None) -> Tensor:
    """x resized along axis d: a sum over taps, with weights of a stage `weights` of their own per axis."""
    names = labels(t.axis_names)
    extents = dict(zip(names, (*t.shape[:d], s.count, *t.shape[d + 1 :]), strict=True))
    if antialias:
        return _widened(t, d, s, kernel, tap, name, names, extents)
    taps, source, dtype = 2 * kernel.radius, Bounded(t, "edge"), _weight_type(t)

    def weight(i: Expr, k: Expr) -> Expr:
        return kernel.weight(cast(k, dtype) - (kernel.radius - 1) - s.fraction(i, dtype))

    label = f"weights_{tap[1:]}"
    weights = build_stage(["i", tap], weight, name=label, extents={"i": s.count, tap: taps})

    def value(*i: Expr) -> Expr:
        def term(k: Expr) -> Any:
            return real(source[(*i[:d], s.floor(i[d]) + k - (kernel.radius - 1), *i[d + 1 :])]) * weights[i[d], k]

        return reduce_axes("sum", [tap], term, {tap: taps})

    return build_stage(names, value, name=name, extents=extents)


def _weight_type(t: Tensor) -> str:
    return t.dtype if kind(t.dtype) == "float" else "float32"


def _widened(
    t: Tensor, d: int, s: Scaling, kernel: _Kernel, tap: str, name: str | None, names: list[str], extents: dict[str, Extent]
) -> Tensor:
    """The kernel stretched by size / count (at least 1), over the elements that are there, weights divided by their sum."""
    size, count = s.size, s.count
    if not isinstance(size, int) or not isinstance(count, int):
        raise refuse(
            "A304", f"resize of {shown(t.shape)} with antialias", "the width of the kernel needs sizes that are known", "antialias=False"
        )
    narrow = min(1.0, count / size)
    reach = -(-kernel.radius * max(size, count) // count) + 1
    taps, dtype = 2 * reach, _weight_type(t)

    def distance(i: Expr, k: Expr) -> Expr:
        """Of an element from the output's middle, in the units of the output."""
        off = cast(k, dtype) - (reach - 1) - s.fraction(i, dtype)
        return off * narrow

    def inside(i: Expr, k: Expr) -> Expr:
        at = s.floor(i) + k - (reach - 1)
        return (at >= 0) & (at < as_expr(s.size))

    label = f"weights_{tap[1:]}"
    raw = build_stage(
        ["i", tap],
        lambda i, k: E.where(inside(i, k), kernel.weight(distance(i, k)), 0.0),
        name=f"{label}_raw",
        extents={"i": s.count, tap: taps},
    )
    total = build_stage(
        ["i"], lambda i: reduce_axes("sum", [tap], lambda k: raw[i, k], {tap: taps}), name=f"{label}_sum", extents={"i": s.count}
    )
    weights = build_stage(["i", tap], lambda i, k: raw[i, k] / total[i], name=label, extents={"i": s.count, tap: taps})
    source = Bounded(t, "edge")

    def value(*i: Expr) -> Expr:
        def term(k: Expr) -> Any:
            return real(source[(*i[:d], s.floor(i[d]) + k - (reach - 1), *i[d + 1 :])]) * weights[i[d], k]

        return reduce_axes("sum", [tap], term, {tap: taps})

    return build_stage(names, value, name=name, extents=extents)


@view
def pixel_shuffle(x: Any, factor: int) -> Tensor:
    """Channels as pixels (Shi et al., 2016): x [n, c * r * r, y, x] seen as [n, c, y * r, x * r]. A view."""
    t, r = _blocks("pixel_shuffle", x, factor)
    n, c, h, w = t.shape
    if bool(c // (r * r) * (r * r) != c):
        raise refuse("A303", f"pixel_shuffle of {shown(t.shape)} by {r}", f"{c} channels are no multiple of {r * r}")
    split = reshape(t, (n, c // (r * r), r, r, h, w))
    result: Tensor = reshape(transpose(split, (0, 1, 4, 2, 5, 3)), (n, c // (r * r), h * r, w * r))
    return result


@view
def pixel_unshuffle(x: Any, factor: int) -> Tensor:
    """Pixels as channels, the inverse of pixel_shuffle: x [n, c, y * r, x * r] seen as [n, c * r * r, y, x]. A view."""
    t, r = _blocks("pixel_unshuffle", x, factor)
    n, c, h, w = t.shape
    if bool(h // r * r != h) or bool(w // r * r != w):
        raise refuse("A303", f"pixel_unshuffle of {shown(t.shape)} by {r}", f"its height and width are multiples of {r}")
    split = reshape(t, (n, c, h // r, r, w // r, r))
    result: Tensor = reshape(transpose(split, (0, 1, 3, 5, 2, 4)), (n, c * r * r, h // r, w // r))
    return result


def _blocks(what: str, x: Any, factor: int) -> tuple[Tensor, int]:
    t = tensor(x, what)
    if t.ndim != 4:
        raise refuse("A307", f"{what} of {shown(t.shape)}", "an image has four axes: n, c, y, x", "fl.expand_dims(x, 0)")
    if isinstance(factor, bool) or not isinstance(factor, int) or factor < 1:
        raise refuse("A304", f"{what} by {factor!r}", "the factor is a positive integer")
    return t, factor
