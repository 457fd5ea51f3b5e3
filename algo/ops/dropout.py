"""Dropout: elements that training leaves out at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import expr as E
from ..building import operator
from ..dtypes import kind
from ..expr import Expr, as_expr, refuse
from ..extent import Extent
from ..tensor import Tensor
from ..trace import build_stage
from .keys import drawn_at, unit
from .next_key import next_key
from .shapes import AxisLike, axis_numbers, labels, tensor


@operator
def dropout(x: Any, rate: float, *, key: Any = None, shared: AxisLike | Sequence[AxisLike] = ()) -> Tensor:
    """x with each element 0 with probability `rate`, the others divided by 1 - rate, so that the mean stays (Srivastava et al., 2014).

    Which ones is a function of the key (`fl.random.key`) alone, so each step takes a new one: left out, it is `fl.random.next_key()`. Along
    the axes `shared` all elements share their fate, as the pixels of a channel do with ``shared=(2, 3)``. Probabilities are kept to within
    2**-24.
    """
    t = tensor(x, "dropout")
    if kind(t.dtype) != "float":
        raise refuse("A306", f"dropout of {t.dtype}", "what stays is divided by 1 - rate", "fl.cast(x, fl.f32)")
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
        raise refuse("A304", f"dropout with rate={rate!r}", "it is a probability: a number from 0 to 1")
    over = axis_numbers(shared, t.axis_names, "dropout")
    shape: list[Extent] = [1 if d in over else n for d, n in enumerate(t.shape)]
    _, _, block = drawn_at(next_key() if key is None else key, shape, "dropout")
    scale = 1 / (1.0 - rate) if rate < 1 else 0.0
    names = labels(t.axis_names)

    def value(*i: Expr) -> Expr:
        fate = unit(block(tuple(as_expr(0) if d in over else e for d, e in enumerate(i))), "float32")
        element = t[i] if i else t.as_scalar()
        return E.where(fate < 1.0 - rate, element * scale, E.cast(0.0, t.dtype))

    return build_stage(names, value, extents=dict(zip(names, t.shape, strict=True)))
