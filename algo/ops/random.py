"""Random numbers as pure functions of a key and an index: the same in the interpreter, in every kernel and under every plan.

    key = fl.random.key(7)
    a, b = fl.random.split(key)
    noise = fl.random.uniform(a, x.shape)

A key is a uint32[2] tensor. Used twice it gives the same numbers twice: split it, or fold a number into it. Element i of a result depends
on the key and i alone, whatever the shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import expr as E
from ..building import operator
from ..dtypes import canonical, kind
from ..expr import Expr, cast, refuse
from ..extent import Extent
from ..tensor import Tensor
from ..trace import build_stage
from .shapes import dimensions, labels, shown, tensor, view
from .threefry import blocks, words
from .views import reshape

# Counters of draws, of split and of fold_in are apart in their high word
_DRAW, _SPLIT, _FOLD = 0, 1 << 30, 1 << 31


@view
def key(seed: int) -> Tensor:
    """The key of a seed, a whole number of 64 bits."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise refuse("A304", f"random.key({seed!r})", "a seed is an integer", "fl.random.fold_in(key, number) for a tensor")
    return tensor(np.array([int(seed) >> 32 & 0xFFFFFFFF, int(seed) & 0xFFFFFFFF], np.uint32), "key")


def _key(value: Any, what: str) -> Tensor:
    t = tensor(value, what)
    if t.dtype != "uint32" or t.shape != (2,):
        raise refuse("A306", f"{what} with {t.dtype} {shown(t.shape)}", "a key is uint32 [2]", "fl.random.key(seed)")
    return t


def _pair(packed: Expr, which: Expr) -> Expr:
    low, high = words(packed)
    return E.where(E.binary("eq", which, 0), low, high)


@operator
def split(key: Any, n: Extent = 2) -> Tensor:
    """n keys that have nothing to do with each other, nor with what the key itself draws: uint32 [n, 2]."""
    made = blocks(_key(key, "split"), ["i"], {"i": n}, lambda i: (i, _SPLIT), name="block")
    return build_stage(["i", "word"], lambda i, w: _pair(made[(i,)], w), extents={"i": n, "word": 2})


@operator
def fold_in(key: Any, data: Any) -> Tensor:
    """The key of a key and a whole number (a number, or an integer tensor of rank 0), such as the number of a step: uint32 [2]."""
    number = tensor(data, "fold_in")
    if kind(number.dtype) != "int" or number.ndim:
        raise refuse("A306", f"fold_in of {number.dtype} {shown(number.shape)}", "it takes one whole number")
    made = blocks(_key(key, "fold_in"), [], {}, lambda: (number.as_scalar(), _FOLD), name="block")
    return build_stage(["word"], lambda w: _pair(made.as_scalar(), w), extents={"word": 2})


def _drawn(key: Tensor, shape: Any, what: str) -> tuple[Tensor, list[str], dict[str, Extent], Any]:
    """A block for each element, in row-major order, and the axes of the result."""
    names, extents = dimensions(shape, what)
    total: Extent = 1
    for n in extents:
        total = total * n
    made = reshape(blocks(key, ["i"], {"i": total}, lambda i: (i, _DRAW), name="block"), extents)
    axes = labels(names)
    return made, axes, dict(zip(axes, extents, strict=True)), lambda i: made[i] if i else made.as_scalar()


@operator
def bits(key: Any, shape: Any = (), dtype: Any = "uint32") -> Tensor:
    """Uniform uint32 or uint64."""
    to = canonical(dtype)
    if to not in ("uint32", "uint64"):
        raise refuse("A304", f"random.bits of {to}", "bits are uint32 or uint64", "fl.random.randint")
    _, axes, extents, at = _drawn(_key(key, "bits"), shape, "bits")
    return build_stage(axes, lambda *i: cast(at(i), to), extents=extents)


def _unit(packed: Expr, dtype: str) -> Expr:
    """In [0, 1): the top 24 bits of the first word, or 53 of both."""
    if dtype == "float64":
        return cast(packed >> cast(11, "uint64"), "float64") * 2.0**-53
    return cast(cast(packed, "uint32") >> cast(8, "uint32"), "float32") * 2.0**-24


@operator
def uniform(key: Any, shape: Any = (), dtype: Any = "float32") -> Tensor:
    """Uniform in [0, 1), multiples of 2**-24 (of 2**-53 in float64)."""
    to = canonical(dtype)
    if kind(to) != "float":
        raise refuse("A304", f"random.uniform of {to}", "it is float32 or float64", "fl.random.randint")
    _, axes, extents, at = _drawn(_key(key, "uniform"), shape, "uniform")
    return build_stage(axes, lambda *i: _unit(at(i), to), extents=extents)


@operator
def normal(key: Any, shape: Any = (), dtype: Any = "float32") -> Tensor:
    """Standard normal, by Box and Muller in float64; float32 is rounded once, so that no two machines differ by more than an ulp."""
    to = canonical(dtype)
    if kind(to) != "float":
        raise refuse("A304", f"random.normal of {to}", "it is float32 or float64")
    _, axes, extents, at = _drawn(_key(key, "normal"), shape, "normal")

    def value(*i: Expr) -> Expr:
        low, high = (cast(w, "float64") for w in words(at(i)))
        radius = E.unary("sqrt", E.unary("log", (low + 1) * 2.0**-32) * -2.0)
        return cast(radius * E.unary("cos", high * (2 * np.pi * 2.0**-32)), to)

    return build_stage(axes, value, extents=extents)


@operator
def bernoulli(key: Any, p: float, shape: Any = ()) -> Tensor:
    """True with probability p, to within 2**-24."""
    if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
        raise refuse("A304", f"random.bernoulli({p!r})", "a probability is a number from 0 to 1")
    _, axes, extents, at = _drawn(_key(key, "bernoulli"), shape, "bernoulli")
    return build_stage(axes, lambda *i: _unit(at(i), "float32") < float(p), extents=extents)


@operator
def randint(key: Any, low: int, high: int, shape: Any = (), dtype: Any = "int32") -> Tensor:
    """Whole numbers from low to high - 1, equally likely to within 2**-32; at most 2**32 of them."""
    if any(isinstance(n, bool) or not isinstance(n, int) for n in (low, high)) or not 0 < high - low <= 2**32:
        raise refuse("A304", f"random.randint({low!r}, {high!r})", "low is below high, by at most 2**32")
    to, span = canonical(dtype), cast(high - low, "uint64")
    _, axes, extents, at = _drawn(_key(key, "randint"), shape, "randint")

    def value(*i: Expr) -> Expr:
        first, second = (cast(w, "uint64") for w in words(at(i)))
        scaled = (second * span + ((first * span) >> cast(32, "uint64"))) >> cast(32, "uint64")
        return cast(cast(scaled, "int64") + cast(low, "int64"), to)

    return build_stage(axes, value, extents=extents)


__all__ = ["bernoulli", "bits", "fold_in", "key", "normal", "randint", "split", "uniform"]
