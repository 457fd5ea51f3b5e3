"""Every element type under every operator: what is compiled has the bits of the interpreter, from subnormals to NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import ml_dtypes
import numpy as np
import pytest
from fluorite.algo.dtypes import DTYPES, FLOATS, INTEGERS, NARROW, array_kind, kind, promote
from fluorite.algo.expr import REAL
from fluorite.algo.numerics import compare

Array = np.ndarray[Any, Any]
UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": lambda x: -x, "abs": abs, "sign": fl.sign, "floor": fl.floor, "ceil": fl.ceil, "trunc": fl.trunc, "round": fl.round,
    "sqrt": fl.sqrt, "isnan": fl.isnan, "isinf": fl.isinf, "isfinite": fl.isfinite, "square": lambda x: x * x, "weak": lambda x: x * 3 + 1,
    "kept": lambda x: x + 0,
}  # fmt: skip
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
    "floordiv": lambda x, y: x // y, "mod": lambda x, y: x % y, "min": fl.minimum, "max": fl.maximum,
    "lt": lambda x, y: x < y, "le": lambda x, y: x <= y, "eq": lambda x, y: x == y, "ne": lambda x, y: x != y,
    "where": lambda x, y: fl.where(x < y, x, y), "chain": lambda x, y: x * y + x - y / 3,
}  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's own, on infinities and NaN
BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def every(dtype: str) -> Array:
    """All numbers of a small type; of a large one its edges and some in between."""
    t = np.dtype(dtype)
    if dtype == "bool":
        return np.array([False, True])
    if t.itemsize <= 2:
        return np.arange(1 << 8 * t.itemsize, dtype=BITS[t.itemsize]).view(t)
    if dtype in INTEGERS:
        info = np.iinfo(t)
        powers = [s * 2**k + d for k in range(8 * t.itemsize) for s in (1, -1) for d in (-1, 0, 1)]
        ties = [2**k + 2 ** (k - m) + d for k in (20, 30, 40, 60) for m in (3, 4, 8, 9, 11, 12) for d in (-1, 0, 1)]
        return np.array([n for n in (*powers, *ties, *range(-70, 70)) if info.min <= n <= info.max], t)
    edges = [0.0, -0.0, 1.0, 0.5, 1.5, 2.5, 448.0, 464.0, 464.00003, 65519.9, 65520.0, 3e38]
    edges += [1e-40, 1e-45, 2.0**-133, 2.0**-134, 1.5 * 2.0**-133]
    edges += [2.0**-25, 2.0**-24, 1.5 * 2.0**-25, 2.0**-10, 2.0**-17, np.inf, np.nan, 57344.0, 61440.0, 61439.99, 2147483648.0, 1e19]
    ties = [1 + 2.0**-m + d for m in (3, 4, 5, 8, 9, 11, 12) for d in (0, 2.0**-23, -(2.0**-24), 2.0**-40, -(2.0**-40))]
    rng = np.random.default_rng(5)
    some = rng.standard_normal(2000) * 2.0 ** rng.integers(-30, 30, 2000)
    with np.errstate(all="ignore"):
        return np.concatenate([np.array([*edges, *ties]), -np.array([*edges, *ties]), some]).astype(t)


def few(dtype: str) -> Array:
    """So many that all pairs can be tried."""
    all_ = every(dtype)
    if all_.size <= 256:
        return all_
    if dtype in NARROW:
        edges = [1, 2, 0x3FF, 0x400, 0x7F, 0x80, 0x7BFF, 0x7C00, 0x7F80, 0x7F7F, 0x7FC0, 0x8001]
        kept = np.concatenate([all_[:: 65536 // 128], all_[edges]])
        return np.concatenate([kept, -kept])
    return np.concatenate([all_[:90], np.random.default_rng(1).choice(all_, 100)])


def identical(found: Array, wanted: Array, what: str = "") -> None:
    """The same type and bits; NaN is NaN, whatever its own bits."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.dtype == wanted.dtype, what
    bits = BITS[found.dtype.itemsize]
    off = found.view(bits) != wanted.view(bits)
    if array_kind(wanted) == "float":
        off &= ~(np.isnan(found.astype(np.float64)) & np.isnan(wanted.astype(np.float64)))
    if off.any():
        at = tuple(np.argwhere(off)[0])
        raise AssertionError(f"{what}: {found[at]} instead of {wanted[at]} at {at}, {off.sum()} of {off.size}")


