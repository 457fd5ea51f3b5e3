"""Sorting and what is made of it, against NumPy: duplicates, NaN, signed zeros, empty and single rows, any axis."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import ml_dtypes
import numpy as np
import pytest
from fluorite.algo.interpreter.ranking import places
from fluorite.algo.numerics import bounds, compare
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_running import both, graph_of, near, numbers, refusal, run, same

DTYPES = ["bool", "int8", "int32", "int64", "uint8", "uint64", "float32", "float64"]


def messy(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    """Few different values, so that many are equal; NaN, infinities and both zeros among floats."""
    rng = np.random.default_rng(seed)
    if "float" not in dtype:
        info = np.iinfo(dtype) if dtype != "bool" else None
        pool: list[Any] = [True, False] if info is None else [info.min, info.max, 0, 1, 2]
        return np.array(pool, dtype)[rng.integers(0, len(pool), shape)]
    return np.array([0.0, -0.0, 1, -1, np.nan, np.inf, -np.inf, 2.5]).astype(dtype)[rng.integers(0, 8, shape)]


def ordered(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """Stable positions, NaN last in both directions."""
    rows = np.moveaxis(x, axis, -1)
    keys = np.where(np.isnan(rows), np.inf, -rows) if descending and x.dtype.kind == "f" else rows
    if descending and x.dtype.kind != "f":
        keys = ~rows
    last = np.isnan(rows) if x.dtype.kind == "f" else keys
    out = np.lexsort((np.broadcast_to(np.arange(rows.shape[-1]), rows.shape), keys, last), axis=-1)
    return np.moveaxis(out, -1, axis).astype(np.int32)


@given(
    st.sampled_from(DTYPES), st.integers(0, 23), st.lists(st.integers(0, 4), max_size=3), st.integers(0, 3), st.booleans(), st.booleans(),
    st.integers(0, 10**6),
)  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_sorted_along_any_axis(dtype: str, n: int, rest: list[int], at: int, descending: bool, negative: bool, seed: int) -> None:
    d = min(at, len(rest))
    x = messy((*rest[:d], n, *rest[d:]), dtype, seed)
    axis = d - x.ndim if negative else d
    want = ordered(x, d, descending)
    got = run(lambda x: fl.argsort(x, axis, descending=descending), x)
    same(got, want)
    same(run(lambda x: fl.sort(x, axis, descending=descending), x), np.take_along_axis(x, want, d))
    k = min(3, n)
    values, indices = run(lambda x: fl.top_k(x, k, axis), x)
    first = np.take(ordered(x, d, True), range(k), d)
    same(indices, first)
    same(values, np.take_along_axis(x, first, d))


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float16"])
def test_places_of_narrow_floats(dtype: str) -> None:
    """Also where the values of a deep graph are disturbed to see how far rounding moves them."""
    keys = np.array([1, 3, np.nan, -2, 3, 0], np.dtype(getattr(ml_dtypes, dtype, dtype)))
    np.testing.assert_array_equal(places(keys, False), [2, 3, 5, 0, 4, 1])
    np.testing.assert_array_equal(places(keys, True), [2, 0, 5, 4, 1, 3])


def test_symbolic_rows_and_numpys_own_order() -> None:
    x = messy((4, 33), "float32", 3)
    np.testing.assert_array_equal(run(lambda x: fl.sort(x), x, symbolic=True), np.sort(x, axis=-1))
    np.testing.assert_array_equal(run(lambda x: fl.argsort(x, 0), x, symbolic=True), np.argsort(x, axis=0, kind="stable"))
    np.testing.assert_array_equal(run(lambda x: fl.top_k(x, 2, largest=False)[1], x), np.argsort(x, axis=-1, kind="stable")[:, :2])


def test_the_rank_is_the_count_that_it_is_written_as(monkeypatch: pytest.MonkeyPatch) -> None:
    for dtype in DTYPES:
        for descending in (False, True):
            x = messy((3, 19), dtype, 1)
            g = graph_of(lambda x, d=descending: fl.argsort(x, descending=d), x)
            rank = next(s for s in g.stages if s.name == "rank")
            assert rank.rank is not None and rank.rank.descending == descending and rank.facts["kind"] == "sort"
            fast = g.run(x)
            with monkeypatch.context() as patched:
                patched.setattr(fl.Stage, "rank", None)
                same(g.run(x), fast)


def test_what_is_no_rank() -> None:
    x = fl.f32("n")
    for fn in (
        lambda x: fl.stage(lambda i: fl.sum(lambda j: fl.cast(x[j] < x[i], fl.i32))),
        lambda x: fl.stage(lambda i: fl.sum(lambda j: fl.cast((x[j] < x[i]) | (~(x[i] < x[j]) & (j < i)), fl.i32))),  # NaN elsewhere
        lambda x: fl.stage(lambda i: fl.sum(lambda j: fl.cast((x[j] < x[i]) | ((x[i] == x[j]) & (i < j)), fl.i32))),
    ):
        assert all(s.rank is None for s in fl.trace(fn, inputs={"x": x}).stages)
    plain = fl.trace(
        lambda k: fl.stage(lambda i: fl.sum(lambda j: fl.cast((k[j] < k[i]) | (~(k[i] < k[j]) & (j < i)), fl.i32))),
        inputs={"k": fl.i32("n")},
    )
    assert plain.stages[0].rank is not None  # written by hand


def test_order_that_hangs_on_a_rounding_is_undecided() -> None:
    g = graph_of(lambda x: fl.argsort(fl.sqrt(x)), np.ones(4, np.float32))
    rank = next(s for s in g.stages if s.name == "rank")
    x = np.array([1, 4, np.nextafter(np.float32(4), np.float32(5)), 9], np.float32)
    found = bounds(g, (x,), keep=True)[rank.id]
    assert found.error is not None and found.error.tolist() == [0, 1, 1, 0]
    assert all(c.ok for c in compare(g, None, (x,), np.int32([0, 2, 1, 3])))
    exact = graph_of(lambda x: fl.argsort(x), x)
    assert not all(c.ok for c in compare(exact, None, (x,), np.int32([0, 2, 1, 3])))


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("q", [0, 0.25, 0.5, 0.9, 1])
def test_quantiles(n: int, q: float) -> None:
    x = numbers(3, n, 2)
    near(run(lambda x: fl.quantile(x, q, 1), x), np.quantile(x, q, axis=1), 1e-5)
    near(run(lambda x: fl.median(x, 0), x), np.median(x, axis=0), 1e-5)
    x[1, 0, 1] = np.nan
    near(run(lambda x: fl.quantile(x, q, 1), x), np.quantile(x, q, axis=1), 1e-5)
    ints = numbers(7, dtype="int32")
    near(run(lambda x: fl.median(x), ints), np.median(ints), 1e-5)


@given(st.sampled_from(DTYPES), st.integers(0, 80), st.integers(0, 40), st.sampled_from(["left", "right"]), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_searching(dtype: str, n: int, m: int, side: Any, seed: int) -> None:
    table, x = np.sort(messy((n,), dtype, seed)), messy((m,), dtype, seed + 1)
    same(run(lambda t, x: fl.searchsorted(t, x, side=side), table, x), np.searchsorted(table, x, side).astype(np.int32))


def test_searching_in_tables_of_unknown_length_and_for_tensors_of_any_rank() -> None:
    table, x = np.sort(numbers(200)), numbers(3, 4, 5)
    same(both(lambda t, x: fl.searchsorted(t, x), table, x), np.searchsorted(table, x).astype(np.int32))
    same(run(lambda t, x: fl.searchsorted(t, x, side="right"), table, table[7]), np.int32(8))
    mixed = run(lambda t, x: fl.searchsorted(t, x), np.arange(5, dtype=np.int32), np.int64([3, 7]))
    same(mixed, np.int32([3, 5]))


@given(st.sampled_from(DTYPES), st.lists(st.integers(0, 5), min_size=1, max_size=2), st.integers(0, 8), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_what_is_different(dtype: str, shape: list[int], size: int, seed: int) -> None:
    x = messy(tuple(shape), dtype, seed)
    values, indices, inverse, counts, total = run(lambda x: fl.unique(x, size, fill_value=1), x)
    want = np.unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
    n = min(size, len(want[0]))
    assert total == len(want[0]) and total.dtype == np.int32
    np.testing.assert_array_equal(values[:n], want[0][:n])
    assert (values[n:] == np.asarray(1, x.dtype)).all() and (indices[n:] == -1).all() and (counts[n:] == 0).all()
    np.testing.assert_array_equal(counts[:n], want[3][:n])
    np.testing.assert_array_equal(x.reshape(-1)[indices[:n]], want[0][:n])
    exact = ~np.isnan(want[0][:n]) if x.dtype.kind == "f" else np.ones(n, bool)
    np.testing.assert_array_equal(indices[:n][exact], want[1][:n][exact])
    assert inverse.shape == x.shape
    known = ~np.isnan(x) if x.dtype.kind == "f" else np.ones(x.shape, bool)
    np.testing.assert_array_equal(inverse[known], want[2].reshape(x.shape)[known])


@given(st.sampled_from(DTYPES), st.lists(st.integers(0, 5), min_size=1, max_size=3), st.integers(0, 9), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_where_something_is(dtype: str, shape: list[int], size: int, seed: int) -> None:
    x = messy(tuple(shape), dtype, seed)
    indices, total = run(lambda x: fl.nonzero(x, size), x)
    want = np.nonzero(x)
    n = min(size, len(want[0]))
    assert total == len(want[0]) and len(indices) == x.ndim
    for got, wanted in zip(indices, want, strict=True):
        same(got, np.concatenate([wanted[:n], np.full(size - n, -1)]).astype(np.int32))


def test_refusals() -> None:
    x = numbers(4)
    assert refusal(lambda x: fl.sort(x, 1), x).code == "A302"
    assert refusal(lambda x: fl.top_k(x, 5), x).code == "A304"
    assert refusal(lambda x: fl.top_k(x, -1), x).code == "A304"
    assert refusal(lambda x: fl.quantile(x, 1.5), x).code == "A304"
    assert refusal(lambda x: fl.median(x), x, symbolic=True).code == "A304"
    assert refusal(lambda x: fl.searchsorted(x, x, side="middle"), x).code == "A304"
    assert refusal(lambda x: fl.searchsorted(fl.reshape(x, (2, 2)), x), x).code == "A307"
    assert refusal(lambda x: fl.unique(x, -1), x).code == "A304"
    assert refusal(lambda x: fl.nonzero(x, True), x).code == "A304"
    assert refusal(lambda x: fl.nonzero(x, 1), np.float32(1)).code == "A307"
