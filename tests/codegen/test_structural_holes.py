"""Whole directive lists as alternatives of a hole, named holes with constraints, and one producer for several readers: every choice is right."""

# ruff: noqa: E501 (one case a line)
from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import PlanError
from fluorite.algo.graph import Graph
from fluorite.codegen import driver
from fluorite.codegen.target import resolve_target
from fluorite.codegen.tuning.space import Space
from fluorite.schedule import ComputeAt, ComputeRoot, ExecutionPlan, StoreAt


def blur(image: Any) -> Any:
    rows = fl.edge(fl.stage(lambda y, x: image[y, x] * 2, name="rows"))
    return fl.stage(lambda y, x: rows[y - 1, x] + rows[y + 1, x], name="out")


def both(image: Any) -> Any:
    rows = fl.edge(fl.stage(lambda y, x: image[y, x] * 2 + 1, name="rows"))
    up = fl.stage(lambda y, x: rows[y - 1, x] - rows[y, x], name="up")
    left = fl.stage(lambda y, x: rows[y, x - 1] - rows[y, x], name="left")
    return {"up": up, "left": left}


def sums(image: Any) -> Any:
    rows = fl.stage(lambda y: fl.sum(lambda x: image[y, x]), name="rows")
    return {"scaled": fl.stage(lambda y, x: image[y, x] / (rows[y] + 1), name="scaled"), "rows": rows}


def test_the_first_alternatives_meet_the_conditions() -> None:
    text = "schedule: {out: [{tile: {y: $ty, x: $tx}}]}\nholes: {ty: {pow2: [4, 64]}, tx: {choose: [%s]}}\ntune: {where: ['$tx * $ty >= 64']}"
    with pytest.raises(PlanError) as refused:
        driver.prepared(ExecutionPlan.from_yaml(text % "8, 16"), traced(blur))
    (problem,) = refused.value.problems
    assert problem.code == "P124" and problem.line == 3 and "untuned build" in problem.why
    assert driver.prepared(ExecutionPlan.from_yaml(text % "16, 8"), traced(blur))[1]


def traced(f: Any) -> Graph:
    return fl.trace(f, None, inputs={"image": fl.f32("h", "w")})


def right(g: Graph, plan: ExecutionPlan) -> None:
    compiled = driver.compile_graph(g, plan, cache=False)
    model = driver.assemble(compiled.manifest("holes"), compiled.library, {})
    for h, w in [(1, 1), (7, 8), (16, 33), (33, 17)]:
        image = np.random.default_rng(h).random((h, w), dtype=np.float32)
        got, wanted = getattr(model, g.methods[0].name)(image), g.run(image)
        for a, b in zip(got.values(), wanted.values(), strict=True) if isinstance(wanted, dict) else [(got, wanted)]:
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=f"{h} x {w}\n{plan.to_yaml()}")


HOLES = """
holes: {ty: {choose: [4, 8]}, tx: {choose: [8, 32]}}
tune: {where: ["$ty * $tx <= 64"]}
schedule:
  out: [{tile: {y: $ty, x: $tx}}]
  rows:
    choose:
      - [compute_root]
      - [{compute_at: {stage: out, axis: {choose: [y_outer, x_outer]}}}]
      - [{compute_at: {stage: out, axis: y_inner}}, {store_at: {stage: out, axis: x_outer}}, {fold: {axis: y, extent: $ty}}]
"""


def test_every_structure_that_a_hole_offers_computes_the_same() -> None:
    g = traced(blur)
    plan = ExecutionPlan.from_yaml(HOLES, "p.yaml")
    space = Space(plan, g, resolve_target(plan.target))
    plans = [space.plan_of(candidate) for candidate in space.all()]
    kinds = {type(d) for p in plans for d in p.schedule["rows"]}
    assert {ComputeRoot, ComputeAt, StoreAt} <= kinds and len(plans) == 2 * 4
    sizes = {(d.sizes["y"], d.sizes["x"]) for p in plans for d in p.schedule["out"]}
    assert sizes == {(4, 8), (8, 8)}
    for p in plans:
        right(g, p)


def test_one_producer_in_several_readers() -> None:
    """Written into both; or a copy for each of them, computed in its reader's own loops."""
    g = traced(both)
    right(g, ExecutionPlan.from_yaml("schedule: {rows: [compute_inline]}", "p.yaml"))
    plan = """
    fusion: {rest: none}
    schedule:
      rows: [compute_inline]
      up: [{stage_in: {read: rows, into: above}}, {split: {axis: y, factor: 8}}]
      left: [{stage_in: {read: rows, into: beside}}, {split: {axis: y, factor: 4}}]
      above: [{compute_at: {stage: up, axis: y_inner}}, {store_at: {stage: up, axis: y_outer}}]
      beside: [{compute_at: {stage: left, axis: y_outer}}]
    """
    right(g, ExecutionPlan.from_yaml(plan, "p.yaml"))
    chosen, _ = driver.prepared(ExecutionPlan.from_yaml(plan, "p.yaml"), g)
    (lowered,) = driver.lower_variants(g, chosen, resolve_target(chosen.target))
    assert [sorted(path.split("/")[-1] for path in k.stages) for k in lowered.kernels] == [["above", "up"], ["beside", "left"]]


def test_a_kernel_of_several_results() -> None:
    """A result that another result reads: one kernel, both whole; or the reader computed as the producer's rows are made."""
    g = traced(sums)
    right(g, ExecutionPlan.from_yaml("fusion: {groups: [[rows, scaled]]}", "p.yaml"))
    with pytest.raises(PlanError, match="it is a result of sums, so all of it is needed"):
        right(g, ExecutionPlan.from_yaml("schedule: {rows: [{compute_at: {stage: scaled, axis: y}}]}", "p.yaml"))
    h = traced(both)
    right(h, ExecutionPlan.from_yaml("fusion: {groups: [[rows, up, left]]}", "p.yaml"))
