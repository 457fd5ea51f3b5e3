"""Hypothesis strategies: small random stages over random inputs, written as a user would write them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from fluorite.algo.dtypes import DTYPES, NARROW, kind
from fluorite.algo.expr import COMPARISON, Axis, Expr, as_expr, binary, cast, unary, where
from fluorite.algo.graph import Graph
from fluorite.algo.program import trace
from fluorite.algo.reducing import reduce_axes
from fluorite.algo.tensor import Bounded, Tensor
from fluorite.algo.trace import build_stage
from fluorite.algo.types import Spec
from hypothesis import strategies as st


class Call(NamedTuple):
    """A graph of one stage, with its reductions, and the arrays to call it with."""

    graph: Graph
    inputs: tuple[np.ndarray[Any, Any], ...]

    def __repr__(self) -> str:
        return "\n".join([self.graph.text(), *(f"{a.dtype} {a.tolist()}" for a in self.inputs)])


EXTENTS = st.sampled_from([3, 5, 7, 2, 1])
OPERATIONS = {
    "bool": (("and", "or", "xor", "min", "max"), ("not", "abs", "sign")),
    "int": (
        ("add", "sub", "mul", "floordiv", "mod", "min", "max", "and", "or", "xor", "shl", "shr"),
        ("neg", "not", "abs", "sign", "floor", "round"),
    ),
    "float": (("add", "sub", "mul", "div", "min", "max"), ("neg", "abs", "sign", "floor", "ceil", "round", "trunc")),
}
REDUCTIONS = {
    "bool": ("any", "all", "sum", "max", "argmax"),
    "int": ("sum", "prod", "max", "min", "argmax", "argmin", "any"),
    "float": ("sum", "prod", "max", "min", "argmax", "argmin"),
}

WIDE = tuple(d for d in DTYPES if d not in NARROW)
"""Narrow floats have tests of their own, with every one of their values."""


def arrays(draw: Any, shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    """Values with ties, extremes and, for floats, NaN and infinity now and then."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if kind(dtype) == "float":
        out = np.round(rng.standard_normal(shape) * 4, 1).astype(dtype)
        if draw(st.integers(0, 4)) == 0 and out.size:
            out.flat[int(rng.integers(out.size))] = draw(st.sampled_from([np.nan, np.inf, -np.inf, -0.0, 3e9, -1e20]))
        return out
    info = np.iinfo(dtype)
    small = rng.integers(max(info.min, -9), 10, shape).astype(dtype)
    return np.where(rng.random(shape) < 0.1, rng.integers(info.min, info.max, shape, dtype, endpoint=True), small).astype(dtype)


