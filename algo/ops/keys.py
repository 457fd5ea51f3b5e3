"""Keys of random numbers, how others are made of them, and the blocks of bits that they draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import expr as E
from ..building import operator
from ..dtypes import kind
from ..expr import Expr, cast, refuse
from ..extent import Extent, volume
from ..tensor import Index, Tensor
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


def checked(value: Any, what: str) -> Tensor:
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
    made = blocks(checked(key, "split"), ["i"], {"i": n}, lambda i: (i, _SPLIT), name="block")
    return build_stage(["i", "word"], lambda i, w: _pair(made[(i,)], w), extents={"i": n, "word": 2})


@operator
def fold_in(key: Any, data: Any) -> Tensor:
    """The key of a key and a whole number (a number, or an integer tensor of rank 0), such as the number of a step: uint32 [2]."""
    number = tensor(data, "fold_in")
    if kind(number.dtype) != "int" or number.ndim:
        raise refuse("A306", f"fold_in of {number.dtype} {shown(number.shape)}", "it takes one whole number")
    made = blocks(checked(key, "fold_in"), [], {}, lambda: (number.as_scalar(), _FOLD), name="block")
    return build_stage(["word"], lambda w: _pair(made.as_scalar(), w), extents={"word": 2})


def drawn(key: Any, total: Extent, what: str) -> Tensor:
    """`total` blocks of 64 bits, uint64, of which block i depends on the key and i alone."""
    return blocks(checked(key, what), ["i"], {"i": total}, lambda i: (i, _DRAW), name="block")


def drawn_at(key: Any, shape: Any, what: str) -> tuple[list[str], dict[str, Extent], Callable[[Index], Expr]]:
    """The axes of a shape and their extents, and the block of each element, in row-major order."""
    names, extents = dimensions(shape, what)
    block = reshape(drawn(key, volume(extents), what), extents)
    axes = labels(names)
    return axes, dict(zip(axes, extents, strict=True)), lambda i: block[i] if i else block.as_scalar()


def unit(packed: Expr, dtype: str) -> Expr:
    """In [0, 1): the top 24 bits of the first word of a block, or 53 of both."""
    if dtype == "float64":
        return cast(packed >> cast(11, "uint64"), "float64") * 2.0**-53
    return cast(cast(packed, "uint32") >> cast(8, "uint32"), "float32") * 2.0**-24
