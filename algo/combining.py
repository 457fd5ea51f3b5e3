"""Reductions with a combiner of one's own: ``fl.reduce``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .combiners import Combiner
from .dtypes import DEFAULT, NARROW, kind
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

    An element is a scalar, or a tuple of scalars where `identity` is one; the result is such an element too:

        best, at = fl.reduce(lambda a, b: (fl.maximum(a[0], b[0]), fl.where(b[0] > a[0], b[1], a[1])), (-inf, 0), lambda k: (x[k], k))

    `combine` makes one element of two neighbours. It is associative, so that a plan may group the elements as it likes, and an expression
    of its two arguments alone; `identity`, numbers, changes nothing, and is the result where there are no elements. Both are tried when
    traced, on elements that fn makes of random tensors. If `combine` commutes on these too, a plan may change the order of the elements.
    The result has the common type of `identity` and of the elements, part by part; narrow floats are combined in float32, and rounded at
    the end. Parts of different types are stored in one that holds all their numbers. `over` as for fl.sum.
    Raises AlgorithmError: a combiner that is not associative, an identity that is none, with the numbers that show it.
    """
    require_body("fl.reduce(...)", f"fl.stage(lambda i: {_EXAMPLE})")
    axes, extents, element = elements("reduce", axis_parameters(fn, "fl.reduce"), fn, over)
    several = isinstance(identity, tuple)
    start = tuple(map(_number, identity if several else (identity,)))
    given = element if isinstance(element, tuple) else (element,)
    if not start or len(given) != len(start) or isinstance(element, tuple) != several:
        asked = f"fl.reduce of {_shape(element)} with the identity {identity!r}"
        raise refuse("A207", asked, "the identity is an element like the others", "a number for each part")
    values = tuple(map(as_expr, given))
    types = _types(values, start)
    inner = tuple("float32" if d in NARROW else d for d in types)
    body = tuple(wide(v) if d in NARROW else strong(v, w) for v, d, w in zip(values, types, inner, strict=True))
    combiner = _traced(combine, tuple(strong(e, d) for e, d in zip(start, inner, strict=True)), body, several)
    if not several:
        return cast(Reduce("reduce", axes, extents, body[0], inner[0], combiner), types[0])
    whole = Reduce("reduce", axes, extents, combiner.value(body, as_expr(0)), combiner.dtype, combiner)
    if len(body) == 1:
        return (cast(whole, types[0]),)
    return tuple(cast(cast(Op("part", (whole, as_expr(k)), combiner.dtype, False), inner[k]), d) for k, d in enumerate(types))


def _shape(element: Any) -> str:
    return f"{len(element)} parts" if isinstance(element, tuple) else "one number"


def _types(values: Sequence[Expr], start: Sequence[Expr]) -> tuple[str, ...]:
    """The types of the parts; numbers without one take that of the parts of their kind that have one."""
    found = [common("fl.reduce", v, e) for v, e in zip(values, start, strict=True)]
    usual = {kind(d): d for d, weak in found if not weak}
    return tuple(usual.get(kind(d), DEFAULT.get(kind(d), d)) if weak else d for d, weak in found)


def _number(given: Any) -> Expr:
    try:
        e = as_expr(given)
    except AlgorithmError:
        e = None
    if not isinstance(e, Const):
        raise refuse("A207", f"fl.reduce with the identity {given!r}", "it is a number that is known when the algorithm is traced", "0.0")
    return e


def _traced(combine: Callable[[Any, Any], Any], identity: Sequence[Expr], body: Sequence[Expr], several: bool) -> Combiner:
    """The combiner as an expression of its arguments. Raises AlgorithmError A207, or A208 where it breaks a law."""
    from .laws import Laws

    start = tuple(e for e in identity if isinstance(e, Const))
    left, right = (_arguments_of(name, start, several) for name in _names(combine))
    found = combine(left, right) if several else combine(left[0], right[0])
    parts = found if isinstance(found, tuple) else (found,)
    if len(parts) != len(start) or isinstance(found, tuple) != several:
        asked = f"fl.reduce whose combiner makes {_shape(found)} of {_shape(start if several else start[0])}"
        raise refuse("A207", asked, "what it makes is combined again", _EXAMPLE)
    results = tuple(_result(r, e.dtype, {*left, *right}) for r, e in zip(parts, start, strict=True))
    made = Combiner(left, right, results, start, _carrier([e.dtype for e in start]))
    laws = Laws(made, body)
    if (example := laws.broken()) is not None:
        why = f"{example}: any grouping of the elements should give the same, and the identity change nothing"
        raise refuse("A208", f"fl.reduce with {made.text()}", why, "fl.recurrence, which keeps to one order")
    return replace(made, commutes=laws.commutes())


def _arguments_of(name: str, start: Sequence[Const], several: bool) -> tuple[Scalar, ...]:
    return tuple(Scalar(f"{name}[{k}]" if several else name, e.dtype) for k, e in enumerate(start))


def _carrier(types: Sequence[str]) -> str:
    """The type in which the parts of an element are stored side by side: that of all, or one that holds every number of each."""
    if len(set(types)) == 1:
        return types[0]
    for wider in ("float64", "int64"):
        if all(np.can_cast(d, wider, "safe") and (wider, d) not in (("float64", "int64"), ("float64", "uint64")) for d in types):
            return wider
    names = " and ".join(sorted(set(types)))
    raise refuse("A207", f"fl.reduce of parts of {names}", "no type holds every number of both", "fl.cast of one of them")


def _names(combine: Any) -> list[str]:
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
