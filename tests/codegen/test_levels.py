"""The levels of compilation as values: a plan applied, lowered, built, each with its text, its problems and its results."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.schedule import ExecutionPlan

X = np.random.default_rng(0).random((5, 11), np.float32)


def blur(x: fl.f32[fl.Tensor, "h", "w"]) -> Any:  # type: ignore[type-arg, valid-type]
    x = fl.edge(x)
    rows = fl.stage(lambda y, x_: x[y, x_ - 1] + x[y, x_ + 1], name="rows")
    return fl.stage(lambda y, x_: rows[y, x_] * 2, name="out")


def test_every_level_prints_and_runs() -> None:
    graph = fl.trace(blur)
    plan = ExecutionPlan.from_yaml("schedule: {rows: [{cache: acc}], out: [{split: {axis: y, factor: {choose: [2, 4]}}}]}")
    scheduled = plan.apply(graph)
    lowered, compiled = scheduled.lower(), scheduled.build()
    assert scheduled.check() == [] and scheduled.notes
    assert "/blur/rows/acc" in scheduled.text() and "kernel " in lowered.text() and compiled.text() == lowered.text()
    for level in (scheduled, lowered, compiled):
        np.testing.assert_array_equal(level.run(X), graph.run(X))
    np.testing.assert_array_equal(compiled.run(x=X), graph.run(X))
    with pytest.raises(fl.PlanError, match="refuses open holes"):
        scheduled.build(strict=True)


def test_a_bucket_is_asked_for() -> None:
    graph = fl.trace(blur)
    some = "extents: {h: {buckets: [5]}}\nschedule: {rows: [compute_root]}\n"
    plan = ExecutionPlan.from_yaml(some + "variants: [{when: {h: 5}, schedule: {rows: [compute_inline]}}]")
    special = plan.apply(graph, when={"h": 5})
    assert [s.name for s in special.graph.stages] == ["out"] and [s.name for s in plan.apply(graph).graph.stages] == ["rows", "out"]
    np.testing.assert_array_equal(special.lower().run(X), graph.run(X))
    assert len(plan.apply(graph).build().variants) == 2


def test_check_tells_what_only_kernels_show() -> None:
    text = "schedule:\n  out: [compute_root]\n  rows:\n    - compute_at: {stage: out, axis: y}\n    - store_in: registers\n"
    found = ExecutionPlan.from_yaml(text).apply(fl.trace(blur)).check()
    assert [(p.code, p.line) for p in found] == [("P213", 5)]


def test_kernels_of_a_gpu_run_with_their_threads_as_loops() -> None:
    graph = fl.trace(blur)
    scheduled = ExecutionPlan.from_yaml("target: {kind: cuda, arch: sm_80}").apply(graph)
    np.testing.assert_array_equal(scheduled.lower().run(x=X), graph.run(X))


def test_the_interpreter_in_float64() -> None:
    graph = fl.trace(blur)
    wide = graph.run(X, float64=True)
    x = np.pad(X.astype(np.float64), ((0, 0), (1, 1)), mode="edge")
    assert wide.dtype == np.float64
    np.testing.assert_array_equal(wide, (x[:, :-2] + x[:, 2:]) * 2)
