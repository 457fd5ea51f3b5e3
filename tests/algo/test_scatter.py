"""Scatters: which reductions are taken for one, and what the operators that scatter compute, against NumPy."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo import interpreter
from fluorite.algo.cost import cost
from fluorite.algo.numerics import bounds, compare
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_running import both, graph_of, near, numbers, refusal, run, same

K, F = fl.i32("n"), fl.f32("n")
DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
IDS = ["int8", "uint8", "int16", "int32", "int64", "uint32", "uint64"]


def traced(fn: Any, **inputs: Any) -> fl.Graph:
    return fl.trace(fn, inputs=inputs)


def over(fn: Any, extent: int = 5) -> Any:
    return fl.stage(lambda a: fn(a), extents={"a": extent})


# ---------------------------------------------------------------- recognition
SCATTERS: dict[str, Any] = {
    "sum": (lambda ids, v: over(lambda a: fl.sum(lambda i: fl.where(ids[i] == a, v[i], 0))), {"ids": K, "v": F}, "a"),
    "sides swapped": (lambda ids, v: over(lambda a: fl.prod(lambda i: fl.where(a == ids[i], v[i], 1))), {"ids": K, "v": F}, "a"),
    "shifted": (lambda ids, v: over(lambda a: fl.sum(lambda i: fl.where(a - 1 == ids[i], v[i], 0))), {"ids": K, "v": F}, "a"),
    "mirrored": (lambda ids, v: over(lambda a: fl.sum(lambda i: fl.where(4 - a == ids[i], v[i], 0))), {"ids": K, "v": F}, "a"),
    "conditions": (
        lambda ids, v: over(lambda a: fl.sum(lambda i: fl.where((v[i] > 0) & (ids[i] == a), v[i], 0))), {"ids": K, "v": F}, "a"
    ),
    "nested": (
        lambda ids, v: over(lambda a: fl.sum(lambda i: fl.where(v[i] > 0, fl.where(ids[i] == a, v[i], 0), 0))), {"ids": K, "v": F}, "a"
    ),
    "max": (lambda ids, v: over(lambda a: fl.max(lambda i: fl.where(ids[i] == a, v[i], float("-inf")))), {"ids": K, "v": F}, "a"),
    "count": (lambda ids: over(lambda a: fl.sum(lambda i: ids[i] == a)), {"ids": K}, "a"),
    "any": (lambda ids: over(lambda a: fl.any(lambda i: ids[i] == a)), {"ids": K}, "a"),
    "wide ids": (lambda ids: over(lambda a: fl.sum(lambda i: ids[i] == a)), {"ids": fl.u64("n")}, "a"),
    "narrow ids that hold all": (lambda ids: over(lambda a: fl.sum(lambda i: ids[i] == a), 128), {"ids": fl.i8("n")}, "a"),
    "two axes": (lambda u, v: over(lambda a: fl.sum(lambda i, j: fl.where(a == i + j, u[i] * v[j], 0))), {"u": F, "v": fl.f32("m")}, "a"),
    "two targets": (
        lambda ids, v: fl.stage(
            lambda a, b: fl.sum(lambda i: fl.where((a == ids[i, 0]) & (b == ids[i, 1]), v[i], 0)), extents={"a": 5, "b": 3}
        ),
        {"ids": fl.i32("n", 2), "v": F}, "a b",
    ),
    "one target is a loop": (
        lambda ids, v: fl.stage(lambda a, b: fl.sum(lambda i: fl.where((a == ids[i]) & (b == i), v[i], 0)), extents={"a": 5, "b": 3}),
        {"ids": K, "v": F}, "a b",
    ),
    "free axes": (
        lambda ids, v: fl.stage(lambda c, a, j: fl.sum(lambda i: fl.where(ids[c, i] == a, v[c, i, j], 0)), extents={"a": 5}),
        {"ids": fl.i32("b", "n"), "v": fl.f32("b", "n", "m")}, "a",
    ),
    "value at its target": (
        lambda ids, w: fl.stage(lambda a: fl.sum(lambda i: fl.where(ids[i] == a, w[i, a] * a, 0)), extents={"a": 5}),
        {"ids": K, "w": fl.f32("n", 5)}, "a",
    ),
}  # fmt: skip
OTHERS: dict[str, Any] = {
    "no identity": (lambda ids, v: over(lambda a: fl.sum(lambda i: fl.where(ids[i] == a, v[i], 1))), {"ids": K, "v": F}),
    "an affine axis": (lambda v: over(lambda a: fl.sum(lambda i: fl.where(a == i, v[i], 0))), {"v": F}),
    "narrow ids that wrap": (lambda ids: over(lambda a: fl.sum(lambda i: ids[i] == a), 257), {"ids": fl.u8("n")}),
    "less": (lambda ids, v: over(lambda a: fl.sum(lambda i: fl.where(ids[i] <= a, v[i], 0))), {"ids": K, "v": F}),
    "either": (lambda ids, v: over(lambda a: fl.sum(lambda i: fl.where((ids[i] == a) | (v[i] > 0), v[i], 0))), {"ids": K, "v": F}),
    "argmax": (lambda ids, v: over(lambda a: fl.argmax(lambda i: fl.where(ids[i] == a, v[i], float("-inf")))), {"ids": K, "v": F}),
}


@pytest.mark.parametrize("name", SCATTERS)
def test_what_is_a_scatter_means_what_the_reduction_means(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fn, inputs, targets = SCATTERS[name]
    g = traced(fn, **inputs)
    (s,) = g.stages
    assert s.scatter is not None and " ".join(a.name for a in s.axes if a in set(s.scatter.targets)) == targets
    assert s.facts["kind"] == "scatter"
    for seed, n in enumerate((1, 7, 40)):
        sizes = {"n": n, "m": 4, "b": 3}
        given = [numbers(*(sizes.get(str(e), e) for e in g[i].shape), seed=seed, dtype=g[i].dtype) for i in g.methods[0].inputs]
        with monkeypatch.context() as patched:
            patched.setattr(fl.Stage, "scatter", None)
            dense = g.run(*given)
        fast = g.run(*given)
        assert fast.dtype == dense.dtype
        np.testing.assert_allclose(fast, dense, 1e-5, 1e-5)
        assert all(c.ok for c in compare(g, None, tuple(given), dense)), name


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_none(name: str) -> None:
    fn, inputs = OTHERS[name]
    (s,) = traced(fn, **inputs).stages
    assert s.scatter is None


def test_a_scatter_visits_each_value_once() -> None:
    g = traced(lambda ids, v: fl.segment_sum(v, ids, 1000), ids=K, v=fl.f32("n", 64))
    assert str(cost(g, g.stages[0]).flops) == "64*n"
    n = 200_000  # 200,000 x 100,000 tests would take minutes
    ids, v = np.random.default_rng(0).integers(0, 100_000, n).astype(np.int32), numbers(n)
    want = np.zeros(100_000, np.float32)
    np.add.at(want, ids, v)
    same(run(lambda ids, v: fl.segment_sum(v, ids, 100_000), ids, v), want)


def test_sums_are_in_the_order_of_the_axes() -> None:
    v = np.array([1e8, 1, -1e8, 1], np.float32)
    same(run(lambda v, k: fl.segment_sum(v, k, 1), v, np.zeros(4, np.int32)), np.float32([1]))


def test_the_bound_covers_a_position_that_hangs_on_a_rounding() -> None:
    def fn(x: Any) -> Any:
        return fl.bincount(fl.cast(fl.floor(x * 3.0), fl.i32), 4)

    g = traced(fn, x=fl.f32(3))
    x = np.array([1 / 3, 0.5, 0.9], np.float32)
    (found,) = bounds(g, (x,)).values()
    assert found.error is not None and found.error[:2].min() >= 1 and found.error[3] == 0
    shifted = g.run(x) + np.array([1, -1, 0, 0], np.int32)
    assert all(c.ok for c in compare(g, None, (x,), shifted))
    assert not all(c.ok for c in compare(g, None, (x,), g.run(x) + np.array([0, 0, 0, 1], np.int32)))


def test_a_wrong_scatter_is_out_of_bounds() -> None:
    g = traced(lambda v, k: fl.segment_sum(v, k, 3), v=fl.f32(5), k=fl.i32(5))
    v, k = numbers(5), np.array([0, 1, 1, 2, 0], np.int32)
    right = g.run(v, k)
    assert all(c.ok for c in compare(g, None, (v, k), right))
    assert not all(c.ok for c in compare(g, None, (v, k), right * np.float32(1.001)))
    best = traced(lambda v, k: fl.segment_max(v, k, 3), v=fl.f32(5), k=fl.i32(5))
    assert not all(c.ok for c in compare(best, None, (v, k), np.nextafter(best.run(v, k), np.float32(9))))


# ---------------------------------------------------------------- the operators
@given(
    st.sampled_from(DTYPES), st.sampled_from(IDS), st.integers(0, 12), st.integers(1, 7), st.lists(st.integers(1, 3), max_size=2),
    st.integers(0, 2), st.integers(0, 10**6),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_scatters_along_an_axis(dtype: str, id_type: str, n: int, size: int, rest: list[int], at: int, seed: int) -> None:
    d = min(at, len(rest))
    x = numbers(*rest[:d], size, *rest[d:], seed=seed, dtype=dtype)
    ids = np.random.default_rng(seed).integers(0 if id_type.startswith("u") else -2, size + 2, n).astype(id_type)
    v = numbers(*rest[:d], n, *rest[d:], seed=seed + 1, dtype=dtype)
    inside = (ids.astype(np.int64) >= 0) & (ids.astype(np.int64) < size)
    where = ids[inside].astype(np.int64)
    given_ = np.moveaxis(v, d, 0)[inside]

    def wanted(ufunc: Any) -> Any:
        out = np.moveaxis(x.copy(), d, 0)
        if ufunc is None:
            for k, row in zip(where, given_, strict=True):
                out[k] = row
        else:
            ufunc.at(out, where, given_)
        return np.moveaxis(out, 0, d)

    for name, ufunc in (("scatter_add", np.add), ("scatter_max", np.maximum), ("scatter_min", np.minimum), ("scatter", None)):
        got = run(lambda x, k, v, name=name: getattr(fl, name)(x, k, v, axis=d - x.ndim), x, ids, v)
        assert got.dtype == x.dtype
        np.testing.assert_allclose(got, wanted(ufunc), 1e-5 if "float" in dtype else 0, 1e-5 if "float" in dtype else 0, err_msg=name)


def test_ids_of_any_rank_and_updates_that_broadcast() -> None:
    x, ids = numbers(4, 3), np.array([[0, 3], [0, 1]], np.int32)
    want = x.copy()
    np.add.at(want, ids, np.float32(2))
    near(both(lambda x, k: fl.scatter_add(x, k, 2), x, ids), want)
    near(run(lambda x, k: fl.scatter_add(x, k, 1.5), x, np.int32(2)), x + 1.5 * np.eye(4, dtype=np.float32)[2][:, None])
    near(run(lambda x, k: fl.scatter(x, k, [7.0, 8.0, 9.0]), x, ids)[[0, 1, 3]], np.tile(np.float32([7, 8, 9]), (3, 1)))
    near(run(lambda x, k: fl.scatter_add(x, k, x, axis="b"), x, np.array([2, 0, 1], np.int32)), x + x[:, [1, 2, 0]])


@pytest.mark.parametrize("m", [1, 2, 3])
def test_positions_along_several_axes(m: int) -> None:
    x, rng = numbers(3, 4, 5), np.random.default_rng(0)
    ids = np.stack([rng.integers(0, x.shape[k], (2, 6)) for k in range(m)], axis=-1).astype(np.int32)
    same(run(lambda x, k: fl.gather_nd(x, k), x, ids), x[tuple(ids[..., k] for k in range(m))])
    v = numbers(2, 6, *x.shape[m:], seed=1)
    ids[0, 0, 0] = 9  # nowhere
    keep = ids[..., 0] < 9
    want = np.zeros(x.shape, np.float32)
    np.add.at(want, tuple(ids[keep][:, k] for k in range(m)), v[keep])
    near(run(lambda k, v: fl.scatter_nd(k, v, (3, 4, 5)), ids, v), want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_segments(dtype: str) -> None:
    x, ids = numbers(11, 3, dtype=dtype), np.array([0, 4, 4, 2, -1, 0, 9, 2, 2, 4, 0], np.int32)
    rows = [x[ids == s] for s in range(5)]
    total = both(lambda x, k: fl.segment_sum(x, k, 5), x, ids)
    np.testing.assert_allclose(total, np.stack([r.sum(0, dtype=total.dtype) for r in rows]), 1e-6)
    mean = run(lambda x, k: fl.segment_mean(x, k, 5), x, ids)
    assert mean.dtype == ("float64" if dtype == "float64" else "float32")
    np.testing.assert_allclose(mean, np.stack([r.astype(mean.dtype).sum(0) / max(len(r), 1) for r in rows]), 1e-6, 1e-6)
    info: Any = np.finfo(dtype) if "float" in dtype else np.iinfo(dtype)
    low, high = (-np.inf, np.inf) if "float" in dtype else (info.min, info.max)
    same(run(lambda x, k: fl.segment_max(x, k, 5), x, ids), np.stack([r.max(0, initial=low) for r in rows]).astype(dtype))
    same(run(lambda x, k: fl.segment_min(x, k, 5), x, ids), np.stack([r.min(0, initial=high) for r in rows]).astype(dtype))


def test_nan_and_nothing() -> None:
    x, ids = np.array([1, np.nan, 3], np.float32), np.array([0, 0, 1], np.int32)
    same(run(lambda x, k: fl.segment_max(x, k, 3), x, ids), np.array([np.nan, 3, -np.inf], np.float32))
    none = np.zeros(0, np.float32)
    for symbolic in (False, True):
        same(run(lambda x, k: fl.segment_max(x, k, 2), none, np.zeros(0, np.int32), symbolic=symbolic), np.full(2, -np.inf, np.float32))
    same(run(lambda x, k: fl.segment_sum(x, k, 2), none, np.zeros(0, np.int32)), np.zeros(2, np.float32))
    same(run(lambda x, k: fl.segment_sum(x, k, 0), x, ids), np.zeros(0, np.float32))
    with pytest.raises(fl.FluoriteError):
        run(lambda x: fl.max(x), none)


def test_counts() -> None:
    ids = np.random.default_rng(0).integers(-3, 12, (4, 25)).astype(np.int16)
    inside = ids[(ids >= 0) & (ids < 9)]
    same(both(lambda k: fl.bincount(k, 9), ids), np.bincount(inside, minlength=9).astype(np.int32))
    w = numbers(4, 25)
    near(run(lambda k, w: fl.bincount(k, 9, w), ids, w), np.bincount(inside, w[(ids >= 0) & (ids < 9)], 9), 1e-5)
    same(run(lambda k: fl.bincount(k, 3), np.int32(2)), np.int32([0, 0, 1]))


@given(
    st.sampled_from(["float32", "float64", "int32", "uint8"]), st.integers(1, 17), st.integers(-3, 2), st.integers(1, 9),
    st.integers(0, 10**6),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_histograms(dtype: str, bins: int, low: int, width: int, seed: int) -> None:
    x = numbers(37, seed=seed, dtype=dtype)
    x[:5] = np.clip([low, low + width, low - 1, low + width + 1, low], 0 if dtype == "uint8" else None, None)
    counts, edges = run(lambda x: fl.histogram(x, bins, (low, low + width)), x)
    want, at = np.histogram(x.astype(edges.dtype), bins, (low, low + width))
    same(counts, want.astype(np.int32))
    np.testing.assert_allclose(edges, at, 1e-6, 1e-6)
    given_edges = np.unique(np.random.default_rng(seed).integers(-9, 9, bins + 1)).astype(dtype if dtype != "uint8" else "int32")
    if len(given_edges) > 1 and dtype != "uint8":
        same(run(lambda x, e: fl.histogram(x, e)[0], x, given_edges), np.histogram(x, given_edges)[0].astype(np.int32))


@given(st.sampled_from(["float32", "float64", "int32", "uint8"]), st.integers(1, 17), st.integers(0, 9), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_histograms_over_what_there_is(dtype: str, bins: int, n: int, seed: int) -> None:
    x = numbers(n * n, seed=seed, dtype=dtype).reshape(n, n)
    counts, edges = run(lambda x: fl.histogram(x, bins), x, symbolic=seed % 2 == 0)
    low, high = (x.min(), x.max()) if n else (0.0, 1.0)
    same(counts, np.histogram(x.astype(edges.dtype), edges.astype(np.float64))[0].astype(np.int32))
    assert counts.sum() == n * n and edges.dtype == (x.dtype if dtype.startswith("f") else np.float64)
    np.testing.assert_allclose(edges, np.histogram(x.astype(np.float64), bins)[1], 1e-6, 1e-6)
    assert low != high or edges[-1] - edges[0] == 1


def test_not_a_number_is_in_no_bin() -> None:
    x = np.array([np.nan, 0.5, 1, -np.inf, np.inf], np.float32)
    same(run(lambda x: fl.histogram(x, 2, (0.0, 1.0))[0], x), np.int32([0, 2]))
    same(run(lambda x: fl.histogram(x, [0.0, 0.5, 1.0])[0], x), np.int32([0, 2]))
    near(run(lambda x, w: fl.histogram(x, 2, (0.0, 1.0), w)[0], x, numbers(5)), [0, numbers(5)[1:3].sum()])
    counts, edges = run(lambda x: fl.histogram(x, 2), x)
    assert not counts.any() and np.isnan(edges).all()
    assert [a.tolist() for a in run(lambda x: fl.histogram(x, 2), np.float32([3, 3]))] == [[0, 2], [2.5, 3, 3.5]]


def test_refusals() -> None:
    x, k = numbers(4, 3), np.array([0, 1], np.int32)
    assert refusal(lambda x, k: fl.scatter_add(x, k, x), x, k).code == "A301"
    assert refusal(lambda x: fl.scatter_add(x, x, x), x).code == "A306"
    assert refusal(lambda k, x: fl.scatter(k, k, x), k, numbers(2)).code == "A104"
    assert refusal(lambda x, k: fl.scatter_max(x, k, 1.0, axis=2), x, k).code == "A302"
    assert refusal(lambda x, k: fl.gather_nd(x, k), x, np.zeros((2, 3), np.int32)).code == "A301"
    assert refusal(lambda x, k: fl.scatter_nd(k, x, (5, 5)), x, np.zeros((2, 1), np.int32)).code == "A301"
    assert refusal(lambda x, k: fl.segment_sum(x, k, 2), x, k).code == "A301"
    assert refusal(lambda x, k: fl.segment_sum(x, k, -1), x[:2], k).code == "A304"
    assert refusal(lambda x, k: fl.segment_max(x > 0, k, 2), x[:2], k).code == "A306"
    assert refusal(lambda x, k: fl.bincount(k, 2, x), x, k).code == "A301"
    assert refusal(lambda x: fl.histogram(x, 0, (0, 1)), x).code == "A304"
    assert refusal(lambda x: fl.histogram(x, 0), x).code == "A304"
    assert refusal(lambda x: fl.histogram(x, 4, (1, 0)), x).code == "A304"
    assert refusal(lambda x: fl.histogram(x, [0.0]), x).code == "A304"
    assert refusal(lambda x: fl.histogram(x > 0, 2, (0, 1)), x).code == "A306"
    assert "test_scatter.py" in (refusal(lambda x, k: fl.scatter_add(x, k, x), x, k).source or "")


def test_slabs_do_not_change_results(monkeypatch: pytest.MonkeyPatch) -> None:
    v, k = numbers(3, 50), np.random.default_rng(1).integers(0, 4, (3, 50)).astype(np.int32)
    g = graph_of(lambda v, k: fl.stage(lambda c, a: fl.sum(lambda i: fl.where(k[c, i] == a, v[c, i], 0)), extents={"a": 4}), v, k)
    whole = g.run(v, k)
    monkeypatch.setattr(interpreter.stages, "SLAB", 7)
    same(g.run(v, k), whole)


def test_a_scatter_may_read_at_where_it_writes() -> None:
    """The axis that data puts somewhere is a position like any other, in what is read to decide and in what is added."""

    def larger(x: Any, i: Any) -> Any:
        return fl.stage(
            lambda s, b: fl.sum(lambda a: fl.where(i[a] == s, fl.where(x[a, b] > x[s, b], x[a, b] * x[s, 0], 0.0), 0.0)), extents={"s": 3}
        )

    g = np.random.default_rng(2)
    x, i = g.standard_normal((6, 2)).astype(np.float32), np.array([2, 1, 2, 0, 1, 2], np.int32)
    wanted = np.zeros((3, 2))
    for a in range(6):
        for b in range(2):
            wanted[i[a], b] += x[a, b] * x[i[a], 0] if x[a, b] > x[i[a], b] else 0
    near(run(larger, x, i), wanted)
