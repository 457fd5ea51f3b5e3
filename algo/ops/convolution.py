"""Convolutions (correlations, as neural networks mean the word) over one, two and three axes of space."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from ..building import operator, scope
from ..complex.lifting import holds_complex, multilinear
from ..expr import Expr, as_expr, refuse
from ..extent import Extent
from ..reducing import reduce_axes
from ..tensor import Tensor
from ..trace import build_stage
from .arithmetic import add
from .products import product
from .shapes import operand, shown, tensor
from .views import reshape
from .windows import SPACE, TAPS, image, surrounded, windows, zero

P = ParamSpec("P")
R = TypeVar("R")


def with_bias(fn: Callable[P, R]) -> Callable[P, R]:
    """A convolution of x with w plus b, of complex numbers too: those of their parts, stages `product` and `bias` as of real ones."""
    signature, what = inspect.signature(fn), fn.__name__
    product_of: Callable[..., Any] = multilinear("x", "w")(fn)

    @wraps(fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> Any:
        if not any(map(holds_complex, (*args, *kwargs.values()))):
            return fn(*args, **kwargs)
        name = kwargs.pop("name", None)
        given = signature.bind(*args, **kwargs).arguments
        b = given.pop("b", None)
        if b is None:
            return product_of(**given, name=name)
        with scope(str(name or what)):
            made: Any = product_of(**given, name="product")
            return biased(what, made.ndim - 2, made, b)

    return call


@with_bias
@operator
def conv1d(x: Any, w: Any, b: Any = None, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Tensor:
    """The correlation of sequences x [n, c, x] with kernels w [o, c / groups, kx], plus b [o].

    `padding` is with zeros: an integer, ((before, after),), "same" (ceil(size / stride) positions) or "valid".
    Axes of the result: n o x; of the reduction: c kx. One stage; with b, stages `product` and `bias`.
    """
    return convolved("conv1d", 1, x, w, b, stride, padding, dilation, groups)


@with_bias
@operator
def conv2d(x: Any, w: Any, b: Any = None, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Tensor:
    """The correlation of images x [n, c, y, x] with kernels w [o, c / groups, ky, kx], plus b [o].

    `padding` is with zeros: an integer, (y, x), ((before, after), (before, after)), "same" (ceil(size / stride) positions) or "valid".
    Axes of the result: n o y x; of the reduction: c ky kx. One stage; with b, stages `product` and `bias`.
    """
    return convolved("conv2d", 2, x, w, b, stride, padding, dilation, groups)


@with_bias
@operator
def conv3d(x: Any, w: Any, b: Any = None, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Tensor:
    """The correlation of volumes x [n, c, z, y, x] with kernels w [o, c / groups, kz, ky, kx], plus b [o].

    `padding` as for conv2d. Axes of the result: n o z y x; of the reduction: c kz ky kx. One stage; with b, stages `product` and `bias`.
    """
    return convolved("conv3d", 3, x, w, b, stride, padding, dilation, groups)


def convolved(what: str, rank: int, x: Any, w: Any, b: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Tensor:
    t, k = image(x, what, rank), kernels(w, what, rank, "o, c")
    out, channels = k.shape[0], t.shape[1]
    if not divides(groups, out):
        raise refuse("A304", f"{what}: groups={groups!r}", f"it is a positive integer that divides the {out} kernels")
    if channels != k.shape[1] * groups:
        raise refuse(
            "A301",
            f"{what} of {shown(t.shape)} with kernels {shown(k.shape)}",
            f"the image has {channels} channels, the kernels read {k.shape[1]}" + (f" in each of {groups} groups" if groups > 1 else ""),
        )
    made = windows(what, t.shape[2:], k.shape[2:], stride, padding, dilation)
    source = surrounded(t, made, zero(t.dtype))
    per_group = out // groups

    def value(n: Expr, o: Expr, *at: Expr) -> Expr:
        def tap(c: Expr, *taps: Expr) -> Expr:
            channel = c if groups == 1 else o // as_expr(per_group) * as_expr(k.shape[1]) + c
            return product(source[n, channel, *(v.read(p, q) for v, p, q in zip(made, at, taps, strict=True))], k[o, c, *taps])

        return reduce_axes("sum", ["c", *TAPS[rank]], tap, dict(zip(["c", *TAPS[rank]], k.shape[1:], strict=True)))

    names = ["n", "o", *SPACE[rank]]
    extents = dict(zip(names, (t.shape[0], out, *(v.extent for v in made)), strict=True))
    result: Tensor = biased(what, rank, build_stage(names, value, extents=extents, name=None if b is None else "product"), b)
    return result


def kernels(w: Any, what: str, rank: int, channels: str) -> Tensor:
    k = tensor(w, what)
    if k.ndim != rank + 2:
        raise refuse(
            "A307",
            f"{what} with kernels {shown(k.shape)}",
            f"kernels have {('', 'three', 'four', 'five')[rank]} axes: {channels}, {', '.join(TAPS[rank])}",
        )
    return k


def divides(groups: Any, channels: Extent) -> bool:
    whole = isinstance(groups, int) and not isinstance(groups, bool) and groups >= 1
    return whole and not (isinstance(channels, int) and channels % groups)


def biased(what: str, rank: int, result: Any, b: Any) -> Any:
    """The result plus one number per channel, as a stage `bias`."""
    if b is None:
        return result
    shift, out = operand(b, what), result.shape[1]
    if shift.shape != (out,):
        raise refuse("A301", f"{what} with {out} kernels and a bias {shown(shift.shape)}", "the bias has one element for each kernel")
    return add(result, reshape(shift, (out, *(1,) * rank)), name="bias")
