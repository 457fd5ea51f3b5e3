"""Reductions with a combiner of one's own: ``fl.reduce``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .combiners import Combiner
from .dtypes import NARROW
from .errors import AlgorithmError
from .expr import Const, Expr, Op, Reduce, Scalar, as_expr, cast, common, refuse, strong
from .extent import Extent
from .reducing import elements, require_body, wide
from .rewriting import walk
from .wellformed import axis_parameters

_EXAMPLE = "fl.reduce(lambda a, b: a + b, 0.0, lambda k: x[k])"


def reduce(
    combine: Callable[[Any, Any], Any],
    identity: Any,
    fn: Callable[..., Any],
    *,
    over: Mapping[str, int | tuple[int, int] | Extent] | None = None,
) -> Any:
    """The elements ``fn(k, ...)`` at all k combined, inside a stage.

        fl.stage(lambda i: fl.reduce(lambda a, b: a + b - a * b, 0.0, lambda k: p[i, k]))

    `combine` makes one element of two neighbours. It is associative, so that a plan may group the elements as it likes, and an expression
    of its two arguments alone; `identity`, a number, changes nothing, and is the result where there are no elements. Both are tried on
    random numbers when traced. If `combine` commutes on these too, a plan may change the order of the elements. The result has the common
    type of `identity` and of the elements; narrow floats are combined in float32, and rounded at the end. `over` as for fl.sum.
    Raises AlgorithmError: a combiner that is not associative, an identity that is none, with the numbers that show it.
    """
    require_body("fl.reduce(...)", f"fl.stage(lambda i: {_EXAMPLE})")
    axes, extents, element = elements("reduce", axis_parameters(fn, "fl.reduce"), fn, over)
    value, start = as_expr(element), _number(identity)
    dtype, weak = common("fl.reduce", value, start)
    if weak:
        dtype = strong(value + start).dtype
    inner = "float32" if dtype in NARROW else dtype
    body = wide(value) if dtype in NARROW else strong(value, inner)
    combiner = _traced(combine, (strong(start, inner),), (body,))
    result = Reduce("reduce", axes, extents, body, inner, combiner)
    return cast(result, dtype) if dtype in NARROW else result


def _number(given: Any) -> Expr:
    try:
        e = as_expr(given)
    except AlgorithmError:
        e = None
    if not isinstance(e, Const):
        raise refuse("A207", f"fl.reduce with the identity {given!r}", "it is a number that is known when the algorithm is traced", "0.0")
    return e


def _traced(combine: Callable[[Any, Any], Any], identity: Sequence[Expr], body: Sequence[Expr]) -> Combiner:
    """The combiner as an expression of its arguments. Raises AlgorithmError A207, or A208 where it breaks a law."""
    from .laws import Laws

    start = tuple(e for e in identity if isinstance(e, Const))
    left, right = (tuple(Scalar(name, e.dtype) for e in start) for name in _arguments(combine))
    results = tuple(_result(combine(*left, *right), e.dtype, {*left, *right}) for e in start)
    made = Combiner(left, right, results, start, start[0].dtype)
    laws = Laws(made, body)
    if (example := laws.broken()) is not None:
        why = f"{example}: any grouping of the elements should give the same, and the identity change nothing"
        raise refuse("A208", f"fl.reduce with {made.text()}", why, "fl.recurrence, which keeps to one order")
    return replace(made, commutes=laws.commutes())


def _arguments(combine: Any) -> list[str]:
    try:
        names = list(inspect.signature(combine).parameters)
    except (TypeError, ValueError):
        names = []
    if len(names) != 2:
        raise refuse("A207", f"fl.reduce with {combine!r}", "it takes a function of two elements that makes one of them", _EXAMPLE)
    return names


def _result(given: Any, dtype: str, known: set[Scalar]) -> Expr:
    e = as_expr(given)
    foreign = next((n for n in walk(e) if not isinstance(n, Op | Const | Scalar) or (isinstance(n, Scalar) and n not in known)), None)
    if foreign is not None:
        raise refuse("A207", "fl.reduce with a combiner that uses something else than its arguments", "it is told no positions", _EXAMPLE)
    if e.dtype != dtype and not e.weak:
        asked = f"fl.reduce whose combiner makes {e.dtype} of {dtype}"
        raise refuse("A207", asked, "what it makes is combined again", f"fl.cast(..., {dtype!r})")
    return strong(e, dtype)


__all__ = ["reduce"]
