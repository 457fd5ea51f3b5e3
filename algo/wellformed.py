"""What a stage may be made of: its lambda, names, extents, and an expression whose axes are its own."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .dtypes import kind
from .errors import AlgorithmError
from .expr import Axis, Expr, Op, Reduce, refuse
from .extent import Dim, Extent
from .linear import Linear
from .rewriting import walk

LARGEST = 2**48
"""Elements of one tensor, and constants in an index: products of the two still fit 64 bits with room to spare."""
_DEEPEST, _LONGEST = 2_500, 50_000
"""Operations on the longest way down in the expression of one stage, and in all of it when nothing is shared: what compilers can take."""
_DEEPEST_INDEX = 200
_NAME = re.compile(r"[^\s/*<>{}\[\]=,:\"'\\\x00-\x1f\x7f]+")


def axis_parameters(fn: Any, what: str) -> list[str]:
    """The axis names of an index lambda: its parameters, without those that have a default. Raises AlgorithmError."""
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        raise refuse(
            "A119", f"{what} of {_kind(fn)}", "it takes a function whose parameters are the axes", f"{what}(lambda i, j: ...)"
        ) from None
    wrong = next(
        (p for p in parameters if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or (p.kind is p.KEYWORD_ONLY and p.default is p.empty)), None
    )
    if wrong is not None:
        raise refuse("A119", f"{what}: the parameter {wrong}", "each axis is one positional parameter", f"{what}(lambda i, j: ...)")
    return [p.name.rstrip("_") if p.name.endswith("_") else p.name for p in parameters if p.default is p.empty]


def _kind(value: Any) -> str:
    return getattr(value, "__name__", None) or type(value).__name__


def name_of(value: Any, what: str) -> str:
    """A name that may stand in paths and selectors. Raises AlgorithmError."""
    if not isinstance(value, str) or not all(map(_NAME.fullmatch, value.split("/"))) or len(value) > 200:
        shown = repr(value) if len(repr(value)) < 60 else repr(value)[:57] + "..."
        raise refuse(
            "A117", f"{what} called {shown}", "names stand in plans: letters, digits, _ . and -, at most 200", "a word such as rows"
        )
    return value


def extent_of(value: Any, axis: str, argument: str) -> Extent:
    """An extent as the language has them. Raises AlgorithmError for what is none, or negative."""
    if isinstance(value, np.integer):
        value = int(value)
    if isinstance(value, Dim) or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST):
        return value
    shown = "a tensor" if hasattr(value, "resolve") else "an expression" if isinstance(value, Expr) else repr(value)
    why = "it is an integer from 0 to 2**48, or symbolic" if isinstance(value, int) else "it is an integer or symbolic"
    raise refuse(
        "A116", f"{argument}={{{axis!r}: {shown}}}", why, f"{argument}={{{axis!r}: 3}}", f"{argument}={{{axis!r}: fl.extent('n')}}"
    )


def require_counts(extents: Mapping[Axis, Extent]) -> None:
    """Raises AlgorithmError where reads leave an axis fewer than no elements."""
    if short := next(((a.name, e) for a, e in extents.items() if isinstance(e, int) and e < 0), None):
        why = "its reads lie behind the last elements of what they read"
        raise refuse("A205", f"axis {short[0]!r} with {short[1]} elements", why, "fl.edge(x) (or reflect, wrap, constant)")


def require_size(extents: Iterable[Extent]) -> None:
    """Raises AlgorithmError where the fixed extents alone give more elements than one tensor may have."""
    total = math.prod(e for e in extents if isinstance(e, int))
    if total > LARGEST:
        raise refuse("A116", f"a tensor of {total:.3g} elements", "it has at most 2**48")


def require_index(form: Linear, label: str) -> None:
    """Raises AlgorithmError where an index holds a number so large that it may not be computed exactly."""
    if any(isinstance(n, int) and abs(n) > LARGEST for n in (form.constant, *(c for _, c in form.terms))):
        raise refuse("A108", f"an index of {label} with a number beyond 2**48", "indices are computed in 64 bits")


def require_own_axes(axes: Sequence[Axis], value: Expr) -> None:
    """Raises AlgorithmError where the expression holds an axis of another lambda, or is too large. Walks without recursion."""
    free: dict[Expr, frozenset[Axis]] = {}
    pending = [value]
    while pending:
        e = pending[-1]
        if e in free:
            pending.pop()
            continue
        asks_extent = isinstance(e, Op) and e.op == "extent"  # of an axis, not of its value: known once the reads have been seen
        below = () if asks_extent else e.operands
        missing = [c for c in below if c not in free]
        if missing:
            pending += missing
            continue
        pending.pop()
        own = frozenset((e,)) if isinstance(e, Axis) else frozenset[Axis]().union(*(free[c] for c in below))
        free[e] = own.difference(e.axes) if isinstance(e, Reduce) else own
    foreign = sorted(a.name for a in free[value].difference(axes))
    if foreign:
        raise refuse(
            "A118",
            f"axis {foreign[0]!r} outside its lambda",
            "an axis has a value only inside the lambda whose parameter it is",
            "a parameter of that name in the lambda that uses it",
        )
    if (why := excess(value)) is not None:
        raise refuse("A132", *why, "stages for parts of it", "fl.sum over an axis")


def excess(value: Expr) -> tuple[str, str] | None:
    """What is too large about an expression, and how large it may be."""
    length: dict[Expr, int] = {}
    for e in walk(value):
        length[e] = 1 + sum(length[c] for c in e.operands)
        if e.depth > _DEEPEST_INDEX and isinstance(e, Op) and e.weak and kind(e.dtype) == "int":
            return f"an index {e.depth} operations deep", f"arithmetic on positions may be {_DEEPEST_INDEX} deep"
    if value.depth > _DEEPEST:
        return f"an expression {value.depth} operations deep", f"one stage may be {_DEEPEST:,} deep"
    if length[value] > _LONGEST:
        return f"an expression of {float(length[value]):.3g} operations when written out", f"one stage may have {_LONGEST:,}"
    return None


def moved_by(loop: str, name: str) -> AlgorithmError:
    """The refusal of an extern that differs from step to step of a loop."""
    why = "its function is called between kernels, on whole tensors, and the steps of a loop are one kernel"
    return refuse("A433", f"fl.extern {name} inside {loop}, which changes its inputs", why, "fl.extern outside, on all steps at once")


def counted_apart(loop: str, name: str) -> AlgorithmError:
    """The refusal of a computed extent that would be another one from step to step, or from example to example."""
    why = "a tensor has one shape for all of them"
    return refuse("A209", f"the extent {name}, another one at each {loop}", why, "a mask of what counts: fl.where, fl.mean(where=)")


def require_elements(kind: str, reduced: Sequence[Extent], spatial: Sequence[Extent]) -> None:
    """Raises AlgorithmError for a largest or smallest of what never has an element."""
    if kind in ("max", "min", "argmax", "argmin") and 0 in reduced and 0 not in spatial:
        raise refuse("A206", f"{kind} over no elements", "of nothing there is no largest or smallest", "an extent of at least 1")


__all__ = [
    "LARGEST",
    "axis_parameters",
    "counted_apart",
    "excess",
    "extent_of",
    "moved_by",
    "name_of",
    "require_counts",
    "require_elements",
    "require_index",
    "require_own_axes",
    "require_size",
]