def vectors(**dtypes: str) -> dict[str, Any]:
    return {name: fl.Spec(dtype, ("n",), (fl.extent("n"),)) for name, dtype in dtypes.items()}


def applied(operators: dict[str, Callable[..., Any]], *dtypes: str) -> Any:
    """A function that returns every operator of its inputs that the types have."""
    def possible(fn: Callable[..., Any]) -> bool:
        def alone(*t: Any) -> Any:
            return fl.stage(lambda n: fn(*(x[n] for x in t)))

        try:
            if len(dtypes) == 1:
                fl.trace(lambda x: alone(x), inputs=vectors(x=dtypes[0]))
            else:
                fl.trace(lambda x, y: alone(x, y), inputs=vectors(x=dtypes[0], y=dtypes[1]))
        except fl.AlgorithmError:
            return False
        return True

    chosen = {name: fn for name, fn in operators.items() if possible(fn)}
    if len(dtypes) == 1:
        return lambda x: {name: fl.stage(lambda n, fn=fn: fn(x[n])) for name, fn in chosen.items()}
    return lambda x, y: {name: fl.stage(lambda n, fn=fn: fn(x[n], y[n])) for name, fn in chosen.items()}


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_of_one_number(dtype: str) -> None:
    graph = fl.trace(applied(UNARY, dtype), inputs=vectors(x=dtype))
    x = every(dtype)
    wanted, found = graph.run(x), fl.compile(graph)(x)
    assert len(wanted) >= 3
    for name in wanted:
        if name == "weak" and dtype in ("float32", "float64"):
            continue  # a product and a sum may be one operation there
        identical(found[name], wanted[name], f"{name} of {dtype}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_of_two_numbers(dtype: str) -> None:
    graph = fl.trace(applied(BINARY, dtype, dtype), inputs=vectors(x=dtype, y=dtype))
    x, y = (np.ascontiguousarray(a.ravel()) for a in np.meshgrid(few(dtype), few(dtype)))
    wanted, found = graph.run(x, y), fl.compile(graph)(x, y)
    assert len(wanted) >= 9
    for name in wanted:
        if name == "chain" and dtype in ("float32", "float64"):
            continue  # likewise
        if name in ("mod", "floordiv", "min", "max") and kind(dtype) == "float":
            wanted[name], found[name] = (np.where(a == 0, np.zeros((), a.dtype), a) for a in (wanted[name], found[name]))  # of either sign
        identical(found[name], wanted[name], f"{name} of {dtype}")


@pytest.mark.parametrize("source", DTYPES)
def test_casts(source: str) -> None:
    def f(x: Any) -> Any:
        casts = {to: fl.stage(lambda n, to=to: fl.cast(x[n], to)) for to in DTYPES}
        return casts | {f"saturated {to}": fl.stage(lambda n, to=to: fl.saturate(to, x[n])) for to in DTYPES}

    graph, x = fl.trace(f, inputs=vectors(x=source)), every(source)
    wanted, found = graph.run(x), fl.compile(graph)(x)
    for to in wanted:
        identical(found[to], wanted[to], f"{source} to {to}")


@pytest.mark.parametrize("dtype", FLOATS)
def test_real_functions_within_their_bound(dtype: str) -> None:
    names = sorted(n for n in REAL if hasattr(fl, n) and n not in ("atan2", "pow"))
    graph = fl.trace(applied({n: getattr(fl, n) for n in names}, dtype), inputs=vectors(x=dtype))
    x = every(dtype)
    for r in compare(graph, None, (x,), fl.compile(graph)(x)):
        assert r.ok, f"{dtype}: {r.text()}"


@pytest.mark.parametrize("left", NARROW)
def test_mixed_types(left: str) -> None:
    for right in FLOATS:
        joined = promote(left, False, right, False)
        assert joined is not None
        graph = fl.trace(applied({n: BINARY[n] for n in ("add", "mul", "lt")}, left, right), inputs=vectors(x=left, y=right))
        x, y = (np.ascontiguousarray(a.ravel()) for a in np.meshgrid(few(left), few(right)))
        wanted, found = graph.run(x, y), fl.compile(graph)(x, y)
        assert wanted["add"].dtype.name == joined[0]
        for name in wanted:
            identical(found[name], wanted[name], f"{name} of {left} and {right}")


@pytest.mark.parametrize("shape", [(1, 1), (3, 17), (5, 0), (16, 64), (7, 33)])
@pytest.mark.parametrize("dtype", NARROW)
def test_reductions_accumulate_in_float32(dtype: str, shape: tuple[int, int]) -> None:
    def f(x: Any, w: Any) -> Any:
        rows = {k: getattr(fl, k)(x, axis=1) for k in (("sum", "prod", "mean") + (("max", "min", "argmax", "argmin") if shape[1] else ()))}
        return rows | {"product": x @ w, "written": fl.stage(lambda i, j: fl.sum(lambda k: x[i, k] * w[k, j])), "all": fl.sum(x)}

    k = fl.extent("k") if shape[1] else 0
    specs = {"x": fl.Spec(dtype, ("i", "k"), (fl.extent("i"), k)), "w": fl.Spec(dtype, ("k", "j"), (k, 9))}
    graph = fl.trace(f, inputs=specs)
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(s).astype(dtype) for s in (shape, (shape[1], 9)))
    found, wanted = fl.compile(graph)(x, w), graph.run(x, w)
    for r in compare(graph, None, (x, w), found):
        assert r.ok, f"{dtype}: {r.text()}"
    with np.errstate(all="ignore"):
        exact = x.astype(np.float32) @ w.astype(np.float32)
    step = float(ml_dtypes.finfo(np.dtype(dtype)).eps)
    for name in ("product", "written"):
        np.testing.assert_allclose(found[name].astype(float), exact, rtol=step, atol=step)
        assert found[name].dtype == wanted[name].dtype == np.dtype(dtype)


