"""Every operator beside its NumPy counterpart, with the operands and options that it is tried on.

A case draws its shapes and options from a `Chooser`, so that hypothesis explores them and a compiled test can take a few for good.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import fluorite as fl
import numpy as np

Shape = tuple[int, ...]
Array = np.ndarray[Any, Any]
EXTENTS = (0, 1, 2, 3, 5, 7)
NAMES = "xyzwuv"
FLOATS = ("float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = (*FLOATS, *INTEGERS)
ALL = (*NUMBERS, "bool")
SIGNED = (*FLOATS, "int8", "int16", "int32", "int64")


class Chooser(Protocol):
    """Where choices come from."""

    def of(self, options: Sequence[Any]) -> Any: ...
    def number(self, low: int, high: int) -> int: ...


@dataclass
class Seeded:
    """Choices of one seed."""

    generator: random.Random
    nonempty: bool = True

    def of(self, options: Sequence[Any]) -> Any:
        return self.generator.choice([o for o in options if o != 0 or not self.nonempty or isinstance(o, bool)] or options)

    def number(self, low: int, high: int) -> int:
        return self.generator.randint(low, high)


@dataclass(frozen=True)
class Case:
    """`call` in the language and `oracle` in NumPy take the same operands and options.

    The oracle computes float32 in float64 unless it is `native`; its result is rounded to the type that the language gives.
    """

    name: str
    call: Callable[..., Any]
    oracle: Callable[..., Any]
    shapes: Callable[[Chooser], tuple[Shape, ...]]
    options: Callable[[Chooser, tuple[Shape, ...]], dict[str, Any]] = lambda _, __: {}
    dtypes: tuple[str, ...] = NUMBERS
    values: str = "any"
    native: bool = False


def algorithm(case: Case, count: int, options: dict[str, Any]) -> Callable[..., Any]:
    """The case as a function of `count` inputs x, y, ..., which fl.trace takes."""

    def applied(**operands: Any) -> Any:
        return case.call(*operands.values(), **options)

    parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in NAMES[:count]]
    applied.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return applied


def wanted(case: Case, arrays: Sequence[Array], options: dict[str, Any], dtype: str) -> Array:
    """What NumPy says, in the type of the result."""
    given = arrays if case.native else [a.astype(np.float64) if a.dtype == np.float32 else a for a in arrays]
    with np.errstate(all="ignore"):
        found = np.asarray(case.oracle(*given, **options))
        return found if found.dtype == dtype else np.asarray(found).astype(dtype)


# ---------------------------------------------------------------- operands
def shape(c: Chooser, least: int = 0, most: int = 5, extents: Sequence[int] = EXTENTS) -> Shape:
    rank = c.number(least, most)
    return tuple(c.of(extents if rank < 4 else [n for n in extents if n < 4]) for _ in range(rank))


def one(c: Chooser, least: int = 0, most: int = 5) -> tuple[Shape, ...]:
    return (shape(c, least, most),)


def vector(c: Chooser) -> tuple[Shape, ...]:
    return one(c, 1, 1)


def filled(c: Chooser, least: int = 1, most: int = 5) -> tuple[Shape, ...]:
    """No extent of 0."""
    return (shape(c, least, most, EXTENTS[1:]),)


def spread(count: int, least: int = 0) -> Callable[[Chooser], tuple[Shape, ...]]:
    """Shapes that broadcast: of each some axes in front are left out, and some are 1."""

    def drawn(c: Chooser) -> tuple[Shape, ...]:
        whole = shape(c, least)
        parts = []
        for k in range(count):
            cut = c.number(0, len(whole) - least) if k else 0
            parts.append(tuple(1 if c.number(0, 3) == 0 else n for n in whole[cut:]))
        return tuple(parts)

    return drawn


def values(dtype: str, shape: Shape, domain: str, seed: int) -> Array:
    """Operands of a type: for floats with infinities, NaN and zeros of both signs among them where the domain is "any"."""
    g = np.random.default_rng(seed)
    if dtype == "bool":
        return g.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        wide = g.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        near = g.integers(0 if dtype.startswith("u") else -5, 6, shape).astype(dtype)
        few = np.where(g.random(shape) < 0.3, wide, near)
        return {"positive": np.abs(near) + 1, "small": near, "unit": near // 5, "bits": np.abs(near)}.get(domain, few).astype(dtype)
    x = g.standard_normal(shape) * 10.0 ** g.integers(-2, 2, shape)
    special = g.choice([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 1e30, 1e-30], shape)
    match domain:
        case "any":
            x = np.where(g.random(shape) < 0.15, special, x)
        case "positive":
            x = np.abs(x) + 0.01
        case "unit":
            x = np.tanh(x)
        case "small":
            x = np.clip(x, -3, 3)
    return x.astype(dtype)


# ---------------------------------------------------------------- element by element
def _erf(x: Any) -> Any:
    from scipy import special

    return special.erf(x)


def _sigmoid(x: Any) -> Any:
    return np.exp(-np.logaddexp(0, -np.asarray(x, np.float64)))  # 1 / (1 + exp(-x)) that does not overflow


def _real(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A real function in float64, where NumPy would take small integers as float16."""
    return lambda *x: fn(*(np.asarray(a, np.float64) for a in x))


