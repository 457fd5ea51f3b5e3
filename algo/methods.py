"""What a Tensor can do besides being indexed: operators as Python writes them, and the usual methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .tensor import Tensor


class Methods:
    """Arithmetic broadcasts as in NumPy; inside a stage a rank-0 tensor is a number."""

    def __add__(self, other: Any) -> Any:
        return _ops().add(self, other)

    def __radd__(self, other: Any) -> Any:
        return _ops().add(other, self)

    def __sub__(self, other: Any) -> Any:
        return _ops().subtract(self, other)

    def __rsub__(self, other: Any) -> Any:
        return _ops().subtract(other, self)

    def __mul__(self, other: Any) -> Any:
        return _ops().multiply(self, other)

    def __rmul__(self, other: Any) -> Any:
        return _ops().multiply(other, self)

    def __truediv__(self, other: Any) -> Any:
        return _ops().divide(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _ops().divide(other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _ops().floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _ops().floor_divide(other, self)

    def __mod__(self, other: Any) -> Any:
        return _ops().mod(self, other)

    def __rmod__(self, other: Any) -> Any:
        return _ops().mod(other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any) -> Any:
        return _ops().pow(self, other)

    def __rpow__(self, other: Any) -> Any:
        return _ops().pow(other, self)

    def __matmul__(self, other: Any) -> Any:
        return _ops().matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _ops().matmul(other, self)

    def __neg__(self) -> Any:
        return _ops().negative(self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return _ops().abs(self)

    def __invert__(self) -> Any:
        return _ops().invert(self)

    def __eq__(self, other: Any) -> Any:
        return _ops().equal(self, other)

    def __ne__(self, other: Any) -> Any:
        return _ops().not_equal(self, other)

    def __lt__(self, other: Any) -> Any:
        return _ops().less(self, other)

    def __le__(self, other: Any) -> Any:
        return _ops().less_equal(self, other)

    def __gt__(self, other: Any) -> Any:
        return _ops().greater(self, other)

    def __ge__(self, other: Any) -> Any:
        return _ops().greater_equal(self, other)

    __hash__ = object.__hash__

    def __and__(self, other: Any) -> Any:
        return _ops().bitwise_and(self, other)

    def __rand__(self, other: Any) -> Any:
        return _ops().bitwise_and(other, self)

    def __or__(self, other: Any) -> Any:
        return _ops().bitwise_or(self, other)

    def __ror__(self, other: Any) -> Any:
        return _ops().bitwise_or(other, self)

    def __xor__(self, other: Any) -> Any:
        return _ops().bitwise_xor(self, other)

    def __rxor__(self, other: Any) -> Any:
        return _ops().bitwise_xor(other, self)

    def __lshift__(self, other: Any) -> Any:
        return _ops().left_shift(self, other)

    def __rlshift__(self, other: Any) -> Any:
        return _ops().left_shift(other, self)

    def __rshift__(self, other: Any) -> Any:
        return _ops().right_shift(self, other)

    def __rrshift__(self, other: Any) -> Any:
        return _ops().right_shift(other, self)

    @property
    def T(self) -> Tensor:
        """The axes in reverse order. A view."""
        return _ops().transpose(self)  # type: ignore[no-any-return]

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged. A view."""
        return _ops().matrix_transpose(self)  # type: ignore[no-any-return]

    def transpose(self, *axes: Any) -> Tensor:
        """The axes in another order; see fluorite.transpose."""
        order = axes[0] if len(axes) == 1 and isinstance(axes[0], list | tuple) else axes
        return _ops().transpose(self, order or None)  # type: ignore[no-any-return]

    def reshape(self, *shape: Any) -> Tensor:
        """The same elements in another shape; see fluorite.reshape."""
        return _ops().reshape(self, shape[0] if len(shape) == 1 and isinstance(shape[0], list | tuple) else shape)  # type: ignore[no-any-return]

    def astype(self, dtype: Any) -> Tensor:
        """See fluorite.cast."""
        return _ops().cast(self, dtype)  # type: ignore[no-any-return]

    def sum(self, axis: int | str | Sequence[int | str] | None = None, keepdims: bool = False) -> Tensor:
        """See fluorite.sum."""
        return _ops().sum(self, axis, keepdims)  # type: ignore[no-any-return]

    def mean(self, axis: int | str | Sequence[int | str] | None = None, keepdims: bool = False) -> Tensor:
        """See fluorite.mean."""
        return _ops().mean(self, axis, keepdims)  # type: ignore[no-any-return]

    def max(self, axis: int | str | Sequence[int | str] | None = None, keepdims: bool = False) -> Tensor:
        """See fluorite.max."""
        return _ops().max(self, axis, keepdims)  # type: ignore[no-any-return]

    def min(self, axis: int | str | Sequence[int | str] | None = None, keepdims: bool = False) -> Tensor:
        """See fluorite.min."""
        return _ops().min(self, axis, keepdims)  # type: ignore[no-any-return]


def _ops() -> Any:
    from . import ops

    return ops
