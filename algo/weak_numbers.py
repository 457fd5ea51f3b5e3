"""Numbers that are known only when the kernel runs, and yet weak, as Python's are: the variable of a loop over a symbolic range.

Such a number is an expression, and no stage. What is made of such and of Python's numbers alone is one too, computed in the type that it
meets: of `i` from ``range(x.shape[0])``, ``i * 0.5 + x`` has the type of x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .arithmetic import strong
from .dtypes import kind
from .expr import Expr, Op, as_expr
from .extent import Dim
from .linear import Ranges
from .tensor import Index, Tensor, body, in_body


class WeakNumber(Tensor):
    """What `value` is inside a stage: an expression that is weak."""

    def __init__(self, value: Callable[[], Expr], label: str) -> None:
        with body():
            dtype = strong(value()).dtype
        super().__init__((), dtype, (), label)
        self.value = value

    @staticmethod
    def of(t: Tensor) -> WeakNumber:
        """An integer tensor without axes as such a number."""
        return WeakNumber(lambda: Op("cast", (t.as_scalar(),), t.dtype, True), t.label)

    def as_scalar(self) -> Expr:
        return self.value() if in_body() else super().as_scalar()

    def resolve(self, index: Index, ranges: Ranges, facts: Sequence[Expr]) -> Expr:
        from .trace import resolve

        with body():
            value = strong(self.value())
        return resolve(value, ranges)


def weakly(fn: Callable[..., Any], operands: Sequence[Any], options: dict[str, Any]) -> WeakNumber | None:
    """What a scalar function makes of weak numbers alone, if that is one."""
    numbers = [x for x in operands if isinstance(x, WeakNumber)]
    if not numbers or not all(type(x) in (bool, int, float) or isinstance(x, WeakNumber | Dim) for x in operands):
        return None

    def value() -> Expr:
        return as_expr(fn(*map(as_expr, operands), **options))

    with body():
        found = value()
    return WeakNumber(value, numbers[0].label) if found.weak and kind(found.dtype) in ("int", "float") else None


__all__ = ["WeakNumber", "weakly"]