def test_a_row_of_nine_stays_within_its_bytes() -> None:
    """LLVM's masked last part of a short loop wrote 32 bits for 16."""
    specs = {"x": fl.f16("i", "k"), "w": fl.f16("k", 9)}
    graph = fl.trace(lambda x, w: x @ w, inputs=specs)
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-3, 3, shape).astype(np.float16) for shape in ((5000, 64), (64, 9)))
    whole = np.full(5000 * 9 + 16, 77, np.float16)
    fl.compile(graph)(x, w, out=whole[: 5000 * 9].reshape(5000, 9))
    assert (whole[5000 * 9 :] == 77).all()
    identical(whole[: 5000 * 9].reshape(5000, 9), graph.run(x, w))


ALGEBRA: dict[str, Callable[[Any, Any], Any]] = {
    "a - a": lambda a, b: a - a, "a * 0": lambda a, b: a * 0, "a / a": lambda a, b: a / a, "a + 0": lambda a, b: a + 0.0,
    "(a + b) - b": lambda a, b: (a + b) - b, "(a + 1e30) - 1e30": lambda a, b: (a + 1e30) - 1e30, "a + -a": lambda a, b: a + (-a),
    "a == a": lambda a, b: a == a, "a <= a": lambda a, b: a <= a, "~(a < b)": lambda a, b: ~(a < b), "~(a == b)": lambda a, b: ~(a == b),
    "choice": lambda a, b: fl.where(~(a <= b), 1.0, 2.0), "either": lambda a, b: (a < b) | (b <= a),
    "a + 1 < a + 2": lambda a, b: a + 1 < a + 2,
    "a - b < 0": lambda a, b: a - b < 0, "clipped": lambda a, b: fl.minimum(fl.minimum(a, 1.0), 0.5) + 0.0,
    "largest": lambda a, b: fl.maximum(fl.maximum(a, b), a) + 0.0, "a * 3 * 3": lambda a, b: (a * 3.0) * 3.0,
    "a + 1 + 2": lambda a, b: a + 1.0 + 2.0,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_are_no_real_numbers(dtype: str) -> None:
    """What algebra would simplify keeps its roundings, its NaN and its signs of zero."""
    graph = fl.trace(applied(ALGEBRA, dtype, dtype), inputs=vectors(x=dtype, y=dtype))
    some = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -3.5, 0.1, 1e30, 1e-40, 7], dtype)
    x, y = (np.ascontiguousarray(a.ravel()) for a in np.meshgrid(some, some))
    wanted, found = graph.run(x, y), fl.compile(graph)(x, y)
    assert len(wanted) == len(ALGEBRA)
    for name in wanted:
        identical(found[name], wanted[name], f"{name} of {dtype}")