UNARY: dict[str, tuple[Callable[..., Any], tuple[str, ...], str]] = {
    **{n: (getattr(np, n), FLOATS, "any") for n in ("floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite", "sqrt", "tanh")},
    **{n: (_real(getattr(np, n)), NUMBERS, "small") for n in ("exp", "exp2", "expm1", "sin", "cos", "sinh", "cosh")},
    **{n: (_real(getattr(np, n)), NUMBERS, "positive") for n in ("log", "log2", "log10", "log1p")},
    **{n: (_real(getattr(np, n)), NUMBERS, "unit") for n in ("asin", "acos", "atan", "tan")},
    "asinh": (_real(np.arcsinh), NUMBERS, "any"),
    "square": (np.square, NUMBERS, "small"),
    "atanh": (np.arctanh, FLOATS, "unit"),
    "acosh": (_real(np.arccosh), NUMBERS, "positive"),
    "abs": (np.abs, NUMBERS, "any"),
    "negative": (lambda x: -x, NUMBERS, "any"),
    "positive": (lambda x: +x, NUMBERS, "any"),
    "sign": (np.sign, NUMBERS, "any"),
    "reciprocal": (_real(lambda x: 1 / x), NUMBERS, "positive"),
    "rsqrt": (_real(lambda x: 1 / np.sqrt(x)), NUMBERS, "positive"),
    "sigmoid": (_sigmoid, NUMBERS, "small"),
    "erf": (_erf, NUMBERS, "small"),
    "invert": (np.invert, (*INTEGERS, "bool"), "any"),
    "logical_not": (np.logical_not, ALL, "any"),
}
UNARY_NATIVE = {"signbit": np.signbit}
BINARY: dict[str, tuple[Callable[..., Any], tuple[str, ...], str]] = {
    **{n: (getattr(np, n), NUMBERS, "any") for n in ("add", "subtract", "multiply", "maximum", "minimum")},
    **{n: (getattr(np, n), ALL, "any") for n in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")},
    **{n: (getattr(np, n), ALL, "any") for n in ("logical_and", "logical_or", "logical_xor")},
    **{n: (getattr(np, n), (*INTEGERS, "bool"), "any") for n in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    **{n: (getattr(np, n), INTEGERS, "bits") for n in ("left_shift", "right_shift")},
    "divide": (_real(np.divide), NUMBERS, "positive"),
    "floor_divide": (np.floor_divide, INTEGERS, "positive"),
    "mod": (np.mod, NUMBERS, "positive"),
    "atan2": (np.arctan2, FLOATS, "small"),
    "hypot": (_real(np.hypot), NUMBERS, "any"),
    "logaddexp": (_real(np.logaddexp), NUMBERS, "small"),
    "pow": (np.power, FLOATS, "positive"),
}
BINARY_NATIVE = {"copysign": np.copysign, "nextafter": np.nextafter}


def _elementwise() -> list[Case]:
    cases = [Case(n, getattr(fl, n), fn, one, dtypes=dtypes, values=domain) for n, (fn, dtypes, domain) in UNARY.items()]
    cases += [Case(n, getattr(fl, n), fn, spread(2), dtypes=dtypes, values=domain) for n, (fn, dtypes, domain) in BINARY.items()]
    cases += [Case(n, getattr(fl, n), fn, one, dtypes=FLOATS, native=True) for n, fn in UNARY_NATIVE.items()]
    cases += [Case(n, getattr(fl, n), fn, spread(2), dtypes=FLOATS, native=True) for n, fn in BINARY_NATIVE.items()]
    cases += [
        Case("clamp", lambda x: fl.clamp(x, 1, 3), lambda x: np.clip(x, 1, 3), one),
        Case("where", lambda x, y: fl.where(x > y, x, y), lambda x, y: np.where(x > y, x, y), spread(2)),
    ]
    return cases


# ---------------------------------------------------------------- over axes
def _axes(c: Chooser, shapes: tuple[Shape, ...]) -> dict[str, Any]:
    """None, one axis or several, from either end."""
    rank = len(shapes[0])
    if not rank or c.number(0, 3) == 0:
        return {"axis": None, "keepdims": c.of((False, True))}
    chosen = [d for d in range(rank) if c.number(0, 1)] or [c.number(0, rank - 1)]
    signed = [d - rank if c.number(0, 1) else d for d in chosen]
    return {"axis": signed[0] if len(signed) == 1 else tuple(signed), "keepdims": c.of((False, True))}


def _axis(c: Chooser, shapes: tuple[Shape, ...]) -> dict[str, Any]:
    rank = len(shapes[0])
    return {"axis": c.number(-rank, rank - 1)}


def _summed(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Of nothing, and over no axes, as NumPy."""
    return lambda x, axis, keepdims: fn(x, axis=axis, keepdims=keepdims)


def _norm(x: Any, axis: Any, keepdims: bool, ord: float) -> Any:
    y = np.abs(np.asarray(x, np.float64))
    match ord:
        case np.inf:
            return y.max(axis=axis, keepdims=keepdims)
        case 0:
            return (y != 0).sum(axis=axis, keepdims=keepdims)
    return (y**ord).sum(axis=axis, keepdims=keepdims) ** (1 / ord)


def _reductions() -> list[Case]:
    any_ = {n: getattr(np, n) for n in ("sum", "prod", "any", "all")}
    some = {"max": np.max, "min": np.min}
    cases = [
        Case(n, getattr(fl, n), _summed(fn), lambda c: one(c), _axes, dtypes=ALL if n in ("any", "all") else NUMBERS, values="small")
        for n, fn in any_.items()
    ]
    cases += [Case(n, getattr(fl, n), _summed(fn), lambda c: filled(c, 0), _axes) for n, fn in some.items()]
    cases += [
        Case(n, getattr(fl, n), getattr(np, n), lambda c: filled(c, 1), _axis, dtypes=NUMBERS, native=True) for n in ("argmax", "argmin")
    ]
    cases += [
        Case("count_nonzero", fl.count_nonzero, lambda x, axis, keepdims: np.count_nonzero(x, axis, keepdims=keepdims), one, _axes, ALL),
        Case(
            "mean", fl.mean, _summed(lambda x, **k: np.mean(np.asarray(x, np.float64), **k)), lambda c: filled(c, 0), _axes, values="small"
        ),
    ]
    for n, fn in (("var", np.var), ("std", np.std)):

        def options(c: Chooser, s: tuple[Shape, ...]) -> dict[str, Any]:
            over = _axes(c, s)
            return {**over, "correction": c.of((0, 1)) if over["axis"] is None and np.prod(s[0]) > 1 else 0}

        def oracle(x: Any, axis: Any, keepdims: bool, correction: int, fn: Callable[..., Any] = fn) -> Any:
            return fn(np.asarray(x, np.float64), axis=axis, keepdims=keepdims, ddof=correction)

        cases.append(Case(n, getattr(fl, n), oracle, lambda c: filled(c, 0), options, dtypes=NUMBERS, values="small"))
    cases.append(
        Case(
            "vector_norm",
            fl.vector_norm,
            _norm,
            lambda c: filled(c, 0),
            lambda c, s: {**_axes(c, s), "ord": c.of((1, 2, 3, np.inf, 0))},
            FLOATS,
            "small",
        )
    )
    return cases


# ---------------------------------------------------------------- shapes and places
def _basic(c: Chooser, shapes: tuple[Shape, ...]) -> dict[str, Any]:
    """An index: integers, slices with steps of either sign, None, an ellipsis, perhaps one array of integers."""
    parts: list[Any] = []
    left = list(shapes[0])
    dots, arrays = False, 0
    for n in left:
        if c.number(0, 5) == 0:
            parts.append(None)
        kind = c.number(0, 5)
        if kind == 0 and n and not arrays:
            parts.append(c.number(-n, n - 1))
        elif kind == 1 and n and not arrays and not any(isinstance(p, int) for p in parts):
            parts.append([c.number(-n, n - 1) for _ in range(c.number(1, 3))])
            arrays = 1
        elif kind == 2:
            parts.append(slice(None))
        else:
            ends = [None if c.number(0, 2) == 0 else c.number(-n - 2, n + 2) for _ in range(2)]
            parts.append(slice(*ends, c.of((None, 1, 2, 3, -1, -2, -3))))
    if parts and not arrays and c.number(0, 2) == 0:
        k = c.number(0, len(parts))
        dots = True
        parts = [*parts[:k], Ellipsis, *[p for p in parts[k:] if p is None]] if c.number(0, 1) else [*parts[:k], Ellipsis, *parts[k:]]
    if dots and c.number(0, 3) == 0:
        parts.append(None)
    return {"index": tuple(parts)}


def _permutation(c: Chooser, shapes: tuple[Shape, ...]) -> dict[str, Any]:
    rest = list(range(len(shapes[0])))
    order = []
    while rest:
        d = rest.pop(c.number(0, len(rest) - 1))
        order.append(d - len(shapes[0]) if c.number(0, 1) else d)
    return {"axes": order}


def _stacked(c: Chooser) -> tuple[Shape, ...]:
    return (shape(c, 1, 4),) * 3


def _matrices(c: Chooser) -> tuple[Shape, ...]:
    return one(c, 2, 4)


def _pad(c: Chooser, s: tuple[Shape, ...]) -> dict[str, Any]:
    return {"width": [(c.number(0, 3), c.number(0, 3)) for _ in s[0]], "mode": c.of(("constant", "edge", "wrap", "reflect"))}


def _moved() -> list[Case]:
    def roll(c: Chooser, s: tuple[Shape, ...]) -> dict[str, Any]:
        rank = len(s[0])
        if c.number(0, 2) == 0:
            return {"shift": c.number(-8, 8), "axis": None}
        axes = [c.number(-rank, rank - 1) for _ in range(c.number(1, rank))]
        return {"shift": [c.number(-8, 8) for _ in axes], "axis": axes}

    def counts(c: Chooser, s: tuple[Shape, ...]) -> dict[str, Any]:
        d = c.number(-len(s[0]), len(s[0]) - 1)
        return {"times": c.of((2, 3, 0, [c.number(0, 3) for _ in range(s[0][d])])) if s[0][d] != 1 else 2, "axis": d}

    def cut(x: Any, axis: int) -> Any:
        return np.concatenate([part * np.asarray(k + 1, x.dtype) for k, part in enumerate(np.split(x, [1, 2], axis))], axis)

    return [
        Case("getitem", lambda x, index: x[index], lambda x, index: x[index], one, _basic, ALL),
        Case("transpose", fl.transpose, lambda x, axes: np.transpose(x, axes), one, _permutation, ALL),
        Case("matrix_transpose", fl.matrix_transpose, lambda x: np.swapaxes(x, -1, -2), _matrices),
        Case("flip", lambda x, axis, keepdims: fl.flip(x, axis), lambda x, axis, keepdims: np.flip(x, axis), one, _axes),
        Case("roll", fl.roll, lambda x, shift, axis: np.roll(x, shift, None if axis is None else tuple(axis)), lambda c: one(c, 1), roll),
        Case(
            "tile", fl.tile, lambda x, reps: np.tile(x, reps), one, lambda c, s: {"reps": [c.number(0, 3) for _ in range(c.number(1, 3))]}
        ),
        Case("repeat", fl.repeat, lambda x, times, axis: np.repeat(x, times, axis), lambda c: one(c, 1), counts),
        Case(
            "diff",
            fl.diff,
            lambda x, axis, n: np.diff(x, n, axis),
            lambda c: one(c, 1),
            lambda c, s: {**_axis(c, s), "n": c.number(0, 3)},
            (*FLOATS, "int32", "uint8", "bool"),
            "small",
        ),
        Case(
            "concatenate",
            lambda x, y, z, axis: fl.concatenate([x, y, z], axis),
            lambda x, y, z, axis: np.concatenate([x, y, z], axis),
            _stacked,
            lambda c, s: {"axis": c.of((None, c.number(-len(s[0]), len(s[0]) - 1)))},
        ),
        Case("stack", lambda x, y, z, axis: fl.stack([x, y, z], axis), lambda x, y, z, axis: np.stack([x, y, z], axis), _stacked, _axis),
        Case(
            "split",
            lambda x, axis: fl.concatenate([p * (k + 1) for k, p in enumerate(fl.split(x, [1, 2], axis))], axis),
            cut,
            lambda c: ((*shape(c, 0, 2), 3),),
            lambda c, s: {"axis": -1},
            values="small",
        ),
        Case(
            "unstack",
            lambda x, axis: fl.stack(fl.unstack(x, axis)[::-1]),
            lambda x, axis: np.moveaxis(x, axis, 0)[::-1],
            lambda c: filled(c, 1, 3),
            _axis,
        ),
        Case(
            "pad",
            lambda x, width, mode: fl.pad(x, width, mode),
            lambda x, width, mode: np.pad(x, width, mode),
            lambda c: filled(c, 1, 4),
            _pad,
        ),
        Case("moveaxis", fl.moveaxis, np.moveaxis, lambda c: one(c, 2), lambda c, s: {"source": [0, -1], "destination": [-1, 0]}),
        Case(
            "swapaxes",
            fl.swapaxes,
            lambda x, first, second: np.swapaxes(x, first, second),
            lambda c: one(c, 2),
            lambda c, s: {"first": 0, "second": -1},
        ),
        Case(
            "expand_dims",
            fl.expand_dims,
            lambda x, axis: np.expand_dims(x, tuple(axis)),
            one,
            lambda c, s: {"axis": [0, -1] if c.number(0, 1) else [c.number(0, len(s[0]))]},
        ),
        Case("squeeze", fl.squeeze, np.squeeze, one),
        Case("flatten", fl.flatten, np.ravel, one),
        Case("reshape", lambda x: fl.reshape(x, (*x.shape[::-1],)), lambda x: np.reshape(x, x.shape[::-1]), one),
        Case("broadcast_to", lambda x: fl.broadcast_to(x, (3, *x.shape)), lambda x: np.broadcast_to(x, (3, *x.shape)), one),
        Case(
            "broadcast_arrays",
            lambda x, y: fl.stack(fl.broadcast_arrays(x, y)),
            lambda x, y: np.stack(np.broadcast_arrays(x, y)),
            spread(2),
        ),
        Case("tril", fl.tril, lambda x, k: np.tril(x, k), _matrices, lambda c, s: {"k": c.number(-4, 4)}),
        Case("triu", fl.triu, lambda x, k: np.triu(x, k), _matrices, lambda c, s: {"k": c.number(-4, 4)}),
        Case(
            "diagonal", fl.diagonal, lambda x, offset: np.diagonal(x, offset, -2, -1), _matrices, lambda c, s: {"offset": c.number(-6, 6)}
        ),
        Case("diag", fl.diag, lambda x, k: np.diag(x, k), lambda c: one(c, 1, 2), lambda c, s: {"k": c.number(-4, 4)}),
        Case(
            "meshgrid",
            lambda x, y, indexing: fl.stack(fl.meshgrid(x, y, indexing=indexing)),
            lambda x, y, indexing: np.stack(np.meshgrid(x, y, indexing=indexing)),
            lambda c: (*vector(c), *vector(c)),
            lambda c, s: {"indexing": c.of(("xy", "ij"))},
        ),
        Case(
            "take",
            lambda x, axis: fl.take(x, [[0, 0], [0, 0]], axis),
            lambda x, axis: np.take(x, [[0, 0], [0, 0]], axis),
            lambda c: filled(c, 1, 3),
            _axis,
        ),
    ]


# ---------------------------------------------------------------- products
EINSUMS: dict[str, tuple[Shape, ...]] = {
    "ij,jk->ik": ((3, 5), (5, 2)), "ij,jk": ((2, 7), (7, 3)), "ji": ((2, 3),), "ii->i": ((5, 5),), "ii": ((3, 3),), "ij->": ((3, 5),),
    "iij->ji": ((3, 3, 2),), "ij,jk,kl->il": ((2, 3), (3, 5), (5, 2)), "...ij,...jk->...ik": ((2, 1, 3, 4), (3, 4, 2)),
    "i,j->ij": ((3,), (0,)),
    "ij,j->i": ((3, 5), (5,)), "i...->...": ((3, 2, 5),), "ij,kj->ik": ((3, 5), (2, 1)), "i,i,i->i": ((5,), (5,), (5,)), ",->": ((), ()),
    "b...,...->b...": ((2, 3, 4), (3, 4)), "...i,...i": ((2, 3), (3,)), "Ab,bA->": ((2, 3), (3, 2)), "i,j,k,l->": ((2,), (3,), (4,), (5,)),
    "ijk,ilm,njm,nlk->": ((2, 3, 4), (2, 5, 3), (4, 3, 3), (4, 5, 4)),
}  # fmt: skip


def _widest(a: Array) -> Array:
    """More digits than the operands: NumPy multiplies out what the language sums first, and loses more of them."""
    return a.astype(np.longdouble) if a.dtype == np.float64 else a


def _products() -> list[Case]:
    def pair(c: Chooser) -> tuple[Shape, ...]:
        n, k, m = c.of(EXTENTS), c.of(EXTENTS), c.of(EXTENTS)
        lead = [shape(c, 0, 1, (2,)), shape(c, 0, 2, (1,))]
        return c.of([((*lead[0], n, k), (*lead[1], k, m)), ((k,), (*lead[0], k, m)), ((*lead[0], n, k), (k,)), ((k,), (k,))])

    def same_vectors(c: Chooser) -> tuple[Shape, ...]:
        return (shape(c, 1, 3),) * 2

    def contracted(c: Chooser) -> tuple[Shape, ...]:
        a, b, k, m = (c.of(EXTENTS) for _ in range(4))
        return (a, k, m), (m, b, k)

    wide = ("float32", "float64", "int32", "int64", "uint32")
    cases = [
        Case("matmul", fl.matmul, np.matmul, pair, dtypes=wide, values="small"),
        Case("vecdot", fl.vecdot, lambda x, y, axis: (x * y).sum(axis), same_vectors, _axis, wide, "small"),
        Case(
            "tensordot",
            lambda x, y: fl.tensordot(x, y, ([1, 2], [-1, 0])),
            lambda x, y: np.tensordot(x, y, ([1, 2], [2, 0])),
            contracted,
            dtypes=wide,
            values="small",
        ),
        Case("outer", fl.outer, np.outer, lambda c: (*vector(c), *vector(c)), dtypes=wide, values="small"),
        Case("dot", fl.dot, np.dot, lambda c: vector(c) * 2, dtypes=wide, values="small"),
        Case("kron", fl.kron, np.kron, lambda c: (*filled(c, 1, 3), *filled(c, 1, 2)), dtypes=wide, values="small"),
        Case("cross", fl.cross, np.cross, lambda c: ((*shape(c, 0, 2), 3),) * 2, dtypes=("float32", "float64", "int32"), values="small"),
        Case(
            "matrix_trace",
            fl.matrix_trace,
            lambda x, offset: np.trace(x, offset, -2, -1),
            _matrices,
            lambda c, s: {"offset": c.number(-3, 3)},
            values="small",
        ),
        Case(
            "matrix_power",
            fl.matrix_power,
            lambda x, n: np.linalg.matrix_power(x, n),
            lambda c: ((*shape(c, 0, 2), 3, 3),),
            lambda c, s: {"n": c.number(0, 5)},
            wide,
            "unit",
        ),
        Case(
            "matrix_norm",
            fl.matrix_norm,
            lambda x, ord, keepdims: np.linalg.norm(x, ord, (-2, -1), keepdims),
            lambda c: filled(c, 2, 4),
            lambda c, s: {"ord": c.of(("fro", 1, -1, np.inf, -np.inf)), "keepdims": c.of((True, False))},
            FLOATS,
            "small",
        ),
    ]
    for text, shapes in EINSUMS.items():
        cases.append(
            Case(
                f"einsum {text}",
                lambda *t, s=text: fl.einsum(s, *t),
                lambda *t, s=text: np.einsum(s, *map(_widest, t)),
                lambda c, s=shapes: s,
                dtypes=wide,
                values="small",
            )
        )
    return cases


# ---------------------------------------------------------------- out of nothing
def _created() -> list[Case]:
    def bounds(c: Chooser, _: Any) -> dict[str, Any]:
        return {"start": c.number(-5, 5), "stop": c.number(-5, 9), "step": c.of((1, 2, 3, -1, -2))}

    def none(c: Chooser) -> tuple[Shape, ...]:
        return ()

    return [
        Case("arange", lambda **k: fl.arange(*k.values()), lambda **k: np.arange(*k.values(), dtype=np.int32), none, bounds),
        Case(
            "linspace",
            lambda **k: fl.linspace(-1.5, 2, k["num"], endpoint=k["endpoint"]),
            lambda **k: np.linspace(-1.5, 2, k["num"], endpoint=k["endpoint"]),
            none,
            lambda c, s: {"num": c.number(0, 9), "endpoint": c.of((True, False))},
        ),
        Case(
            "eye",
            lambda **k: fl.eye(k["n"], k["m"], k=k["k"]),
            lambda **k: np.eye(k["n"], k["m"], k["k"]),
            none,
            lambda c, s: {"n": c.number(0, 4), "m": c.number(0, 5), "k": c.number(-3, 3)},
        ),
        Case("full_like", lambda x: fl.full_like(x, 3), lambda x: np.full_like(x, 3), one),
        Case("zeros_like", fl.zeros_like, np.zeros_like, one),
        Case("ones_like", fl.ones_like, np.ones_like, one),
    ]


CASES: dict[str, Case] = {c.name: c for c in (*_elementwise(), *_reductions(), *_moved(), *_products(), *_created())}
TRIED_ELSEWHERE = (
    # activations and what networks are made of, against their formulas: test_ops_activations and its neighbours
    "celu", "elu", "embedding", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "layer_norm", "leaky_relu", "linear",
    "log_softmax", "logsigmoid", "logsumexp", "mish", "one_hot", "quick_gelu", "relu", "relu6", "rms_norm", "selu", "silu", "softmax",
    "softplus", "softshrink", "softsign", "tanhshrink",
    # of one form only: test_ops_elementwise, test_ops_views, test_ops_joining, test_ops_patterns
    "asarray", "cast", "constant", "edge", "empty", "empty_like", "full", "ones", "rearrange", "reduce_", "reflect", "saturate",
    "take_along_axis", "wrap", "zeros",
)  # fmt: skip
