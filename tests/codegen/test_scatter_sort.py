"""Scatters and sorts as kernels: against the interpreter on awkward extents, under plans, what is refused, and how fast."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.cost import cost
from fluorite.algo.errors import PlanError
from fluorite.algo.numerics import compare
from fluorite.codegen import driver
from fluorite.codegen.lowered import Lowered
from fluorite.codegen.target import resolve_target
from fluorite.schedule import ComputeAt, ExecutionPlan, Split, Vectorize
from fluorite.schedule.sections import Target

AWKWARD = [(1, 1), (7, 16), (17, 3), (33, 40), (100, 8)]


def numbers(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Few different values: duplicates, positions outside; among floats NaN and both zeros."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if "int" in dtype:
        return rng.integers(0 if dtype.startswith("u") else -2, 9, shape).astype(dtype)
    odd = rng.choice([np.nan, 0.0, -0.0, np.inf], shape)
    return np.where(rng.random(shape) < 0.1, odd, np.round(rng.standard_normal(shape) * 4)).astype(dtype)


def agrees(g: fl.Graph, plan: str = "", sizes: Any = AWKWARD) -> None:
    model = driver.compile(g, ExecutionPlan.from_yaml(plan, "p.yaml") if plan else None)
    m = g.methods[0]
    for seed, (n, k) in enumerate(sizes):
        extents = {"n": n, "m": k, "b": 3}
        rng = np.random.default_rng(seed)
        given = tuple(numbers(rng, g[i].dtype, tuple(extents.get(str(e), e) for e in g[i].shape)) for i in m.inputs)
        found = compare(g, None, given, getattr(model, m.name)(*given))
        assert all(c.ok for c in found), (n, k, [c.text() for c in found])


def lowered(g: fl.Graph, plan: str = "") -> Lowered:
    chosen, _ = driver.prepared(ExecutionPlan.from_yaml(plan, "p.yaml"), g)
    (made,) = driver.lower_variants(g, chosen, resolve_target(Target(cpu="skylake-avx512"), threads=2))
    return made


def refused(g: fl.Graph, plan: str) -> Any:
    with pytest.raises(PlanError) as caught:
        lowered(g, plan)
    (problem,) = caught.value.problems
    return problem


def rows(ids: Any, v: Any) -> Any:
    return fl.segment_sum(v, ids, 7)


ROWS = {"ids": fl.i32("n"), "v": fl.f32("n", "m")}


def produced(x: Any) -> Any:
    """A scatter between stages: its positions and values are computed, and its result is read."""
    at = fl.cast(fl.floor(x * 2), fl.i32)
    total = fl.stage(lambda s: fl.sum(lambda i: fl.where(at[i] == s, fl.exp(x[i]), 0)), extents={"s": 5}, name="total")
    return fl.stage(lambda s: total[s] / (1 + fl.sum(lambda t: total[t])))


SCATTERS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "rows": (rows, ROWS),
    "wide rows": (rows, {"ids": fl.i64("n"), "v": fl.f32("n", 200)}),
    "numbers": (lambda ids, v: fl.segment_sum(v, ids, 7), {"ids": fl.u8("n"), "v": fl.f32("n")}),
    "doubles": (lambda ids, v: fl.segment_mean(v, ids, 7), {"ids": fl.i16("n"), "v": fl.f64("n", "m")}),
    "largest": (lambda ids, v: fl.segment_max(v, ids, 7), ROWS),
    "least of integers": (lambda ids, v: fl.segment_min(v, ids, 7), {"ids": fl.i32("n"), "v": fl.i16("n", "m")}),
    "batches": (
        lambda ids, v: fl.stage(lambda c, a: fl.sum(lambda i: fl.where(ids[c, i] == a, v[c, i], 0)), extents={"a": 5}),
        {"ids": fl.i32("b", "n"), "v": fl.f32("b", "n")},
    ),
    "set": (lambda x, ids, v: fl.scatter(x, ids, v), {"x": fl.f32("m", 3), "ids": fl.i32("n"), "v": fl.f32("n", 3)}),
    "set in columns": (lambda x, ids, v: fl.scatter(x, ids, v, 1), {"x": fl.i8(3, "m"), "ids": fl.u32("n"), "v": fl.i8(3, "n")}),
    "add": (lambda x, ids, v: fl.scatter_add(x, ids, v), {"x": fl.f32("m"), "ids": fl.i32("n", 2), "v": fl.f32("n", 2)}),
    "add narrow": (lambda x, ids, v: fl.scatter_add(x, ids, v), {"x": fl.i8("m"), "ids": fl.i32("n"), "v": fl.i8("n")}),
    "places": (lambda ids, v: fl.scatter_nd(ids, v, (5, 6, 3)), {"ids": fl.i32("n", 2), "v": fl.f32("n", 3)}),
    "gather": (lambda x, ids: fl.gather_nd(x, ids), {"x": fl.f32(5, 6, 3), "ids": fl.i32("n", 2)}),
    "histogram": (lambda x: fl.histogram(x, 5, (-4, 4))[0], {"x": fl.f32("n", "m")}),
    "range": (lambda x: fl.histogram(x, 5), {"x": fl.f32("n", "m")}),
    "edges": (lambda x: fl.histogram(x, [-4.0, 0.0, 1.0, 9.0])[0], {"x": fl.f32("n", "m")}),
    "truth": (lambda ids, b: fl.stage(lambda a: fl.any(lambda i: (ids[i] == a) & b[i]), extents={"a": 5}),
              {"ids": fl.i32("n"), "b": fl.boolean("n")}),
    "all": (lambda ids, b: fl.stage(lambda a: fl.all(lambda i: fl.where(ids[i] == a, b[i], True)), extents={"a": 5}),
            {"ids": fl.i32("n"), "b": fl.boolean("n")}),
    "products": (lambda ids, v: fl.stage(lambda a: fl.prod(lambda i: fl.where(ids[i] == a, v[i], 1)), extents={"a": 5}),
                 {"ids": fl.i32("n"), "v": fl.u8("n")}),
    "polynomials": (lambda u, v: fl.stage(lambda a: fl.sum(lambda i, j: fl.where(a == i + j, u[i] * v[j], 0)), extents={"a": 20}),
                    {"u": fl.f32("n"), "v": fl.f32("m")}),
}  # fmt: skip
SORTS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "floats": (lambda x: (fl.sort(x), fl.argsort(x, descending=True)), {"x": fl.f32("b", "n")}),
    "doubles in columns": (lambda x: fl.sort(x, 0), {"x": fl.f64("n", "m")}),
    "bytes": (lambda x: fl.argsort(x, descending=True), {"x": fl.u8("n")}),
    "truth": (lambda x: fl.argsort(x), {"x": fl.boolean("n")}),
    "long integers": (lambda x: fl.sort(x, descending=True), {"x": fl.i64("n")}),
    "a fixed row": (lambda x: fl.sort(x, 1), {"x": fl.i32("n", 37)}),
    "one": (lambda x: fl.sort(x, 1), {"x": fl.f32("n", 1)}),
    "three axes": (lambda x: fl.argsort(x, 1), {"x": fl.f32("b", "n", "m")}),
    "computed keys": (lambda x: fl.argsort(fl.abs(x) - 3), {"x": fl.f32("b", "n")}),
    "the best": (lambda x: fl.top_k(x, 3), {"x": fl.f32("n", 20)}),
    "search": (lambda t, x: fl.searchsorted(fl.sort(t), x, side="right"), {"t": fl.f32("n"), "x": fl.f32("m")}),
    "search of few": (lambda t, x: fl.searchsorted(t, x), {"t": fl.i32(9), "x": fl.i32("m", "n")}),
    "median": (lambda x: fl.median(x), {"x": fl.f32("n", 9)}),
    "different": (lambda x: tuple(fl.unique(x, 6)), {"x": fl.f32("n")}),
    "different integers": (lambda x: tuple(fl.unique(x, 20)), {"x": fl.i32("n", "b")}),
    "somewhere": (lambda x: fl.nonzero(x, 9), {"x": fl.i32("n", "m")}),
}


@pytest.mark.parametrize("name", SCATTERS)
def test_scatters(name: str) -> None:
    fn, inputs = SCATTERS[name]
    agrees(fl.trace(fn, inputs=inputs))


@pytest.mark.parametrize("name", SORTS)
def test_sorts(name: str) -> None:
    fn, inputs = SORTS[name]
    g = fl.trace(fn, inputs=inputs)
    agrees(g, sizes=[(1, 2), (7, 3), (8, 5), (9, 2), (16, 3), (17, 1), (257, 2)])


def test_empty_results_and_rows() -> None:
    rows_ = fl.trace(lambda x: fl.sort(x), inputs={"x": fl.f32(3, 0)})
    assert getattr(driver.compile(rows_), rows_.methods[0].name)(np.zeros((3, 0), np.float32)).shape == (3, 0)
    g = fl.trace(lambda x, k: fl.segment_max(x, k, 4), inputs={"x": fl.f32(0), "k": fl.i32(0)})
    (name,) = (m.name for m in g.methods)
    got = getattr(driver.compile(g), name)(np.zeros(0, np.float32), np.zeros(0, np.int32))
    assert (got == -np.inf).all() and got.shape == (4,)


# ---------------------------------------------------------------- plans
PLANS = {
    "loops of its own": "schedule: {segment_sum: [{split: {axis: n, factor: 3}}, {reorder: [n_outer, m, n_inner]}, {unroll: n_inner}]}",
    "vectors": "schedule: {segment_sum: [{reorder: [n, m]}, {vectorize: {axis: m, width: 4}}]}",
    "parallel": "schedule: {segment_sum: [{parallel: m}]}",
    "partial results": "schedule: {segment_sum: [{rfactor: {axis: n, factor: 4}}], segment_sum/partial: [{parallel: n_inner}]}",
    "bare": "schedule: {segment_sum: []}",
}


@pytest.mark.parametrize("name", PLANS)
def test_a_scatter_under_plans(name: str) -> None:
    agrees(fl.trace(rows, inputs=ROWS), PLANS[name])


def test_scatters_in_the_middle_of_a_program_and_producers_inside_them() -> None:
    g = fl.trace(produced, inputs={"x": fl.f32("n")})
    sizes = [(1, 1), (40, 1)]
    agrees(g, sizes=sizes)
    staged = fl.trace(
        lambda x, k: fl.segment_sum(fl.stage(lambda i, j: fl.exp(x[i, j]), name="e"), k, 5),
        inputs={"x": fl.f32("n", 8), "k": fl.i32("n")},
    )
    agrees(staged, "schedule: {e: [{compute_at: {stage: segment_sum, axis: n}}], segment_sum: [{reorder: [n, j]}]}", sizes)


def test_rows_of_a_sort_are_loops() -> None:
    g = fl.trace(lambda x: fl.argsort(x), inputs={"x": fl.f32("b", "n")})
    for plan in ("rank: [{parallel: b}]", "rank: [{split: {axis: b, factor: 2}}, {parallel: b_outer}]", "rank: []"):
        agrees(g, f"schedule: {{{plan}}}", [(5, 1), (30, 1)])


def test_rows_of_a_sort_are_written_out_with_one_memory() -> None:
    def fn(x: Any) -> Any:
        return fl.sort(x, axis=1)

    g = fl.trace(fn, inputs={"x": fl.u8("b", "n")})
    agrees(g, "schedule: {rank: [{tile: {b: 8}}, {tile: {b_inner: 4, b_outer: 2}}, {unroll: b_outer_inner}]}", [(1, 1), (19, 23)])


@pytest.mark.parametrize("axis", [0, 1])
def test_a_sort_needs_all_of_its_rows(axis: int) -> None:
    """Its keys, computed at a loop over rows, are those of whole rows."""

    def model(x: Any, y: Any) -> Any:
        keys = fl.stage(lambda i, j: fl.sum(lambda k: x[i, k] * y[j, k]), name="keys")
        return fl.argsort(keys, axis, descending=True)

    g = fl.trace(model, inputs={"x": fl.f32("n", "m"), "y": fl.f32("n", "m")})
    row = "ji"[axis]
    keys = f"keys: [{{compute_at: {{stage: argsort/rank, axis: {row}}}}}, {{fuse: [i, j]}}]"
    for rank in ("", f", rank: [{{parallel: {row}}}]"):
        agrees(g, f"schedule: {{{keys}{rank}}}", [(1, 1), (7, 3), (33, 5)])


def test_the_default_prints_as_directives_and_runs_once_over_what_is_scattered() -> None:
    g = fl.trace(rows, inputs={"ids": fl.i32(5000), "v": fl.f32(5000, 512)})
    made = lowered(g)
    assert "parallel: i1_task" in made.scheduled.text()
    again = lowered(g, made.scheduled.text())
    assert again.text() == made.text()
    text = made.text()
    assert text.count("5000:") == 1 and "vectorized" in text
    assert cost(g, g.stages[0]).flops == 5000 * 512
    ranks = fl.trace(lambda x: fl.argsort(x), inputs={"x": fl.f32(64, 1000)})
    assert "parallel" in lowered(ranks).scheduled.text()


def test_reordering_what_is_added_is_seen_as_such() -> None:
    g = fl.trace(
        lambda ids, v: fl.stage(lambda a: fl.sum(lambda i, j: fl.where(ids[i, j] == a, v[i, j], 0)), extents={"a": 5}, name="s"),
        inputs={"ids": fl.i32("n", "m"), "v": fl.f32("n", "m")},
    )
    assert lowered(g).numerics == "exact"
    assert lowered(g, "schedule: {s: [{reorder: [j, i]}]}").numerics == "reassociates"


def test_refusals() -> None:
    g = fl.trace(rows, inputs=ROWS)
    target = refused(g, "schedule: {segment_sum: [{parallel: segment}]}")
    assert target.code == "P203" and "positions that are data" in target.why and "m, n" in target.why
    assert refused(g, "schedule: {segment_sum: [{parallel: n}]}").code == "P210"
    assert refused(g, "schedule: {segment_sum: [{vectorize: n}]}").code == "P210"
    reader = fl.trace(_doubled, inputs=ROWS)
    inside = refused(reader, "schedule: {segment_sum: [{compute_at: {stage: twice, axis: s}}]}")
    assert inside.code == "P218" and "scatter" in inside.why
    ranks = fl.trace(lambda x: fl.argsort(x), inputs={"x": fl.f32(16, "n")})
    assert refused(ranks, "schedule: {rank: [{vectorize: i0}]}").code == "P217"
    along = refused(ranks, "schedule: {rank: [{parallel: n}]}")
    assert along.code == "P203" and "sort runs along it" in along.why
    assert refused(ranks, "schedule: {rank: [{compute_at: {stage: argsort, axis: i0}}]}").code == "P218"


def _doubled(ids: Any, v: Any) -> Any:
    total = fl.segment_sum(v, ids, 7)
    return fl.stage(lambda s, j: total[s, j] * 2, name="twice")


# ---------------------------------------------------------------- truth values and NaN, which sorting hangs on
NAN: dict[str, Callable[..., Any]] = {
    "isnan": lambda x, y: fl.isnan(x),
    "not isnan": lambda x, y: fl.stage(lambda i: ~fl.isnan(x[i])),
    "not less": lambda x, y: fl.stage(lambda i: ~(x[i] < y[i])),
    "unlike": lambda x, y: fl.not_equal(x, y),
    "like": lambda x, y: fl.equal(x, y),
    "truth": lambda x, y: fl.cast(x, fl.boolean),
    "like itself": lambda x, y: fl.stage(lambda i: x[i] == x[i]),
    "unlike itself": lambda x, y: fl.stage(lambda i: fl.where(x[i] != x[i], 1, 0)),
    "maximum": lambda x, y: fl.maximum(x, y),
    "minimum": lambda x, y: fl.minimum(x, y),
    "relu": lambda x, y: fl.maximum(x, 0),
    "largest": lambda x, y: fl.max(x),
    "to integer": lambda x, y: fl.cast(x, fl.i32),
    "first largest": lambda x, y: fl.argmax(x),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NAN)
def test_nan_stays_what_it_is(name: str, dtype: str) -> None:
    spec = fl.Spec(dtype, ("n",), (fl.extent("n"),))
    g = fl.trace(NAN[name], inputs={"x": spec, "y": spec})
    model = driver.compile(g)
    for n in (4, 64, 67):
        x = np.tile(np.array([1, np.nan, 3, np.nan], dtype), 17)[:n]
        y = np.tile(np.array([np.nan, 2, 2, np.nan], dtype), 17)[:n]
        np.testing.assert_array_equal(getattr(model, g.methods[0].name)(x, y), g.run(x, y))


# ---------------------------------------------------------------- speed
def fastest(work: Callable[[], object]) -> float:
    work()
    taken = []
    for _ in range(5):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def test_no_slower_than_numpy_by_far() -> None:
    """Generous bounds, for a machine that others use too: what fails here is a pass over results instead of over what is scattered."""
    rng, n = np.random.default_rng(0), 200_000
    ids, v = rng.integers(0, 1000, n).astype(np.int32), rng.standard_normal(n).astype(np.float32)
    total = driver.compile(fl.trace(lambda v, k: fl.segment_sum(v, k, 1000), inputs={"v": fl.f32("n"), "k": fl.i32("n")}))
    out = np.zeros(1000, np.float32)
    assert fastest(lambda: getattr(total, "lambda")(v, ids)) < 5 * fastest(lambda: np.add.at(out, ids, v))
    order = driver.compile(fl.trace(lambda x: fl.argsort(x), inputs={"x": fl.f32("n")}))
    assert fastest(lambda: getattr(order, "lambda")(v)) < 12 * fastest(lambda: np.argsort(v, kind="stable"))


def test_tails_of_a_scatter_are_never_computed_again() -> None:
    """What is added twice is wrong, however well it fits a vector."""

    def histogram(at: Any, x: Any) -> Any:
        doubled = fl.stage(lambda i, j: x[i, j] * 2, name="doubled")
        return fl.stage(lambda i, b: fl.sum(lambda j: fl.where(at[j] == b, doubled[i, j], 0)), name="bins", extents={"b": 6})

    g = fl.trace(histogram, inputs={"at": fl.i32(35), "x": fl.f32(33, 35)})
    at, x = np.arange(35, dtype=np.int32) % 6, np.random.default_rng(0).integers(0, 9, (33, 35)).astype(np.float32)
    plan = ExecutionPlan(schedule={"bins": [Vectorize("i", width=8)], "doubled": [ComputeAt("bins", "i_outer")]})
    np.testing.assert_array_equal(fl.compile(g, plan)(at, x), g.run(at, x))
    with pytest.raises(PlanError, match="P226") as caught:
        fl.compile(g, ExecutionPlan(schedule={"bins": [Split("i", 8, tail="shift")]}))
    assert "added again" in str(caught.value) and "guard" in str(caught.value)
