"""Reductions inside expressions: ``fl.sum(lambda k: ...)`` in the body of a stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .complex.elements import ComplexExpr, not_for_complex
from .dtypes import NARROW
from .expr import Axis, Expr, Op, Reduce, as_expr, axis, cast, refuse
from .extent import Dim, Extent
from .tensor import in_body
from .wellformed import LARGEST, axis_parameters, extent_of


def named_axes(given: Any, argument: str) -> dict[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise refuse("A116", f"{argument}={given!r}", "it gives axes by their names", f"{argument}={{'i': 3}}")
    return dict(given or {})


ACCUMULATOR = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}
"""sum and prod of narrow integers are taken in the default width, as the array API says."""


def wide(e: Expr) -> Expr:
    """A narrow float as float32, a product without rounding it first."""
    if e.dtype not in NARROW:
        return e
    if isinstance(e, Op) and e.op == "mul":
        return cast(e.args[0], "float32") * cast(e.args[1], "float32")
    return cast(e, "float32")


def unrounded(e: Expr) -> Expr:
    """A sum of narrow floats before it is rounded."""
    return e.args[0] if isinstance(e, Op) and e.op == "cast" and e.dtype in NARROW and isinstance(e.args[0], Reduce) else e


def reduce(kind: str, fn: Callable[..., Any], over: Mapping[str, int | tuple[int, int] | Extent] | None = None) -> Expr:
    """kind over the lambda's axes. `over` gives extents, or (low, high) ranges, of axes that no read bounds."""
    require_body(f"fl.{kind}(lambda ...)", f"fl.stage(lambda i: fl.{kind}(lambda k: x[i, k]))", f"fl.{kind}(x, axis=...)")
    names = axis_parameters(fn, f"fl.{kind}")
    return reduce_axes(kind, names, fn, over)


def require_body(asked: str, *instead: str) -> None:
    if not in_body():
        raise refuse("A115", asked, "a reduction over index lambdas stands inside a stage", *instead)


def _range(given: Any, name: str) -> tuple[Extent, Extent | None]:
    """The first position and the extent that `over` says."""
    if given is None:
        return 0, None
    if not isinstance(given, tuple):
        return 0, extent_of(given, name, "over")
    ends = [int(n) if isinstance(n, np.integer) else n for n in given]
    if len(ends) != 2 or not all(
        isinstance(n, Dim) or (isinstance(n, int) and not isinstance(n, bool) and abs(n) <= LARGEST) for n in ends
    ):
        raise refuse(
            "A116",
            f"over={{{name!r}: a tuple of {len(ends)}}}",
            "a range is (low, high), two integers or symbolic extents",
            f"over={{{name!r}: (-1, 2)}}",
        )
    return ends[0], extent_of(ends[1] - ends[0], name, "over")


def elements(
    kind: str, names: Sequence[str], fn: Callable[..., Any], over: Mapping[str, Any] | None
) -> tuple[tuple[Axis, ...], tuple[Extent | None, ...], Any]:
    """The axes of a reduction, their extents as far as `over` says them, and what fn gives at each place."""
    if not names:
        raise refuse(
            "A119", f"fl.{kind} over nothing", "its lambda has no parameter, so there is no axis to reduce", f"fl.{kind}(lambda k: x[k])"
        )
    given_ranges = named_axes(over, "over")
    unknown = [k for k in given_ranges if k not in names]
    if unknown:
        raise refuse("A112", f"over {', '.join(map(str, unknown))}", f"the reduction's axes are {', '.join(names)}")
    axes, extents, values = [], [], []
    for n in names:
        a, given = axis(n), given_ranges.get(n)
        low, extent = _range(given, n)
        axes.append(a)
        extents.append(extent)
        values.append(a + low)
    return tuple(axes), tuple(extents), fn(*values)


def reduce_axes(kind: str, names: Sequence[str], fn: Callable[..., Any], over: Mapping[str, Any] | None = None) -> Expr:
    axes, extents, element = elements(kind, names, fn, over)
    if isinstance(element, ComplexExpr):
        if kind != "sum":
            raise not_for_complex(f"fl.{kind}")
        return ComplexExpr(*(Reduce("sum", axes, extents, p, p.dtype) for p in (element.real, element.imag)))  # type: ignore[return-value]
    inner = as_expr(element)
    if kind in ("any", "all"):
        dtype = "bool"
    elif kind.startswith("arg"):
        dtype = "int32"
    elif kind in ("sum", "prod") and inner.dtype in ACCUMULATOR:
        dtype = ACCUMULATOR[inner.dtype]
        inner = cast(inner, dtype)
    elif kind in ("sum", "prod") and inner.dtype in NARROW and not inner.weak:
        return cast(Reduce(kind, axes, extents, wide(inner), "float32"), inner.dtype)
    else:
        dtype = inner.dtype
    return Reduce(kind, axes, extents, inner, dtype)


