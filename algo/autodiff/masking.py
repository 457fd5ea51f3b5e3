"""Where the predicates of a sum are asked: each by the factor that it keeps inside its tensor, if the sum is one of products.

A product of which one factor is 0 outside its tensor is a convolution with a margin of zeros, whichever pass it belongs to, and is
scheduled as one. It is also what the forward pass would say: next to a factor that is infinite, a margin is not skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..expr import Axis, Expr, Op, Read, as_expr, binary
from ..extent import Extent
from ..linear import Linear, linear
from .algebra import masked
from .predicates import Predicate, conjunction, least
from .solving import Gather

Shape = Callable[[int], Sequence[Extent]]


def under_predicates(g: Gather, targets: Sequence[Axis], shape: Shape) -> Expr:
    """The body where the predicates hold, else 0."""
    asked, body = list(g.predicates), g.body
    if g.axes and isinstance(body, Op) and body.op == "mul" and all(isinstance(a, Read) for a in body.args):
        body = binary("mul", *(_inside(a, asked, shape) for a in body.args if isinstance(a, Read)))
    condition = conjunction(p.expr(targets) for p in asked)
    return body if condition is None else masked(condition, body)


def _inside(r: Read, asked: list[Predicate], shape: Shape) -> Expr:
    """The read under those of the predicates that say that it lies inside its tensor; they are taken from the list."""
    said: list[Expr] = []
    for i, n in zip(r.index, shape(r.source), strict=True):
        ends = (linear(i), as_expr(0) <= i), (Linear((), n - 1) + linear(i).scaled(-1), i < as_expr(n))
        for form, condition in ends:
            if (found := next((p for p in asked if p.key == least(form).key), None)) is not None:
                asked.remove(found)
                said.append(condition)
    inside = conjunction(said)
    return r if inside is None else masked(inside, r)


__all__ = ["under_predicates"]
