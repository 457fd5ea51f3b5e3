"""Shapes, axis names and axis numbers: what every operator needs before it can write its stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numpy as np

from ..building import call_site, constant, current, placed
from ..complex import complex_tensor, is_complex
from ..complex.elements import not_for_complex
from ..complex.lifting import by_parts, holds_complex
from ..dtypes import kind, promote
from ..errors import AlgorithmError
from ..expr import Expr, as_expr, refuse
from ..extent import Dim, Extent, symbol
from ..tensor import Tensor, in_body

Shape: TypeAlias = tuple[Extent, ...]
Names: TypeAlias = tuple[str | None, ...]
AxisLike: TypeAlias = "int | str"
P = ParamSpec("P")
R = TypeVar("R")


def view(fn: Callable[P, R]) -> Callable[P, R]:
    """An operator that makes no stage. Its refusals carry the user's line. What it does to a tensor it does to both parts of a complex
    one."""

    @wraps(fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if in_body():
            raise refuse(
                "A310",
                f"fl.{fn.__name__}(...) inside a stage",
                "a stage's lambda computes one element",
                "call it before the stage and index its result",
            )
        builder = current()
        try:
            return fn(*args, **kwargs)
        except AlgorithmError as error:
            raise placed(error, call_site(), "/".join([builder.method, *builder.scopes, fn.__name__])) from None

    return by_parts(scoped=False)(call)


def shown(shape: Sequence[Extent]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def tensor(value: Any, what: str) -> Tensor:
    """A tensor from a tensor, a NumPy array or (nested) lists of numbers."""
    if isinstance(value, Tensor):
        return value
    if is_complex(value):
        raise not_for_complex(f"fl.{what}")
    if isinstance(value, np.ndarray | np.generic):
        return constant(value)
    if isinstance(value, list | tuple):
        return constant(narrow(value))
    if isinstance(value, bool | int | float):
        return constant(narrow(value))
    raise refuse("A311", f"{what}({type(value).__name__})", "an operand is a tensor, a NumPy array or a number")


def operand(value: Any, what: str) -> Any:
    """A tensor, real or complex."""
    return complex_tensor(value, what) if holds_complex(value) else tensor(value, what)


def narrow(value: Any) -> np.ndarray:
    """Python numbers as an array of the default type of their kind."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise refuse("A311", "a list of unequal rows", "an operand is a tensor, a NumPy array or a number") from None
    if array.dtype.kind == "c":
        raise not_for_complex("a list that is meant to be real")
    if array.dtype.kind not in "biuf":
        raise refuse("A311", f"a list holding {array.dtype}", "an operand is a tensor, a NumPy array or a number")
    if array.dtype.kind == "f":
        return array.astype(np.float32)
    if array.dtype.kind == "i" and np.all(np.abs(array) < 2**31):
        return array.astype(np.int32)
    return array


def axis_number(axis: AxisLike, names: Names, what: str, rank: int | None = None) -> int:
    """The position of an axis given by number (negative from the end) or by name."""
    n = len(names) if rank is None else rank
    if isinstance(axis, str):
        if axis not in names:
            raise refuse("A302", f"{what}: axis {axis!r}", f"the axes are {', '.join(str(a or '(unnamed)') for a in names) or 'none'}")
        return names.index(axis)
    if isinstance(axis, bool) or not isinstance(axis, int | np.integer):
        raise refuse("A302", f"{what}: axis {axis!r}", "an axis is an integer or an axis name")
    if not -n <= axis < n:
        legal = f"axes run from {-n} to {n - 1}" if n else "it has no axes"
        raise refuse("A302", f"{what}: axis {axis} of {n} axes", legal)
    return int(axis) % n


def axis_numbers(axes: AxisLike | Sequence[AxisLike] | None, names: Names, what: str, rank: int | None = None) -> tuple[int, ...]:
    """Sorted positions; None means all."""
    n = len(names) if rank is None else rank
    if axes is None:
        return tuple(range(n))
    given = axes if isinstance(axes, list | tuple) else (axes,)
    found = [axis_number(a, names, what, n) for a in given]
    if len(set(found)) != len(found):
        raise refuse("A302", f"{what}: axes {list(given)}", "an axis is given twice")
    return tuple(sorted(found))


