"""A consumer computed inside its producer's nest, with what each iteration has made."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import PlanError
from fluorite.algo.program import trace
from fluorite.codegen import driver
from fluorite.schedule import ExecutionPlan


def saved(x: Any, w: Any) -> Any:
    """A product and its relu, both results: the shape of a layer that keeps its activation."""
    h = fl.stage(lambda i, j: fl.sum(lambda k: x[i, k] * w[k, j]), name="h")
    return h, fl.stage(lambda j, i: fl.maximum(h[i, j], 0), name="r")


INPUTS = {"x": fl.f32("n", "k"), "w": fl.f32("k", "m")}


@pytest.mark.parametrize("loop", ["i_outer", "j_outer"])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (7, 19), (16, 32), (33, 50)])
def test_it_sees_what_the_iteration_made(loop: str, n: int, m: int) -> None:
    graph = trace(saved, None, INPUTS)
    plan = ExecutionPlan.from_yaml(f"""
schedule:
  h:
    - tile: {{i: 8, j: 16}}
    - reorder: [i_outer, j_outer, k, i_inner, j_inner]
    - parallel: i_outer
    - vectorize: j_inner
  r:
    - compute_at: {{stage: h, axis: {loop}}}
    - vectorize: {{axis: i, width: 4}}
""")
    compiled = driver.compile_graph(graph, plan, cache=False)
    assert len(compiled.variants[0].kernels) == 1
    model = driver.assemble(compiled.manifest("saved"), compiled.library, {})
    rng = np.random.default_rng(n * m)
    x, w = rng.random((n, 5), np.float32) - 0.5, rng.random((5, m), np.float32) - 0.5
    for got, wanted in zip(model(x, w), graph.run(x, w), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def measured(x: Any) -> Any:
    """A blurred image, the sum of its products with its neighbours, and its rows moved by their first element."""
    source = fl.edge(x)
    rough = fl.stage(lambda y, x: source[y, x - 1] + 2 * source[y, x] + source[y, x + 1], name="rough")
    near = fl.edge(rough)
    soft = fl.stage(lambda y, x: near[y - 1, x] + near[y, x] + near[y + 1, x], name="soft")
    products = fl.stage(lambda k: fl.sum(lambda y, x: soft[y, x] * near[y + k - 1, x]), name="products", extents={"k": 3})
    first = fl.stage(lambda y: fl.sum(lambda k: soft[y, k], over={"k": 1}), name="first")
    moved = fl.stage(lambda y, x: soft[y, x] - first[y], name="moved")
    return soft, products, moved


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 5), (8, 16), (13, 19), (33, 50)])
def test_blocks_of_rows_and_what_several_of_them_share(n: int, m: int) -> None:
    """One kernel: strips of a stencil, its producer over what the strip and the products need of it, partial sums of the strip, and a
    stage that reads another one that follows."""
    graph = trace(measured, None, {"x": fl.f32("h", "w")})
    plan = ExecutionPlan.from_yaml("""
schedule:
  rough: [{compute_at: {stage: soft, axis: strip}}, {vectorize: {axis: x, width: 4}}]
  soft: [{split: {axis: y, factor: 4, into: [strip, line]}}, {parallel: strip}, {vectorize: {axis: x, width: 4}}]
  products: [{rfactor: {axis: y, block: 4, into: tasks}}]
  products/tasks: [{rfactor: {axis: x, factor: 4}}, {compute_at: {stage: soft, axis: strip}}]
  products/tasks/partial:
    - compute_at: {stage: products/tasks, axis: y_outer}
    - reorder: [y_inner, x_outer, x_inner]
    - vectorize: x_inner
  first: [{compute_at: {stage: soft, axis: strip}}]
  moved: [{compute_at: {stage: soft, axis: strip}}]
""")
    compiled = driver.compile_graph(graph, plan, cache=False)
    assert [len(k.outputs) for k in compiled.variants[0].kernels] == [3, 1]
    model = driver.assemble(compiled.manifest("measured"), compiled.library, {})
    x = np.random.default_rng(n * m).random((n, m), np.float32)
    for got, wanted in zip(model(x), graph.run(x), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("block", [3, 8])
def test_blocks_that_are_no_strips_cannot_follow(block: int) -> None:
    plan = ExecutionPlan.from_yaml(f"""
schedule:
  rough: [{{compute_at: {{stage: soft, axis: strip}}}}]
  soft: [{{split: {{axis: y, factor: 4, into: [strip, line]}}}}]
  products: [{{rfactor: {{axis: y, block: {block}, into: tasks}}}}]
  products/tasks: [{{compute_at: {{stage: soft, axis: strip}}}}]
  first: [compute_root]
  moved: [compute_root]
""")
    with pytest.raises(PlanError, match="needs more than one iteration makes") as caught:
        driver.compile_graph(trace(measured, None, {"x": fl.f32("h", "w")}), plan, cache=False)
    assert [p.code for p in caught.value.problems] == ["P204"]


@pytest.mark.parametrize(
    ("loops", "axis", "body", "why"),
    [
        ("[{reorder: [k, i, j]}]", "i", lambda h: lambda i, j: h[i, j] + 1, "a loop of its reduction is outside"),
        ("[]", "j", lambda h: lambda i, j: h[i, j] + h[i, 0], "elsewhere than at its own position"),
        ("[]", "z", lambda h: lambda i, j: h[i, j] + 1, "no such loop"),
    ],
)
def test_what_cannot_follow(loops: str, axis: str, body: Any, why: str) -> None:
    def model(x: Any, w: Any) -> Any:
        h = fl.stage(lambda i, j: fl.sum(lambda k: x[i, k] * w[k, j]), name="h")
        return h, fl.stage(body(h), name="r")

    plan = ExecutionPlan.from_yaml(f"schedule:\n  h: {loops}\n  r: [{{compute_at: {{stage: h, axis: {axis}}}}}]\n")
    with pytest.raises(PlanError, match=why) as caught:
        driver.compile_graph(trace(model, None, INPUTS), plan, cache=False)
    assert [(p.code, p.line) for p in caught.value.problems] == [("P204", 3)]
