"""software_pipeline on a processor: prologue, steady state and epilogue give the same values at all lengths of the loop; refusals."""

# ruff: noqa: E501 (one case a line)
from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import PlanError
from fluorite.codegen import driver
from fluorite.codegen.target import resolve_target
from fluorite.schedule import ExecutionPlan


def blur(image: fl.f32[fl.Tensor, "h", "w"]) -> fl.Tensor:
    image = fl.edge(image)
    rows = fl.edge(fl.stage(lambda y, x: image[y, x - 1] + image[y, x + 1], name="rows"))
    return fl.stage(lambda y, x: rows[y - 1, x] + rows[y + 1, x], name="out")


def product(image: fl.f32[fl.Tensor, "h", "w"]) -> fl.Tensor:
    left = fl.stage(lambda i, k: image[i, k] * 2, name="left")
    right = fl.stage(lambda k, j: image[j, k] + 1, name="right")
    return fl.stage(lambda i, j: fl.sum(lambda k: left[i, k] * right[k, j]), name="out")


def rounded(image: fl.f32[fl.Tensor, "h", "w"]) -> fl.Tensor:
    rows = fl.stage(lambda y, x: fl.cast(image[y, x], "bfloat16"), name="rows")
    return fl.stage(lambda y: fl.sum(lambda x: fl.cast(rows[y, x], "float32")), name="out")


OUT = "{split: {axis: y, factor: 4}}, {vectorize: {axis: x, width: 8}}"
CASES: dict[str, tuple[Any, str]] = {
    "rows": (blur, "rows: [{compute_at: {stage: out, axis: y}}, {vectorize: {axis: x, width: 8}}], out: [{software_pipeline: y}, {vectorize: {axis: x, width: 8}}]"),
    "strips, three ahead": (blur, f"rows: [{{compute_at: {{stage: out, axis: y_outer}}}}, {{vectorize: {{axis: x, width: 8}}}}], out: [{OUT}, {{software_pipeline: {{axis: y_outer, stages: 4}}}}]"),
    "inside a parallel loop": (blur, f"rows: [{{compute_at: {{stage: out, axis: y_inner}}}}, {{layout: [x, y]}}], out: [{OUT}, {{parallel: y_outer}}, {{software_pipeline: {{axis: y_inner, stages: 3}}}}]"),
    "aligned, in the stack": (blur, "rows: [{compute_at: {stage: out, axis: x_outer}}, {vectorize: x}, {store_in: stack}, {align: {axis: x, bytes: 64}}], out: [{tile: {y: 4, x: 8}}, {software_pipeline: x_outer}]"),
    "a reduction loop": (product, "left: [{compute_at: {stage: out, axis: k_outer}}], right: [{compute_at: {stage: out, axis: k_outer}}, {vectorize: {axis: j, width: 8}}], out: [{split: {axis: k, factor: 3}}, {reorder: [k_outer, i, k_inner, j]}, {software_pipeline: {axis: k_outer, stages: 3}}, {vectorize: {axis: j, width: 8}}]"),
    "two loops": (product, "left: [{compute_at: {stage: out, axis: i}}], right: [{compute_at: {stage: out, axis: k_outer}}], out: [{split: {axis: k, factor: 4}}, {reorder: [i, k_outer, j, k_inner]}, {software_pipeline: i}, {software_pipeline: k_outer}]"),
    "a packed panel": (product, "left: [compute_root], right: [compute_root], out: [{pack: {tensor: right, sizes: {j: 8}, order: [j, k], into: panel}}, {split: {axis: j, factor: 8}}, {reorder: [j_outer, i, k, j_inner]}, {software_pipeline: j_outer}, {vectorize: j_inner}], panel: [{compute_at: {stage: out, axis: j_outer}}]"),
    "narrow floats": (rounded, "rows: [{compute_at: {stage: out, axis: y}}, {vectorize: {axis: x, width: 16}}], out: [{software_pipeline: y}]"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_it_changes_no_value(name: str) -> None:
    model, schedule = CASES[name]
    graph = fl.trace(model)
    plan = ExecutionPlan.from_yaml(f"fusion: {{rest: none}}\nschedule: {{{schedule}}}")
    plain = plan.replace(schedule={k: [d for d in ds if d.label() != "software_pipeline"] for k, ds in plan.schedule.items()})
    ours, reference = (driver.compile(graph, p, cache=False) for p in (plan, plain))
    for h, w in [(1, 1), (2, 3), (3, 17), (4, 8), (5, 16), (17, 33), (33, 7)]:
        image = np.random.default_rng(h).random((h, w), dtype=np.float32)
        got = ours(image)
        np.testing.assert_array_equal(got, reference(image), err_msg=f"{h} x {w}")
        np.testing.assert_allclose(got, graph.run(image), rtol=2e-5)


def lowered(model: Any, schedule: str) -> Any:
    graph = fl.trace(model)
    chosen, _ = driver.prepared(ExecutionPlan.from_yaml(f"fusion: {{rest: none}}\nschedule: {{{schedule}}}", "p.yaml"), graph)
    (made,) = driver.lower_variants(graph, chosen, resolve_target(chosen.target))
    return made


def test_the_loop_in_three_parts() -> None:
    text = lowered(*CASES["rows"]).text()
    assert "rows: float32[2, 3, w] in workspace" in text
    loops = [line.strip() for line in text.splitlines() if line.startswith("  for y in ")]
    assert loops == ["for y in 0..1:", "for y in 0..(h-1):", "for y in (h-1)..(h-1) + (1):"]


REFUSED = [
    (CASES["rows"][0], "rows: [{compute_at: {stage: out, axis: y}}], out: [{software_pipeline: z}]", "P203", "has no loop \"z\""),
    (CASES["rows"][0], "rows: [compute_root], out: [{software_pipeline: y}]", "P264", "no stage is computed at that loop"),
    (CASES["rows"][0], "rows: [{compute_at: {stage: out, axis: y}}], out: [{parallel: y}, {software_pipeline: y}]", "P264", "y is parallel: its iterations do not come one after the other"),
    (CASES["rows"][0], f"rows: [{{compute_at: {{stage: out, axis: y_inner}}}}, {{store_at: {{stage: out, axis: y_outer}}}}], out: [{OUT}, {{software_pipeline: y_inner}}]", "P264", "rows is kept from one iteration to the next"),
    (CASES["rows"][0], "rows: [{compute_at: {stage: out, axis: y}}], out: [{software_pipeline: {axis: y, stages: 17}}]", "P008", "stages is '17'"),
    (CASES["rows"][0], "rows: [{compute_at: {stage: out, axis: y}}], out: [{software_pipeline: {axis: y, asynchronous: true}}]", "P250", "software_pipeline: asynchronous on a CPU"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "schedule", "code", "words"), REFUSED)
def test_refusals(model: Any, schedule: str, code: str, words: str) -> None:
    with pytest.raises(PlanError) as refused:
        lowered(model, schedule)
    assert [p.code for p in refused.value.problems] == [code] and words in str(refused.value)