def labels(names: Sequence[str | None], taken: Sequence[str] = ()) -> list[str]:
    """Names for a stage's axes: those there are; the others are called after their position."""
    used = set(taken)
    out: list[str] = []
    wanted = [n if n is not None and names.index(n) == k else None for k, n in enumerate(names)]
    used_later = {n for n in wanted if n}
    for k, name in enumerate(wanted):
        label = name if name is not None and name not in used else f"i{k}"
        while label in used or (name is None and label in used_later):
            label += "_"
        used.add(label)
        out.append(label)
    return out


def broadcast(what: str, tensors: Sequence[Any]) -> tuple[Shape, Names]:
    """The common shape by NumPy's rule, and for each axis the first name that an operand which is not stretched there gives it."""
    rank = max((t.ndim for t in tensors), default=0)
    shape: list[Extent] = [1] * rank
    names: list[str | None] = [None] * rank
    for d in range(rank):
        here = [(t.shape[d - rank + t.ndim], t.axis_names[d - rank + t.ndim]) for t in tensors if d - rank + t.ndim >= 0]
        full = [n for n, _ in here if n != 1]
        if any(n != full[0] for n in full):
            raise refuse(
                "A301",
                f"{what} of {' and '.join(shown(t.shape) for t in tensors)}",
                f"dimension {d - rank} is {' and '.join(dict.fromkeys(map(str, full)))}; broadcasting needs equal extents, or 1",
                "fl.reshape or fl.expand_dims to line the axes up",
            )
        shape[d] = full[0] if full else 1
        names[d] = next((name for n, name in here if name is not None and n == shape[d]), None)
    return tuple(shape), tuple(names)


def broadcast_shapes(*shapes: Sequence[Extent]) -> Shape:
    """The common shape of tensors of these shapes, by NumPy's rule; extents are integers or symbolic. Raises AlgorithmError."""
    return broadcast("broadcast_shapes", [Tensor(s, "bool", (None,) * len(s), "") for s in shapes])[0]


def element(t: Any, index: Sequence[Expr], shape: Sequence[Extent]) -> Any:
    """t (real or complex) at the index of a shape that it is broadcast to; inside a stage."""
    if t.ndim == 0:
        return t.as_scalar() if isinstance(t, Tensor) else t.as_complex()
    skip = len(shape) - t.ndim
    return t[tuple(as_expr(0) if n == 1 and shape[skip + d] != 1 else index[skip + d] for d, n in enumerate(t.shape))]


def dimensions(shape: Any, what: str) -> tuple[Names, Shape]:
    """Names and extents of a shape written as integers, symbolic extents and names."""
    given = shape if isinstance(shape, list | tuple) else (shape,)
    names: list[str | None] = []
    extents: list[Extent] = []
    for n in given:
        if isinstance(n, str) and n.isidentifier():
            names.append(n)
            extents.append(symbol(n))
        elif isinstance(n, Dim):
            names.append(str(n) if n.is_atom and str(n).isidentifier() else None)
            extents.append(n)
        elif isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 0:
            names.append(None)
            extents.append(int(n))
        else:
            raise refuse("A304", f"{what}: dimension {n!r}", "a dimension is a non-negative integer, a symbolic extent or its name")
    return tuple(names), tuple(extents)


def weak_like(value: Any, dtype: str) -> np.ndarray:
    """A list of Python numbers in the type of the tensor that it meets, as a Python number would take it."""
    array = narrow(value)
    joined = promote(dtype, False, array.dtype.name, True)
    if joined is None:
        raise refuse("A104", f"a list of {kind(array.dtype.name)}s with {dtype}", "these two have no common type", "fl.cast the tensor")
    return array.astype(joined[0])
