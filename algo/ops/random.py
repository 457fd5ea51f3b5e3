"""Random numbers as pure functions of a key and an index: the same in the interpreter, in every kernel and under every plan.

    key = fl.random.key(7)
    a, b = fl.random.split(key)
    noise = fl.random.uniform(a, x.shape)

A key is a uint32[2] tensor. Used twice it gives the same numbers twice: split it, or fold a number into it. Element i of a result depends
on the key and i alone, whatever the shape.

In a Program the key may be left out: ``fl.random.uniform(x.shape)`` takes ``fl.random.next_key()``, a new one in every place and call, at
every step of a scan and for every example of a vmap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import expr as E
from ..building import operator
from ..dtypes import canonical
from ..expr import Expr, cast, refuse
from ..extent import Dim
from ..tensor import Tensor
from ..trace import build_stage
from .derived import real
from .keyless import keyless, keyless_of_tensor
from .keys import drawn, drawn_at, fold_in, key, split, unit
from .next_key import next_key
from .reductions import reduced
from .shapes import AxisLike, axis_number, dimensions, labels, tensor
from .sorting import argsort
from .threefry import words
from .views import made


@keyless
@operator
def bits(key: Any, shape: Any = (), dtype: Any = "uint32") -> Tensor:
    """Uniform uint32 or uint64."""
    to = canonical(dtype)
    if to not in ("uint32", "uint64"):
        raise refuse("A304", f"random.bits of {to}", "bits are uint32 or uint64", "fl.random.randint")
    axes, extents, at = drawn_at(key, shape, "bits")
    return build_stage(axes, lambda *i: cast(at(i), to), extents=extents)


def _float(dtype: Any, what: str) -> str:
    to = canonical(dtype)
    if to not in ("float32", "float64"):
        raise refuse("A304", f"random.{what} of {to}", "it is float32 or float64", f"fl.cast(fl.random.{what}(key, shape), '{to}')")
    return to


@keyless
@operator
def uniform(key: Any, shape: Any = (), dtype: Any = "float32") -> Tensor:
    """Uniform in [0, 1), multiples of 2**-24 (of 2**-53 in float64)."""
    to = _float(dtype, "uniform")
    axes, extents, at = drawn_at(key, shape, "uniform")
    return build_stage(axes, lambda *i: unit(at(i), to), extents=extents)


@keyless
@operator
def normal(key: Any, shape: Any = (), dtype: Any = "float32") -> Tensor:
    """Standard normal, by Box and Muller in float64; float32 is rounded once, so that no two machines differ by more than an ulp."""
    to = _float(dtype, "normal")
    axes, extents, at = drawn_at(key, shape, "normal")

    def value(*i: Expr) -> Expr:
        low, high = (cast(w, "float64") for w in words(at(i)))
        radius = E.unary("sqrt", E.unary("log", (low + 1) * 2.0**-32) * -2.0)
        return cast(radius * E.unary("cos", high * (2 * np.pi * 2.0**-32)), to)

    return build_stage(axes, value, extents=extents)


def _waited(packed: Expr) -> Expr:
    """Minus the logarithm of one of 2**52 numbers evenly inside (0, 1), in float64: how long one waits for what comes once in a unit."""
    return -E.unary("log", (cast(packed >> cast(12, "uint64"), "float64") + 0.5) * 2.0**-52)


@keyless
@operator
def exponential(key: Any, shape: Any = (), dtype: Any = "float32") -> Tensor:
    """Exponential with mean 1, in float64 and rounded once, as `normal`; above 0."""
    to = _float(dtype, "exponential")
    axes, extents, at = drawn_at(key, shape, "exponential")
    return build_stage(axes, lambda *i: cast(_waited(at(i)), to), extents=extents)


@keyless
@operator
def gumbel(key: Any, shape: Any = (), dtype: Any = "float32") -> Tensor:
    """Standard Gumbel, -log(-log(u)): the largest of many waits. In float64 and rounded once, as `normal`."""
    to = _float(dtype, "gumbel")
    axes, extents, at = drawn_at(key, shape, "gumbel")
    return build_stage(axes, lambda *i: cast(-E.unary("log", _waited(at(i))), to), extents=extents)


@keyless_of_tensor
@operator
def categorical(key: Any, logits: Any, axis: AxisLike = -1, shape: Any = ()) -> Tensor:
    """Positions along `axis`, each with the probability that softmax(logits) gives it: int32, the other axes of logits after those of
    `shape`, along which draws are independent.

    The largest of logits plus Gumbel noise (Maddison, Tarlow and Minka, "A* sampling", 2014): a stage `gumbel`, and the result. A logit of
    -inf is not drawn while there is another; NaN is.
    """
    t = tensor(logits, "categorical")
    d = axis_number(axis, t.axis_names, "categorical")
    if t.dtype == "bool":
        raise refuse("A306", "categorical of bool", "logits are logarithms of probabilities, up to a constant", "fl.log(probabilities)")
    names, first = dimensions(shape, "categorical")
    draws = len(first)
    like = [*zip(names, first, strict=True), *zip(t.axis_names, t.shape, strict=True)]
    noise = gumbel(key, [n for _, n in like], "float64" if t.dtype == "float64" else "float32")
    named = made(noise, noise.shape, [a for a, _ in like], lambda i: i)
    return reduced("argmax", named, draws + d, lambda i: real(t[i[draws:]]) + named[i])[0]


@keyless_of_tensor
@operator
def permutation(key: Any, x: Any, axis: AxisLike = 0) -> Tensor:
    """The numbers from 0 to x - 1 in random order for an integer or symbolic extent x, int32 [x]; for a tensor, its slices along `axis`
    in random order.

    Every order is equally likely, up to equal ones among n draws of 64 bits. The draws are sorted: stages of `argsort`, and the result.
    """
    whole = isinstance(x, int | str | Dim) and not isinstance(x, bool)
    t = None if whole else tensor(x, "permutation")
    d = 0 if t is None else axis_number(axis, t.axis_names, "permutation")
    (n,) = dimensions(x, "permutation")[1] if t is None else (t.shape[d],)
    order = argsort(drawn(key, n, "permutation"))
    if t is None:
        return order
    names = labels(t.axis_names)
    return build_stage(names, lambda *i: t[(*i[:d], order[i[d]], *i[d + 1 :])], extents=dict(zip(names, t.shape, strict=True)))


@keyless
@operator
def bernoulli(key: Any, p: float, shape: Any = ()) -> Tensor:
    """True with probability p, to within 2**-24."""
    if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
        raise refuse("A304", f"random.bernoulli({p!r})", "a probability is a number from 0 to 1")
    axes, extents, at = drawn_at(key, shape, "bernoulli")
    return build_stage(axes, lambda *i: unit(at(i), "float32") < float(p), extents=extents)


@keyless
@operator
def randint(key: Any, low: int, high: int, shape: Any = (), dtype: Any = "int32") -> Tensor:
    """Whole numbers from low to high - 1, equally likely to within 2**-32; at most 2**32 of them."""
    if any(isinstance(n, bool) or not isinstance(n, int) for n in (low, high)) or not 0 < high - low <= 2**32:
        raise refuse("A304", f"random.randint({low!r}, {high!r})", "low is below high, by at most 2**32")
    to, span = canonical(dtype), cast(high - low, "uint64")
    axes, extents, at = drawn_at(key, shape, "randint")

    def value(*i: Expr) -> Expr:
        first, second = (cast(w, "uint64") for w in words(at(i)))
        scaled = (second * span + ((first * span) >> cast(32, "uint64"))) >> cast(32, "uint64")
        return cast(cast(scaled, "int64") + cast(low, "int64"), to)

    return build_stage(axes, value, extents=extents)


__all__ = [
    "bernoulli", "bits", "categorical", "exponential", "fold_in", "gumbel", "key", "next_key", "normal", "permutation", "randint", "split",
    "uniform",
]  # fmt: skip
