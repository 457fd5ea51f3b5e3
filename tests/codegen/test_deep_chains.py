"""Long chains of stages and deep expressions, compiled."""

from __future__ import annotations

import re
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo import wellformed
from fluorite.codegen.driver import lower_variants, prepared
from fluorite.codegen.target import resolve_target
from fluorite.schedule.default.analysis import levels, written_out
from lowering import lowered

V = fl.f32[fl.Tensor, "n"]
X = np.linspace(-2, 2, 37, dtype=np.float32)


def operators(times: int) -> Any:
    def f(x: V) -> Any:
        for _ in range(times):
            x = x * 0.5 + 0.25
        return x

    return f


def stages(times: int) -> Any:
    def f(x: V) -> Any:
        for _ in range(times):
            x = fl.stage(lambda i, x=x: fl.maximum(x[i] * 0.5, -1.0) + 0.25)
        return x

    return f


def expression(times: int) -> Any:
    def f(x: V) -> Any:
        def body(i: Any) -> Any:
            e = x[i]
            for _ in range(times):
                e = e * 0.5 + 0.25
            return e

        return fl.stage(body)

    return f


@pytest.mark.parametrize(("make", "times"), [(operators, 300), (stages, 60), (expression, 300)])
def test_long_chains_compile_and_give_the_same(make: Any, times: int) -> None:
    model = fl.compile(make(times))
    np.testing.assert_array_equal(model(X), fl.trace(make(times)).run(X))


def test_the_default_schedule_keeps_expressions_within_bounds() -> None:
    graph = fl.trace(operators(400))
    plan, _ = prepared(None, graph)
    (lowered,) = lower_variants(graph, plan, resolve_target(plan.target))
    left = lowered.graph.stages
    assert 4 <= len(left) <= 20  # of 800
    assert max(levels(s.value, {}) for s in left) <= 102
    assert max(written_out(s.value, {}) for s in left) <= 2000
    assert sum(len(k.text()) for k in lowered.kernels) < 200 * 800


def test_a_plan_that_writes_too_much_into_one_expression_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wellformed, "_DEEPEST", 100)
    plan = fl.ExecutionPlan.from_yaml("schedule: {'s*': [compute_inline]}")

    def deep(x: V) -> Any:
        for n in range(60):
            x = fl.stage(lambda i, x=x: x[i] * 0.5 + 0.25, name=f"s{n}")
        return fl.stage(lambda i: x[i], name="last")

    def wide(x: V) -> Any:
        for n in range(8):
            x = fl.stage(lambda i, x=x: x[i] + 0.1 * x[i] * x[i] * x[i] * x[i], name=f"s{n}")
        return fl.stage(lambda i: x[i], name="last")

    for f, what in ((deep, "deep"), (wide, "written out")):
        with pytest.raises(fl.PlanError) as refused:
            fl.compile(f, plan)
        problem = refused.value.problems[0]
        assert problem.code == "P225" and what in problem.asked


def test_each_step_used_five_times_compiles() -> None:
    def f(x: V) -> Any:
        for _ in range(8):
            x = fl.stage(lambda i, x=x: x[i] * 0.5 + 0.1 * x[i] * x[i] * x[i] * x[i])
        return x

    assert fl.check(f, extents={"n": 37}).ok


def test_tiles_of_long_chains_of_stencils_are_clamped_once() -> None:
    """Where the tile of a stage begins is told by the loops, not by where that of the next stage does; where tiles stick out, too."""

    def f(x: fl.f32[fl.Tensor, "h", "w"]) -> Any:
        for n in range(4):
            x = fl.edge(x)
            x = fl.stage(lambda i, j, x=x: x[i - 1, j - 1] + 2 * x[i, j] + x[i + 1, j + 1], name=f"s{n}")
        return x

    at = "{compute_at: {stage: s3, axis: tile}}, {vectorize: {axis: j, width: native}}"
    own = "{split: {axis: i, factor: 8, into: [strip, line]}}, {split: {axis: j, factor: 64, into: [tile, xt]}}, "
    own += "{split: {axis: xt, factor: 16, into: [xv, lane]}}, {reorder: [strip, tile, line, xv, lane]}, {vectorize: lane}"
    written = "schedule:\n" + "".join(f"  s{n}: [{at}]\n" for n in range(3)) + f"  s3: [{own}]\n"
    text = lowered(f, written).text()
    assert "edge(tile * 64 - 3, w)" in text and not re.search(r"edge\(edge\(tile \* 64 - \d, w\) - \d", text)
    model, graph = fl.compile(f, fl.ExecutionPlan.from_yaml(written)), fl.trace(f)
    for h, w in ((1, 1), (3, 63), (9, 64), (8, 65), (17, 131), (2, 200)):
        x = np.random.default_rng(h * w).standard_normal((h, w), np.float32)
        np.testing.assert_array_equal(model(x), graph.run(x))
