"""Extents that are computed: results of their true length, no padding on the way, in every level; what is beyond, and what is refused."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.autodiff.pullbacks import derivative
from fluorite.algo.errors import PlanError
from fluorite.algo.extent import at_most, nonnegative, symbol
from fluorite.algo.extent_names import counted_name
from fluorite.algo.numerics import compare
from fluorite.codegen import driver
from fluorite.codegen.lowered import structure_hash
from fluorite.codegen.tuning.graph_text import graph_data, graph_of
from fluorite.codegen.verifying import verify_each
from fluorite.schedule import ExecutionPlan

Array = np.ndarray[Any, Any]
INPUTS = {"x": fl.f32("m"), "t": fl.f32("m", 5)}
SIZES = (1, 7, 129, 299, 500, 3)


def given(m: int, seed: int = 0, dtype: str = "float32") -> tuple[Array, Array]:
    """Numbers of which some are 0, and a table."""
    g = np.random.default_rng(m + seed)
    x = np.where(g.random(m) < 0.6, g.standard_normal(m), 0)
    return x.astype(dtype), g.standard_normal((m, 5)).astype(dtype)


def rows(x: Any, t: Any) -> Any:
    """Those of the table at which x is not 0, 300 at most."""
    (at,), _ = fl.nonzero(x, 300, cut=True)
    return fl.stage(lambda k, c: t[at[k], c], name="rows")


def everything(x: Any, t: Any) -> dict[str, Any]:
    r = rows(x, t)
    return {
        "rows": r,
        "gram": fl.matmul(r, fl.transpose(r)),
        "moments": fl.matmul(fl.transpose(r), r),
        "twice": fl.concat([r, r]),
        "total": fl.sum(r),
        "mean": fl.mean(r, axis=0),
        "running": fl.cumulative_sum(r, axis=0),
        "column": r[:, 0] * 2,
        "shares": fl.stage(lambda c: fl.reduce(fl.logaddexp, -1e30, lambda k: r[k, c]), name="shares"),
    }


def agrees(fn: Callable[..., Any], cases: Any, inputs: Any = None, plan: str = "") -> Any:
    g = fl.trace(fn, inputs=inputs or INPUTS)
    model = driver.compile(g, ExecutionPlan.from_yaml(plan, "p.yaml") if plan else None)
    for args in cases:
        found = compare(g, None, args, getattr(model, g.methods[0].name)(*args))
        assert all(c.ok for c in found), [c.text() for c in found]
    return model


def test_what_they_mean() -> None:
    g = fl.trace(everything, inputs=INPUTS)
    assert "rows(k:found<=300, c:5): float32" in g.text() and "sum(k:found<=300" in g.text()
    for m in SIZES:
        x, t = given(m)
        found, r = g.run(x, t), t[x != 0][:300]
        assert {k: v.shape for k, v in found.items()}["twice"] == (2 * len(r), 5)
        np.testing.assert_array_equal(found["rows"], r)
        np.testing.assert_allclose(found["total"], r.sum(), rtol=1e-4, atol=1e-4)
        if len(r):
            np.testing.assert_allclose(found["mean"], r.mean(0), rtol=1e-4, atol=1e-5)
    again = graph_of(graph_data(g))
    assert structure_hash(again) == structure_hash(g) and again.stages[-1].counts == g.stages[-1].counts


@pytest.mark.parametrize("plan", ["", "schedule: {rows: [{split: {axis: k, factor: 8}}, {parallel: k_outer}]}\n"])
def test_kernels(plan: str) -> None:
    model = agrees(everything, [given(m) for m in SIZES], plan=plan)
    assert "float32[found<=300, 5]" in str(model.signatures)


def test_every_pass_keeps_the_meaning() -> None:
    g = fl.trace(lambda x, t: (rows(x, t) * 2, fl.matmul(rows(x, t), fl.transpose(rows(x, t)))), inputs=INPUTS)
    found = verify_each(g, ExecutionPlan.from_yaml("precision: {compute: bf16}\n", "p.yaml"))
    assert found.first_wrong is None, found.text()


def test_results_too_large_to_be_copied_cheaply() -> None:
    def large(x: Any, t: Any) -> Any:
        (at,), total = fl.nonzero(x > 0, 100_000, cut=True)
        return fl.stage(lambda k, c: t[at[k], c] * 2), total, t * 2

    model = agrees(large, [given(m) for m in (2, 30_000, 5)])
    one, two = model(*given(9))[0], model(*given(9, seed=1))[0]
    assert not np.shares_memory(one, two)
    with pytest.raises(fl.RunError, match="how long the result is"):
        model(*given(9), out=model(*given(9)))


def boxes(m: int) -> tuple[Array, Array]:
    g = np.random.default_rng(m)
    corner, size = g.random((m, 2)) * 10, g.random((m, 2)) * 5
    return np.concatenate([corner, corner + size], 1).astype("float32"), g.random(m).astype("float32")


def test_the_operators() -> None:
    def different(x: Any, t: Any) -> Any:
        u = fl.unique(fl.round(x * 2), 6, cut=True)
        return u.values, u.counts, u.inverse_indices, fl.stage(lambda k, c: t[u.indices[k], c]), u.total

    def kept(b: Any, s: Any) -> Any:
        found = fl.nms(b, s, 0.5, 20, cut=True)
        return found.indices, fl.stage(lambda k, c: b[found.indices[k], c] * 2), found.total

    agrees(different, [given(m) for m in (1, 5, 50)])
    agrees(kept, [boxes(m) for m in (1, 5, 40)], {"b": fl.f32("m", 4), "s": fl.f32("m")})
    x, t = given(50)
    values, counts, *_ = fl.trace(different, inputs=INPUTS).run(x, t)
    wanted = np.unique(np.round(x * 2), return_counts=True)
    np.testing.assert_array_equal(values, wanted[0][:6])
    np.testing.assert_array_equal(counts, wanted[1][:6])


def test_nothing_can_arrive_at_a_result_whose_length_is_not_known() -> None:
    """What check judges of derivatives leaves those results out, and says so."""

    def summed(x: fl.f32[fl.Tensor, "m"], t: fl.f32[fl.Tensor, "m", 5]) -> Any:
        return {"rows": rows(x, t), "total": fl.sum(fl.sin(rows(x, t)))}

    found = derivative(summed, "summed")
    assert not isinstance(found, str) and [path for path, _ in found.refused] == ["summed/rows"]
    assert set(found.graph.method("summed").result["derivatives"]) == {"t"}
    assert isinstance(reason := derivative(alone, "alone"), str)
    assert "known only when" in reason


def alone(x: fl.f32[fl.Tensor, "m"], t: fl.f32[fl.Tensor, "m", 5]) -> Any:
    return rows(x, t)


def test_two_of_them_and_one_inside_a_scan() -> None:
    def both(x: Any, t: Any) -> Any:
        (a,), _ = fl.nonzero(x > 0, 50, cut=True)
        (b,), _ = fl.nonzero(x < 0, 60, cut=True)
        products = fl.stage(lambda i, j: x[a[i]] * x[b[j]], name="products")
        steps = fl.scan(lambda c, e: (c / 2 + fl.sum(e), fl.stage(lambda k: x[a[k]] * c)), fl.zeros(()), t)[1]
        return products, fl.sum(products, axis=0), fl.sum(products, axis=1), steps

    model = agrees(both, [given(m) for m in (1, 4, 33, 70)])
    assert "float32[found<=50, found<=60]" in str(model.signatures)


def test_gradients_reach_what_was_gathered() -> None:
    def cost(x: Any, t: Any) -> Any:
        r = rows(x, t)
        return fl.sum(fl.sin(fl.matmul(r, fl.transpose(r))))

    def slope(x: Any, t: Any) -> Any:
        return fl.grad(lambda t: cost(x, t))(t)

    agrees(slope, [given(m) for m in (1, 7, 40)])
    (x, t), wide = given(6, dtype="float64"), {"x": fl.f64("m"), "t": fl.f64("m", 5)}
    found, value = fl.trace(slope, inputs=wide).run(x, t), fl.trace(cost, inputs=wide)
    along = np.random.default_rng(1).standard_normal(t.shape)
    wanted = (value.run(x, t + 1e-6 * along) - value.run(x, t - 1e-6 * along)) / 2e-6
    np.testing.assert_allclose(np.sum(found * along), wanted, rtol=1e-6)
    assert not found[x == 0].any()


def few(x: Any, t: Any) -> Any:
    n = fl.extent("few", of=fl.sum(fl.cast(x != 0, "int32")), most=4)
    return fl.stage(lambda k: x[k] * 2, extents={"k": n}), fl.arange(n), fl.zeros((n, 2))


def test_more_than_declared_is_refused_when_run() -> None:
    g = fl.trace(few, inputs=INPUTS)
    model = fl.compile(g)
    x, t = np.ones(9, "float32"), given(9)[1]
    for run in (g.run, model):
        with pytest.raises(fl.RunError) as caught:
            run(x, t)
        assert caught.value.problems[0].code == "R124" and "few<=4" in caught.value.problems[0].asked
    x[3:] = 0
    assert [a.shape for a in model(x, t)] == [(3,), (3,), (3, 2)]  # the model is none the worse for it


def test_what_needs_an_element_is_refused_where_there_is_none() -> None:
    g = fl.trace(lambda x, t: fl.max(rows(x, t), axis=0), inputs=INPUTS)
    model, (x, t) = fl.compile(g), given(5)
    for run in (g.run, model):
        with pytest.raises(fl.RunError) as caught:
            run(x * 0, t)
        assert caught.value.problems[0].code == "R121"
    np.testing.assert_array_equal(model(x, t), t[x != 0].max(0))


def test_a_plan_leaves_a_computed_extent_where_it_is() -> None:
    g = fl.trace(few, inputs=INPUTS)
    for do in ("compute_inline", "{compute_at: {stage: lambda, axis: k}}"):
        with pytest.raises(PlanError) as caught:
            driver.compile(g, ExecutionPlan.from_yaml(f"schedule: {{extent: [{do.replace('lambda', g.stages[-3].name)}]}}", "p.yaml"))
        assert "the extent few<=4" in caught.value.problems[0].why


def test_what_two_of_them_allow_is_asked_when_both_are_there() -> None:
    """Of no columns no largest is asked, whatever the call before had."""

    def largest(x: Any, t: Any) -> Any:
        (a,), _ = fl.nonzero(x > 0, 9, cut=True)
        (b,), _ = fl.nonzero(x < 0, 9, cut=True)
        return fl.stage(lambda j: fl.max(lambda i: x[a[i]] - x[b[j]]), name="largest")

    model, (_, t) = fl.compile(fl.trace(largest, inputs=INPUTS)), given(5)
    for x, wanted in (([1, 2, -1, 0, 0], [3.0]), ([0] * 5, []), ([1, 0, 0, -2, -3], [3.0, 4.0])):
        np.testing.assert_array_equal(model(np.array(x, "float32"), t), wanted)
    with pytest.raises(fl.RunError, match="over no elements"):
        model(np.array([0, 0, 0, -1, 0], "float32"), t)


@pytest.mark.parametrize(
    "fn, said",
    [
        (lambda x, t: fl.vmap(lambda r: fl.nonzero(r, 3, cut=True).indices[0])(t), "example of fl.vmap"),
        (lambda x, t: fl.cond(fl.sum(x) > 0, lambda: fl.nonzero(x, 3, cut=True).total, lambda: 0), "inside a branch"),
        (lambda x, t: fl.stage(lambda k: x[k], extents={"k": fl.extent("n", of=x, most=3)}), "float32 of 1 axes"),
        (lambda x, t: fl.zeros((fl.extent("n", of=fl.argmax(x), most=-1),)), "most=-1"),
        (lambda x, t: fl.zeros((fl.extent("n", of=fl.argmax(x), most=3, beyond="wrap"),)), "beyond='wrap'"),
    ],
)
def test_refusals(fn: Any, said: str) -> None:
    with pytest.raises(fl.AlgorithmError) as caught:
        fl.trace(fn, inputs=INPUTS)
    (problem,) = caught.value.problems
    assert problem.code == "A209" and said in problem.asked


def test_what_is_known_of_them() -> None:
    n = symbol(counted_name("n", 8))
    assert at_most(n, 8) and not at_most(n, 7) and nonnegative(n) and not nonnegative(n - 1)
    assert at_most(2 * n, 16) and at_most(n * symbol("m"), 8 * symbol("m")) and str(n) == "n<=8"


def test_an_artefact_gives_true_lengths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    g = fl.trace(few, inputs=INPUTS)
    driver.build(g, None, tmp_path / "few_alone")
    monkeypatch.syspath_prepend(str(tmp_path))
    made = importlib.import_module("few_alone")
    x, t = given(5)
    for got, wanted in zip(made.run(x, t), g.run(x, t), strict=True):
        np.testing.assert_array_equal(got, wanted)
    del sys.modules["few_alone"]
