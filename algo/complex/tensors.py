"""Complex tensors: pairs of real ones of one shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..compound import Compound
from ..dtypes import FLOATS, paired
from ..expr import refuse
from ..extent import Extent, volume
from ..methods import Methods
from ..numpy_calls import OwnOperators
from ..tensor import Tensor, View, in_body
from .elements import ComplexExpr, is_complex, not_for_complex


class ComplexTensor(Compound, OwnOperators, Methods):
    """`shape`, `dtype` (complex64 or complex128) and `axis_names` as of a Tensor; `real` and `imag` are tensors. Immutable.

    `joined` is both along a last axis of 2, where they are parts of such a tensor anyway.

    Inside a stage's lambda ``z[i, j]`` is a complex element, elsewhere indexing slices, and arithmetic broadcasts as in NumPy.
    """

    __array_priority__ = 1000
    what = "a complex tensor"

    def __init__(self, real: Tensor, imag: Tensor, joined: Tensor | None = None) -> None:
        self.real, self.imag, self.joined = real, imag, joined

    @property
    def shape(self) -> tuple[Extent, ...]:
        return self.real.shape

    @property
    def dtype(self) -> str:
        return paired(self.real.dtype)

    @property
    def axis_names(self) -> tuple[str | None, ...]:
        return self.real.axis_names

    @property
    def ndim(self) -> int:
        return self.real.ndim

    @property
    def size(self) -> Extent:
        return volume(self.shape)

    @property
    def label(self) -> str:
        label = self.real.label.removesuffix(".real")
        return "a complex tensor" if label == "real" else label

    def parts(self) -> tuple[Tensor, Tensor]:
        return self.real, self.imag

    def mapped(self, fn: Callable[[Any], Any]) -> Any:
        real, imag = fn(self.real), fn(self.imag)
        return ComplexTensor(real, imag) if isinstance(real, Tensor) else Pair(real, imag)

    def pair(self, name: str | None = None) -> Tensor:
        """Both parts along a last axis of 2, which is how a complex array lies in memory: a stage of this name, where it is none yet."""
        from ..ops.joining import stack

        return stack([self.real, self.imag], axis=-1, name=name) if self.joined is None else self.joined

    def as_complex(self) -> ComplexExpr:
        """The element that a tensor without axes is; inside a stage."""
        return ComplexExpr(self.real.as_scalar(), self.imag.as_scalar())

    def conj(self) -> ComplexTensor:
        """See fluorite.conj."""
        from ..ops.complex_numbers import conj

        found: ComplexTensor = conj(self)
        return found

    def named(self, name: str) -> ComplexTensor:
        """The same tensor with the stages that compute its parts renamed, to NAME/real and NAME/imag in the scope that they are in."""
        return ComplexTensor(self.real.named(f"{name}/real"), self.imag.named(f"{name}/imag"))

    def assign(self, value: Any) -> None:
        """See Tensor.assign."""
        self.real.assign(value)

    def __getitem__(self, index: Any) -> Any:
        kind = ComplexExpr if in_body() else ComplexTensor
        return kind(self.real[index], self.imag[index])

    def __iter__(self) -> Iterator[Any]:
        return iter([ComplexTensor(a, b) for a, b in zip(self.real, self.imag, strict=True)])

    def __len__(self) -> int:
        return len(self.real)

    def __bool__(self) -> bool:
        raise refuse("A102", f"the truth value of {self!r}", "its value is known only when the kernel runs", "fl.where(z != 0, a, b)")

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{self.label}: {self.dtype}[{', '.join(map(str, self.shape))}]"

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        why = "its value is known only when the kernel runs"
        raise refuse("A103", f"{self.label} where NumPy needs an array", why, "fl's own functions")


class Pair(Compound):
    """Something about each part of a complex tensor that is no tensor, in nests that are built like one."""

    what = ComplexTensor.what

    def __init__(self, real: Any, imag: Any) -> None:
        self.real, self.imag = real, imag

    def parts(self) -> tuple[Any, Any]:
        return self.real, self.imag

    mapped = ComplexTensor.mapped


class _Part(View):
    """One part of numbers that lie in pairs."""


def is_interleaved(t: Tensor) -> bool:
    """Whether a tensor sees every other number of memory: one part of pairs, or a view of it."""
    while isinstance(t, View):
        if isinstance(t, _Part):
            return True
        t = t.base
    return False


def from_pair(t: Tensor) -> ComplexTensor:
    """The complex tensor whose parts lie along the last axis of 2."""

    def part(n: int, name: str) -> Tensor:
        from ..expr import as_expr

        return _Part(t, t.shape[:-1], t.axis_names[:-1], lambda i: (*i, as_expr(n)), f"{t.label}.{name}")

    return ComplexTensor(part(0, "real"), part(1, "imag"), t)


def complex_tensor(value: Any, what: str) -> ComplexTensor:
    """A complex tensor of anything that tensors are made of. Raises AlgorithmError."""
    from ..building import constant
    from ..ops.creation import zeros_like
    from ..ops.shapes import tensor

    if isinstance(value, ComplexTensor):
        return value
    if isinstance(value, list | tuple | complex):
        value = np.asarray(value)
        value = value.astype(np.complex64) if is_complex(value) else value.tolist()
    if is_complex(value):
        array = np.ascontiguousarray(value)
        return from_pair(constant(array.view(array.real.dtype).reshape(*np.shape(value), 2)))
    t = tensor(value, what)
    if t.dtype not in FLOATS:
        raise refuse("A104", f"{what} of {t.dtype} as a complex number", "its parts are floats", "fl.cast(x, fl.f32)")
    t = t if t.dtype in ("float32", "float64") else t.astype("float32")
    return ComplexTensor(t, zeros_like(t))


__all__ = ["ComplexTensor", "Pair", "complex_tensor", "from_pair", "is_interleaved", "not_for_complex"]
