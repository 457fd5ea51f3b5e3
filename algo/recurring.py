"""Stages in terms of themselves: ``fl.recurrence``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .building import Builder, call_site, current, placed
from .dtypes import canonical
from .errors import AlgorithmError
from .expr import Expr, Op, Read, as_expr, refuse
from .extent import Extent
from .linear import Ranges, linear, within
from .printing import show
from .recurrences import with_clocks
from .tensor import Direct, Index, Tensor, implied
from .trace import build_stage
from .wellformed import axis_parameters


class Itself(Direct):
    """The stage that is being defined, as its own body reads it. Its shape is known when the body's other reads have been seen."""

    def __init__(self, names: Sequence[str], dtype: str, label: str, builder: Builder) -> None:
        super().__init__(builder.fresh(), (0,) * len(names), dtype, names, label, builder)

    @property
    def is_settled(self) -> bool:
        return False

    def resolve(self, index: Index, ranges: Ranges, facts: Sequence[Expr]) -> Expr:
        self.require_mine()
        return Read(self.source, tuple(self._inside(d, i, ranges, facts) for d, i in enumerate(index)), self.dtype)

    def _inside(self, d: int, i: Expr, ranges: Ranges, facts: Sequence[Expr]) -> Expr:
        n = self.shape[d]
        if within(i, n, ranges) or implied(i, n, ranges, facts):
            return i
        if not linear(i).is_affine:
            return Op("edge", (i, as_expr(n)), "int32", True)
        name = self.axis_names[d]
        raise refuse(
            "A161",
            f"{self.label} read at {show(i)} of {name}",
            f"{name} runs from 0 to {n - 1}, and nothing says that the read lies inside",
            f"fl.where({name} >= 1, {self.label}[{name} - 1, ...], first) for {name} - 1, with the where around the read itself",
        )


def recurrence(
    fn: Callable[..., Any], *, name: str | None = None, extents: Mapping[str, Extent] | None = None, dtype: Any = "float32"
) -> Tensor:
    """The tensor h of `dtype` whose element at (i, j, ...) is ``fn(h, i, j, ...)``, where fn may read h at earlier positions.

        fl.recurrence(lambda h, t, i: fl.where(t >= 1, 0.9 * h[t - 1, i], 0) + x[t, i])

    The reads say which axis is walked step by step, and which way: h[t - 1, i] and h[t - 2, i] from the first t to the last, h[t + 1, i]
    from the last to the first. Reads before the first step stand in a branch of fl.where. Sums may go over earlier positions too:
    ``fl.sum(lambda k: fl.where(t >= 1, h[t - 1, k], 0) * w[k, i])``. `extents` as for fl.stage.
    Raises AlgorithmError: reads that no order of one axis computes before they are needed, or that lie outside.
    """
    current()
    try:
        first, *names = axis_parameters(fn, "fl.recurrence") or [""]
        if not names:
            raise refuse(
                "A119",
                "fl.recurrence of a lambda with fewer than two parameters",
                "the first is the tensor itself, the others are its axes",
                "fl.recurrence(lambda h, t: ...)",
            )
    except AlgorithmError as error:
        raise placed(error, call_site(), name if isinstance(name, str) else "") from None
    return build_recurrence(names, fn, name=name, extents=extents, dtype=dtype, label=first)


def build_recurrence(
    names: Sequence[str],
    fn: Callable[..., Any],
    *,
    name: str | None = None,
    extents: Mapping[str, Extent] | None = None,
    dtype: Any = "float32",
    label: str = "h",
) -> Tensor:
    """`recurrence` for library code: the axis names are given, so the rank may vary."""
    builder, source = current(), call_site()
    itself = Itself(names, canonical(dtype), label, builder)
    before = set(builder.stages)

    def value(*axes: Expr) -> Expr:
        found = as_expr(fn(itself, *axes))
        if not found.weak and found.dtype != itself.dtype:
            raise refuse(
                "A162",
                f"{label} of {itself.dtype} from a value of {found.dtype}",
                "what is read of a recurrence has the type of what is stored",
                f"dtype={found.dtype!r}",
                "fl.cast",
            )
        return found

    result = build_stage(names, value, name=name, extents=extents, dtype=itself.dtype, itself=itself)
    try:
        builder.stages |= with_clocks(
            [s for i, s in builder.stages.items() if i not in before], [(n, reverse) for n in names for reverse in (False, True)]
        )
    except AlgorithmError as error:
        raise placed(error, source, builder.stages[itself.source].path) from None
    return result


__all__ = ["Itself", "build_recurrence", "recurrence"]