class _Body:
    """Draws an expression over axes and tensors."""

    def __init__(self, draw: Any, tensors: list[Tensor], axes: tuple[Axis, ...]) -> None:
        self.draw, self.tensors, self.axes = draw, tensors, axes

    def index(self, n: Any, data: bool) -> Expr:
        """An index for a dimension of extent n that is read through a boundary view."""
        pick, total = self.draw, as_expr(self.draw(st.integers(-3, 3)))
        for a in pick(st.lists(st.sampled_from(self.axes), max_size=2)) if self.axes else ():
            total = total + a * pick(st.sampled_from([-2, -1, 1, 1, 1, 2]))
        match pick(st.integers(0, 6 if data else 4)):
            case 0:
                return total // pick(st.sampled_from([2, 3, -2]))
            case 1:
                return total % pick(st.integers(1, 5))
            case 5:
                return (
                    total + cast(self.value(1, pick(st.sampled_from(["int32", "uint8", "int64", "uint64"])), False), "int64")
                    if pick(st.booleans())
                    else self.value(1, "int32", False)
                )
            case 6 if self.axes:
                return pick(st.sampled_from(self.axes)) + 0
        return total

    def read(self, dtype: str, data: bool) -> Expr:
        tensor = self.draw(st.sampled_from(self.tensors))
        view = Bounded(tensor, self.draw(st.sampled_from(["edge", "reflect", "wrap", "constant"])), _fill(tensor.dtype))
        return cast(view[tuple(self.index(n, data) for n in tensor.shape)] if tensor.shape else tensor.as_scalar(), dtype)

    def guarded(self, dtype: str) -> Expr:
        """A read without a boundary view, under the condition that makes it legal."""
        tensor = self.draw(st.sampled_from(self.tensors))
        if not tensor.shape:
            return cast(tensor.as_scalar(), dtype)
        index = [self.index(n, False) for n in tensor.shape]
        inside = as_expr(True)
        for i, n in zip(index, tensor.shape, strict=True):
            inside = inside & (as_expr(0) <= i) & (i < as_expr(n))
        return where(inside, cast(tensor[tuple(index)], dtype), cast(self.draw(st.integers(0, 3)), dtype))

    def value(self, depth: int, dtype: str, data: bool = True) -> Expr:
        pick = self.draw
        choice = pick(st.integers(0, 9)) if depth else pick(st.sampled_from([3, 2, 0, 1]))
        two, one = OPERATIONS[kind(dtype)]
        match choice:
            case 0 if self.axes and not depth:
                return cast(pick(st.sampled_from(self.axes)) + 0, dtype)
            case 1 if not depth:
                return cast(pick(st.integers(-3, 9)), dtype)
            case 2:
                return self.guarded(dtype)
            case 4:
                return unary(pick(st.sampled_from(one)), self.value(depth - 1, dtype, data))
            case 5:
                return where(self.condition(depth - 1, data), self.value(depth - 1, dtype, data), self.value(depth - 1, dtype, data))
            case 6:
                return cast(self.value(depth - 1, pick(st.sampled_from(WIDE)), data), dtype)
            case 0 | 1 | 7 | 8 | 9 if depth:
                return binary(pick(st.sampled_from(two)), self.value(depth - 1, dtype, data), self.value(depth - 1, dtype, data))
        return self.read(dtype, data)

    def condition(self, depth: int, data: bool) -> Expr:
        dtype = self.draw(st.sampled_from(WIDE))
        return binary(self.draw(st.sampled_from(COMPARISON)), self.value(depth, dtype, data), self.value(depth, dtype, data))


def _fill(dtype: str) -> bool | int | float:
    return {"bool": True, "int": 3, "float": 0.5}[kind(dtype)]


@st.composite
def random_call(draw: Any, dtypes: tuple[str, ...] = WIDE, product: bool = False) -> Call:
    """A call of a stage that a user could have written."""
    specs: dict[str, Spec] = {}
    given: list[np.ndarray[Any, Any]] = []
    for name in draw(st.sampled_from([["x"], ["x", "z"]])):
        shape = tuple(draw(st.lists(EXTENTS, min_size=draw(st.sampled_from([1, 2, 1, 0])), max_size=3)))
        dtype = draw(st.sampled_from(dtypes))
        symbolic = draw(st.booleans())
        specs[name] = Spec(dtype, (None,) * len(shape), shape) if not symbolic else _symbolic(name, dtype, shape)
        given.append(arrays(draw, shape, dtype))
    names = draw(st.sampled_from([("i", "j"), ("i",), ("i", "j", "l"), ()]))
    extents = {n: draw(st.sampled_from([3, 5, 2, 1, 4, 0])) for n in names}
    inner = draw(st.sampled_from([(), ("k",), ("k", "m")])) if not product else draw(st.sampled_from([("k",), ("k", "m")]))
    over = {n: draw(st.sampled_from([1, 2, 3, 4])) for n in inner}
    dtype = draw(st.sampled_from(dtypes))
    which = "sum" if product else draw(st.sampled_from(REDUCTIONS[kind(dtype)]))

    def model(inputs: list[Tensor]) -> Tensor:
        def body(*axes: Axis) -> Expr:
            if not inner:
                return _Body(draw, inputs, axes).value(3, dtype)

            def term(*more: Axis) -> Expr:
                drawn = _Body(draw, inputs, (*axes, *more))
                return drawn.value(1, dtype) * drawn.value(1, dtype) if product else drawn.value(2, dtype)

            return reduce_axes(which, inner, term, over)

        return build_stage(names, body, name="out", extents=extents)

    one, two = (lambda x: model([x])), (lambda x, z: model([x, z]))
    return Call(trace(one if len(specs) == 1 else two, inputs=specs), tuple(given))


def _symbolic(name: str, dtype: str, shape: tuple[int, ...]) -> Spec:
    from fluorite.algo.extent import symbol

    labels = [f"{name}{d}" for d in range(len(shape))]
    return Spec(dtype, tuple(labels), tuple(symbol(label) for label in labels))
