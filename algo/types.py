"""Declarations of inputs: ``fl.f32[fl.Tensor, "n", 13]`` in an annotation, ``fl.f32("n", 13)`` as a value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .counts import extent
from .dtypes import COMPLEX
from .expr import refuse
from .extent import Extent, symbol
from .ragged import Ragged, ragged_dimensions


def declared(dtype: str, shape: Sequence[Extent], ragged: bool = False) -> str:
    """float32[h, w]; a ragged dimension has a star."""
    return f"{dtype}[{', '.join(f'{n}*' if ragged and d == 1 else str(n) for d, n in enumerate(shape))}]"


@dataclass(frozen=True)
class Spec:
    """An input's dtype, axis names and extents; of a ragged one, those of its padded tensor. `counts`: a call gives the number that the
    first extent is, and there are no elements."""

    dtype: str
    axis_names: tuple[str | None, ...]
    shape: tuple[Extent, ...]
    ragged: bool = False
    counts: bool = False

    def __str__(self) -> str:
        return "extent" if self.counts else declared(self.dtype, self.shape, self.ragged)


@dataclass(frozen=True)
class DType:
    """An element type. Call or index it with dimensions to declare a tensor; use it bare as a dtype."""

    dtype_name: str

    def __call__(self, *dims: Any) -> Spec:
        if dims and dims[0] is Ragged and self.dtype_name in COMPLEX:
            instead = "two of them, for the parts: fl.complex(a.padded, b.padded)"
            raise refuse("A116", f"{self!r} of fl.Ragged", "ragged inputs are real", instead)
        if dims and dims[0] is Ragged:
            return replace(self(*ragged_dimensions(dims[1:])), ragged=True)
        names, shape = zip(*map(_dimension, dims), strict=True) if dims else ((), ())
        return Spec(self.dtype_name, tuple(names), tuple(shape))

    def __getitem__(self, parts: Any) -> Spec:
        container, *dims = parts if isinstance(parts, tuple) else (parts,)
        if isinstance(container, str | int):
            dims_given = ", ".join(map(repr, (container, *dims)))
            why = "the first word in the brackets is the container, and the dimensions follow it"
            raise refuse("A116", f"{self!r}[{dims_given}]", why, f"{self!r}[fl.Tensor, {dims_given}]")
        return self(Ragged, *dims) if container is Ragged else self(*dims)

    def __repr__(self) -> str:
        return f"fl.{SHORT[self.dtype_name]}"


def _dimension(dim: str | int) -> tuple[str | None, Extent]:
    if isinstance(dim, int) and not isinstance(dim, bool):
        if dim < 0:
            raise refuse("A116", f"dimension {dim}", "an extent is not negative")
        return None, dim
    match = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*(?:=\s*([A-Za-z_]\w*|\d+)\s*)?", dim) if isinstance(dim, str) else None
    if match is None:
        raise refuse("A116", f"dimension {dim!r}", "a dimension is an integer, a name, or name=size", '"n"', "13", '"features=13"')
    name, size = match.groups()
    if size is None:
        return name, symbol(name)
    return name, int(size) if size.isdigit() else symbol(size)


SHORT = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2",
    "float32": "f32",
    "float64": "f64",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "bool": "boolean",
    "complex64": "c64",
    "complex128": "c128",
}

f32, f64 = DType("float32"), DType("float64")
f16, bf16 = DType("float16"), DType("bfloat16")
f8e4m3, f8e5m2 = DType("float8_e4m3fn"), DType("float8_e5m2")
i8, i16, i32, i64 = DType("int8"), DType("int16"), DType("int32"), DType("int64")
u8, u16, u32, u64 = DType("uint8"), DType("uint16"), DType("uint32"), DType("uint64")
boolean = DType("bool")
c64, c128 = DType("complex64"), DType("complex128")


def spec(value: Any, name: str = "") -> Spec | None:
    """The Spec in the annotation of an input of this name, if it is one."""
    if isinstance(value, Spec):
        return value
    if value is extent:
        return Spec("bool", (name, None), (symbol(name), 0), counts=True)
    if isinstance(value, DType):
        return Spec(value.dtype_name, (), ())
    return next((m for m in getattr(value, "__metadata__", ()) if isinstance(m, Spec)), None)


def named_dims(dims: Sequence[str | int]) -> tuple[tuple[str | None, ...], tuple[Extent, ...]]:
    pairs = [_dimension(d) for d in dims]
    return tuple(n for n, _ in pairs), tuple(e for _, e in pairs)
