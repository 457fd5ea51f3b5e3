"""Tensors as control flow passes them on: parameters as what they hold, views as stages."""

from __future__ import annotations

from .expr import refuse
from .held import Parameter
from .tensor import Direct, Tensor


def labels_of(t: Tensor) -> list[str]:
    from .ops.shapes import labels

    return labels(t.axis_names)


def bound(t: Tensor) -> Tensor:
    """A parameter as the tensor that it is at this point of the trace."""
    return t.now() if isinstance(t, Parameter) else t


def settled(t: Tensor, what: str) -> Direct:
    """The tensor as a stage or a leaf: views get a stage of their own."""
    from .trace import copied

    t = bound(t)
    if isinstance(t, Direct):
        t.require_mine()
        return t
    if t.is_bounded:
        raise refuse("A402", f"{what} of {t.label}", "a boundary view is a way to read, not a tensor", "the tensor itself")
    return copied(t, "value")


__all__ = ["bound", "labels_of", "settled"]
